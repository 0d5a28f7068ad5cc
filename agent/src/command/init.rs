//! `agent init`: a playbook from a live cluster, for the members that run on this host. Asks, and writes one file.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::Duration,
};

use super::{
    Outcome,
    init_members::{changes_members, newcomer, places},
    init_release::work,
    reach::{self, absolute},
};
use crate::{
    cli,
    event::trouble::Trouble,
    execute::{identity::host_name, inspect::UNTRIED, port_owner::port_owner, prepare},
    host::{
        process::snapshot::{Snapshot, carried, is_secret},
        program::executable,
        release::artifact,
        release::link::{Link, LinkError},
        runtime::same_node,
    },
    observe::{
        Observer, secret_file,
        view::{ClusterView, Member, Role},
    },
    playbook::{
        Cluster, Hop, Playbook,
        draft::{Draft, DraftMember, DraftNode, DraftProcess, DraftRuntime, Work},
    },
    report::{
        file::json::Facts,
        stop::{Reason, Stop},
    },
    words::with_causes,
};

/// Looks at the cluster and at this host, and writes down what is to be done here.
///
/// # Errors
/// The cluster cannot be looked at, none of its members is found here, or the file is there already.
pub async fn init(typed: &cli::Init) -> Result<Outcome, Trouble> {
    let file = typed.file.as_deref().filter(|file| *file != Path::new("-"));
    if let Some(file) = file.filter(|file| !typed.force && fs::symlink_metadata(file).is_ok()) {
        return Err(is_there(file));
    }
    let mut cluster = reach::cluster(&typed.endpoints, &typed.reach)?;
    let observer = observer(&cluster)?;
    let mut view = observer.look().await?;
    // By name, as a person looks for them.
    view.members.sort_by(|one, other| one.name.cmp(&other.name));
    let here = here(typed, &view, &observer).await?;
    let places = places(typed, &observer).await?;
    if let Some(timeout) = here.iter().find_map(|(_, snapshot)| election_timeout(snapshot)) {
        cluster.election_timeout = timeout;
    }
    cluster.name = typed.name.clone().unwrap_or_else(|| common_name(&view));
    let work = work(typed, &view, &here)?;
    let has_artifact = matches!(work, Work::Release { .. });
    let is_here = |member: &Member| here.iter().any(|(own, _)| own.id == member.id);
    let mut nodes: Vec<DraftNode> = here
        .iter()
        .map(|(member, seen)| Ok(DraftNode { place: places.of(member.id, seen), ..node(member, seen, has_artifact)? }))
        .collect::<Result<_, Trouble>>()?;
    if nodes.is_empty() {
        nodes.push(newcomer(&work, &view, &places)?);
    }
    let draft = Draft {
        host: host_name().to_string(),
        members: view.members.iter().map(|m| entry(m, &view, &observer, is_here(m))).collect(),
        voters: view.voters().count(),
        nodes,
        state_dir: typed.state_dir.as_deref().map(absolute).transpose()?,
        cluster,
        work,
    };
    let text = draft.text();
    let path = file.unwrap_or(Path::new("playbook.yaml"));
    let playbook = Playbook::parse(&text, path)
        .map_err(|error| Trouble::Unprepared(format!("what was found here makes no playbook: {}", error.sentence())))?;
    let mut warnings = secret_file::warnings(&draft.cluster);
    warnings.extend(tried(&playbook, &here).await);
    match file {
        Some(file) => write(file, &text, typed.force)?,
        None => return Ok(told(text.clone(), None, &text, warnings)),
    }
    let names: Vec<_> = draft.nodes.iter().map(|node| &*node.name).collect();
    Ok(told(format!("{} is written, for {} on this host\n", path.display(), names.join(", ")), file, &text, warnings))
}

/// What the new release says to the arguments that the members run with. The playbook is there to be mended all the same.
async fn tried(playbook: &Playbook, here: &[(&Member, Snapshot)]) -> Vec<String> {
    let Some(Hop { to, artifact, .. }) = playbook.kind.hop() else { return Vec::new() };
    let beside = playbook.nodes.iter().find_map(|node| node.binary.as_deref()?.parent());
    let Some(releases) = beside.map(|folder| folder.join("releases")) else { return Vec::new() };
    let found = prepare::wanted(to, artifact).map_err(|error| with_causes(&error));
    let found = found.and_then(|wanted| artifact::check(&wanted, &releases).map_err(|error| with_causes(&error)));
    let program = match found {
        Ok(Some(program)) => program,
        Ok(None) => return vec![UNTRIED.into()],
        Err(why) => return vec![format!("the artifact: {why}")],
    };
    let mut warnings = Vec::new();
    for (member, seen) in here {
        let name = member.name.to_string();
        match executable::release(&program, &seen.credentials).await {
            Ok(found) if found == *to => {}
            Ok(found) => {
                return vec![format!("the artifact is {found}, as {} --version says, and not {to}", program.display())];
            }
            Err(error) => return vec![format!("the artifact: {}", with_causes(&error))],
        }
        match executable::check_arguments(&program, &seen.credentials, &name, &seen.arguments).await {
            Ok(more) => warnings.extend(more),
            Err(error) => warnings.push(with_causes(&error)),
        }
    }
    warnings
}

fn told(said: String, file: Option<&Path>, playbook: &str, warnings: Vec<String>) -> Outcome {
    let message = "the playbook is written; nothing else was touched".into();
    let mut stop = Stop::well(Reason::Written, message, "plan", file.unwrap_or(Path::new("")));
    stop.next = stop.next.filter(|_| file.is_some());
    let next = stop.next.as_ref().map_or_else(String::new, |next| format!("next:  read it, then {next}\n"));
    let mut facts = Facts { warnings, ..Facts::default() };
    facts.more.insert("file".into(), file.map(|file| file.to_string_lossy()).into());
    facts.more.insert("text".into(), playbook.into());
    Outcome { stop, facts, text: said + &next }
}

/// The way to what was typed; what is wrong with it was typed, too.
pub(super) fn observer(cluster: &Cluster) -> Result<Observer, Trouble> {
    Observer::connect(cluster).map_err(|error| match error.into() {
        Trouble::Playbook(text) => Trouble::Usage(text),
        other => other,
    })
}

/// The members that this host runs, with their processes.
async fn here<'v>(
    typed: &cli::Init,
    view: &'v ClusterView,
    observer: &Observer,
) -> Result<Vec<(&'v Member, Snapshot)>, Trouble> {
    let names = || view.members.iter().map(|member| &*member.name).collect::<Vec<_>>().join(", ");
    for name in &typed.members {
        if !view.members.iter().any(|member| *member.name == **name) {
            return Err(Trouble::NoSuchMember { typed: name.clone(), members: names() });
        }
    }
    let is_wanted =
        |member: &&Member| typed.members.is_empty() || typed.members.iter().any(|name| **name == *member.name);
    let mut found = Vec::new();
    for member in view.members.iter().filter(is_wanted) {
        match port_owner(member, observer).await.map_err(|why| Trouble::Unprepared(why.to_string()))? {
            Some(snapshot) => found.push((member, snapshot)),
            None if typed.members.is_empty() => {}
            None => {
                let why = format!("{} does not run on this host, or does not answer", member.name);
                return Err(Trouble::Unprepared(why));
            }
        }
    }
    match found.is_empty() && !changes_members(typed) {
        true => Err(Trouble::Unprepared(format!("none of {} runs on this host; run it on theirs", names()))),
        false => Ok(found),
    }
}

fn entry(member: &Member, view: &ClusterView, observer: &Observer, is_here: bool) -> DraftMember {
    let found = observer.access().directory().address_of(member.id);
    let endpoint = found.or_else(|| member.client_urls.first().cloned()).unwrap_or_default();
    let mut remark = vec![member.name.to_string()];
    remark.push(member.release().map_or_else(|| "does not answer".into(), ToString::to_string));
    remark.extend(view.is_leader(member.id).then(|| "leads".into()));
    remark.extend((member.role == Role::Learner).then(|| "a learner".into()));
    remark.extend(is_here.then(|| "on this host".into()));
    DraftMember { endpoint, remark: remark.join(", ") }
}

/// What all members' names begin with, without what numbers them.
fn common_name(view: &ClusterView) -> String {
    let names: Vec<_> = view.members.iter().map(|member| &*member.name).collect();
    let first = names.first().copied().unwrap_or_default();
    let is_common =
        |end: &usize| first.is_char_boundary(*end) && names.iter().all(|name| name.starts_with(&first[..*end]));
    let common = (0..=first.len()).rev().find(is_common).map_or("", |end| &first[..end]);
    let common = common.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_', '.']);
    let is_name = !common.is_empty() && common.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if is_name { common.to_owned() } else { "etcd".to_owned() }
}

fn node(member: &Member, seen: &Snapshot, has_artifact: bool) -> Result<DraftNode, Trouble> {
    let unfit = |why: String| Trouble::Unprepared(format!("{} (pid {}) {why}", member.name, seen.pid));
    let (binary, to_link) = match has_artifact {
        false => (None, None),
        true if seen.is_replaced => {
            let why = "runs a file that was deleted or replaced since; restart it, then run this again";
            return Err(unfit(why.into()));
        }
        true => match Link::open(&seen.program) {
            Ok(binary) => (Some(binary.link().to_owned()), None),
            Err(LinkError::NotALink { path, commands }) => (Some(path), Some(commands)),
            Err(error) => return Err(unfit(format!("has a program that cannot be used: {}", with_causes(&error)))),
        },
    };
    let runtime = match &seen.unit {
        Some(unit) => DraftRuntime::Unit(unit.clone()),
        None => DraftRuntime::Process(process(seen).map_err(|flag| {
            unfit(format!(
                "has a secret in {flag}, which would stand in the playbook; give it by a file, then run this again"
            ))
        })?),
    };
    Ok(DraftNode { name: member.name.to_string(), binary, to_link, runtime, place: None })
}

/// What starts the process again, or the flag that holds a secret.
fn process(seen: &Snapshot) -> Result<DraftProcess, String> {
    let mut before = "";
    for word in &seen.arguments {
        let whole = word.split_once('=').filter(|_| word.starts_with('-'));
        let (flag, value) = whole.unwrap_or((before, word));
        if !value.starts_with('-') && flag.starts_with('-') && is_secret(flag, value) {
            return Err(flag.to_owned());
        }
        before = word;
    }
    let (env, withheld) = carried(&seen.env);
    Ok(DraftProcess {
        program: seen.program.clone(),
        arguments: seen.arguments.clone(),
        env,
        withheld,
        cwd: seen.cwd.clone(),
        user: seen.user.clone(),
        log: seen.log.clone(),
    })
}

/// As a flag or variable of the process says, in milliseconds.
fn election_timeout(seen: &Snapshot) -> Option<Duration> {
    let flag = same_node::value(&seen.arguments, "election-timeout");
    let text = flag.or_else(|| seen.env.get("ETCD_ELECTION_TIMEOUT").map(String::as_str))?;
    text.parse().ok().filter(|millis| *millis > 0).map(Duration::from_millis)
}

pub(super) fn is_there(file: &Path) -> Trouble {
    Trouble::Usage(format!("{} is there already; --force writes over it", file.display()))
}

/// Through no link, and in full or not at all: a file or a link that has the name is replaced, or in the way.
pub(super) fn write(file: &Path, text: &str, force: bool) -> Result<(), Trouble> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(file),
        _ => Trouble::System(format!("{} cannot be written: {error}", file.display())),
    };
    if let Ok(seen) = fs::symlink_metadata(file)
        && !(seen.is_file() || seen.is_symlink())
    {
        return Err(Trouble::Usage(format!("{} is no file, and stays as it is", file.display())));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any program makes a file.
    let mut made = tempfile::Builder::new();
    let mut made = made.permissions(fs::Permissions::from_mode(0o666)).tempfile_in(folder).map_err(failed)?;
    made.write_all(text.as_bytes()).and_then(|()| made.as_file().sync_all()).map_err(failed)?;
    // Made since it was looked for, it is not ours.
    let named = if force { made.persist(file) } else { made.persist_noclobber(file) };
    named.map(drop).map_err(|error| failed(error.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::samples;

    #[test]
    fn a_playbook_is_written_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("theirs"), "theirs").unwrap();
        std::os::unix::fs::symlink("theirs", at("link")).unwrap();
        assert!(write(&at("link"), "ours", false).is_err());
        for name in ["link", "theirs", "new"] {
            write(&at(name), "ours", true).unwrap();
            assert!(fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
            if name == "link" {
                assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "theirs");
            }
        }
        assert!(write(folder.path(), "ours", true).is_err());
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(write(&at("pipe"), "ours", true).is_err() && !fs::symlink_metadata(at("pipe")).unwrap().is_file());
    }

    #[test]
    fn a_cluster_is_called_what_its_members_names_begin_with() {
        for (names, expected) in [
            (["orders-1", "orders-2", "orders-3"], "orders"),
            (["m1", "m2", "m3"], "m"),
            (["db10", "db11", "db12"], "db"),
            (["a", "b", "c"], "etcd"),
            (["1", "2", "3"], "etcd"),
            (["é1", "è2", "é3"], "etcd"),
            (["a b1", "a b2", "a b3"], "etcd"),
        ] {
            let mut view = samples::view("1+ 2+ 3+");
            for (member, name) in view.members.iter_mut().zip(names) {
                member.name = name.into();
            }
            assert_eq!(common_name(&view), expected, "{names:?}");
        }
    }

    #[test]
    fn a_secret_on_a_command_line_is_refused_and_a_path_is_not() {
        let seen = |line: &str| Snapshot {
            pid: 7,
            program: "/opt/etcd".into(),
            arguments: line.split(' ').map(str::to_owned).collect(),
            env: Default::default(),
            cwd: "/".into(),
            user: None,
            credentials: crate::host::process::credentials::Credentials::own(),
            log: None,
            unit: None,
            is_replaced: false,
            is_contained: false,
        };
        for (line, secret) in [
            ("--discovery-password=x --name a", Some("--discovery-password")),
            ("--discovery-password x", Some("--discovery-password")),
            ("--discovery-password p4ss==", Some("--discovery-password")),
            ("--discovery-proxy http://me:x@proxy:1/?a=b", Some("--discovery-proxy")),
            ("--discovery-proxy=http://me:x@proxy:1", Some("--discovery-proxy")),
            ("--key-file=/etc/key.pem --auth-token jwt,pub-key=/a,priv-key=/b", None),
            ("--initial-cluster-token orders --name password", None),
        ] {
            assert_eq!(process(&seen(line)).err().as_deref(), secret, "{line}");
        }
    }
}
