//! Why a look, or one call of it, failed.

use std::{collections::BTreeMap, error::Error, path::PathBuf, time::Duration};

use proto::ClusterId;
use tonic::{Code, Status};

use super::fault;
use crate::words::said;

/// Why nothing could be said about a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A file that the playbook names cannot be read.
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// A certificate, key or authority is none.
    #[error("{} is no usable PEM {expected}{instead}", path.display())]
    Pem {
        path: PathBuf,
        expected: &'static str,
        /// What it holds instead, after a semicolon; empty where that is nothing that is known.
        instead: &'static str,
    },
    #[error("the key {} is not that of the certificate {}", key.display(), cert.display())]
    KeyPair { cert: PathBuf, key: PathBuf, source: std::io::Error },
    /// One of the files cannot be used.
    #[error("the files of `cluster.tls` do not fit together")]
    Tls(#[source] Box<dyn Error + Send + Sync>),
    /// An address that is no http(s) URL, or an https one where the playbook has no `cluster.tls`.
    #[error("`{address}` cannot be reached: {expected}")]
    Address { address: String, expected: &'static str },
    /// No endpoint, and no member known from an earlier look, answered.
    #[error("no member answered: {}", reasons.join("; "))]
    NobodyAnswered {
        /// What became of each address, by address.
        reasons: Vec<String>,
    },
    /// At every address a certificate, or the lack of one, stands in the way.
    #[error("no address can be spoken to as the playbook says: {}", reasons.join("; "))]
    Untrusted {
        /// What is wrong with the agent's own certificate, and at each address, by address.
        reasons: Vec<String>,
    },
    /// At every address somebody answers who is no member for clients.
    #[error("no client port of a member is at any address: {}", reasons.join("; "))]
    NoClientPort {
        /// What answers at each address, by address.
        reasons: Vec<String>,
    },
    /// Members answered, but none could list the membership.
    #[error("no member could list the members: {}", reasons.join("; "))]
    NoMembership {
        /// What became of each address, by address.
        reasons: Vec<String>,
    },
    /// Two addresses belong to two clusters.
    #[error("`{address}` belongs to cluster {found}, the others to {expected}")]
    AnotherCluster {
        /// The address that stands out.
        address: String,
        found: ClusterId,
        expected: ClusterId,
    },
    /// The cluster takes the playbook's user, and answers its questions to the role `root` only.
    #[error("user `{user}` does not have the role root, which the agent needs")]
    NotRoot { user: String },
    /// The cluster does not take the playbook's user or password.
    #[error("the cluster refuses user `{user}`: {reason}")]
    Auth { user: String, reason: String },
}

/// What members say to a call without a user that they know. The second: a client certificate names somebody who is none.
pub const USER_WANTED: [&str; 2] = ["etcdserver: user name is empty", "etcdserver: user name not found"];
/// What they say to a call that is not this user's to make.
pub const DENIED: &str = "etcdserver: permission denied";

impl ObserveError {
    /// Whether somebody answers who does not speak to this user, or to this certificate.
    pub fn is_denial(&self) -> bool {
        match self {
            Self::Auth { .. } | Self::NotRoot { .. } | Self::Untrusted { .. } => true,
            Self::NobodyAnswered { reasons } | Self::NoMembership { reasons } => {
                let denied = USER_WANTED.into_iter().chain([DENIED]);
                denied.into_iter().any(|said| reasons.iter().any(|reason| reason.contains(said)))
            }
            Self::File { .. } | Self::Pem { .. } | Self::KeyPair { .. } | Self::Tls(_) => false,
            Self::Address { .. } | Self::NoClientPort { .. } | Self::AnotherCluster { .. } => false,
        }
    }

    /// Nobody answered, and why at each address. `own`: what is wrong with the agent's own certificate.
    pub(super) fn nobody(failed: &BTreeMap<String, CallError>, own: Option<String>) -> Self {
        let reason = |(address, error): (&String, &CallError)| format!("{address}: {error}{}", error.hint_at(address));
        let reasons: Vec<_> = failed.iter().map(reason).collect();
        let all = |is_it: fn(&CallError) -> bool| !failed.is_empty() && failed.values().all(is_it);
        match () {
            () if all(|error| matches!(error, CallError::Untrusted(_))) => {
                Self::Untrusted { reasons: own.into_iter().chain(reasons).collect() }
            }
            () if all(|error| matches!(error, CallError::NoClientPort)) => Self::NoClientPort { reasons },
            () => Self::NobodyAnswered { reasons },
        }
    }
}

/// Why one call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// Nothing came back in time; it may have been carried out all the same.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection failed; unless it could not be made, the call may have been carried out all the same.
    #[error("{}", said(&root_cause(.0)))]
    Broken(Status),
    /// There is somebody, but no way to speak to him: his certificate or ours, or one side has none.
    #[error("{}", said(.0))]
    Untrusted(String),
    /// There is somebody who speaks HTTP, and none of etcd's calls.
    #[error("something answers there that is no etcd client port; is this the peer port?")]
    NoClientPort,
    /// Another cluster answered, so nothing was.
    #[error("it belongs to cluster {0}")]
    Foreign(ClusterId),
    /// The server answered with an error.
    #[error("{}", said(.0.message()))]
    Said(Status),
    /// The address cannot be used at all.
    #[error("{0}")]
    Unusable(String),
}

impl CallError {
    /// The server's own code, if it was the server that answered.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Said(status) => Some(status.code()),
            _ => None,
        }
    }

    /// What to look at where somebody takes connections at this address and ends them: the two sides may not speak the same
    /// protocol, and which of them is wrong cannot be told from here.
    fn hint_at(&self, address: &str) -> &'static str {
        match self {
            Self::Broken(status) if fault::is_hung_up(status) => match address.starts_with("https://") {
                true => {
                    " (somebody hangs up: is this the peer port? does it want a client certificate, `cluster.tls.cert` and \
                     `cluster.tls.key`?)"
                }
                false => " (somebody hangs up: does it speak TLS? then write https:// and `cluster.tls`)",
            },
            _ => "",
        }
    }

    /// Whether the server answered with these words.
    pub fn says(&self, words: &str) -> bool {
        matches!(self, Self::Said(status) if status.message() == words)
    }
}

impl From<Status> for CallError {
    /// A status with a source was made on our side of the wire, by the transport.
    fn from(status: Status) -> Self {
        match (status.source(), fault::in_words(&status)) {
            (Some(_), Some(fault)) => Self::Untrusted(fault),
            (Some(_), None) => Self::Broken(status),
            (None, _) => Self::Said(status),
        }
    }
}

/// The innermost cause: "connection refused" rather than "transport error".
fn root_cause(status: &Status) -> String {
    let mut cause: &dyn Error = status;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_answers_and_does_not_know_the_user_is_no_silence() {
        let nobody = |said: &str| ObserveError::NobodyAnswered {
            reasons: vec!["http://a: connection refused".into(), format!("http://b: {said}")],
        };
        for (error, expected) in [
            (nobody("connection refused"), false),
            (nobody("it belongs to cluster 1"), false),
            (nobody("etcdserver: user name is empty"), true),
            (nobody("etcdserver: permission denied"), true),
            (ObserveError::NoMembership { reasons: vec!["http://a: etcdserver: user name not found".into()] }, true),
            (ObserveError::Auth { user: "root".into(), reason: "x".into() }, true),
            (ObserveError::Untrusted { reasons: Vec::new() }, true),
            (ObserveError::NoClientPort { reasons: Vec::new() }, false),
        ] {
            assert_eq!(error.is_denial(), expected, "{error}");
        }
    }
}
