//! What is typed to run a command in the protection of the cluster's lock.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;

use crate::playbook::unit::parse_duration;

/// `agent guard`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(
    override_usage = "agent guard [OPTIONS] PLAYBOOK -- COMMAND…\n       agent guard PLAYBOOK --check | --finish | --hand-over"
)]
pub struct Guard {
    /// The playbook, a YAML file of any kind: its cluster, nodes and strategy count
    pub playbook: PathBuf,
    /// The command and its arguments, behind `--`: reboot, or systemctl restart containerd. What it leaves in the background
    /// when it ends is not waited for
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present_any = ["check", "finish", "hand_over"],
        conflicts_with_all = ["check", "finish", "hand_over"]
    )]
    pub command: Vec<OsString>,
    /// Only say whether a command could begin now: exit 0, 3 where it would cost the quorum, 6 where it would wait
    #[arg(long, conflicts_with_all = ["finish", "hand_over"])]
    pub check: bool,
    /// End the step of a command that was begun before, once this host's members are ready; for a unit at boot
    #[arg(long, conflicts_with = "hand_over")]
    pub finish: bool,
    /// Pass leadership to another host, if a member of this one leads, and no more; for a unit at shutdown
    #[arg(long)]
    pub hand_over: bool,
    /// With --finish: the host does not restart after all, though its command was begun with --reboot
    #[arg(long, requires = "finish")]
    pub host_stays: bool,
    /// Try again for so long where the cluster cannot do without this host's members now: 10m, 1h. A turn is waited for as long
    /// as anybody makes progress (strategy.stall_timeout)
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["check", "hand_over"])]
    pub wait: Option<Duration>,
    /// The command restarts the host, though no shutdown is queued when it ends: its step ends after the next boot alone
    #[arg(long, requires = "command")]
    pub reboot: bool,
    /// Append what happens to this file, one JSON object a line
    #[arg(long, value_name = "FILE", conflicts_with = "hand_over")]
    pub events: Option<PathBuf>,
    /// Write what happened to this file at the end, as one HTML page that stands alone; of a command that restarts the host,
    /// give it to the --finish after the boot. A report that is there is written over
    #[arg(long, value_name = "FILE", conflicts_with = "hand_over")]
    pub report: Option<PathBuf>,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; expected {}", error.expected()))
}
