//! What each key of a playbook means, and what it is when it is not there.
//!
//! From a located tree to the model: one function a section. Each looks at its own values alone; what is
//! impossible together is `check`'s, but where a type in the model already says it.

mod cluster;
mod hops;
pub mod kind;
mod node;
mod strategy;
pub mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proto::MemberId;

use super::{
    fault::{Fault, IS_A_MATRIX},
    fields::Fields,
    model::{Backup, Gates, Hooks, Playbook, Restore, Verify},
    template::Name,
    tree::Tree,
    unit,
};

/// The format that this release reads.
pub const API_VERSION: &str = "baton/v1";
/// How many may be left out: revisions have 63 bits, and some must be left.
pub const MOST_REVISIONS: usize = 1 << 62;
const KEYS: [&str; 20] = [
    "apiVersion",
    "kind",
    "cluster",
    "from",
    "to",
    "artifact",
    "artifacts",
    "hops",
    "restart",
    "state_dir",
    "nodes",
    "strategy",
    "verify",
    "gates",
    "hooks",
    "backup",
    "restore",
    "expect_members",
    "members",
    "replace",
];

/// Reads a whole playbook whose relative paths start at `folder`.
pub(super) fn playbook(tree: &Tree, folder: &Path) -> Result<Playbook, Fault> {
    let fields = top(tree)?;
    let kind = kind::kind(fields, folder)?;
    let cluster = cluster::cluster(fields.need("cluster", "`cluster: { name: …, endpoints: […] }`")?, folder)?;
    let state_dir = fields.or("state_dir", cluster.default_state_dir(), |tree| value::path(tree, folder))?;
    let mut nodes =
        node::nodes(fields.need("nodes", "`nodes:`, the members that run on this host")?, folder, &state_dir)?;
    let may_join = matches!(kind, super::model::Kind::Scale { .. } | super::model::Kind::Replace { .. });
    nodes.iter_mut().for_each(|node| node.may_join = may_join);
    let templates: &[Name] = match nodes.iter().all(|node| node.binary.is_some()) {
        true => &value::OF_A_NODE,
        false => &value::WITHOUT_BINARY,
    };
    Ok(Playbook {
        strategy: fields.or("strategy", Default::default(), |tree| strategy::strategy(tree, folder, templates))?,
        verify: fields.or("verify", Verify::default(), verify)?,
        gates: fields.or("gates", Gates::default(), gates)?,
        hooks: fields.or("hooks", Hooks::default(), |tree| hooks(tree, folder, templates))?,
        backup: fields.or("backup", None, |tree| backup(tree, folder).map(Some))?,
        restore: fields.or("restore", None, |tree| restore(tree, folder).map(Some))?,
        expect_members: fields.or("expect_members", BTreeMap::new(), expect_members)?,
        kind,
        cluster,
        state_dir,
        nodes,
    })
}

fn top(tree: &Tree) -> Result<Fields<'_>, Fault> {
    let expected = format!("`apiVersion: {API_VERSION}`");
    let fields = Fields::open(tree, "the playbook", &format!("a playbook, which begins with {expected}"))?;
    let version = fields.need("apiVersion", &expected)?;
    if version.written(&expected)? != API_VERSION {
        return Err(version.fault("another format than this release reads", expected));
    }
    if let Some(kind) = fields.get("kind").filter(|kind| kind.written("a kind") == Ok("Matrix")) {
        let expected = "a playbook; `agent matrix FILE --list` reads a matrix";
        return Err(kind.fault(IS_A_MATRIX, expected));
    }
    fields.only(&KEYS)
}

fn verify(tree: &Tree) -> Result<Verify, Fault> {
    let fields = Fields::of(tree, "`verify`", &["max_db"])?;
    Ok(Verify { max_db: fields.or("max_db", Verify::default().max_db, |tree| value::unit(tree, unit::parse_size))? })
}

fn backup(tree: &Tree, folder: &Path) -> Result<Backup, Fault> {
    let fields = Fields::of(tree, "`backup`", &["dir", "keep"])?;
    let expected = "a folder, such as `dir: /var/backups/etcd`";
    let dir = value::path(fields.need("dir", expected)?, folder)?;
    Ok(Backup { dir, keep: fields.or("keep", None, |tree| value::count(tree, 9999).map(Some))? })
}

fn restore(tree: &Tree, folder: &Path) -> Result<Restore, Fault> {
    let fields = Fields::of(tree, "`restore`", &["tool", "bump_revision", "members"])?;
    Ok(Restore {
        tool: fields.or("tool", None, |tree| value::path(tree, folder).map(Some))?,
        bump_revision: fields.or("bump_revision", None, |tree| value::count(tree, MOST_REVISIONS).map(Some))?,
        members: fields.or("members", BTreeMap::new(), founders)?,
    })
}

fn founders(tree: &Tree) -> Result<BTreeMap<String, BTreeSet<String>>, Fault> {
    let expected = "the members' names, each with its peer URLs, such as `orders-1: [http://10.0.0.1:2380]`";
    let mut members = BTreeMap::new();
    for entry in tree.map(expected)? {
        let urls = peer_urls(&entry.value, expected)?;
        members.insert(value::key(entry, "a member's name")?, urls);
    }
    match members.is_empty() {
        true => Err(tree.fault("no member", expected)),
        false => Ok(members),
    }
}

fn peer_urls(tree: &Tree, expected: &str) -> Result<BTreeSet<String>, Fault> {
    let mut urls = BTreeSet::new();
    for url in tree.list("a list of peer URLs")? {
        let text = url.text("a peer URL")?;
        if !["http://", "https://", "unix://", "unixs://"].iter().any(|scheme| text.starts_with(scheme)) {
            let problem = format!("`{}` is no peer URL", text.escape_debug());
            return Err(url.fault(problem, "a URL as `etcdctl member list` shows it"));
        }
        if !urls.insert(text.to_owned()) {
            return Err(url.fault(format!("`{}` is there twice", text.escape_debug()), "each peer URL once"));
        }
    }
    if urls.is_empty() {
        return Err(tree.fault("no peer URL", expected));
    }
    Ok(urls)
}

fn gates(tree: &Tree) -> Result<Gates, Fault> {
    let fields = Fields::of(tree, "`gates`", &["expect"])?;
    let Some(expect) = fields.get("expect") else { return Ok(Gates::default()) };
    let entries = expect.map("a mapping of gates, such as `ClusterLeaseCheckpoint: true`")?;
    let gates = entries.iter().map(|entry| Ok((value::key(entry, "a gate's name")?, entry.value.bool()?)));
    Ok(Gates { expect: gates.collect::<Result<_, _>>()? })
}

fn expect_members(tree: &Tree) -> Result<BTreeMap<MemberId, BTreeSet<String>>, Fault> {
    let expected = "the members' ids, each with its peer URLs, such as `8e9e05c52164694d: [http://10.0.0.1:2380]`";
    let entries = tree.map(expected)?;
    if entries.is_empty() {
        return Err(tree.fault("no member", expected));
    }
    let mut members = BTreeMap::new();
    for entry in entries {
        let problem = |problem: String| Fault::new(entry.key_place, problem, expected);
        let id: MemberId = entry.key.parse().ok().filter(|id| *id != MemberId(0)).ok_or_else(|| {
            problem(format!("`{}` is no member id, which has up to 16 hexadecimal digits", entry.key.escape_debug()))
        })?;
        let urls = peer_urls(&entry.value, expected)?;
        if members.insert(id, urls).is_some() {
            return Err(problem(format!("member {id} is there twice")));
        }
    }
    Ok(members)
}

fn hooks(tree: &Tree, folder: &Path, templates: &[Name]) -> Result<Hooks, Fault> {
    let fields = Fields::of(tree, "`hooks`", &["before_node", "after_node"])?;
    let read = |tree: &Tree| {
        let hooks = tree.list("a list of argv lists, such as `[[\"/usr/local/bin/silence\", \"{{node}}\"]]`")?;
        if let Some(word) = hooks.iter().find(|hook| hook.text("").is_ok()) {
            let expected =
                "a list of argv lists, with one more pair of brackets: `[[\"/usr/local/bin/silence\", \"{{node}}\"]]`";
            return Err(word.fault("a word, where a whole argv list stands", expected));
        }
        hooks.iter().map(|hook| value::argv(hook, folder, templates)).collect::<Result<Vec<_>, _>>()
    };
    Ok(Hooks {
        before_node: fields.or("before_node", vec![], read)?,
        after_node: fields.or("after_node", vec![], read)?,
    })
}
