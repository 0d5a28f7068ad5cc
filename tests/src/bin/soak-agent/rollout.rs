//! One rollout under load while its agents are killed, and what must be so at its end.

use std::{
    fmt, fs,
    path::Path,
    time::{Duration, Instant},
};

use tests::{
    Error,
    agent::Agent,
    cluster::{Layout, Member},
    ended::Ended,
    newcomer::place,
    playbook::{Upgrade, quoted},
    process::Process,
    raft_status,
    rollout::LIMIT,
    system::{Build, System},
    wait,
    witness::{Testimony, Witness},
    workload::Load,
};

use crate::{
    host::{Host, Killed},
    journey::{Direction, Kills},
};

/// Where backups lie, in each host's folder.
const BACKUPS: &str = "backups";

/// A rollout that came to its end.
pub struct Rollout {
    pub killed: Vec<Killed>,
    /// Of those who looked on; nobody writes while a cluster is restored.
    pub testimony: Option<Testimony>,
    pub took: Duration,
    /// Whether agents had to be started once more because others were dead when they ended.
    pub is_run_again: bool,
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let killed: Vec<_> = self.killed.iter().map(|one| format!("{} {}", one.member, one.last)).collect();
        write!(f, "{:.1} s  ", self.took.as_secs_f64())?;
        if let Some(seen) = &self.testimony {
            write!(f, "longest gap {} ms  ", seen.longest_write_gap.as_millis())?;
        }
        write!(f, "{} kills: {}", killed.len(), killed.join(", "))
    }
}

/// Takes a cluster to this release. Every agent that was killed is started again, and at last each host's agent must
/// have said that the cluster is done.
pub async fn roll(
    layout: &Layout,
    (over, to): (Option<&Build>, &Build),
    direction: &Direction,
    number: usize,
) -> Result<Rollout, Error> {
    let mut upgrade = Upgrade { node: place, between: over.into_iter().cloned().collect(), ..Upgrade::new(layout, to) };
    if direction.from == "3.4" {
        // Nobody changes a user meanwhile.
        upgrade.strategy.push("accept_hazards: [auth-34-35]".into());
    }
    if direction.is_backed_up {
        upgrade.extra.push("backup: { dir: backups, keep: 2 }".into());
        layout.members.iter().try_for_each(|member| fs::create_dir_all(member.dir.join(BACKUPS)))?;
    }
    let playbooks = upgrade.write(layout)?;
    let hosts: Vec<Host> = layout.members.iter().zip(playbooks).map(|(m, playbook)| Host::of(m, playbook)).collect();
    come_to_an_end(layout, to, &hosts, &direction.kills, number).await
}

/// A change of members: who comes, whose places among the members become free, and the playbook's kind with its line.
pub struct Change<'a> {
    pub newcomers: &'a [Member],
    pub leave: &'a [usize],
    pub kind: (&'static str, String),
}

/// Carries it out, in the layout too.
pub async fn change(
    layout: &mut Layout,
    build: &Build,
    change: &Change<'_>,
    kills: &Kills,
    number: usize,
) -> Result<Rollout, Error> {
    let upgrade = Upgrade { members: Some(change.kind.clone()), node: place, ..Upgrade::new(layout, build) };
    let all = layout.members.iter().chain(change.newcomers);
    let host = |member: &Member| Ok::<_, Error>(Host::of(member, upgrade.write_host(layout, &[member])?));
    let hosts = all.map(host).collect::<Result<Vec<_>, _>>()?;
    let (mut stay, mut gone) = (layout.clone(), Vec::new());
    let mut places = 0..;
    stay.members.retain(|member| {
        let goes = places.next().is_some_and(|place| change.leave.contains(&place));
        gone.extend(goes.then(|| member.clone()));
        !goes
    });
    let rollout = come_to_an_end(&stay, build, &hosts, kills, number).await?;
    if let Some(leaver) = gone.iter().find(|leaver| leaver.is_running()) {
        return Err(format!("{} is no member any more, and still runs", leaver.name).into());
    }
    let joined: Result<Vec<_>, _> = change.newcomers.iter().map(Member::joined).collect();
    layout.members = stay.members.into_iter().chain(joined?).collect();
    all_run_on(layout, build).await?;
    Ok(rollout)
}

/// Has each host's member ended by a guarded command, which starts it again.
pub async fn guard(layout: &Layout, build: &Build, kills: &Kills, number: usize) -> Result<Rollout, Error> {
    let restart = Upgrade { restart: Some("none".into()), node: place, ..Upgrade::new(layout, build) };
    let host = |(member, playbook): (&Member, _)| Host::guarding(member, playbook);
    let hosts: Vec<_> = layout.members.iter().zip(restart.write(layout)?).map(host).collect();
    let rollout = come_to_an_end(layout, build, &hosts, kills, number).await?;
    all_run_on(layout, build).await?;
    Ok(rollout)
}

/// Saves a backup, writes once more, and has every host make the cluster anew from what was saved; that has all that was written before,
/// and not the rest.
pub async fn restore(layout: &Layout, build: &Build, kills: &Kills, number: usize) -> Result<Rollout, Error> {
    let mut upgrade = Upgrade { node: place, ..Upgrade::new(layout, build) };
    upgrade.everybody_comes();
    let named = layout.members.iter().map(|member| format!("{}: [{}]", member.name, quoted(&member.peer_url())));
    upgrade.extra.push(match build.system {
        System::Etcd => format!("restore: {{ tool: {} }}", build.bin.join("etcdutl").display()),
        // What it has saved does not list them, and members that have come and gone are in nobody's arguments.
        System::Node => format!("restore: {{ members: {{ {} }} }}", named.collect::<Vec<_>>().join(", ")),
    });
    let playbooks = upgrade.write(layout)?;
    let backups = layout.dir.join(BACKUPS);
    fs::create_dir_all(&backups)?;
    let (first, place) = (&playbooks[0], backups.display().to_string());
    let saved = Agent::start("backup", first, &["--dir", &place])?.ended(LIMIT).await?;
    let file = saved.result.as_ref().and_then(|said| said["backup"]["file"].as_str());
    let file = file.ok_or_else(|| format!("nothing was saved: {saved}"))?.to_owned();
    let since = format!("since-{number}");
    layout.client(&layout.members[0])?.put(&since, "lost").await?;
    let again = format!("restore-{number}");
    let more = ["--from", &file, "--discard-cluster", "--again", &again];
    let host = |(member, playbook): (&Member, _)| Host::restoring(member, playbook, &more);
    let hosts: Vec<_> = layout.members.iter().zip(playbooks).map(host).collect();
    let begun = Instant::now();
    let (killed, _) = all_are_killed(&hosts, kills).await?;
    let took = begun.elapsed();
    all_run_on(layout, build).await?;
    for member in &layout.members {
        if layout.client(member)?.get(&since).await?.is_some() {
            return Err(format!("{} has what was written after the backup", member.name).into());
        }
    }
    Ok(Rollout { killed, testimony: None, took, is_run_again: false })
}

async fn come_to_an_end(
    layout: &Layout,
    to: &Build,
    hosts: &[Host],
    kills: &Kills,
    number: usize,
) -> Result<Rollout, Error> {
    let load = Load { prefix: format!("load-{number}/"), ..Load::default() };
    let witness = Witness::begin(layout, &load, to.release.cluster_version()).await?;
    let begun = Instant::now();
    let (killed, ended) = all_are_killed(hosts, kills).await?;
    let is_run_again = !ended.iter().all(is_done);
    if is_run_again {
        for ended in all_run(hosts).await? {
            if !is_done(&ended) {
                return Err(format!("run once more, it did not come to the end: {ended}").into());
            }
        }
    }
    witness.has_settled().await?;
    let took = begun.elapsed();
    is_clean(layout).await?;
    let testimony = witness.end().await?;
    testimony.is_sound(1)?;
    Ok(Rollout { killed, testimony: Some(testimony), took, is_run_again })
}

pub async fn all_run_on(layout: &Layout, to: &Build) -> Result<(), Error> {
    let releases: Vec<_> = layout.versions().await?.into_iter().map(|said| said.server).collect();
    match releases.iter().all(|release| *release == to.release.to_string()) {
        true => Ok(()),
        false => Err(format!("members were left on {releases:?}").into()),
    }
}

async fn all_are_killed(hosts: &[Host], kills: &Kills) -> Result<(Vec<Killed>, Vec<Ended>), Error> {
    let tasks: Vec<_> = hosts
        .iter()
        .cloned()
        .zip(kills.clone())
        .map(|(host, kills)| tokio::spawn(async move { host.is_killed(&kills).await }))
        .collect();
    let (mut killed, mut ended) = (Vec::new(), Vec::new());
    for task in tasks {
        let (some, last) = task.await??;
        killed.extend(some);
        // Who ends while others are dead has done its part; nothing else is an end for one that was not killed.
        if last.exit != Some(0) {
            return Err(format!("it gave up: {last}").into());
        }
        ended.push(last);
    }
    Ok((killed, ended))
}

async fn all_run(hosts: &[Host]) -> Result<Vec<Ended>, Error> {
    let tasks: Vec<_> = hosts.iter().cloned().map(|host| tokio::spawn(async move { host.run().await })).collect();
    let mut ended = Vec::new();
    for task in tasks {
        ended.push(task.await??);
    }
    Ok(ended)
}

fn is_done(ended: &Ended) -> bool {
    ended.exit == Some(0) && (ended.said("cluster") == "done" || ended.reason() == "guarded")
}

/// Nothing is left of the agents but the run that is done: no key, and no process.
async fn is_clean(layout: &Layout) -> Result<(), Error> {
    let keys = raft_status::keys(layout).await?;
    let is_left =
        |(name, value): &(&String, &serde_json::Value)| *name != "run" || value["state"]["done"]["result"] != "reached";
    let left: Vec<_> = keys.iter().filter(is_left).collect();
    if !left.is_empty() {
        return Err(format!("keys are left: {left:?}").into());
    }
    Ok(wait::until("every process but the members' to end", wait::GENEROUS, || {
        let left = others_in(&layout.dir);
        std::future::ready(if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) })
    })
    .await?)
}

/// Processes that have this folder on their command line and are no member: agents, and what watches over them.
fn others_in(dir: &Path) -> Vec<String> {
    let folder = dir.to_string_lossy().into_owned();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let command = |pid: i32| {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&bytes).replace('\0', " ");
        let is_member = Process::open(pid).ok()?.executable().is_some_and(|path| path.starts_with(dir));
        (command.contains(&folder) && !is_member).then(|| format!("{pid}: {command}"))
    };
    pids.filter_map(command).collect()
}
