//! `agent init` for another release: which one, and over which others.

use std::{fs, path::Path, time::SystemTime};

use proto::{ClusterVersion, Release};

use super::{init_members, reach::absolute};
use crate::{
    calendar::rfc3339,
    cli::{self, Kind},
    event::trouble::Trouble,
    host::process::snapshot::Snapshot,
    observe::view::{ClusterView, Member},
    playbook::draft::Work,
};

/// What is to be done, as it was typed and as the members run.
///
/// # Errors
/// What was typed makes no sense of these members.
pub(super) fn work(typed: &cli::Init, view: &ClusterView, here: &[(&Member, Snapshot)]) -> Result<Work, Trouble> {
    if let Some(work) = init_members::work(typed, view)? {
        return Ok(work);
    }
    let mut releases: Vec<_> = view.members.iter().filter_map(Member::release).collect();
    releases.sort();
    let (Some(lowest), Some(highest)) = (releases.first().copied(), releases.last().copied()) else {
        return Err(Trouble::Unreachable("no member says which release it runs".into()));
    };
    let to = match (typed.kind, &typed.to) {
        (Some(Kind::Restart), None) => {
            return Ok(Work::Restart { id: typed.id.clone().unwrap_or_else(today) });
        }
        (Some(Kind::Restart), Some(_)) => {
            return Err(Trouble::Usage("--to: a restart leaves the release as it is".into()));
        }
        (_, None) => return Err(Trouble::Usage(which_release(typed.kind, lowest, highest))),
        (_, Some(to)) => to,
    };
    let kind = match typed.kind {
        Some(Kind::Downgrade) => "Downgrade",
        None if to < lowest => "Downgrade",
        _ => "Upgrade",
    };
    let is_below = to < lowest;
    if (kind == "Downgrade") != is_below {
        let remedy = if is_below { "--kind downgrade leads down" } else { "--kind upgrade leads up" };
        return Err(Trouble::Usage(format!("--to {to}: the members run {}; {remedy}", span(lowest, highest))));
    }
    go_step_by_step(typed, if is_below { highest } else { lowest }, to)?;
    let program = here.first().map(|(_, seen)| fs::read_link(seen.executable()).unwrap_or_default());
    let name = program.as_deref().and_then(Path::file_name).map_or("etcd".into(), |name| name.to_string_lossy().into());
    Ok(Work::Release {
        kind,
        lowest: lowest.clone(),
        hops: typed.hops.clone(),
        to: to.clone(),
        source: typed.artifact.as_deref().map(source).transpose()?,
        sha256: typed.sha256.clone(),
        executable: name,
    })
}

/// Refuses a way that leaves out a minor, or turns back.
fn go_step_by_step(typed: &cli::Init, from: &Release, to: &Release) -> Result<(), Trouble> {
    let mut before = from;
    for next in typed.hops.iter().chain([to]) {
        if let Some(between) = left_out(before, next) {
            let found = format!("the way from {before} to {next} leads through {between}");
            return Err(Trouble::Usage(format!("--to {to}: {found}: name a release of it in --hops")));
        }
        let turns = (before < next) != (from < to);
        if turns {
            return Err(Trouble::Usage(format!("--hops: {next} does not lie between {before} and {to}")));
        }
        before = next;
    }
    match &typed.artifact {
        Some(source) if !typed.hops.is_empty() && (source.contains("://") || !source.contains("{{version}}")) => {
            let why = "several releases need a path with {{version}} in it, or `artifacts` in the playbook, each with its digest";
            Err(Trouble::Usage(format!("--artifact {source}: {why}")))
        }
        _ => Ok(()),
    }
}

/// The first version that a way of more than one minor leads through; of another major none is known.
fn left_out(from: &Release, to: &Release) -> Option<ClusterVersion> {
    let (from, to) = (from.cluster_version(), to.cluster_version());
    let minor = if to < from { from.minor.checked_sub(1)? } else { from.minor + 1 };
    (from.major == to.major && from.minor.abs_diff(to.minor) > 1).then_some(ClusterVersion { minor, ..from })
}

/// A path is the caller's, and not relative to wherever the playbook comes to lie.
fn source(typed: &str) -> Result<String, Trouble> {
    match typed.contains("://") {
        true => Ok(typed.to_owned()),
        false => Ok(absolute(Path::new(typed))?.to_string_lossy().into_owned()),
    }
}

fn today() -> String {
    rfc3339(SystemTime::now()).chars().take(10).collect()
}

fn span(lowest: &Release, highest: &Release) -> String {
    if lowest == highest { lowest.to_string() } else { format!("{lowest} to {highest}") }
}

/// Which patch is the newest is known to nobody here.
fn which_release(kind: Option<Kind>, lowest: &Release, highest: &Release) -> String {
    let ClusterVersion { major, minor } = lowest.cluster_version();
    let choice = match kind {
        Some(Kind::Downgrade) => {
            format!("a lower one of {major}.{minor} or one of {major}.{}", minor.saturating_sub(1))
        }
        _ => format!("a higher one of {major}.{minor}, or one of {major}.{}", minor + 1),
    };
    let runs = span(lowest, highest);
    format!("--to RELEASE is missing: the members run {runs}, so {choice}; or --kind restart, which needs none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_two_minors_is_refused_with_the_one_between() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        for (from, to, between) in [
            ("3.5.30", "3.7.1", Some("3.6")),
            ("3.7.1", "3.5.30", Some("3.6")),
            ("3.4.0", "3.7.0", Some("3.5")),
            ("3.5.30", "3.6.14", None),
            ("3.6.14", "3.5.30", None),
            ("3.5.1", "3.5.30", None),
            ("3.6.0", "4.0.0", None),
        ] {
            let found = left_out(&release(from), &release(to)).map(|version| version.to_string());
            assert_eq!(found.as_deref(), between, "{from} {to}");
        }
    }

    #[test]
    fn a_way_over_several_minors_names_a_release_of_each() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        for (from, to, hops, artifact, refused) in [
            ("3.4.37", "3.6.14", "3.5.33", "/srv/etcd-{{version}}", ""),
            ("3.4.37", "3.7.1", "3.5.33 3.6.14", "", ""),
            ("3.7.1", "3.5.33", "3.6.14", "", ""),
            ("3.5.20", "3.6.14", "3.5.33", "", ""),
            ("3.5.33", "3.6.14", "", "/srv/etcd", ""),
            ("3.4.37", "3.6.14", "", "", "leads through 3.5: name a release of it in --hops"),
            ("3.4.37", "3.7.1", "3.5.33", "", "leads through 3.6"),
            ("3.4.37", "3.6.14", "3.5.33 3.5.30", "", "3.5.30 does not lie between 3.5.33 and 3.6.14"),
            ("3.4.37", "3.6.14", "3.5.33 3.6.15", "", "3.6.14 does not lie between"),
            ("3.4.37", "3.6.14", "3.5.33", "/srv/etcd-3.6.14", "need a path with {{version}}"),
            ("3.4.37", "3.6.14", "3.5.33", "https://m/etcd-{{version}}", "need a path with {{version}}"),
        ] {
            let typed = cli::Init {
                hops: hops.split_whitespace().map(release).collect(),
                artifact: Some(artifact.to_owned()).filter(|text| !text.is_empty()),
                ..init()
            };
            let found = go_step_by_step(&typed, &release(from), &release(to));
            let said = found.err().map_or_else(String::new, |trouble| format!("{trouble:?}"));
            assert!(said.is_empty() == refused.is_empty() && said.contains(refused), "{from} {hops} {to}: {said}");
        }
    }

    fn init() -> cli::Init {
        use clap::Parser;
        let typed = cli::Cli::try_parse_from(["agent", "init", "--endpoints", "http://127.0.0.1:1"]).unwrap();
        let cli::Verb::Init(init) = typed.verb else { panic!("{:?}", typed.verb) };
        *init
    }
}
