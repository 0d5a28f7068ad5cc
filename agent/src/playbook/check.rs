//! What is impossible together in a playbook whose values are each possible alone. Pure.
//!
//! One rule a function. A rule names the value at fault by its path; its place in the source is looked up by
//! the caller.

use std::{path::Path, time::Duration};

use super::{
    model::{Finalize, Kind, Node, OnFailure, Playbook, Process, Runtime},
    tree::Step::{self, Item, Key},
};

/// How long a member waits before it is put back: a version poll of etcd's leader takes at most this long, and after it a
/// member that was stopped before it began is in none (agent/PROTOCOL.md, R-9).
pub const POLLS: Duration = Duration::from_secs(20);

/// Values that do not go together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) path: Vec<Step>,
    pub(super) problem: String,
    pub(super) expected: String,
}

impl Misfit {
    fn at(path: impl Into<Vec<Step>>, problem: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into(), expected: expected.into() }
    }
}

/// The first rule that the playbook breaks.
pub(super) fn check(playbook: &Playbook) -> Result<(), Misfit> {
    endpoints_fit_tls(playbook)?;
    endpoints_are_distinct(playbook)?;
    names_are_distinct(playbook)?;
    another_release_switches_binaries(playbook)?;
    binaries_are_each_nodes_own(playbook)?;
    units_are_each_nodes_own(playbook)?;
    files_are_each_nodes_own(playbook)?;
    one_file_for_each_path(playbook)?;
    it_leads_to_its_side(playbook)?;
    a_stall_outlasts_a_step(playbook)?;
    nothing_to_finalize_in_one_release(playbook)?;
    peer_urls_are_each_nodes_own(playbook)?;
    data_is_each_nodes_own(playbook)
}

/// A way that leads to the other side would be refused with the cluster at hand alone.
fn it_leads_to_its_side(playbook: &Playbook) -> Result<(), Misfit> {
    let (hops, is_up) = match &playbook.kind {
        Kind::Upgrade(hops) => (hops, true),
        Kind::Downgrade(hops) => (hops, false),
        _ => return Ok(()),
    };
    let (from, to) = (&hops.first().from, &hops.last().to.0);
    // A pre-release matches only what names it, and so nothing that is tried here; one of another major is another question.
    let names_another = |comparator: &semver::Comparator| !comparator.pre.is_empty() || comparator.major != to.major;
    if !to.pre.is_empty() || from.comparators.iter().any(names_another) {
        return Ok(());
    }
    let minors = if is_up { 0..=to.minor } else { to.minor..=HIGHEST_MINOR };
    let mut releases = minors.flat_map(|minor| (0..HIGHEST_PATCH).map(move |patch| (minor, patch)));
    let leads_there = releases.any(|(minor, patch)| {
        let release = semver::Version::new(to.major, minor, patch);
        (if is_up { release <= *to } else { release >= *to }) && from.matches(&release)
    });
    let (side, expected) = match is_up {
        true => ("above", "a higher release, or `kind: Downgrade`"),
        false => ("below", "a lower release, or `kind: Upgrade`"),
    };
    match leads_there {
        true => Ok(()),
        false => Err(Misfit::at([Key("to")], format!("every release that `from` allows is {side} {to}"), expected)),
    }
}

/// A minor, or a patch, that `from` may name is lower.
const HIGHEST_MINOR: u64 = 100;
const HIGHEST_PATCH: u64 = 1000;

/// Others see no progress while a member becomes ready and is watched for a while, nor while it is put back and becomes
/// ready once more, and must not give up for that.
fn a_stall_outlasts_a_step(playbook: &Playbook) -> Result<(), Misfit> {
    let strategy = &playbook.strategy;
    let (step, words) = match strategy.on_failure {
        OnFailure::Stop => (strategy.health + strategy.soak, "`health.timeout` and `soak`"),
        OnFailure::Rollback => (
            2 * strategy.health + strategy.soak + POLLS,
            "twice `health.timeout`, as its member may be put back, `soak` and 20s",
        ),
    };
    match strategy.stall_timeout > step {
        true => Ok(()),
        false => Err(Misfit::at(
            [Key("strategy"), Key("stall_timeout")],
            format!("nobody is waited for as long as one step may take: {words}"),
            "a `stall_timeout` longer than all of that together",
        )),
    }
}

/// Certificates that would not be used, or would be missing, are both a mistake of the writer's.
fn endpoints_fit_tls(playbook: &Playbook) -> Result<(), Misfit> {
    let tls = playbook.cluster.tls.is_some();
    let misfit = |endpoint: &&String| endpoint.starts_with("https://") != tls;
    let Some(index) = playbook.cluster.endpoints.iter().position(|e| misfit(&e)) else { return Ok(()) };
    let (problem, expected) = match tls {
        true => ("an http endpoint beside `cluster.tls`", "`https://…`, or no `cluster.tls`"),
        false => ("an https endpoint without `cluster.tls`", "`cluster.tls: { ca: … }`, or `http://…`"),
    };
    Err(Misfit::at([Key("cluster"), Key("endpoints"), Item(index)], problem, expected))
}

fn endpoints_are_distinct(playbook: &Playbook) -> Result<(), Misfit> {
    match repeated(&playbook.cluster.endpoints) {
        Some((index, _)) => {
            let path = [Key("cluster"), Key("endpoints"), Item(index)];
            Err(Misfit::at(path, "this endpoint is in the list already", "each member's endpoint once"))
        }
        None => Ok(()),
    }
}

fn names_are_distinct(playbook: &Playbook) -> Result<(), Misfit> {
    match repeated(playbook.nodes.iter().map(|node| &node.name)) {
        Some((index, name)) => {
            let problem = format!("duplicate node name `{name}`");
            Err(Misfit::at([Key("nodes"), Item(index), Key("name")], problem, "each member once"))
        }
        None => Ok(()),
    }
}

/// A binary goes live at its own node's step, which a shared symlink would do for another node too.
fn binaries_are_each_nodes_own(playbook: &Playbook) -> Result<(), Misfit> {
    let Some(_) = playbook.kind.hops() else { return Ok(()) };
    match repeated(playbook.nodes.iter().map(|node| &node.binary)) {
        Some((index, Some(_))) => {
            let path = [Key("nodes"), Item(index), Key("binary")];
            let problem = "another node has this binary: both would be switched at once";
            Err(Misfit::at(path, problem, "a symlink of its own for each node"))
        }
        _ => Ok(()),
    }
}

fn units_are_each_nodes_own(playbook: &Playbook) -> Result<(), Misfit> {
    let mut seen = Vec::new();
    for (index, node) in playbook.nodes.iter().enumerate() {
        let Runtime::Systemd(systemd) = &node.runtime else { continue };
        if seen.contains(&&systemd.unit) {
            let path = [Key("nodes"), Item(index), Key("runtime"), Key("unit")];
            return Err(Misfit::at(
                path,
                "another node has this unit: both would be stopped at once",
                "each node's own unit",
            ));
        }
        seen.push(&systemd.unit);
    }
    Ok(())
}

fn files_are_each_nodes_own(playbook: &Playbook) -> Result<(), Misfit> {
    for (index, node) in playbook.nodes.iter().enumerate() {
        let others = &playbook.nodes[..index];
        let taken = |path: &Path| others.iter().any(|node| node.files.iter().any(|file| file.path == path));
        if let Some(file) = node.files.iter().position(|file| taken(&file.path)) {
            let path = [Key("nodes"), Item(index), Key("files"), Item(file), Key("path")];
            let problem = "another node has this file: both would be switched at once";
            return Err(Misfit::at(path, problem, "a file of its own for each node"));
        }
    }
    Ok(())
}

fn another_release_switches_binaries(playbook: &Playbook) -> Result<(), Misfit> {
    let Some(_) = playbook.kind.hops() else { return Ok(()) };
    playbook.nodes.iter().enumerate().try_for_each(|(index, node)| switches_its_binary(index, node))
}

fn switches_its_binary(index: usize, node: &Node) -> Result<(), Misfit> {
    let Some(binary) = &node.binary else {
        let expected = "`binary`, the symlink to the executable, since there is an `artifact`";
        return Err(Misfit::at([Key("nodes"), Item(index)], format!("node `{}` lacks `binary`", node.name), expected));
    };
    match &node.runtime {
        Runtime::Process(process) if !names(process, binary) => {
            let path = [Key("nodes"), Item(index), Key("runtime"), Key("argv")];
            let problem = "`binary` is not part of it, so another executable would be started";
            Err(Misfit::at(path, problem, "`{{binary}}` as the program"))
        }
        _ => Ok(()),
    }
}

fn names(process: &Process, binary: &Path) -> bool {
    process.argv.iter().any(|word| word.contains("{{binary}}") || Path::new(word) == binary)
}

fn one_file_for_each_path(playbook: &Playbook) -> Result<(), Misfit> {
    let Some(hops) = playbook.kind.hops() else { return Ok(()) };
    for (index, node) in playbook.nodes.iter().enumerate() {
        if let Some(clash) = hops.iter().find_map(|hop| node.files_for(&hop.to).err()) {
            let path = [Key("nodes"), Item(index), Key("files"), Item(clash.entries.1), Key("for")];
            return Err(Misfit::at(
                path,
                clash.to_string(),
                "of several `files` with one path exactly one that matches",
            ));
        }
    }
    Ok(())
}

/// There is no point of no return to hold before, and a hold that never comes would be waited for.
fn nothing_to_finalize_in_one_release(playbook: &Playbook) -> Result<(), Misfit> {
    let (what, kind) = match (&playbook.kind, playbook.strategy.finalize) {
        (_, Finalize::Auto) | (Kind::Upgrade(_) | Kind::Downgrade(_), _) => return Ok(()),
        (Kind::Restart { .. }, Finalize::Manual) => ("a restart", "Restart"),
        (Kind::Scale { .. }, Finalize::Manual) => ("a change of members", "Scale"),
        (Kind::Replace { .. }, Finalize::Manual) => ("a change of members", "Replace"),
    };
    let problem = format!("{what} has no point of no return to hold before");
    Err(Misfit::at([Key("strategy"), Key("finalize")], problem, format!("no `finalize` in `kind: {kind}`")))
}

/// Of two members with one address each would be taken for the other.
fn peer_urls_are_each_nodes_own(playbook: &Playbook) -> Result<(), Misfit> {
    for (index, node) in playbook.nodes.iter().enumerate() {
        let others = &playbook.nodes[..index];
        let is_taken = |url: &String| others.iter().any(|other| other.peer_urls.contains(url));
        if let Some(at) = node.peer_urls.iter().position(is_taken) {
            let path = [Key("nodes"), Item(index), Key("peer_urls"), Item(at)];
            return Err(Misfit::at(path, "another node has this peer URL", "peer URLs of its own for each node"));
        }
    }
    Ok(())
}

/// What one of them puts aside the other has open.
fn data_is_each_nodes_own(playbook: &Playbook) -> Result<(), Misfit> {
    match repeated(playbook.nodes.iter().filter_map(|node| node.data_dir.as_ref())) {
        Some((_, folder)) => {
            let is_it = |node: &Node| node.data_dir.as_ref() == Some(folder);
            let index = playbook.nodes.iter().rposition(is_it).unwrap_or_default();
            let path = [Key("nodes"), Item(index), Key("data_dir")];
            Err(Misfit::at(path, "another node has its data there", "a folder of its own for each node"))
        }
        None => Ok(()),
    }
}

/// The first value that was there before, with its position.
fn repeated<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Option<(usize, T)> {
    let mut seen = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        if seen.contains(&value) {
            return Some((index, value));
        }
        seen.push(value);
    }
    None
}
