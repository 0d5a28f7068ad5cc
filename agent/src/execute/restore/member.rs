//! One member of this host on its way into the new cluster.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use proto::{ClusterId, ClusterVersion, Release};

use super::{
    NotRestored, Order,
    found::{Found, has},
    is_of,
    place::{Place, whose_in},
    record::{Founders, Origin},
    rights::Rights,
    saved::Saved,
    standing::{Has, Known, may_be_made},
    tool::{Making, Tool},
};
use crate::{
    execute::{
        error::ActError,
        node::{OwnNode, Side},
        own_data::told_text,
        process::Stopped,
        process_member::must_be_the_member,
    },
    host::{
        blocking::blocking,
        files::{self, whose::Whose},
        process::credentials::Credentials,
        program::path_owner::{self, Writers, user_name},
        runtime::Listens,
    },
    observe::{Observer, directory::Listed},
    playbook::{self, Playbook, Runtime},
    words::with_causes,
};

/// What is known of it before anything is touched.
#[derive(Debug)]
pub(super) struct Member {
    pub own: OwnNode,
    pub place: Place,
    pub tool: Tool,
    /// What it is to run.
    pub side: Side,
    /// Whether its data is the new cluster's.
    pub is_placed: bool,
    /// Whose data it has.
    whose: Whose,
    /// Who owns its data.
    owner: Credentials,
}

impl Member {
    /// Refuses what would fail once the member is down. `of` is the new cluster, where that is known from an earlier try.
    pub(super) async fn ready(
        found: Found,
        playbook: &Playbook,
        order: &Order,
        (origin, saved, of): (&Origin, &Saved, Option<ClusterId>),
    ) -> Result<Self, ActError> {
        let Found { mut own, data, whose } = found;
        if let Whose::Member { member, .. } = whose {
            own.member = member;
        }
        let runs = own.peek().await?.is_running();
        if let (true, Whose::Member { cluster, .. }) = (runs, &whose) {
            let observer = Observer::connect(&playbook.cluster)?;
            observer.access().directory().settle(*cluster);
            must_be_the_member(&own, &observer, Duration::ZERO).await?;
        }
        let side = match &order.release {
            Some(release) => own.installed(release).await?,
            None => own.current().await?,
        };
        own.check_safe(&side).await?;
        own.check_runtime(&side).await?;
        files::check(&own.files_for(&side.release)?)?;
        check_urls(&own, origin)?;
        if let Some(version) = saved.origin.as_ref().and_then(|of| of.version) {
            check_version(&side.release, version)?;
        }
        let program = side.executable.clone().or_else(|| program(&own.node));
        let owner = owner(&own, &data, program.as_deref()).await?;
        let named = playbook.restore.as_ref().and_then(|restore| restore.tool.as_deref());
        let tool = Tool::find(&own, program.as_deref(), named, &owner, order.bump).await?;
        let place = place_of(&data, &origin.token(), &owner)?;
        if !runs && place.is_open() {
            return Err(format!(
                "its process does not run, and another one has {} open; correct `data_dir`, or its runtime",
                data.display()
            )
            .into());
        }
        if !place.fits() {
            return Err(format!(
                "{} is a mount, or has more in it than the bundled node's data, which lies in it directly; let `--data-dir` be a folder \
                 of its own",
                data.display()
            )
            .into());
        }
        place.have(Place::must_be_writable).await?;
        let is_placed = of.is_some_and(|of| is_of(&whose, of));
        Ok(Self { own, place, tool, side, is_placed, whose, owner })
    }

    /// Clears what agents have left beside its data that were killed. Gives where old data is that was among it.
    pub(super) async fn clear_others(&self) -> Result<Vec<PathBuf>, ActError> {
        let clear = |place: &Place| place.others().iter().map(Place::clear).collect::<Result<Vec<_>, _>>();
        Ok(self.place.have(clear).await?.into_iter().flatten().collect())
    }

    /// Makes its new data beside the old; gives the cluster that it is of.
    pub(super) async fn make(&self, saved: &Saved, origin: &Origin) -> Result<ClusterId, ActError> {
        let owner = (self.owner.uid, self.owner.gid);
        let mut copy = self.place.have(move |place| place.begin(owner)).await?;
        let saved = saved.clone();
        let copied = blocking(move || saved.copy(&mut copy)).await;
        copied.map_err(|error| ActError::from(with_causes(&error)))?;
        let (file, data) = (self.place.copy(), self.place.made());
        let making = Making { file: &file, data: &data, name: &self.own.node.name, origin };
        self.tool.make(making).await?;
        let made = self.place.have(|place| place.settle().map(|()| place.whose_made())).await?;
        match made {
            Whose::Member { .. } if !self.place.fits_made() => Err(format!(
                "{} is a mount, or has more in it than a member's data, and what {} has made lies in no folder of its own; let `--data-dir` \
                 be a folder of its own",
                self.place.data.display(),
                self.tool.program.display()
            )
            .into()),
            Whose::Member { cluster, .. } => Ok(cluster),
            other => {
                Err(format!("what {} has made is no member's data: {other:?}", self.tool.program.display()).into())
            }
        }
    }

    /// One that has data of the new cluster needs no other.
    pub(super) async fn settle(&mut self, made: ClusterId) -> Result<(), ActError> {
        if !is_of(&self.whose, made) {
            return Ok(());
        }
        self.is_placed = true;
        self.place.have(Place::clear).await?;
        Ok(())
    }

    /// Refuses one that may have served in this cluster, of which this host has no record.
    pub(super) async fn must_be_new_in(
        &self,
        playbook: &Playbook,
        made: ClusterId,
        past: &BTreeSet<ClusterId>,
    ) -> Result<(), NotRestored> {
        let has = has(&self.whose, made);
        let was_in_it = past.contains(&made) || self.place.archives().iter().any(|one| is_of(&whose_in(one), made));
        let has_served = has != Has::New && !was_in_it && self.has_served(playbook, made).await?;
        let judged = may_be_made(has, Known::Otherwise { was_in_it, has_served });
        judged.map_err(|spent| NotRestored::spent(spent, &self.own.node.name, made))
    }

    /// Whether the new cluster knows it as one that has served. Where nobody of it answers nobody has; one who answers, and does not say
    /// it, may.
    async fn has_served(&self, playbook: &Playbook, made: ClusterId) -> Result<bool, NotRestored> {
        let observer = Observer::connect(&playbook.cluster)?;
        observer.access().directory().settle(made);
        let listed = match observer.members().await {
            Ok(listed) => listed,
            Err(why) if why.is_denial() => return Err(why.into()),
            Err(_) => return Ok(false),
        };
        let has_served = |member: &Listed| !member.client_urls.is_empty() || !member.unused.is_empty();
        Ok(listed.iter().any(|member| member.name == self.own.node.name && has_served(member)))
    }

    /// The cluster whose data is to be put aside.
    pub(super) fn leaves(&self) -> Option<ClusterId> {
        match self.whose {
            Whose::Member { cluster, .. } if !self.is_placed => Some(cluster),
            _ => None,
        }
    }

    /// Ends its process, if it runs; whether it did.
    pub(super) async fn stop(&mut self, playbook: &Playbook, say: &mut impl FnMut(&str)) -> Result<bool, ActError> {
        let observer = Observer::connect(&playbook.cluster)?;
        // One that an agent was about to stop when it was killed may never have heard of it, and is told again.
        if !self.own.peek().await?.is_running() {
            return Ok(false);
        }
        if let Whose::Member { cluster, .. } = self.whose {
            observer.access().directory().settle(cluster);
        }
        let found = must_be_the_member(&self.own, &observer, Duration::ZERO).await?.found;
        say(&format!("{}  stopping", self.own.node.name));
        match self.own.stop(found).await? {
            Stopped::Ended => Ok(true),
            Stopped::Another(why) => Err(why),
        }
    }

    /// Has it run what it is to run, on the new data. The program first: an old one does not start on newer data, and the other way
    /// round it would change it.
    pub(super) async fn exchange(&mut self, of: ClusterId) -> Result<Option<PathBuf>, ActError> {
        if !is_of(&self.place.whose_made(), of) {
            return Err(format!("its new data is not in {} any more", self.place.made().display()).into());
        }
        if let Some(executable) = &self.side.executable {
            self.own.switch.to(executable)?;
        }
        files::install(&self.own.files_for(&self.side.release)?)?;
        let aside = self.place.have(Place::exchange).await?;
        self.is_placed = true;
        Ok(aside)
    }

    pub(super) async fn put_aside(&self) -> Result<Option<PathBuf>, ActError> {
        Ok(self.place.have(Place::put_aside).await?)
    }

    /// Starts it on its new data; whether it did not run before, and what there is to warn of.
    pub(super) async fn start(&mut self) -> Result<(bool, Vec<String>), ActError> {
        if let Whose::Member { member, .. } = self.place.whose_data() {
            self.own.member = member;
        }
        if self.own.status().await?.is_running() {
            return Ok((false, Vec::new()));
        }
        let started = self.own.start_stopped(Listens::Perhaps).await?;
        Ok((started.is_new, started.warnings))
    }
}

/// Where what is made lies, or lay.
pub(super) async fn place(found: &Found, token: &str) -> Result<Place, ActError> {
    let owner = owner(&found.own, &found.data, program(&found.own.node).as_deref()).await?;
    place_of(&found.data, token, &owner)
}

fn place_of(data: &Path, token: &str, owner: &Credentials) -> Result<Place, ActError> {
    let place = Place::of(data, token)?;
    let rights = rights(place.folder(), owner)?;
    Ok(place.with_rights(rights))
}

/// A program that the agent itself starts.
fn program(node: &playbook::Node) -> Option<PathBuf> {
    match &node.runtime {
        Runtime::Process(process) => process.argv.first().map(PathBuf::from).filter(|path| path.is_absolute()),
        Runtime::Command(_) | Runtime::Systemd(_) => None,
    }
}

/// In a folder that only the agent's user may change it works with its own rights; in one that the owner of the data may change, with
/// his.
fn rights(folder: &Path, owner: &Credentials) -> Result<Rights, ActError> {
    match path_owner::check(folder, &Writers::own()) {
        Ok(()) => Ok(Rights::Own),
        Err(why) if owner.uid == Credentials::own().uid => Err(why.into()),
        Err(_) => {
            path_owner::check(folder, &owner.writers())?;
            Ok(Rights::Of(owner.clone()))
        }
    }
}

/// Whose the data is: whoever has the old, else whoever the member runs as. Who may change the folder that it lies in chooses what lies
/// there, so one who is not whoever the member runs as is not believed.
async fn owner(own: &OwnNode, data: &Path, program: Option<&Path>) -> Result<Credentials, ActError> {
    let runs_as = match program {
        Some(program) => Some(own.runs_as(program).await?),
        None => None,
    };
    let shown = data.display();
    let owner = match (fs::symlink_metadata(data), runs_as) {
        (Ok(seen), _) if seen.is_symlink() => {
            return Err(format!("{shown} is a link; let `data_dir`, and `--data-dir`, name the folder itself").into());
        }
        (Ok(seen), Some(user)) if seen.uid() != user.uid => {
            let (has, runs) = (user_name(seen.uid()), user_name(user.uid));
            return Err(
                format!("{shown} is {has}'s, and the member runs as {runs}; type: chown -R {runs} {shown}").into()
            );
        }
        (Ok(seen), Some(user)) => with_group(user, seen.gid()),
        (Ok(seen), None) => with_group(Credentials::of_uid(seen.uid())?, seen.gid()),
        (Err(_), Some(user)) => user,
        (Err(_), None) => {
            return Err(format!("{shown} is not there, so whose it is to be is not known: make it, empty").into());
        }
    };
    match owner.clone().that_may_be_had().uid == owner.uid {
        true => Ok(owner),
        false => Err(format!("{} is another user's; run this as root", data.display()).into()),
    }
}

/// The data's own group, where he is in it. A folder that root has made and given to him may still be of a group of root's.
fn with_group(user: Credentials, group: u32) -> Credentials {
    let gid = if user.groups.contains(&group) { group } else { user.gid };
    Credentials { gid, ..user }
}

/// Refuses a member that would not be where the others look for it.
fn check_urls(own: &OwnNode, origin: &Origin) -> Result<(), ActError> {
    let told = told_text(&own.node.runtime, "initial-advertise-peer-urls");
    let told = told.map(|told| told.split(',').map(|url| url.trim().to_owned()).collect()).or_else(|| {
        let named = own.node.peer_urls.iter().cloned().collect();
        (!own.node.peer_urls.is_empty()).then_some(named)
    });
    let founded = origin.founders.get(&own.node.name);
    match (told, founded) {
        (Some(told), Some(founded)) if told != *founded => {
            let list = |urls: &std::collections::BTreeSet<String>| urls.iter().cloned().collect::<Vec<_>>().join(", ");
            Err(format!(
                "the new cluster would look for it at {}, and it says that it is at {}; name the new members: `restore: {{ members: {{ \
                 NAME: [PEER-URL], … }} }}`",
                list(founded),
                list(&told)
            )
            .into())
        }
        _ => Ok(()),
    }
}

/// etcd starts on data of its own minor, and of the one before.
fn check_version(release: &Release, version: ClusterVersion) -> Result<(), ActError> {
    let own = release.cluster_version();
    let is_near = own.major == version.major && (version.minor..=version.minor + 1).contains(&own.minor);
    // 3.0 is what a cluster says of itself before all of its members have come.
    let is_undecided = version.minor == 0 && own.major == version.major;
    match is_near || is_undecided || *release == Release::new(0, 0, 0) {
        true => Ok(()),
        false => Err(format!(
            "the file was saved from a cluster of version {version}, and it would run {release}; have it run {version}: --release {version}.N, \
             a release that lies beside its `binary`"
        )
        .into()),
    }
}

/// Who the members are, as the nodes of this host are started.
pub(super) fn told_founders(playbook: &Playbook) -> Option<Founders> {
    let told = playbook.nodes.iter().find_map(|node| told_text(&node.runtime, "initial-cluster"))?;
    let mut founders = Founders::new();
    for one in told.split(',') {
        let (name, url) = one.trim().split_once('=')?;
        founders.entry(name.to_owned()).or_default().insert(url.to_owned());
    }
    Some(founders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_data_is_taken_where_its_owner_is_in_it() {
        let user = Credentials { uid: 7, gid: 7, groups: vec![7, 8] };
        for (group, expected) in [(7, 7), (8, 8), (0, 7), (9, 7)] {
            assert_eq!(with_group(user.clone(), group), Credentials { gid: expected, ..user.clone() }, "{group}");
        }
    }

    #[test]
    fn data_goes_with_the_same_minor_and_the_next() {
        let version = ClusterVersion { major: 3, minor: 5 };
        for (release, is_right) in
            [((3, 4, 9), false), ((3, 5, 0), true), ((3, 6, 1), true), ((3, 7, 0), false), ((4, 5, 0), false)]
        {
            let (major, minor, patch) = release;
            assert_eq!(check_version(&Release::new(major, minor, patch), version).is_ok(), is_right, "{release:?}");
        }
        assert!(check_version(&Release::new(0, 0, 0), version).is_ok(), "nobody knows");
        let undecided = ClusterVersion { major: 3, minor: 0 };
        assert!(check_version(&Release::new(3, 6, 1), undecided).is_ok(), "a member had not come yet");
    }
}
