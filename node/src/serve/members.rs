//! What each member runs and demands, for operators and for whoever upgrades the cluster: the one that is asked, and the others as it has
//! heard them last. One that waits serves nobody, and is told of by the others alone.

use proto::{
    MemberId,
    batonpb::{ListRequest, ListResponse, Member as Listed, members_server::Members},
};
use tonic::{Request, Response, Status, async_trait};

use super::{
    context::ServiceContext,
    page::{Labels, Page},
};
use crate::{config::JoinPolicy, peer::compatible::Terms};

#[async_trait]
impl Members for ServiceContext {
    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        self.admit(request.metadata()).await?;
        let header = self.header(self.member.read(|state| state.keys.revision().0));
        Ok(Response::new(ListResponse { header, members: listed(self) }))
    }
}

fn listed(context: &ServiceContext) -> Vec<Listed> {
    let (own, handshake) = (context.member.identity().member, context.member.handshake());
    let others = handshake.heard().into_iter().filter(|(id, _)| *id != own);
    let others = others.map(|(id, remote)| line(id, &remote.terms, remote.waits));
    [line(own, handshake.terms(), handshake.waits())].into_iter().chain(others).collect()
}

fn line(id: MemberId, terms: &Terms, waits: bool) -> Listed {
    Listed {
        id: id.0,
        release: terms.release.to_string(),
        lowest_protocol: terms.protocols.lowest,
        highest_protocol: terms.protocols.highest,
        join_policy: terms.policy.map_or("", JoinPolicy::word).to_owned(),
        waits,
    }
}

/// The same as metrics.
pub(super) fn metrics(context: &ServiceContext, page: &mut Page) {
    let members = listed(context);
    let labels = |member: &Listed| {
        let (id, lowest, highest) =
            (MemberId(member.id).to_string(), member.lowest_protocol.to_string(), member.highest_protocol.to_string());
        Labels::of(&[
            ("highest_protocol", &*highest),
            ("join_policy", &member.join_policy),
            ("lowest_protocol", &lowest),
            ("member", &id),
            ("release", &member.release),
        ])
    };
    let help = "What each member runs and demands, as this one has heard it last.";
    page.gauges("baton_member_release", help, members.iter().map(|member| (labels(member), 1)));
    let waits =
        |member: &Listed| (Labels::of(&[("member", &MemberId(member.id).to_string())]), i32::from(member.waits));
    let help = "Whether a member waits to be let in: it neither votes nor serves.";
    page.gauges("baton_member_waits", help, members.iter().map(waits));
}
