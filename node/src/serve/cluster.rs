//! etcd's `Cluster`.

use std::collections::BTreeSet;

use proto::{
    MemberId,
    etcdserverpb::{
        Member as Listed, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse,
        MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest,
        MemberUpdateResponse, ResponseHeader, cluster_server::Cluster,
    },
};
use tonic::{Request, Response, Status, async_trait};

use prost::Message;

use super::context::ServiceContext;
use crate::{
    api_error::ApiError,
    cluster::{entry::Entry, member::Member, membership::Change},
    config::Url,
    entry::EntryKind,
    state::State,
};

impl ServiceContext {
    /// Changes who the members are; all that there are then, for the answer.
    async fn change<T>(&self, request: &Request<T>, change: Change) -> Result<Outcome, Status> {
        self.admit(request.metadata()).await?;
        self.member.change(&change).await?;
        let Outcome { header, mut members } = self.list();
        members.retain(|member| change != Change::Remove(MemberId(member.id)));
        Ok(Outcome { header, members })
    }

    /// The members as this one has them.
    fn list(&self) -> Outcome {
        let list =
            |state: &State| (state.keys.revision(), state.cluster.members.iter().map(listed).collect::<Vec<_>>());
        let (revision, mut members) = self.member.read(list);
        if let Some((MemberId(id), peer_urls)) = self.member.awaited_voter() {
            members.push(Listed { id, peer_urls, ..Listed::default() });
            members.sort_by_key(|member| member.id);
        }
        Outcome { header: self.header(revision.0), members }
    }
}

/// Of a change, or a question.
struct Outcome {
    header: Option<ResponseHeader>,
    members: Vec<Listed>,
}

#[async_trait]
impl Cluster for ServiceContext {
    async fn member_list(&self, request: Request<MemberListRequest>) -> Result<Response<MemberListResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        match request.linearizable {
            true => self.read(&requires, |_| Ok(())).await?,
            false => self.read_here(&requires, |_| Ok(()))?,
        }
        let Outcome { header, members } = self.list();
        Ok(Response::new(MemberListResponse { header, members }))
    }

    async fn member_add(&self, request: Request<MemberAddRequest>) -> Result<Response<MemberAddResponse>, Status> {
        let MemberAddRequest { peer_urls: urls, is_learner } = request.get_ref();
        let (id, peer_urls) = (self.member.new_id(), peer_urls(urls)?);
        let new = Listed { id: id.0, peer_urls: peer_urls.clone(), is_learner: *is_learner, ..Listed::default() };
        let change = Change::Add { id, peer_urls, is_learner: *is_learner };
        let Outcome { header, members } = self.change(&request, change).await?;
        Ok(Response::new(MemberAddResponse { header, member: Some(new), members }))
    }

    async fn member_remove(
        &self,
        request: Request<MemberRemoveRequest>,
    ) -> Result<Response<MemberRemoveResponse>, Status> {
        let change = Change::Remove(MemberId(request.get_ref().id));
        let Outcome { header, members } = self.change(&request, change).await?;
        Ok(Response::new(MemberRemoveResponse { header, members }))
    }

    async fn member_update(
        &self,
        request: Request<MemberUpdateRequest>,
    ) -> Result<Response<MemberUpdateResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let requires = self.admit(&metadata).await?;
        let size = request.encoded_len();
        let (member, peer_urls) = (MemberId(request.id), peer_urls(&request.peer_urls)?);
        self.read(&requires, |state| state.cluster.may_move(member, &peer_urls)).await?;
        let entry = Entry::Move { member, peer_urls: peer_urls.clone() };
        // What came of it is said by the state: to move a member to where it is is no news, and well.
        self.propose(requires, EntryKind::Cluster(entry), size).await?;
        let now = |state: &State| {
            state.cluster.may_move(member, &peer_urls)?;
            Ok((state.keys.revision(), state.cluster.members.iter().map(listed).collect()))
        };
        let (revision, members) = self.read_here(&[], now)?;
        Ok(Response::new(MemberUpdateResponse { header: self.header(revision.0), members }))
    }

    async fn member_promote(
        &self,
        request: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        let change = Change::Promote(MemberId(request.get_ref().id));
        let Outcome { header, members } = self.change(&request, change).await?;
        Ok(Response::new(MemberPromoteResponse { header, members }))
    }
}

/// Each once and in order, as etcd keeps them. What is none, or port 0, would be dialled for ever; etcd takes it.
fn peer_urls(asked: &[String]) -> Result<Vec<String>, ApiError> {
    let urls: Result<BTreeSet<Url>, _> = asked.iter().map(|url| url.parse()).collect();
    let urls = urls.ok().filter(|urls| !urls.is_empty() && urls.iter().all(|url| !url.is_any_port()));
    let urls = urls.ok_or(ApiError::BadMemberUrls)?;
    Ok(urls.iter().map(Url::to_string).collect())
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
    fn what_is_no_peer_url_is_refused() {
        let asked = |urls: &[&str]| peer_urls(&urls.iter().map(ToString::to_string).collect::<Vec<_>>());
        for wrong in [
            &[][..],
            &[""],
            &["h:2380"],
            &["http://h"],
            &["http://h:2380/x"],
            &["http://h:0"],
            &["http://a:1", "ftp://b:1"],
        ] {
            assert_eq!(asked(wrong), Err(ApiError::BadMemberUrls), "{wrong:?}");
        }
        let twice = ["https://h:2380", "http://h:2380", "https://h:2380"];
        assert_eq!(asked(&twice), Ok(vec!["http://h:2380".to_owned(), "https://h:2380".to_owned()]));
    }

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
