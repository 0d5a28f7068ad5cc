//! The releases that lie beside a member's symlink: which each of them is, and whether it is safe to run.
//!
//! A program that this agent does not know is asked as the user that the member runs as. Source: agent/TRUST.md.

use std::{
    collections::BTreeSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use proto::Release;

use super::{
    error::ActError,
    node::{OwnNode, Side},
};
use crate::{
    guarded::At,
    hazards::{self, Act},
    host::{
        process::credentials::Credentials,
        program::{
            executable,
            path_owner::{self, Writers},
        },
        release::release_record,
        runtime::Runtime,
    },
    journal::restart::Binary,
    playbook,
};

impl OwnNode {
    /// As whom the member runs, or would: by the playbook or its unit; under commands of the operator's as its process
    /// does, and while there is none as the owner of the executable.
    pub(super) async fn runs_as(&self, executable: &Path) -> Result<Credentials, ActError> {
        match (&self.node.runtime, &self.runtime) {
            (playbook::Runtime::Process(process), _) => match &process.user {
                None => Ok(Credentials::own()),
                Some(name) => match Credentials::of_name(name)? {
                    Some(user) => Ok(user),
                    None => {
                        let node = &self.node.name;
                        let fault = format!("there is no user `{name}`; create the user, or name another");
                        Err(format!("node {node}: `user`: {fault}").into())
                    }
                },
            },
            (playbook::Runtime::Systemd(_), _) => self.unit_runs_as().await,
            (playbook::Runtime::Command(_), Some(Runtime::Command(runtime))) => {
                let status = runtime.peek().await.ok();
                let pid = status.and_then(|status| Some(status.process()?.identity.pid));
                match pid.and_then(|pid| Credentials::of_process(pid).ok()) {
                    Some(user) => Ok(user),
                    None => owner_of(executable),
                }
            }
            (playbook::Runtime::Command(_), _) => owner_of(executable),
        }
    }

    /// Which release a program is. The name of its folder says so where nobody but root, or the agent's user, could have
    /// given it that name; else the program is asked.
    pub(super) async fn release_of(&self, executable: &Path) -> Result<Release, ActError> {
        let folder =
            executable.parent().filter(|folder| folder.parent().is_some_and(|above| above.ends_with("releases")));
        match folder.and_then(|folder| named_release(folder.file_name()?.to_str()?)) {
            Some(release) if path_owner::check(executable, &Writers::own()).is_ok() => Ok(release),
            _ => self.asked(executable).await,
        }
    }

    /// What a program says itself.
    pub(super) async fn asked(&self, executable: &Path) -> Result<Release, ActError> {
        let user = self.runs_as(executable).await?;
        executable::release(executable, &user).await.map_err(ActError::from)
    }

    /// Has an executable say that it is this release.
    pub(super) async fn must_be(&self, executable: PathBuf, to: &Release) -> Result<Side, ActError> {
        executable::check(&executable)?;
        let found = self.asked(&executable).await?;
        match found == *to {
            true => Ok(Side { release: found, executable: Some(executable) }),
            false => {
                Err(format!("the artifact is {found}, as {} --version says, and not {to}", executable.display()).into())
            }
        }
    }

    /// Tries what its start on the new release will meet, as far as nothing has to be stopped for it; gives what is to be known
    /// all the same.
    pub(super) async fn check_target(&self) -> Result<Vec<String>, ActError> {
        let Some(sides) = &self.sides else { return Ok(Vec::new()) };
        let mut warnings = self.check_arguments(&sides.new).await?;
        // One that was switched before has no more to fear from its old log.
        warnings.extend(self.check_data_dir(&self.current().await?.release, &sides.new.release).await?);
        Ok(warnings)
    }

    /// Refuses a way that is known to hurt, of this host's own member: it may not answer yet, and then nobody else knows its release.
    ///
    /// # Errors
    /// What is known, where the playbook does not accept it.
    pub(super) async fn check_known_hazards(
        &self,
        from: &Release,
        to: &Side,
        accepted: &BTreeSet<String>,
    ) -> Result<(), ActError> {
        let Some(executable) = &to.executable else { return Ok(()) };
        // Nobody could say what it runs.
        if *from == Release::new(0, 0, 0) || *from == to.release {
            return Ok(());
        }
        let mut refused = hazards::all().filter(|known| known.calls_for(Act::Refuse, from, &to.release));
        let Some(known) = refused.find(|known| !accepted.contains(known.id)) else { return Ok(()) };
        match executable::is_etcd(executable, &self.runs_as(executable).await?).await? {
            true => Err(ActError::KnownHazard { node: self.node.name.clone(), id: known.id, shown: String::new() }),
            false => Ok(()),
        }
    }

    /// Refuses a program that does not take the arguments that it is to be started with: found after the stop, it would
    /// keep the member down until it is put back. What commands of the operator's start a program with is not known.
    pub(super) async fn check_arguments(&self, side: &Side) -> Result<Vec<String>, ActError> {
        let Some(executable) = &side.executable else { return Ok(Vec::new()) };
        let Some(arguments) = self.arguments(side).await? else { return Ok(Vec::new()) };
        let user = self.runs_as(executable).await?;
        let mut warnings = executable::check_arguments(executable, &user, &self.node.name, &arguments).await?;
        warnings.extend(self.check_gate_flags(side, &user, &arguments).await?);
        Ok(warnings)
    }

    /// What follows `binary` on the command line at this side; `None` where something else is started, or that is not
    /// known.
    pub(super) async fn arguments(&self, side: &Side) -> Result<Option<Vec<String>>, ActError> {
        match &self.node.runtime {
            playbook::Runtime::Process(process) => {
                let line = process.command_line(&self.node.context(&side.release))?;
                let is_led_through = line.first().map(Path::new) == self.node.binary.as_deref();
                Ok(line.get(1..).filter(|_| is_led_through).map(<[String]>::to_vec))
            }
            playbook::Runtime::Systemd(_) => Ok(self.unit_start(Some(side)).await?.and_then(|start| start.arguments)),
            playbook::Runtime::Command(_) => Ok(None),
        }
    }

    /// Refuses a program that others than root and the member's user may change, by the way that it is started by, too;
    /// and one that was changed since it was installed.
    pub(super) async fn check_safe(&self, side: &Side) -> Result<(), ActError> {
        let Some(executable) = &side.executable else { return Ok(()) };
        let writers = self.runs_as(executable).await?.writers();
        for path in self.switch.path().into_iter().chain([executable.as_path()]) {
            path_owner::check(path, &writers)?;
        }
        release_record::check(executable).map_err(ActError::from)
    }

    /// Refuses a program that was changed since it was installed.
    pub(super) fn check_unchanged(&self, which: Binary) -> Result<(), ActError> {
        let executable = self.sides.as_ref().and_then(|sides| sides.side(which).executable.as_deref());
        executable.map_or(Ok(()), |executable| release_record::check(executable).map_err(ActError::from))
    }

    /// The release's folder holds the executable under the name it was installed with: that of the link, or of what runs now; etcdutl may
    /// lie beside it.
    fn executable_in(&self, folder: &Path, link: &Path) -> Option<PathBuf> {
        let current = self.executable().ok().flatten();
        let names = [link.file_name(), current.as_deref().and_then(Path::file_name)];
        if let Some(named) = names.into_iter().flatten().map(|name| folder.join(name)).find(|path| path.is_file()) {
            return Some(named);
        }
        let mut executables = std::fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| executable::check(path).is_ok());
        executables.next().filter(|_| executables.next().is_none())
    }

    /// This release, where it lies beside the link.
    ///
    /// # Errors
    /// It does not, or the member has no link.
    pub(super) async fn installed(&self, release: &Release) -> Result<Side, ActError> {
        let Some((releases, link)) = self.releases().zip(self.switch.path()) else {
            return Err("it has no `binary` that leads to its release; have it run another one by hand, and leave --release out".into());
        };
        let entries = std::fs::read_dir(&releases).into_iter().flatten();
        for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(executable) = self.executable_in(&folder, link) else { continue };
            if self.release_of(&executable).await.is_ok_and(|found| found == *release) {
                return Ok(Side { release: release.clone(), executable: Some(executable) });
            }
        }
        let current = self.current().await?;
        match current.release == *release {
            true => Ok(current),
            false => Err(format!(
                "{release} does not lie in {}; point {} to its executable, and leave --release out",
                releases.display(),
                link.display()
            )
            .into()),
        }
    }

    /// Among the releases beside the link, the newest that `from` allows: what a member goes back to when
    /// the journal that knew it was lost.
    pub async fn previous(&self, from: &semver::VersionReq) -> Option<Side> {
        let entries = std::fs::read_dir(self.releases()?).ok()?;
        let mut found: Vec<Side> = Vec::new();
        for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(executable) = self.executable_in(&folder, self.switch.path()?) else { continue };
            if let Ok(release) = self.release_of(&executable).await {
                found.push(Side { release, executable: Some(executable) });
            }
        }
        found.retain(|side| from.matches(&side.release.0));
        found.into_iter().max_by(|one, other| one.release.cmp(&other.release))
    }
}

fn owner_of(executable: &Path) -> Result<Credentials, ActError> {
    let owner = std::fs::metadata(executable).and_then(|seen| Credentials::of_uid(seen.uid()));
    Ok(owner.at("look at", executable)?)
}

/// `3.5.30-` and twelve digits of its hash: a name that no packager gives.
fn named_release(folder: &str) -> Option<Release> {
    let (release, hash) = folder.rsplit_once('-')?;
    let is_hash = hash.len() == 12 && hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    release.parse().ok().filter(|_| is_hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_an_agent_made_names_its_release() {
        for (folder, release) in [
            ("3.5.30-0123456789ab", Some("3.5.30")),
            ("3.5.30-rc.1-0123456789ab", Some("3.5.30-rc.1")),
            ("3.5.30-linux-amd64", None), // a packager's; read as a name of ours it would be a pre-release
            ("3.5.30", None),
            ("etcd-0123456789ab", None),
        ] {
            assert_eq!(named_release(folder).map(|release| release.to_string()).as_deref(), release, "{folder}");
        }
    }
}
