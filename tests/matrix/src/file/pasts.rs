//! `pasts:` of a system: what clusters have behind them before agents come.

use std::collections::BTreeMap;

use agent::playbook::{
    Artifact,
    fault::Fault,
    fields::Fields,
    tree::{Entry, Tree},
};
use proto::Release;

use super::number;
use crate::{
    model::{Path, Tested},
    past::{
        Action,
        ancestry::{Ancestry, DEEDS, deed},
    },
};

const PAST: &str = "`born: 3.4.23` and `then: [3.5.30, replace m2, auth on, …]`";
const PASTS: &str = "names, each with `born` and `then`";

/// Each past, in the file's order.
pub(super) fn pasts(
    tree: &Tree,
    releases: &BTreeMap<Release, Artifact>,
    paths: &[Path],
) -> Result<Vec<Ancestry>, Fault> {
    tree.map(PASTS)?.iter().map(|entry| past(entry, releases, paths)).collect()
}

fn past(entry: &Entry, releases: &BTreeMap<Release, Artifact>, paths: &[Path]) -> Result<Ancestry, Fault> {
    // Else the name of a plan could mean two.
    let expected = "a name of letters, digits and `-` that does not begin with `tls`";
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if entry.key.is_empty() || !entry.key.chars().all(is_plain) || entry.key.starts_with("tls") {
        return Err(Fault::new(entry.key_place, format!("`{}` cannot be a name", entry.key.escape_debug()), expected));
    }
    let fields = Fields::of(&entry.value, "the past", &["born", "snapshot_count", "then"])?;
    let known = |release: &Release, tree: &Tree| match releases.contains_key(release) {
        true => Ok(()),
        false => {
            let all = releases.keys().map(Release::to_string).collect::<Vec<_>>().join(", ");
            Err(tree.fault(format!("{release} is none of the releases"), format!("one of {all}")))
        }
    };
    let born = fields.need("born", PAST)?;
    let expected = "one exact release, such as `3.4.23`";
    let no_release = |_| born.fault("no release stands here", expected);
    let release: Release = born.written(expected)?.parse().map_err(no_release)?;
    known(&release, born)?;
    let then = fields.need("then", PAST)?.list(PAST)?.iter().map(|tree| {
        let text = tree.written(DEEDS)?;
        let action = deed(text).ok_or_else(|| tree.fault(format!("`{text}` is nothing that is done"), DEEDS))?;
        if let Action::Hop { to, .. } = &action {
            known(to, tree)?;
        }
        Ok(action)
    });
    let then = then.collect::<Result<Vec<_>, Fault>>()?;
    let snapshot_count = fields.get("snapshot_count").map(|tree| number(tree, 10..=1_000_000)).transpose()?;
    let past = Ancestry { name: entry.key.clone(), born: release, snapshot_count, then };
    if !paths.iter().any(|path| path.from == *past.end()) {
        let problem = format!("`{}` ends at {}, and no path begins there", past.name, past.end());
        return Err(Fault::new(entry.key_place, problem, "a past that ends where a path begins"));
    }
    Ok(past)
}

/// Holds every past against the sizes of clusters; `listed` is where systems stand.
pub(super) fn possible(listed: &Tree, systems: &[Tested], sizes: &[usize]) -> Result<(), Fault> {
    for (entry, tested) in listed.map(PASTS)?.iter().zip(systems) {
        let Some(written) = Fields::open(&entry.value, "the system", PAST)?.get("pasts") else { continue };
        for (entry, past) in written.map(PASTS)?.iter().zip(&tested.pasts) {
            for size in sizes {
                let Err((at, why)) = past.judge(*size) else { continue };
                let then = Fields::open(&entry.value, "the past", PAST)?.need("then", PAST)?;
                let place = then.list(PAST)?.get(at).unwrap_or(then);
                return Err(place.fault(why.to_string(), "what can be done to clusters of all `sizes`, in this order"));
            }
        }
    }
    Ok(())
}
