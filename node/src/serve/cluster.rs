//! etcd's `Cluster`.

use proto::{
    MemberId,
    etcdserverpb::{
        Member as Listed, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse,
        MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest,
        MemberUpdateResponse, cluster_server::Cluster,
    },
};
use tonic::{Request, Response, Status, async_trait};

use super::context::ServiceContext;
use crate::{cluster::member::Member, state::State};

fn not_yet<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("this release of the node does not change its membership"))
}

#[async_trait]
impl Cluster for ServiceContext {
    async fn member_list(&self, request: Request<MemberListRequest>) -> Result<Response<MemberListResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata)?;
        let list = |state: &State| Ok((state.keys.revision(), state.cluster.members.iter().map(listed).collect()));
        let (revision, members) = match request.linearizable {
            true => self.read(&requires, list).await?,
            false => self.read_here(&requires, list)?,
        };
        Ok(Response::new(MemberListResponse { header: self.header(revision.0), members }))
    }

    async fn member_add(&self, _: Request<MemberAddRequest>) -> Result<Response<MemberAddResponse>, Status> {
        not_yet()
    }

    async fn member_remove(&self, _: Request<MemberRemoveRequest>) -> Result<Response<MemberRemoveResponse>, Status> {
        not_yet()
    }

    async fn member_update(&self, _: Request<MemberUpdateRequest>) -> Result<Response<MemberUpdateResponse>, Status> {
        not_yet()
    }

    async fn member_promote(
        &self,
        _: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        not_yet()
    }
}

/// A member is listed by name once it has published itself, as in etcd: that is how one that never started is told.
fn listed((id, member): (&MemberId, &Member)) -> Listed {
    let name = if member.client_urls.is_empty() { String::new() } else { member.name.clone() };
    Listed {
        id: id.0,
        name,
        peer_urls: member.peer_urls.clone(),
        client_urls: member.client_urls.clone(),
        is_learner: member.is_learner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_never_started_has_no_name() {
        let mut member = Member { name: "m2".into(), peer_urls: vec!["http://h:2380".into()], ..Member::default() };
        assert_eq!(listed((&MemberId(2), &member)).name, "");
        member.client_urls.push("http://h:2379".into());
        member.is_learner = true;
        let expected = Listed {
            id: 2,
            name: "m2".into(),
            peer_urls: vec!["http://h:2380".into()],
            client_urls: vec!["http://h:2379".into()],
            is_learner: true,
        };
        assert_eq!(listed((&MemberId(2), &member)), expected);
    }
}
