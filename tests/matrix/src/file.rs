//! A matrix file, read as strictly as a playbook: every fault has its line, its column and what was expected.

mod pasts;

use std::{collections::BTreeMap, path};

use lab::system::System;
use proto::Release;

use super::model::{Column, Matrix, Path, Tested};
use agent::playbook::{
    Artifact, PlaybookError,
    fault::Fault,
    fields::Fields,
    folder,
    parse::{
        API_VERSION,
        kind::{LOWEST, artifact},
        value,
    },
    text,
    tree::{Entry, Tree},
};

const KEYS: [&str; 9] = ["apiVersion", "kind", "name", "systems", "sizes", "tls", "faults", "plans", "seed"];
const HEAD: &str = "a matrix, which begins with `apiVersion: baton/v1` and `kind: Matrix`";
const SYSTEM: &str = "`etcd:` or `node:`, with `releases` and `paths`";
const PATH: &str = "a path, such as `\"3.5.30 -> 3.6.14\"`";
/// More members than any cluster should have (etcd's FAQ: seven).
const LARGEST: usize = 9;
/// More plans of a cell than anybody waits for.
const MOST: u64 = 10_000;

impl Matrix {
    /// Reads the matrix in this file; relative paths start at its folder.
    ///
    /// # Errors
    /// The whole text for a person.
    pub fn load(file: &path::Path) -> Result<Self, PlaybookError> {
        Self::parse(&text(file, HEAD)?, file)
    }

    /// Reads the matrix `source`, which was in `file`.
    ///
    /// # Errors
    /// The whole text for a person.
    pub fn parse(source: &str, file: &path::Path) -> Result<Self, PlaybookError> {
        let read = || matrix(&Tree::read(source, HEAD)?, &folder(file));
        read().map_err(|fault| fault.in_source(file, source))
    }
}

fn matrix(tree: &Tree, folder: &path::Path) -> Result<Matrix, Fault> {
    let fields = Fields::open(tree, "the matrix", HEAD)?;
    for (key, wanted) in [("apiVersion", API_VERSION), ("kind", "Matrix")] {
        let expected = format!("`{key}: {wanted}`");
        let found = fields.need(key, &expected)?;
        if found.written(&expected)? != wanted {
            return Err(found.fault(format!("another `{key}` than a matrix has"), expected));
        }
    }
    let fields = fields.only(&KEYS)?;
    let systems = fields.need("systems", SYSTEM)?.map(SYSTEM)?;
    let systems = systems.iter().map(|entry| tested(entry, folder)).collect::<Result<Vec<_>, _>>()?;
    let sizes = fields.or("sizes", vec![3], sizes)?;
    if let Some(listed) = fields.get("systems") {
        pasts::possible(listed, &systems, &sizes)?;
    }
    Ok(Matrix {
        name: value::name(fields.need("name", "`name`, for reports")?, "a name")?.into(),
        systems,
        sizes,
        tls: fields.or("tls", vec![false], tls)?,
        faults: fields.or("faults", vec![Column::None, Column::Mixed], faults)?,
        plans: fields.or("plans", 1, |tree| number(tree, 1..=MOST))?,
        seed: fields.or("seed", 1, |tree| number(tree, 0..=u64::MAX))?,
    })
}

fn tested(entry: &Entry, folder: &path::Path) -> Result<Tested, Fault> {
    let system = System::ALL.into_iter().find(|system| system.name() == entry.key);
    let no_system = || Fault::new(entry.key_place, format!("there is no system `{}`", entry.key), SYSTEM);
    let system = system.ok_or_else(no_system)?;
    let known: &[_] =
        if system == System::Etcd { &["releases", "paths", "pasts", "etcdctl"] } else { &["releases", "paths"] };
    let fields = Fields::of(&entry.value, "the system", known)?;
    let expected = "`releases: { 3.5.30: { source: … }, … }`";
    let entries = fields.need("releases", expected)?.map(expected)?;
    let releases = entries.iter().map(|entry| release(entry, folder)).collect::<Result<BTreeMap<_, _>, _>>()?;
    let expected = "`paths: [\"3.5.30 -> 3.6.14\", …]`";
    let listed = fields.need("paths", expected)?;
    let paths = listed.list(expected)?;
    if paths.is_empty() {
        return Err(listed.fault("an empty list, so nothing to run", PATH));
    }
    let paths = paths.iter().map(|path| way(path, &releases)).collect::<Result<Vec<_>, _>>()?;
    let pasts = fields.or("pasts", Vec::new(), |tree| pasts::pasts(tree, &releases, &paths))?;
    let etcdctl = fields.or("etcdctl", Vec::new(), |tree| etcdctl(tree, &releases))?;
    Ok(Tested { system, releases, paths, pasts, etcdctl })
}

fn etcdctl(tree: &Tree, releases: &BTreeMap<Release, Artifact>) -> Result<Vec<Release>, Fault> {
    let expected = "a list out of `releases`, such as `[3.4.23, 3.6.14]`";
    let one = |tree: &Tree| {
        let text = tree.written(expected)?;
        let release = text.parse().ok().filter(|release| releases.contains_key(release));
        release.ok_or_else(|| tree.fault(format!("`{text}` is none of the releases"), expected))
    };
    tree.list(expected)?.iter().map(one).collect()
}

fn release(entry: &Entry, folder: &path::Path) -> Result<(Release, Artifact), Fault> {
    let no_release = |_| {
        let problem = format!("`{}` is no release", entry.key);
        Fault::new(entry.key_place, problem, "one exact release, such as `3.6.14`")
    };
    let release: Release = entry.key.parse().map_err(no_release)?;
    let from = artifact(&entry.value, folder, &release)?;
    Ok((release, from))
}

/// A way that a cluster can go: a minor at most, and never down to where there is no way.
fn way(tree: &Tree, releases: &BTreeMap<Release, Artifact>) -> Result<Path, Fault> {
    let text = tree.text(PATH)?;
    let ends = || {
        let (from, to) = text.split_once("->")?;
        Some((from.trim().parse::<Release>().ok()?, to.trim().parse::<Release>().ok()?))
    };
    let (from, to) = ends().ok_or_else(|| tree.fault(format!("`{text}` is no path"), PATH))?;
    if let Some(unknown) = [&from, &to].into_iter().find(|release| !releases.contains_key(release)) {
        let known = releases.keys().map(Release::to_string).collect::<Vec<_>>().join(", ");
        return Err(tree.fault(format!("{unknown} is none of the releases"), format!("two of {known}")));
    }
    let (low, high) = (from.cluster_version(), to.cluster_version());
    let problem = match () {
        () if from == to => "it leads nowhere".into(),
        () if low.major != high.major => "no member goes over a major".into(),
        () if low.minor.abs_diff(high.minor) > 1 => "it leaves out a minor; members go one at a time".into(),
        () if high < low && high < LOWEST => format!("no downgrade leads below {LOWEST}"),
        () => return Ok(Path { from, to }),
    };
    Err(tree.fault(format!("nobody can go from {from} to {to}: {problem}"), "a path of one minor, or within one"))
}

fn sizes(tree: &Tree) -> Result<Vec<usize>, Fault> {
    let expected = "a list of numbers of members, such as `[3, 5]`";
    let sizes = tree.list(expected)?;
    let sizes = sizes.iter().map(|size| number(size, 1..=LARGEST as u64).map(|size| size as usize));
    match sizes.collect::<Result<Vec<_>, _>>()? {
        none if none.is_empty() => Err(tree.fault("an empty list, so nothing to run", expected)),
        sizes => Ok(sizes),
    }
}

fn tls(tree: &Tree) -> Result<Vec<bool>, Fault> {
    let expected = "a list of `false` and `true`, such as `[false, true]`";
    let choices = [("false", false), ("true", true)];
    match tree.list(expected)?.iter().map(|word| word.choice(&choices)).collect::<Result<Vec<_>, _>>()? {
        none if none.is_empty() => Err(tree.fault("an empty list, so nothing to run", expected)),
        tls => Ok(tls),
    }
}

fn faults(tree: &Tree) -> Result<Vec<Column>, Fault> {
    let choices = Column::ALL.map(|column| (column.name(), column));
    if tree.choice(&[("all", ())]).is_ok() {
        return Ok(Column::ALL.to_vec());
    }
    let columns = tree.list("`all`, or a list of faults, such as `[none, mixed]`")?;
    match columns.iter().map(|column| column.choice(&choices)).collect::<Result<Vec<_>, _>>()? {
        none if none.is_empty() => Err(tree.fault("an empty list, so nothing to run", "`[none]` at least")),
        columns => Ok(columns),
    }
}

fn number(tree: &Tree, within: std::ops::RangeInclusive<u64>) -> Result<u64, Fault> {
    let (least, most) = (within.start(), within.end());
    let expected = if *most == u64::MAX { "a whole number".into() } else { format!("a number from {least} to {most}") };
    let text = tree.written(&expected)?;
    match text.parse() {
        Ok(number) if within.contains(&number) => Ok(number),
        _ => Err(tree.fault(format!("`{text}` stands here"), expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "apiVersion: baton/v1
kind: Matrix
name: ci
systems:
  etcd:
    releases:
      3.4.23: { source: \"a/etcd-{{version}}\" }
      3.5.30: { source: b }
      3.6.14: { source: c }
    paths: [\"3.4.23 -> 3.5.30\", \"3.6.14->3.5.30\"]
sizes: [3, 5]
faults: [none, agent_killed]
plans: 2
seed: 7
";

    fn read(source: &str) -> Result<Matrix, String> {
        Matrix::parse(source, path::Path::new("/home/m.yaml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_matrix_is_the_product_of_what_it_lists() {
        let matrix = read(GOOD).unwrap();
        let cells = matrix.cells();
        assert_eq!(cells.len(), 2 * 2 * 2 * 2);
        assert_eq!(cells[0].id(), "etcd/3.4.23-3.5.30/3/none/7");
        assert_eq!(cells[15].id(), "etcd/3.6.14-3.5.30/5/agent_killed/8");
        let secured = read(&GOOD.replace("sizes: [3, 5]", "tls: [false, true]")).unwrap().cells();
        assert_eq!(secured.len(), 2 * 2 * 2 * 2);
        assert_eq!(secured[4].id(), "etcd/3.4.23-3.5.30/3-tls/none/7");
        let lived =
            GOOD.replace("    paths:", "    pasts: { old: { born: 3.4.23, then: [write, restore] } }\n    paths:");
        let lived = read(&lived).unwrap().cells();
        assert_eq!(lived.len(), 3 * 2 * 2 * 2, "the way from 3.4.23 is gone twice");
        assert_eq!(lived[4].id(), "etcd/3.4.23-3.5.30/3-old/none/7");
        assert_eq!(lived[4].to_string(), "etcd 3.4.23 -> 3.5.30, 3 members, past: old, faults: none, seed 7");
        let all = read(&GOOD.replace("[none, agent_killed]", "all")).unwrap();
        assert_eq!(all.cells().len(), 2 * 2 * Column::ALL.len() * 2);
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_place() {
        for (old, new, expected) in [
            (
                "3.4.23 -> 3.5.30",
                "3.4.23 -> 3.6.14",
                "m.yaml:10:13: nobody can go from 3.4.23 to 3.6.14: it leaves out a minor",
            ),
            ("3.4.23 -> 3.5.30", "3.5.30 -> 3.4.23", "no downgrade leads below 3.5"),
            ("3.4.23 -> 3.5.30", "3.5.30 -> 3.5.30", "it leads nowhere"),
            ("3.4.23 -> 3.5.30", "3.5.30 -> 3.7.0", "3.7.0 is none of the releases"),
            ("3.4.23 -> 3.5.30", "3.5 to 3.6", "`3.5 to 3.6` is no path"),
            ("[3, 5]", "[3, 0]", "m.yaml:11:12: `0` stands here"),
            ("[3, 5]", "[]", "m.yaml:11:8: an empty list"),
            ("sizes: [3, 5]", "tls: [maybe]", "m.yaml:11:7: `maybe` is none of the choices"),
            ("agent_killed", "meteor", "m.yaml:12:16: `meteor` is none of the choices"),
            ("plans: 2", "plan: 2", "m.yaml:13:1: the matrix has no key `plan`"),
            ("  etcd:", "  consul:", "m.yaml:5:3: there is no system `consul`"),
            (
                ": { source: c }\n",
                ": { source: c }\n    pasts: { old: { born: 3.5.30, then: [dance] } }\n",
                "`dance` is nothing that is done",
            ),
            (
                ": { source: c }\n",
                ": { source: c }\n    pasts: { old: { born: 3.5.1, then: [] } }\n",
                "3.5.1 is none of the releases",
            ),
            (
                ": { source: c }\n",
                ": { source: c }\n    pasts: { old: { born: 3.4.23, then: [3.5.30] } }\n",
                "m.yaml:10:14: `old` ends at 3.5.30, and no path begins there",
            ),
            (
                ": { source: c }\n",
                ": { source: c }\n    pasts: { old: { born: 3.4.23, then: [auth off] } }\n",
                "m.yaml:10:42: authentication is not on by then",
            ),
            (
                ": { source: c }\n",
                ": { source: c }\n    pasts: { old: { born: 3.4.23, then: [replace m5] } }\n",
                "a cluster of 3 has no m5",
            ),
            (
                ": { source: c }\n",
                ": { source: c }\n    pasts: { tls-old: { born: 3.4.23, then: [] } }\n",
                "`tls-old` cannot be a name",
            ),
            ("kind: Matrix", "kind: Upgrade", "m.yaml:2:7: another `kind` than a matrix has"),
            ("3.5.30: { source: b }", "3.5: { source: b }", "m.yaml:8:7: `3.5` is no release"),
            ("3.5.30: { source: b }", "3.5.30: { source: \"https://x.test/b\" }", "a URL without `sha256`"),
        ] {
            let error = read(&GOOD.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(expected), "{new}: {error}");
        }
    }
}
