//! What is typed to look at a cluster, and touch nothing.

use std::{collections::BTreeSet, path::PathBuf};

use clap::{Args, Subcommand, builder::TypedValueParser as _, error::ErrorKind};
use proto::Release;

use crate::hazards;

/// `agent status`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Status {
    /// The playbook, a YAML file
    #[arg(required_unless_present = "endpoints", conflicts_with_all = ["ca", "user"])]
    pub playbook: Option<PathBuf>,
    /// Client URLs to ask instead of a playbook's, with commas between them
    #[arg(long, value_name = "URL,…", value_delimiter = ',', conflicts_with = "playbook")]
    pub endpoints: Vec<String>,
    /// How the endpoints are spoken to.
    #[command(flatten)]
    pub reach: Reach,
    /// Look again and again
    #[arg(long)]
    pub watch: bool,
}

/// `agent hazards`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Hazards {
    /// The release that members run; without it any
    #[arg(long, value_name = "RELEASE")]
    pub from: Option<Release>,
    /// The release that they are to run; without it any
    #[arg(long, value_name = "RELEASE")]
    pub to: Option<Release>,
    /// All there is to say of one
    #[arg(long, value_name = "ID", conflicts_with_all = ["from", "to"])]
    pub explain: Option<String>,
}

/// What a person knows to do no harm here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Accepting {
    /// Go on though this hazard is met, an id of agent hazards; may be given again. Beside strategy.accept_hazards, and so every host
    /// has to be given the same
    #[arg(long, value_name = "ID", value_parser = acceptable)]
    pub accept_hazard: Vec<String>,
}

impl Accepting {
    pub fn ids(&self) -> BTreeSet<String> {
        self.accept_hazard.iter().cloned().collect()
    }

    /// As it is typed behind a command.
    pub fn words(&self) -> String {
        self.ids().iter().map(|id| format!(" --accept-hazard {id}")).collect()
    }
}

fn acceptable(id: &str) -> Result<String, String> {
    hazards::acceptable(id).map(|hazard| hazard.id.to_owned())
}

/// `agent check`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Check {
    /// Client URLs of the cluster, with commas between them
    #[arg(long, value_name = "URL,…", value_delimiter = ',', required = true)]
    pub endpoints: Vec<String>,
    /// The release that every member shall run in the end
    #[arg(long, value_name = "RELEASE")]
    pub to: Release,
    /// The releases that they shall run before that, one of each minor in between, with commas between them
    #[arg(long, value_name = "RELEASE,…", value_delimiter = ',')]
    pub via: Vec<Release>,
    /// The release that they are expected to run now
    #[arg(long, value_name = "RELEASE")]
    pub from: Option<Release>,
    /// What is passed.
    #[command(flatten)]
    pub accepting: Accepting,
    /// Where a member's database is kept while it is read; without it, where the system keeps temporary files
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// How the endpoints are spoken to.
    #[command(flatten)]
    pub reach: Reach,
}

/// `agent gates`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(
    override_usage = "agent gates [OPTIONS] PLAYBOOK [FEATURE]\n       agent gates [OPTIONS] --endpoints URL,… [FEATURE]"
)]
pub struct Gates {
    /// The playbook, a YAML file; none with --endpoints
    #[arg(required_unless_present = "endpoints")]
    pub playbook: Option<PathBuf>,
    /// The feature: prints true or false. All of them without it
    #[arg(conflicts_with = "endpoints")]
    pub feature: Option<String>,
    /// Client URLs to ask instead of a playbook's, with commas between them
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    pub endpoints: Vec<String>,
    /// How the endpoints are spoken to.
    #[command(flatten)]
    pub reach: Reach,
    /// Ask again and again, and print what has changed
    #[arg(long)]
    pub watch: bool,
}

impl Gates {
    /// With endpoints there is no playbook, so the first word is the feature; a playbook says itself how its cluster is reached.
    pub(super) fn settle(&mut self) -> Result<(), clap::Error> {
        match self.endpoints.is_empty() {
            true if self.reach != Reach::default() => {
                let words = "--ca and --user are for --endpoints; a playbook has cluster.tls and cluster.auth";
                Err(super::definition().error(ErrorKind::ArgumentConflict, words))
            }
            true => Ok(()),
            false => {
                self.feature = self.playbook.take().map(|word| word.to_string_lossy().into_owned());
                Ok(())
            }
        }
    }
}

/// `agent verify`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Verify {
    /// The members' ids and peer URLs against expect_members; a difference is shown and exits 3. Where nobody answers in 5 s nothing
    /// is known to differ: a warning and exit 0, so that hosts that all start anew come up
    Membership(Membership),
    /// The room in a folder against the largest member's database, before a backup is written there; too little exits 3
    Storage(Storage),
}

/// `agent verify membership`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Membership {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// Exit 3 where nobody answers
    #[arg(long)]
    pub require_answer: bool,
    /// Compare nothing: print the members as a quorum lists them now, as the playbook's expect_members would have them
    #[arg(long, conflicts_with = "require_answer")]
    pub print: bool,
}

/// `agent verify storage`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Storage {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// The folder that the backup is to be written to
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
}

/// `agent backup`
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Backup {
    /// The playbook, a YAML file
    pub playbook: PathBuf,
    /// The folder that the file is written to: CLUSTER-ID-MOMENT.db; without it the playbook's `backup.dir`
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Remove all of this cluster's backups there but the newest N, this one counted; without it as the playbook's `backup.keep` says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    pub keep: Option<usize>,
}

/// How endpoints are spoken to that are typed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Reach {
    /// For https: the authority that signed the members' certificates
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The agent's own certificate
    #[arg(long, value_name = "FILE", requires = "ca", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The user to authenticate as
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub user: Option<String>,
    /// A file that holds the password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
}
