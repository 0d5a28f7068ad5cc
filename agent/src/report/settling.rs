//! What keeps a cluster from having settled, in words.

use proto::ClusterVersion;

use super::names::{Names, printable};
use crate::plan::settled::Missing;

/// What ends the wait for a cluster that settles: the rest of a sentence that goes on with "that ends once".
pub const UNTIL: &str = "versions, gates and hashes agree, or `strategy.convergence` is over";

/// What is missing, and where a person can repair it, how: one sentence without its full stop.
pub fn words(missing: &Missing, names: &Names) -> String {
    let short = |member: &_| names.short(*member);
    match missing {
        Missing::Answer { why } => printable(why).to_string(),
        Missing::Silent { member, why } => format!("{} does not answer: {}", short(member), printable(why)),
        Missing::ClusterVersion { member, found, wanted } => {
            format!("{} has cluster version {}, not {}", short(member), version(*found), version(*wanted))
        }
        Missing::NeverStarted { member, wanted } => format!(
            "{} has never started, so the cluster version does not become {}; start it, or take it out with \
             `etcdctl member remove {member}`",
            short(member),
            version(*wanted)
        ),
        Missing::StorageVersion { member, found, wanted } => {
            format!("{} has storage version {}, not {}", short(member), version(*found), version(*wanted))
        }
        Missing::GoingDown { target } => format!("the downgrade to {target} is still enabled"),
        Missing::NoGates { member } => {
            format!("{} has no cluster feature gates; remove `gates.expect`", short(member))
        }
        Missing::GatesUnknown { member, reason } => {
            format!("{} does not say how its gates are: {}", short(member), printable(reason))
        }
        Missing::Undecided { awaited } if awaited.is_empty() => "the gates are not decided yet".to_owned(),
        Missing::Undecided { awaited } => {
            format!("the gates are not decided yet: no proposal of {}", names.list(awaited))
        }
        Missing::Differing { gate } => format!("gate {} is not the same on every member yet", printable(gate)),
        Missing::NoSuchGate { gate, there_are } => {
            let there_are = if there_are.is_empty() { "none".to_owned() } else { there_are.join(", ") };
            format!("no member knows a gate {}; there are: {}", printable(gate), printable(&there_are))
        }
        Missing::KeptOff { gate, by } if by.is_empty() => format!("gate {} is not on yet", printable(gate)),
        Missing::KeptOff { gate, by } => {
            let (gate, by) = (printable(gate), names.list(by));
            format!("gate {gate} is off, kept off by {by}; start {by} with --cluster-feature-gates={gate}=true")
        }
        Missing::KeptOn { gate, is_wanted: false } => format!("gate {} is not off yet", printable(gate)),
        Missing::KeptOn { gate, is_wanted: true } => {
            let gate = printable(gate);
            format!("gate {gate} is on, as every voter wants it; start one with --cluster-feature-gates={gate}=false")
        }
    }
}

fn version(version: Option<ClusterVersion>) -> String {
    version.map_or_else(|| "undecided".into(), |version| version.to_string())
}
