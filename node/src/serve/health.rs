//! `/health`, `/livez` and `/readyz` (etcd, server/etcdserver/api/etcdhttp/health.go).
//!
//! A linearizable read is one as clients have it: a round of the quorum, unless the leader answers reads by its lease. Then it says
//! that there was a quorum a moment ago.

use ::http::StatusCode;
use instruments::Counter;
use proto::{MemberId, etcdserverpb::AlarmType};
use serde::Serialize;

use super::{
    context::ServiceContext,
    http::{Answer, json, values},
};

const TEXT: &str = "text/plain; charset=utf-8";

/// How often `/health` said so since this process started.
#[derive(Debug, Default)]
pub(super) struct HealthCounts {
    pub(super) success: Counter,
    pub(super) failures: Counter,
}

#[derive(Serialize)]
struct Health {
    health: &'static str,
    reason: String,
}

/// `GET /health`: with `serializable=true` of this process alone; `exclude=NOSPACE` passes over an alarm.
pub(super) async fn health(context: &ServiceContext, query: &str) -> Answer {
    let sickness = sickness(context, query).await;
    (if sickness.is_none() { &context.health.success } else { &context.health.failures }).inc();
    match sickness {
        None => (StatusCode::OK, TEXT, json(&Health { health: "true", reason: String::new() })),
        Some(reason) => {
            let health = json(&Health { health: "false", reason });
            (StatusCode::SERVICE_UNAVAILABLE, TEXT, health + "\n")
        }
    }
}

async fn sickness(context: &ServiceContext, query: &str) -> Option<String> {
    let is_serializable = values(query, "serializable").next() == Some("true");
    let excluded = |kind: &str| values(query, "exclude").any(|name| name == kind);
    let alarm = context.member.read(|state| {
        let kinds = state.alarms.iter().map(|(_, kind)| name_of(*kind));
        kinds.into_iter().find(|kind| !excluded(kind))
    });
    if let Some(kind) = alarm {
        return Some(format!("ALARM {kind}"));
    }
    if is_serializable {
        return None;
    }
    if context.member.raft_status().leader.is_none() {
        return Some("RAFT NO LEADER".to_owned());
    }
    context.member.linearize().await.err().map(|error| format!("RANGE ERROR:{error}"))
}

fn name_of(kind: i32) -> &'static str {
    AlarmType::try_from(kind).map_or("UNKNOWN", |kind| kind.as_str_name())
}

/// One thing that is asked of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// No member's data differs.
    DataCorruption,
    SerializableRead,
    LinearizableRead,
    NonLearner,
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::DataCorruption => "data_corruption",
            Self::SerializableRead => "serializable_read",
            Self::LinearizableRead => "linearizable_read",
            Self::NonLearner => "non_learner",
        }
    }

    async fn failure(self, context: &ServiceContext) -> Option<String> {
        match self {
            Self::DataCorruption => {
                let is_corrupt = |(_, kind): &(MemberId, i32)| *kind == AlarmType::Corrupt as i32;
                let stands = context.member.read(|state| state.alarms.iter().any(is_corrupt));
                stands.then(|| "alarm activated: CORRUPT".to_owned())
            }
            // Whoever gets the lock can read.
            Self::SerializableRead => context.member.read(|_| None),
            Self::LinearizableRead => context.member.linearize().await.err().map(|error| error.to_string()),
            Self::NonLearner => context.member.raft_status().is_learner.then(|| "not supported for learner".to_owned()),
        }
    }
}

/// What `/livez` and `/readyz` ask for, in etcd's names.
const LIVE: &[Check] = &[Check::SerializableRead];
const READY: &[Check] = &[Check::DataCorruption, Check::SerializableRead, Check::LinearizableRead, Check::NonLearner];

/// A list of checks: all of one path, or one of them.
#[derive(Debug)]
pub(super) struct Probe(Vec<Check>);

impl Probe {
    /// `/livez`, `/readyz`, and one check of either: `/readyz/linearizable_read`.
    pub(super) fn of(path: &str) -> Option<Self> {
        let (root, name) = match path.strip_prefix('/')?.split_once('/') {
            Some((root, name)) => (root, Some(name)),
            None => (path.strip_prefix('/')?, None),
        };
        let all = match root {
            "livez" => LIVE,
            "readyz" => READY,
            _ => return None,
        };
        let checks: Vec<_> = all.iter().copied().filter(|check| name.is_none_or(|name| name == check.name())).collect();
        (!checks.is_empty()).then_some(Self(checks))
    }

    /// `ok`, or 503 with what failed; `verbose` lists the checks, `exclude=NAME` leaves one out.
    pub(super) async fn answer(&self, context: &ServiceContext, query: &str) -> Answer {
        let (mut report, mut has_failed) = (String::new(), false);
        for check in self.0.iter().filter(|check| !values(query, "exclude").any(|name| name == check.name())) {
            let failure = check.failure(context).await;
            has_failed |= failure.is_some();
            report += &match failure {
                Some(reason) => format!("[-]{} failed: {reason}\n", check.name()),
                None => format!("[+]{} ok\n", check.name()),
            };
        }
        let is_verbose = values(query, "verbose").next().is_some();
        match has_failed {
            true => (StatusCode::SERVICE_UNAVAILABLE, TEXT, report + "\n"),
            false => (StatusCode::OK, TEXT, if is_verbose { report + "ok\n" } else { "ok\n".to_owned() }),
        }
    }
}
