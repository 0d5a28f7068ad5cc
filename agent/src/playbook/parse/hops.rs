//! `from`, `to`, and what is gone over in between: `artifact`, or `artifacts` by release, and `hops`.

use std::{cmp::Ordering, path::Path};

use proto::Release;
use semver::VersionReq;

use super::{
    kind::{artifact, of_kind, release},
    value,
};
use crate::playbook::{
    fault::Fault,
    fields::Fields,
    release::{Artifact, Hop, Hops},
    tree::Tree,
};

const ARTIFACTS: &str = "releases and where each comes from, such as `3.6.14: { source: /srv/etcd-3.6.14 }`";
const BETWEEN: &str = "the releases between `from` and `to`, such as `[3.5.32, 3.6.14]`";

/// A release with its place, and where it comes from.
struct Stop<'t> {
    place: &'t Tree,
    release: Release,
    artifact: Artifact,
}

/// `way` is how each release compares to the next.
pub(super) fn hops(fields: Fields<'_>, kind: &Tree, folder: &Path, way: Ordering) -> Result<Hops, Fault> {
    let from = value::requirement(of_kind(fields, kind, "from", "`from`, such as `from: \">=3.5.32, <3.6\"`")?)?;
    let last = of_kind(fields, kind, "to", "`to`, one exact release, such as `to: 3.6.14`")?;
    let to = release(last)?;
    let stops = match fields.get("artifacts") {
        Some(artifacts) => by_release(fields, artifacts, folder, way)?,
        None => {
            let expected = "`artifact: { source: … }`, a path or a URL";
            of_one(fields, of_kind(fields, kind, "artifact", expected)?, folder, (last, &to), way)?
        }
    };
    match stops.last() {
        Some(stop) if stop.release == to => {}
        Some(stop) if stops.iter().any(|other| other.release == to) => {
            return Err(last.fault(format!("the way leads on to {}", stop.release), "the last release of the way"));
        }
        _ => return Err(last.fault(format!("`artifacts` lacks {to}"), "a release that `artifacts` has")),
    }
    is_a_way(&stops, way)?;
    let mut hops: Vec<Hop> = Vec::new();
    for Stop { release, artifact, .. } in stops {
        let from = hops.last().map_or_else(|| from.clone(), |hop| exactly(&hop.to));
        hops.push(Hop { from, to: release, artifact });
    }
    Hops::new(hops).ok_or_else(|| last.fault("no release to go to", ARTIFACTS))
}

fn by_release<'t>(
    fields: Fields<'t>,
    artifacts: &'t Tree,
    folder: &Path,
    way: Ordering,
) -> Result<Vec<Stop<'t>>, Fault> {
    for key in ["artifact", "hops"] {
        if let Some(place) = fields.key_place(key) {
            let problem = format!("`{key}` beside `artifacts`, which has every release of the way");
            return Err(Fault::new(place, problem, format!("`artifacts` without `{key}`")));
        }
    }
    let mut stops = Vec::new();
    for entry in artifacts.map(ARTIFACTS)? {
        let release: Release = entry.key.parse().map_err(|_| {
            let problem = format!("`{}` is no release", entry.key.escape_debug());
            Fault::new(entry.key_place, problem, ARTIFACTS)
        })?;
        let artifact = artifact(&entry.value, folder, &release)?;
        stops.push(Stop { place: &entry.value, release, artifact });
    }
    stops.sort_by(|one, other| match way {
        Ordering::Greater => other.release.cmp(&one.release),
        _ => one.release.cmp(&other.release),
    });
    match stops.is_empty() {
        true => Err(artifacts.fault("no release", ARTIFACTS)),
        false => Ok(stops),
    }
}

/// One artifact for all, whose templates tell them apart.
fn of_one<'t>(
    fields: Fields<'t>,
    of_all: &'t Tree,
    folder: &Path,
    (last, to): (&'t Tree, &Release),
    way: Ordering,
) -> Result<Vec<Stop<'t>>, Fault> {
    let mut stops = Vec::new();
    let between = fields.get("hops").map(|tree| tree.list(BETWEEN)).transpose()?.unwrap_or_default();
    for place in between {
        let release = release(place)?;
        stops.push(Stop { place, artifact: artifact(of_all, folder, &release)?, release });
    }
    stops.push(Stop { place: last, release: to.clone(), artifact: artifact(of_all, folder, to)? });
    is_a_way(&stops, way)?;
    let mut sources = stops.iter().map(|stop| &stop.artifact);
    let first = sources.next();
    match sources.next().filter(|second| Some(*second) == first || second.source.sha256().is_some()) {
        Some(second) if second.source.sha256().is_some() => {
            Err(of_all.fault("one digest for several releases", format!("`artifacts`: {ARTIFACTS}")))
        }
        Some(_) => Err(of_all
            .fault("one artifact for several releases", "`{{version}}` in its `source`, or `artifacts` by release")),
        None => Ok(stops),
    }
}

/// etcd goes by one minor at a time, up and down.
fn is_a_way(stops: &[Stop<'_>], way: Ordering) -> Result<(), Fault> {
    for pair in stops.windows(2) {
        let [before, after] = pair else { continue };
        let (low, high) = (before.release.cluster_version(), after.release.cluster_version());
        if before.release.cmp(&after.release) != way {
            let side = if way == Ordering::Less { "above" } else { "below" };
            let problem = format!("{} does not lie {side} {}", after.release, before.release);
            return Err(after.place.fault(problem, "the releases in the order in which they are gone over, each once"));
        }
        if low.major != high.major || low.minor.abs_diff(high.minor) > 1 {
            let problem = format!("no hop leads from {} to {}", before.release, after.release);
            return Err(after.place.fault(problem, "a release of each minor in between, as etcd leaves none out"));
        }
    }
    Ok(())
}

fn exactly(release: &Release) -> VersionReq {
    let comparator = semver::Comparator {
        op: semver::Op::Exact,
        major: release.0.major,
        minor: Some(release.0.minor),
        patch: Some(release.0.patch),
        pre: release.0.pre.clone(),
    };
    VersionReq { comparators: vec![comparator] }
}
