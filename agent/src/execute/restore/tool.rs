//! The program that makes a data directory from a saved file: `restore.tool`, else `etcdutl` beside the member's executable; the
//! bundled node itself; `etcdctl`, before there was `etcdutl` (3.4); else an `etcdutl` where this host has its programs.
//!
//! It is asked what it can before anything is touched, and it runs as the owner of the data.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::record::Origin;
use crate::{
    execute::{error::ActError, node::OwnNode},
    host::{
        process::credentials::Credentials,
        program::{
            exec::{self, Ended, quoted},
            executable, path_owner,
        },
    },
};

/// How long it may take to say what it can.
const ASKED: Duration = Duration::from_secs(10);
/// How long it may take to make a data directory. Some have tens of GB on a slow disk.
const MADE: Duration = Duration::from_secs(2 * 3600);
/// What it is given of the agent's surroundings: none of a person's `ETCDCTL_…`. 3.4 wants to be told its API.
const VARIABLES: &[(&str, &str)] =
    &[("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("ETCDCTL_API", "3")];
/// Where a host has its programs.
const USUAL: [&str; 2] = ["/usr/local/bin/etcdutl", "/usr/bin/etcdutl"];

/// A program that restores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub program: PathBuf,
    /// As whom it runs: the owner of what it makes.
    user: Credentials,
}

/// What one member's data directory is made from.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    pub file: &'a Path,
    pub data: &'a Path,
    pub name: &'a str,
    pub origin: &'a Origin,
}

impl Tool {
    /// Finds the one for a member that is to run this executable, and refuses one that cannot do what is asked.
    ///
    /// # Errors
    /// There is none, others may change it, or it cannot leave out revisions.
    pub async fn find(
        own: &OwnNode,
        executable: Option<&Path>,
        named: Option<&Path>,
        user: &Credentials,
        bump: u64,
    ) -> Result<Self, ActError> {
        let user = user.clone();
        let program = match named {
            Some(named) => named.to_owned(),
            None => beside(own, executable).await?.ok_or_else(|| nowhere(&own.node.name, executable))?,
        };
        let tool = Self { program, user };
        path_owner::check(&tool.program, &tool.user.writers())?;
        let help = tool.run(&["snapshot", "restore", "--help"].map(str::to_owned), ASKED).await?;
        let said = format!("{}{}", help.stdout, help.stderr);
        let shown = tool.program.display();
        if !said.contains("--initial-cluster-token") {
            return Err(format!(
                "{shown} does not know `snapshot restore`; name another one: `restore: {{ tool: … }}`"
            )
            .into());
        }
        if bump > 0 && !said.contains("--bump-revision") {
            return Err(format!(
                "{shown} has no `--bump-revision`, and so watchers would not notice that revisions come again; name a later etcdutl \
                 (`restore: {{ tool: … }}`), or go without: --bump-revision 0"
            )
            .into());
        }
        Ok(tool)
    }

    /// Makes the data directory.
    ///
    /// # Errors
    /// What it said.
    pub async fn make(&self, making: Making<'_>) -> Result<(), ActError> {
        let Making { file, data, name, origin } = making;
        let urls = origin.founders.get(name).ok_or_else(|| format!("{name} is none of the new cluster's members"))?;
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let mut arguments = vec![
            "snapshot".to_owned(),
            "restore".to_owned(),
            file.to_string_lossy().into_owned(),
            format!("--data-dir={}", data.display()),
            format!("--name={name}"),
            format!("--initial-cluster={}", origin.initial_cluster()),
            format!("--initial-cluster-token={}", origin.token()),
            format!("--initial-advertise-peer-urls={}", urls.join(",")),
        ];
        if origin.bump > 0 {
            arguments.extend([format!("--bump-revision={}", origin.bump), "--mark-compacted".to_owned()]);
        }
        let ended = self.run(&arguments, MADE).await?;
        match ended.is_success() {
            true => Ok(()),
            false => {
                let Ended { how, .. } = &ended;
                Err(format!("{} ended with {how}{}", self.program.display(), quoted(ended.output())).into())
            }
        }
    }

    async fn run(&self, arguments: &[String], limit: Duration) -> Result<Ended, ActError> {
        let program = self.program.to_string_lossy().into_owned();
        let argv: Vec<_> = [program].into_iter().chain(arguments.iter().cloned()).collect();
        Ok(exec::run_as(&argv, &self.user, VARIABLES, limit).await?)
    }
}

/// What lies beside the executable, or is it.
async fn beside(own: &OwnNode, executable: Option<&Path>) -> Result<Option<PathBuf>, ActError> {
    let usual = || USUAL.iter().map(PathBuf::from).find(|path| path.is_file());
    let Some(executable) = executable else { return Ok(usual()) };
    let named = |name: &str| executable.parent().map(|folder| folder.join(name)).filter(|path| path.is_file());
    if let Some(found) = named("etcdutl") {
        return Ok(Some(found));
    }
    let user = own.runs_as(executable).await?;
    if !executable::is_etcd(executable, &user).await? {
        return Ok(Some(executable.to_owned()));
    }
    Ok(named("etcdctl").or_else(usual))
}

fn nowhere(name: &str, executable: Option<&Path>) -> ActError {
    let beside = executable.map_or_else(String::new, |path| format!(" lies beside {}, and none", path.display()));
    format!("{name}: no etcdutl{beside} is in /usr/local/bin or /usr/bin; name one: `restore: {{ tool: … }}`").into()
}
