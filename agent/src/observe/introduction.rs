//! Who is there, asked before anything secret is sent: a token or a password goes only to a member of this cluster.
//!
//! The question carries no token. `Status` answers it where auth is off, and in older releases; where it is refused for
//! want of a token, as by etcd from 3.5.28 on, a watch is asked for: each release since 3.4 answers that it may not be
//! made with the header that every answer has (etcd, `api/v3rpc/watch.go`). A learner serves no watch; it says so, and
//! not who it is. It gets the token, without which it would seem to be down, and never a password.
//!
//! What was answered holds for the connection that it came over, and ends with it ([`super::line`]). Before a password is
//! sent it is asked again: a refusal of the token, which led there, does not say whose it is.
//!
//! That answer proves nothing of somebody who lies. It keeps secrets from those who are elsewhere by mistake; against
//! liars there are certificates.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use proto::{
    ClusterId, MemberId,
    etcdserverpb::{
        ResponseHeader, StatusRequest, WatchCreateRequest, WatchRequest, maintenance_client::MaintenanceClient,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
};
use tonic::{
    Code,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use super::{
    access::Access,
    error::{CallError, ObserveError},
    line::Line,
    member::{MAX_MESSAGE, nameless, whose},
};

/// Whoever answered without being told a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A member that says who it is.
    Member(MemberId, ClusterId),
    /// A learner, which does not.
    Learner,
}

impl Access {
    /// Settles which cluster this is about, unless it is settled: that of the playbook's endpoints, which must all
    /// belong to it. Hands on what became of those that did not answer.
    ///
    /// # Errors
    /// [`ObserveError::AnotherCluster`], and [`ObserveError::NobodyAnswered`] or [`ObserveError::Untrusted`].
    pub(super) async fn meet(&self) -> Result<BTreeMap<String, CallError>, ObserveError> {
        let _one_at_a_time = self.meeting.lock().await;
        if self.directory().cluster().is_some() {
            return Ok(BTreeMap::new());
        }
        let asked = self.directory().endpoints().iter().map(|address| async move {
            let answer = self.introduction(address).await;
            (address, answer)
        });
        let (mut first, mut failed) = (None, BTreeMap::new());
        for (address, answer) in join_all(asked).await {
            match (answer, first) {
                (Ok(Peer::Member(_, found)), Some(expected)) if found != expected => {
                    return Err(ObserveError::AnotherCluster { address: address.clone(), found, expected });
                }
                (Ok(Peer::Member(_, found)), _) => first = Some(found),
                (Ok(Peer::Learner), _) => {}
                (Err(error), _) => drop(failed.insert(address.clone(), error)),
            }
        }
        let Some(cluster) = first else {
            self.diagnose(&mut failed).await;
            return Err(ObserveError::nobody(&failed, self.own_fault()));
        };
        self.directory().settle(cluster);
        Ok(failed)
    }

    /// The connection for a call to this address and the token that it carries; none where none is wanted, or none can
    /// be had. The two belong together: over another connection somebody else may be there.
    ///
    /// # Errors
    /// [`CallError::Unusable`] where it must not be sent there, and whatever keeps the address from saying who it is.
    pub(crate) async fn entry(&self, address: &str) -> Result<(Arc<Line>, Option<MetadataValue<Ascii>>), CallError> {
        if !self.login.has_user() {
            return Ok((self.line(address)?, None));
        }
        // Nobody is known who could be asked for a token.
        if self.directory().cluster().is_none() && self.meet().await.is_err() {
            return Ok((self.line(address)?, None));
        }
        match self.login.token(address, || self.for_login()).await {
            Some(token) => Ok((self.entrusted(address).await?, Some(token))),
            None => Ok((self.line(address)?, None)),
        }
    }

    /// A connection over which a token may be sent.
    async fn entrusted(&self, address: &str) -> Result<Arc<Line>, CallError> {
        self.may_have_secrets(address)?;
        self.patiently(address, || async {
            let line = self.line(address)?;
            self.acquainted(&line).await?;
            Ok(line)
        })
        .await
    }

    /// A connection over which a password may be sent.
    async fn trusted(&self, address: &str) -> Result<Arc<Line>, CallError> {
        self.patiently(address, || async {
            let line = self.line(address)?;
            self.vouched(&line).await?;
            Ok(line)
        })
        .await
    }

    fn may_have_secrets(&self, address: &str) -> Result<(), CallError> {
        if self.directory().may_have_secrets(address) {
            return Ok(());
        }
        let why = "neither token nor password is sent to an http address that the playbook does not list: \
                   add it to `cluster.endpoints`";
        Err(CallError::Unusable(why.to_owned()))
    }

    /// Makes sure that somebody of this cluster is at the other end; asks where that is not known of this connection.
    pub(super) async fn acquainted(&self, line: &Arc<Line>) -> Result<(), CallError> {
        let peer = match line.peer.get() {
            Some(peer) => *peer,
            None => self.asked(line).await?,
        };
        self.checked(line, peer)
    }

    /// Makes sure that a member of this cluster is at the other end and may be told the password; asks in any case.
    pub(super) async fn vouched(&self, line: &Arc<Line>) -> Result<(), CallError> {
        self.may_have_secrets(&line.address)?;
        let peer = self.asked(line).await?;
        self.checked(line, peer)?;
        match peer {
            Peer::Member(..) => Ok(()),
            Peer::Learner => Err(CallError::Unusable("it is a learner, which takes no logins".to_owned())),
        }
    }

    /// Asks, with no secret, who is there.
    pub(super) async fn introduction(&self, address: &str) -> Result<Peer, CallError> {
        self.patiently(address, || async { self.asked(&self.line(address)?).await }).await
    }

    async fn asked(&self, line: &Arc<Line>) -> Result<Peer, CallError> {
        // Boxed: every call asks this first, and the compiler lays out what they nest.
        let answer = Box::pin(introduced(&line.address, line.channel.clone())).await;
        match answer {
            Ok(peer) => drop(line.peer.get_or_init(|| peer)),
            Err(_) => self.hang_up(line),
        }
        answer
    }

    fn checked(&self, line: &Arc<Line>, peer: Peer) -> Result<(), CallError> {
        match (peer, self.directory().cluster()) {
            (Peer::Member(_, found), Some(cluster)) if found != cluster => {
                self.hang_up(line);
                Err(CallError::Foreign(found))
            }
            (_, Some(_)) => Ok(()),
            (_, None) => Err(CallError::Unusable("it is not clear yet which cluster this is".to_owned())),
        }
    }

    /// The connections over which a password may be sent.
    pub(super) fn for_login(&self) -> Vec<impl Future<Output = Result<Arc<Line>, CallError>>> {
        let addresses = self.directory().routes(None).into_iter();
        let addresses = addresses.filter(|address| self.directory().may_have_secrets(address));
        addresses.map(|address| async move { self.trusted(&address).await }).collect()
    }
}

/// Asks over this connection.
pub(super) async fn introduced(address: &str, channel: Channel) -> Result<Peer, CallError> {
    let mut client = MaintenanceClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE);
    match client.status(StatusRequest {}).await {
        Ok(status) => named(address, status.into_inner().header.as_ref()),
        Err(status) => match CallError::from(status) {
            CallError::Said(_) => refused_a_watch(address, channel).await,
            error => Err(error),
        },
    }
}

/// Asks for a watch that nobody without a token may have. Where it is granted all the same it ends at once.
async fn refused_a_watch(address: &str, channel: Channel) -> Result<Peer, CallError> {
    let create = WatchCreateRequest { key: b"\0".to_vec(), ..Default::default() };
    let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let answers = match WatchClient::new(channel).watch(tokio_stream::once(create)).await {
        Ok(answers) => answers.into_inner().message().await,
        Err(status) => Err(status),
    };
    match answers.map_err(CallError::from) {
        Ok(answer) => named(address, answer.and_then(|answer| answer.header).as_ref()),
        Err(error) if is_learner(&error) => Ok(Peer::Learner),
        Err(error) => Err(error),
    }
}

fn is_learner(error: &CallError) -> bool {
    let words = "etcdserver: rpc not supported for learner";
    error.says(words) && matches!(error.code(), Some(Code::FailedPrecondition | Code::Unavailable))
}

fn named(address: &str, header: Option<&ResponseHeader>) -> Result<Peer, CallError> {
    let (member, cluster) = whose(header).ok_or_else(|| nameless(address))?;
    Ok(Peer::Member(member, cluster))
}
