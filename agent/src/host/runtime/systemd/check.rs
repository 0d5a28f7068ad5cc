//! Preflight of a unit: systemd is asked, its user tried, and the rules (`preflight.rs`) applied.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use nix::unistd::{Gid, Group, Uid, User};

use super::{
    SystemdError, SystemdRuntime,
    bus::Bus,
    environment::{Environment, Read, expand},
    mounts::{Lies, Mounts},
    phase::{Phase, phase},
    preflight::{self, Finding, Wanted},
    program::leads_through,
    unit::Unit,
};
use crate::host::{
    process::credentials::Credentials,
    program::{launcher, trial::Trial},
    runtime::fitness::Needs,
};

/// What may be done to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trying {
    Look,
    /// A start of a unit that runs, which does nothing but show whether this user may.
    Order,
}

/// What a unit's next start is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextStart {
    pub variables: BTreeMap<String, String>,
    /// Whether no file is left unread that may say more.
    pub is_whole: bool,
    /// What its program gets, without that one's name. `None` where that is not known: a variable is in it that may stand in a file that was
    /// not read, or the program has a `/` of its own.
    pub arguments: Option<Vec<String>>,
    /// Where relative paths begin, as its program sees it; `None` where that is its user's home.
    pub works_in: Option<PathBuf>,
    pub mounts: Mounts,
}

/// What a unit that is fit says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// What is to be known all the same.
    pub warnings: Vec<Finding>,
    /// User and group that it runs as, where they are not the agent's own.
    pub owner: Option<(u32, u32)>,
}

impl SystemdRuntime {
    /// Whether a step may be made with the unit.
    ///
    /// # Errors
    /// What stands in its way, with the remedy.
    pub async fn check(&self, mut wanted: Wanted, needs: &Needs, trying: Trying) -> Result<Fit, SystemdError> {
        let bus = Bus::open(&self.unit).await?;
        let unit = bus.look().await?;
        wanted.is_led_through = match (&unit.program, &wanted.binary) {
            (Some(program), Some(binary)) => leads_through(program, binary),
            _ => true,
        };
        let unfit = |finding| SystemdError::Unfit { name: self.name.clone(), finding };
        preflight::refuse(&unit, &wanted).map_err(unfit)?;
        works_in_a_folder(&unit).map_err(unfit)?;
        if !Uid::effective().is_root() {
            bus.can_be_allowed().await?;
            if trying == Trying::Order && phase(&unit) == Phase::Up {
                bus.try_to_start().await?;
            }
        }
        try_as_user(&unit, needs).await.map_err(unfit)?;
        Ok(Fit { warnings: preflight::warn(&unit, &wanted), owner: owner(&unit) })
    }

    /// As whom the unit runs: root where it does not say, and nobody where its user is made up at each start.
    pub async fn runs_as(&self) -> Result<Credentials, SystemdError> {
        let unit = self.look(&Bus::open(&self.unit).await?).await?;
        let named = if unit.has_dynamic_user { Some("nobody") } else { unit.user.as_deref() };
        let Some(named) = named else { return Ok(Credentials { uid: 0, gid: 0, groups: Vec::new() }) };
        let found = match named.parse() {
            Ok(uid) => Credentials::of_uid(uid).map(Some),
            Err(_) => Credentials::of_name(named),
        };
        found.ok().flatten().ok_or_else(|| {
            let fault = format!("runs as user `{named}`, whom there is not");
            let remedy = "create the user, or correct User=".into();
            SystemdError::Unfit { name: self.name.clone(), finding: Finding { unit: unit.name, fault, remedy } }
        })
    }

    /// What its next start is given: `process` has the variables of what runs, and `read` reads a file that the unit names.
    ///
    /// # Errors
    /// It would not start for want of a file.
    pub async fn next_start(
        &self,
        process: &BTreeMap<String, String>,
        read: impl Fn(&Path) -> Read,
    ) -> Result<NextStart, SystemdError> {
        let bus = Bus::open(&self.unit).await?;
        let unit = self.look(&bus).await?;
        let told = Environment::of(&unit, &bus.environment().await?, read)
            .map_err(|finding| SystemdError::Unfit { name: self.name.clone(), finding })?;
        let is_whole = told.is_whole();
        let variables = told.over(process);
        let is_known = unit.root.is_none() && (is_whole || !unit.arguments.iter().any(|word| word.contains('$')));
        let arguments = is_known.then(|| expand(&unit.arguments, &variables));
        Ok(NextStart { variables, is_whole, arguments, works_in: unit.works_in, mounts: unit.mounts })
    }

    /// User and group that the unit runs as, where they are not the agent's own.
    pub async fn owner(&self) -> Result<Option<(u32, u32)>, SystemdError> {
        Ok(owner(&self.look(&Bus::open(&self.unit).await?).await?))
    }
}

/// systemd starts nothing in a folder that is not there, unless it makes it, or mounts it.
fn works_in_a_folder(unit: &Unit) -> Result<(), Finding> {
    let is_made =
        |cwd: &Path| unit.directories.iter().any(|(_, made)| made.split(':').any(|made| cwd.starts_with(made)));
    let is_mounted = |cwd: &Path| unit.mounts.place(cwd) != Lies::OnHost(cwd.to_owned());
    match &unit.cwd {
        Some(cwd) if !cwd.is_dir() && !is_made(cwd) && !is_mounted(cwd) => Err(Finding {
            unit: unit.name.clone(),
            fault: format!(
                "works in {} (WorkingDirectory=), which is no folder, so that it would not start",
                cwd.display()
            ),
            remedy: "make the folder, or correct WorkingDirectory=".into(),
        }),
        _ => Ok(()),
    }
}

/// One that is made up at each start owns nothing before it.
fn owner(unit: &Unit) -> Option<(u32, u32)> {
    launcher::other_user(unit.user.as_deref().filter(|_| !unit.has_dynamic_user)?)
}

/// What is in the way of the unit's user is not seen with root's eyes. One that is made up may what everybody may.
async fn try_as_user(unit: &Unit, needs: &Needs) -> Result<(), Finding> {
    let named = unit.user.as_deref();
    let user = if unit.has_dynamic_user { Some("nobody") } else { named.filter(|name| name.parse::<u32>().is_err()) };
    let Some(user) = user.filter(|_| Uid::effective().is_root()) else { return Ok(()) };
    let finding = |fault, remedy: &str| Finding { unit: unit.name.clone(), fault, remedy: remedy.into() };
    let known = User::from_name(user).ok().flatten();
    match known {
        // Whether everybody may is then left to the start.
        None if unit.has_dynamic_user => return Ok(()),
        None => {
            return Err(finding(
                format!("runs as user `{user}`, whom there is not"),
                "create the user, or correct User=",
            ));
        }
        // The launcher goes by the user's own groups.
        Some(known) if unit.group.as_deref().is_some_and(|group| !is_group(group, known.gid)) => return Ok(()),
        Some(_) => {}
    }
    let folders = unit.cwd.iter().chain(&needs.folders).cloned().collect();
    let programs = needs.executable.iter().cloned().collect();
    let trial = Trial { user: Some(user.into()), folders, programs, ..Trial::default() };
    let tried = trial.run(&launcher::own()).await;
    tried.map_err(|fault| {
        finding(format!("runs as user `{user}`, who {fault}"), "let the user in there, or change User=")
    })
}

fn is_group(name: &str, gid: Gid) -> bool {
    Group::from_gid(gid).ok().flatten().is_some_and(|group| group.name == name)
}
