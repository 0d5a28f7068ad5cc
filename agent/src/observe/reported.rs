//! What the view says of a member that answered.

use proto::{ClusterVersion, Release};

use super::{
    cluster::Reported,
    member::Seen,
    view::{Answer, Health, Report},
};

pub(super) fn report(seen: &Seen, told: Reported, health: Health) -> Answer {
    let Ok(release) = seen.status.version.parse::<Release>() else {
        return Answer::Silent {
            reason: format!("it says that it runs `{}`, which is no release", seen.status.version),
        };
    };
    let statement = seen.statement();
    let Reported { cluster_version, gates, join, .. } = told;
    Answer::Reported(Box::new(Report {
        quota_bytes: quota_bytes(&seen.status, &release),
        release,
        cluster_version,
        storage_version: seen.status.storage_version.parse().ok(),
        downgrade: downgrade(&seen.status),
        leader: statement.leader,
        term: statement.term,
        log_index: seen.commit(),
        applied: seen.applied(),
        revision: seen.revision(),
        db_bytes: seen.status.db_size,
        health,
        gates,
        join,
    }))
}

/// A member that is not listed alike by all is waited for, however well it is.
pub(super) fn in_doubt(answer: Answer, dispute: String) -> Answer {
    match answer {
        Answer::Silent { reason } => Answer::Silent { reason: format!("{reason}; {dispute}") },
        Answer::NeverStarted => Answer::Silent { reason: dispute },
        Answer::Reported(report) => Answer::Reported(Box::new(match report.health {
            Health::Ready => Report { health: Health::CatchingUp { reason: dispute }, ..*report },
            Health::Alarmed { alarms, besides: None } => {
                Report { health: Health::Alarmed { alarms, besides: Some(dispute) }, ..*report }
            }
            Health::CatchingUp { .. } | Health::Sick { .. } | Health::Alarmed { .. } => *report,
        })),
    }
}

fn downgrade(status: &proto::etcdserverpb::StatusResponse) -> Option<ClusterVersion> {
    status.downgrade_info.as_ref().filter(|info| info.enabled)?.target_version.parse().ok()
}

/// The quota by `Status`, which etcd 3.6.0 to 3.6.5 fill in wrongly (etcd issue 20790).
fn quota_bytes(status: &proto::etcdserverpb::StatusResponse, release: &Release) -> Option<u64> {
    let is_wrong = (Release::new(3, 6, 0)..Release::new(3, 6, 6)).contains(release);
    u64::try_from(status.db_size_quota).ok().filter(|bytes| *bytes > 0 && !is_wrong)
}
