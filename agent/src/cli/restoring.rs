//! What is typed to make a cluster anew from a saved file.

use std::path::PathBuf;

use clap::Args;
use proto::Release;

use crate::{playbook::parse::MOST_REVISIONS, words::typed};

/// `agent restore`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Restore {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// What agent backup, or etcdctl snapshot save, has written; the same file on every host
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// The release that the members are to run, where that is not the one that they are set to run: one that lies beside their binary
    #[arg(long, value_name = "RELEASE")]
    pub release: Option<Release>,
    /// How many revisions to leave out, so that watchers notice that time went back; 0 leaves none out. Without it as the playbook's
    /// restore.bump_revision says, or 1000000000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST_REVISIONS as u64))]
    pub bump_revision: Option<u64>,
    /// Go on though the cluster serves: what was written since the file was saved is lost
    #[arg(long)]
    pub discard_cluster: bool,
    /// Make it once more from a file that was restored before, or another one than is in hand: by a name, such as a date, which every
    /// host is given
    #[arg(long, value_name = "NAME")]
    pub again: Option<String>,
    /// Give up what is in hand on this host, where no member of it has its new data: they keep the data that they have
    #[arg(long, conflicts_with_all = ["check", "discard_cluster"])]
    pub give_up: bool,
    /// Only say what would be done, and whether it could be; touches nothing
    #[arg(long)]
    pub check: bool,
    /// Do not ask before members are taken down. Only at a terminal is asked, and never with --output json
    #[arg(long, short)]
    pub yes: bool,
}

impl Restore {
    /// Its flags as they are typed behind the playbook.
    pub fn words(&self) -> String {
        let mut words = format!(" --from {}", typed(&self.from.to_string_lossy()));
        let flags = [
            self.release.as_ref().map(|release| format!(" --release {release}")),
            self.bump_revision.map(|bump| format!(" --bump-revision {bump}")),
            self.discard_cluster.then(|| " --discard-cluster".to_owned()),
            self.again.as_ref().map(|name| format!(" --again {}", typed(name))),
        ];
        words.extend(flags.into_iter().flatten());
        words
    }
}
