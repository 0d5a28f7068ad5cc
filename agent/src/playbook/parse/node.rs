//! `nodes`: the members of this host, and how each is run.

use std::{collections::BTreeMap, path::Path};

use super::value;
use crate::playbook::{
    fault::Fault,
    fields::Fields,
    model::{Command, ConditionalArgs, ConditionalFile, Node, Process, Runtime, Stop, Systemd},
    template::Name,
    tree::{Entry, Tree},
};

const RUNTIMES: &str = "`process`, `systemd` or `command`";
const PROCESS_KEYS: [&str; 7] = ["kind", "argv", "args", "env", "cwd", "user", "log"];
const COMMAND_KEYS: [&str; 4] = ["kind", "start", "stop", "status"];
const SYSTEMD_KEYS: [&str; 2] = ["kind", "unit"];

pub(super) fn nodes(tree: &Tree, folder: &Path, state_dir: &Path) -> Result<Vec<Node>, Fault> {
    let nodes = tree.list("a list, the members that run on this host")?;
    if nodes.is_empty() {
        return Err(tree.fault("an empty list, so nothing to do on this host", "the members that run on this host"));
    }
    nodes.iter().map(|tree| node(tree, folder, state_dir)).collect()
}

fn node(tree: &Tree, folder: &Path, state_dir: &Path) -> Result<Node, Fault> {
    let fields = Fields::of(tree, "a node", &["name", "runtime", "binary", "files", "stop", "peer_urls", "data_dir"])?;
    let name = value::name(fields.need("name", "`name`, the member's name in the cluster")?, "the member's name")?;
    let binary = fields.maybe("binary", |tree| value::path(tree, folder))?;
    let templates: &[Name] = if binary.is_some() { &value::OF_A_NODE } else { &value::WITHOUT_BINARY };
    let place = Surroundings { folder, templates, log: &state_dir.join(format!("{name}.log")) };
    Ok(Node {
        name: name.into(),
        runtime: runtime(
            fields.need("runtime", "`runtime: { kind: process, … }`, `kind: systemd` or `kind: command`")?,
            &place,
        )?,
        binary,
        files: fields.or("files", vec![], |tree| files(tree, folder))?,
        stop: fields.or("stop", Stop::default(), stop)?,
        peer_urls: fields.or("peer_urls", vec![], peer_urls)?,
        data_dir: fields.maybe("data_dir", |tree| value::path(tree, folder))?,
        may_join: false,
        initial_cluster: String::new(),
    })
}

/// As texts, since etcd compares them so: `host:port` alone, as its own flag wants them.
fn peer_urls(tree: &Tree) -> Result<Vec<String>, Fault> {
    let expected = "a list of URLs, such as `[http://10.0.0.4:2380]`: its `--initial-advertise-peer-urls`";
    let list = tree.list(expected)?;
    if list.is_empty() {
        return Err(tree.fault("an empty list", expected));
    }
    let mut urls = Vec::new();
    for entry in list {
        let url = peer_url(entry)?;
        if urls.contains(&url) {
            return Err(entry.fault(format!("`{url}` is there twice"), "each peer URL once"));
        }
        urls.push(url);
    }
    Ok(urls)
}

fn peer_url(tree: &Tree) -> Result<String, Fault> {
    let expected = "scheme, host and port, such as `http://10.0.0.4:2380`";
    let text = tree.text(expected)?;
    let problem = |problem: &str| tree.fault(format!("`{}` {problem}", text.escape_debug()), expected);
    let Some((scheme, authority)) = text.split_once("://") else { return Err(problem("has no scheme")) };
    if !matches!(scheme, "http" | "https") {
        return Err(problem("is no http or https URL"));
    }
    if authority.contains(['/', '?', '#', '@', ',', '=']) || text.contains(char::is_control) {
        return Err(problem("has more than a host and a port"));
    }
    if reqwest::Url::parse(text).is_err() {
        return Err(problem("is no URL"));
    }
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    match port.is_some_and(|port| port > 0) {
        true => Ok(text.to_owned()),
        false => Err(problem("names no port")),
    }
}

/// What a runtime's values are read against.
struct Surroundings<'a> {
    folder: &'a Path,
    templates: &'a [Name],
    log: &'a Path,
}

fn runtime(tree: &Tree, around: &Surroundings<'_>) -> Result<Runtime, Fault> {
    let fields = Fields::open(tree, "`runtime`", "a mapping, such as `{ kind: process, argv: […] }`")?;
    let kind = fields.need("kind", RUNTIMES)?;
    match kind.written(RUNTIMES)? {
        "process" => {
            of_other_kind(fields, "process")?;
            process(fields.only(&PROCESS_KEYS)?, around).map(Runtime::Process)
        }
        "command" => {
            of_other_kind(fields, "command")?;
            command(fields.only(&COMMAND_KEYS)?, around).map(Runtime::Command)
        }
        "systemd" => {
            of_other_kind(fields, "systemd")?;
            systemd(fields.only(&SYSTEMD_KEYS)?).map(Runtime::Systemd)
        }
        other => Err(kind.fault(format!("there is no runtime `{other}`"), RUNTIMES)),
    }
}

/// Refuses a key of another runtime with that runtime's name, which says more than "unknown".
fn of_other_kind(fields: Fields<'_>, kind: &str) -> Result<(), Fault> {
    let kinds = [("process", &PROCESS_KEYS[1..]), ("command", &COMMAND_KEYS[1..]), ("systemd", &SYSTEMD_KEYS[1..])];
    let others = kinds.into_iter().filter(|(other, _)| *other != kind);
    let mut foreign = others.flat_map(|(other, keys)| keys.iter().map(move |key| (key, other)));
    match foreign.find_map(|(key, other)| Some((key, other, fields.key_place(key)?))) {
        Some((key, other, place)) => {
            let problem = format!("`{key}` belongs to `kind: {other}`, and this runtime is `kind: {kind}`");
            let expected = match kind {
                "systemd" => "`unit` alone; flags, variables, user and folder are the unit's",
                _ => "keys of one kind alone",
            };
            Err(Fault::new(place, problem, expected))
        }
        None => Ok(()),
    }
}

fn process(fields: Fields<'_>, around: &Surroundings<'_>) -> Result<Process, Fault> {
    let folder = around.folder;
    let argv = fields.need("argv", "`argv`, the program and its arguments")?;
    Ok(Process {
        argv: value::argv(argv, folder, around.templates)?,
        args: fields.or("args", vec![], |tree| args(tree, around.templates))?,
        env: fields.or("env", BTreeMap::new(), |tree| env(tree, around.templates))?,
        cwd: fields.maybe("cwd", |tree| value::path(tree, folder))?,
        user: fields.maybe("user", |tree| Ok(value::name(tree, "a user's name")?.into()))?,
        log: fields.or("log", around.log.into(), |tree| value::path(tree, folder))?,
    })
}

fn args(tree: &Tree, templates: &[Name]) -> Result<Vec<ConditionalArgs>, Fault> {
    let read = |tree: &Tree| {
        let fields = Fields::of(tree, "an entry of `args`", &["add", "for"])?;
        let add = fields.need("add", "`add`, a list of arguments")?;
        let only_for = fields.maybe("for", value::requirement)?;
        Ok(ConditionalArgs { add: value::words(add, "a list of arguments", templates)?, only_for })
    };
    tree.list("a list, such as `[{ add: [--flag], for: \">=3.6\" }]`")?.iter().map(read).collect()
}

fn env(tree: &Tree, templates: &[Name]) -> Result<BTreeMap<String, String>, Fault> {
    let expected = "a mapping of variables, such as `ETCD_LOG_LEVEL: warn`";
    let entries = tree.map(expected).map_err(|_| tree.fault("no mapping stands here", expected))?;
    // What is wrong with a value is said without it: it may be a secret.
    let read = |entry: &Entry| {
        let expected = "a text; a number or a boolean in quotes";
        let text = entry.value.word(expected).map_err(|_| entry.value.fault("no text stands here", expected))?;
        let text = value::templated(&entry.value, text, templates).map_err(|fault| Fault {
            problem: "a template stands here that is not closed, or stands for nothing".into(),
            ..fault
        })?;
        Ok((value::key(entry, "a variable's name")?, text.into()))
    };
    entries.iter().map(read).collect()
}

fn command(fields: Fields<'_>, around: &Surroundings<'_>) -> Result<Command, Fault> {
    let argv = |key: &str, expected: &str| value::argv(fields.need(key, expected)?, around.folder, around.templates);
    Ok(Command {
        start: argv("start", "`start`, the argv list that starts the member")?,
        stop: argv("stop", "`stop`, the argv list that stops the member")?,
        status: argv("status", "`status`, an argv list that exits 0 when it runs and 3 when it is stopped")?,
    })
}

fn systemd(fields: Fields<'_>) -> Result<Systemd, Fault> {
    let expected = "`unit`, the member's service, such as `etcd.service`";
    let unit = fields.need("unit", expected)?;
    match unit_fault(unit.text(expected)?) {
        None => Ok(Systemd { unit: unit.text(expected)?.into() }),
        Some((problem, expected)) => Err(unit.fault(problem, expected)),
    }
}

/// What is wrong with a unit's name (systemd.unit(5)), and what was expected.
fn unit_fault(name: &str) -> Option<(String, String)> {
    /// UNIT_NAME_MAX, with the NUL.
    const LONGEST: usize = 255;
    let is_part = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let expected = "the name of a service, such as `etcd.service`".to_owned();
    let Some(stem) = name.strip_suffix(".service") else {
        let is_bare = !name.contains(['.', '/']) && name.chars().all(is_part) && !name.is_empty();
        let expected = if is_bare { format!("`{name}.service`") } else { expected };
        return Some((format!("`{}` is no service", name.escape_debug()), expected));
    };
    if stem.is_empty() || stem.starts_with('@') || name.len() > LONGEST || !stem.chars().all(is_part) {
        return Some((format!("`{}` cannot be the name of a unit", name.escape_debug()), expected));
    }
    stem.ends_with('@')
        .then(|| (format!("`{name}` is a template, not a unit"), format!("`{stem}1.service`, with its instance")))
}

fn files(tree: &Tree, folder: &Path) -> Result<Vec<ConditionalFile>, Fault> {
    let read = |tree: &Tree| {
        let fields = Fields::of(tree, "an entry of `files`", &["path", "source", "for"])?;
        let path = value::path(fields.need("path", "`path`, the file that the member reads")?, folder)?;
        let source = fields.need("source", "`source`, the file that takes its place")?;
        let only_for = fields.maybe("for", value::requirement)?;
        match value::path(source, folder)? {
            same if same == path => Err(source.fault("the file would take its own place", "another file than `path`")),
            source => Ok(ConditionalFile { path, source, only_for }),
        }
    };
    tree.list("a list, such as `[{ path: …, source: …, for: \">=3.6\" }]`")?.iter().map(read).collect()
}

fn stop(tree: &Tree) -> Result<Stop, Fault> {
    let fields = Fields::of(tree, "`stop`", &["timeout", "kill"])?;
    let default = Stop::default();
    Ok(Stop {
        timeout: fields.or("timeout", default.timeout, value::deadline)?,
        kill: fields.or("kill", default.kill, Tree::bool)?,
    })
}
