//! What a newcomer's host must have before it takes a place among the learners.

use std::{collections::BTreeMap, path::Path, time::SystemTime};

use proto::Release;

use super::{
    error::ActError,
    newcomer_certificate,
    node::{OwnNode, Side},
};
use crate::{
    host::{files::room, process::member_setting::configured, runtime::same_node::value},
    keys::change::Change,
    observe::{
        Observer,
        view::{ClusterView, Member},
    },
    plan::membership::{survey::Data, wants},
    playbook::Runtime,
    regular_file,
};

/// The files of etcd's log: one that is written, one that is made ready.
const LOG_BYTES: u64 = 128 << 20;
/// A newcomer writes the snapshot that it is sent beside the database that it makes of it.
const COPIES: u64 = 2;

impl OwnNode {
    /// Refuses what would end, or hurt, a newcomer once it is listed. A member that is there already is none.
    pub(super) async fn check_newcomer(
        &self,
        change: &Change,
        observer: &Observer,
        side: &Side,
    ) -> Result<(), ActError> {
        if !wants(change, &self.node.name) || !matches!(self.data().await, Data::None | Data::NoLog) {
            return Ok(());
        }
        let name = &self.node.name;
        let wrong = |why: String| ActError::from(format!("{name}: {why}"));
        if let Runtime::Process(process) = &self.node.runtime {
            let argv = process.command_line(&self.node.context(&side.release))?;
            let urls = &self.node.peer_urls;
            let read = |path: &Path| read(&process.cwd, path);
            let told = Told { argv: &argv, env: &process.env, read: &read };
            let why = objection(&told, name, urls, self.node.data_dir.as_deref())
                .or_else(|| lacking(&told).map(str::to_owned));
            if let Some(why) = why.or_else(|| newcomer_certificate::objection(&argv, urls, SystemTime::now())) {
                return Err(wrong(why));
            }
        }
        let Ok(view) = observer.probe().await else { return Ok(()) };
        // Of a node that nobody can ask, as one with commands and no `binary`, it is not known before its start.
        let is_known = side.release != Release::new(0, 0, 0);
        if let Some(other) = other_release(&view, &side.release).filter(|_| is_known) {
            let release = &side.release;
            return Err(wrong(format!("it would run {release}, and the voters run {other}; install {other} for it")));
        }
        let Some(folder) = self.node.data_dir.as_deref().and_then(existing) else { return Ok(()) };
        let database = view.reports().map(|report| report.db_bytes.max(0).unsigned_abs()).max().unwrap_or(0);
        let wanted = LOG_BYTES.saturating_add(COPIES.saturating_mul(database));
        match room::free(folder) {
            Ok(free) if free < wanted => Err(wrong(format!(
                "{} MB are free where its data is to lie, and it takes {} MB to begin with",
                free / 1_000_000,
                wanted / 1_000_000
            ))),
            _ => Ok(()),
        }
    }
}

/// What all voters that are ready run, if that is another release.
fn other_release<'v>(view: &'v ClusterView, release: &Release) -> Option<&'v Release> {
    let mut ready = view.voters().filter(|voter| voter.is_ready()).filter_map(Member::release);
    let first = ready.next()?;
    (first != release && ready.all(|one| one != release)).then_some(first)
}

/// The nearest folder above that is there.
fn existing(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.is_dir())
}

/// How long a configuration file may be, in bytes.
const MAX_FILE: usize = 1024 * 1024;

pub(super) fn read(cwd: &Option<std::path::PathBuf>, path: &Path) -> Option<String> {
    let bytes = regular_file::read(&cwd.clone().unwrap_or_default().join(path), MAX_FILE).ok()?;
    String::from_utf8(bytes).ok()
}

/// What it is started with.
struct Told<'a> {
    argv: &'a [String],
    env: &'a BTreeMap<String, String>,
    read: &'a dyn Fn(&Path) -> Option<String>,
}

impl Told<'_> {
    /// A flag counts before its variable.
    fn given(&self, flag: &str) -> Option<&str> {
        let variable = || self.env.get(&format!("ETCD_{}", flag.to_uppercase().replace('-', "_"))).map(String::as_str);
        value(self.argv, flag).or_else(variable)
    }

    /// Its configuration file, which alone counts where it has one (etcd, "Configuration options"); nothing in it where it cannot be read.
    fn file(&self) -> Option<Option<String>> {
        self.given("config-file").filter(|file| !file.is_empty()).map(|file| (self.read)(Path::new(file)))
    }

    /// What is said of this setting, wherever that counts; nothing of what is filled in later.
    fn said(&self, flag: &str) -> Option<String> {
        let said = match self.file() {
            Some(file) => configured(&file?, flag),
            None => self.given(flag).map(str::to_owned),
        };
        said.filter(|said| !said.contains("{{"))
    }
}

/// What a newcomer cannot do without: without the first it finds nobody, and without the second it begins a cluster of its own.
fn lacking(told: &Told) -> Option<&'static str> {
    if let Some(file) = told.file() {
        let Some(text) = file else { return Some("its configuration file cannot be read") };
        return match (configured(&text, "initial-cluster"), configured(&text, "initial-cluster-state").as_deref()) {
            (Some(_), Some("existing")) => None,
            (None, _) => Some("its configuration file has no `initial-cluster`, by which it finds the others"),
            _ => Some(
                "its configuration file does not say `initial-cluster-state: existing`, and so it begins a cluster of its own",
            ),
        };
    }
    let has = |flag: &str| told.given(flag).is_some();
    match (has("initial-cluster"), has("initial-cluster-state")) {
        (true, true) => None,
        (false, _) => Some("its arguments lack `--initial-cluster={{initial_cluster}}`, by which it finds the others"),
        (_, false) => {
            Some("its arguments lack `--initial-cluster-state=existing`; without it, it begins a cluster of its own")
        }
    }
}

/// What of it is not as the playbook, or a newcomer, has it.
fn objection(told: &Told, name: &str, peer_urls: &[String], data: Option<&Path>) -> Option<String> {
    let (whose, dashes) = if told.file().is_some() { ("its configuration file", "") } else { ("its arguments", "--") };
    let is_flag =
        |flag: &str| told.argv.iter().any(|word| word.trim_start_matches('-').split('=').next() == Some(flag));
    let has = |flag: &str| if dashes.is_empty() { told.said(flag).is_some() } else { is_flag(flag) };
    for flag in ["force-new-cluster", "discovery", "discovery-srv", "discovery-endpoints"] {
        if has(flag) {
            return Some(format!("{whose} has `{dashes}{flag}`, and a newcomer joins a cluster that is there"));
        }
    }
    if told.said("initial-cluster-state").is_some_and(|state| state != "existing") {
        return Some(format!("{whose} says `{dashes}initial-cluster-state` is not `existing`, as a newcomer has it"));
    }
    if told.said("name").is_some_and(|given| given != name) {
        return Some(format!("{whose} gives it another `{dashes}name`"));
    }
    let is_itself = |one: &str| one.trim().split('=').next() == Some(name);
    let cluster = told.said("initial-cluster").filter(|cluster| !cluster.is_empty());
    if cluster.is_some_and(|cluster| !cluster.split(',').any(is_itself)) {
        return Some(format!("{name} itself is not in its `{dashes}initial-cluster`"));
    }
    let sorted = |mut urls: Vec<String>| {
        urls.sort_unstable();
        urls
    };
    let given = told.said("initial-advertise-peer-urls");
    let given = given.map(|urls| sorted(urls.split(',').map(|url| url.trim().to_owned()).collect()));
    if given.is_some_and(|given| given != sorted(peer_urls.to_vec())) && !peer_urls.is_empty() {
        return Some(format!("`peer_urls` are not its `{dashes}initial-advertise-peer-urls`"));
    }
    if let Some(why) = elsewhere(told, peer_urls, dashes) {
        return Some(why);
    }
    let given = told.said("data-dir");
    let given = given.as_deref().map(Path::new);
    let differs = given.zip(data).is_some_and(|(given, data)| given.is_absolute() && given != data);
    differs.then(|| format!("`data_dir` is not its `{dashes}data-dir`"))
}

/// Why the others would not find it at its peer URLs: clients are served there, or only TLS is spoken.
fn elsewhere(told: &Told, peer_urls: &[String], dashes: &str) -> Option<String> {
    let all = |flag: &str| -> Vec<String> {
        told.said(flag).iter().flat_map(|urls| urls.split(',')).map(|url| url.trim().to_owned()).collect()
    };
    for flag in ["listen-client-urls", "advertise-client-urls"] {
        if let Some(url) = all(flag).into_iter().find(|url| peer_urls.contains(url)) {
            return Some(format!("{url} of its `peer_urls` is among its `{dashes}{flag}`, where clients are served"));
        }
    }
    let is = |scheme: &'static str| move |url: &String| url.starts_with(scheme);
    let listens = all("listen-peer-urls");
    let takes_tls_alone = !listens.is_empty() && listens.iter().all(is("https:"));
    let plain = peer_urls.iter().find(|url| takes_tls_alone && is("http:")(url));
    plain.map(|url| {
        format!("{url} of its `peer_urls` has no TLS, and its `{dashes}listen-peer-urls` takes nothing else")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newcomer_cannot_do_without_is_told() {
        for (more, env, expected) in [
            ("--initial-cluster=a=http://h:1 --initial-cluster-state=existing", "", None),
            ("--initial-cluster= --initial-cluster-state existing", "", None), // nobody has listed it yet
            ("--initial-cluster-state=existing", "", Some("finds the others")),
            ("--initial-cluster=", "", Some("a cluster of its own")),
            ("", "", Some("finds the others")),
            ("--config-file=/c", "", None),
            ("--config-file=/gone", "", Some("cannot be read")),
            ("--config-file=/new", "", Some("a cluster of its own")),
            ("--config-file=/none --initial-cluster=x --initial-cluster-state=existing", "", Some("finds the others")),
            ("", "ETCD_INITIAL_CLUSTER ETCD_INITIAL_CLUSTER_STATE", None),
        ] {
            let argv: Vec<_> = format!("/bin/etcd {more}").split_whitespace().map(str::to_owned).collect();
            let env = env.split_whitespace().map(|name| (name.to_owned(), "x".to_owned())).collect();
            let read = |path: &Path| match path.to_str() {
                Some("/c") => Some("initial-cluster: a=http://h:1\ninitial-cluster-state: existing\n".to_owned()),
                Some("/new") => Some("initial-cluster: a=http://h:1\ninitial-cluster-state: new\n".to_owned()),
                Some("/none") => Some("name: x\n".to_owned()),
                _ => None,
            };
            let found = lacking(&Told { argv: &argv, env: &env, read: &read });
            assert_eq!(found.is_some(), expected.is_some(), "{more} {env:?}: {found:?}");
            assert!(expected.is_none_or(|words| found.is_some_and(|why| why.contains(words))), "{more}: {found:?}");
        }
    }

    #[test]
    fn arguments_that_contradict_the_playbook_are_told() {
        let urls = ["http://h:1".to_owned()];
        for (more, expected) in [
            ("", None),
            ("--initial-cluster-state=existing", None),
            ("--initial-cluster-state new", Some("existing")),
            ("--force-new-cluster", Some("force-new-cluster")),
            ("-discovery=http://x", Some("discovery")),
            ("--name=m5", Some("--name")),
            ("--initial-cluster=m1=http://h:3", Some("m4 itself")),
            ("--initial-cluster=m1=http://h:3,m4=http://h:1", None),
            ("--initial-advertise-peer-urls=http://h:1", None),
            ("--initial-advertise-peer-urls=http://h:2", Some("peer_urls")),
            ("--listen-client-urls=http://h:2,http://h:1", Some("where clients are served")),
            ("--advertise-client-urls=http://h:1", Some("where clients are served")),
            ("--listen-client-urls=http://h:2", None),
            ("--listen-peer-urls=https://h:1", Some("takes nothing else")),
            ("--listen-peer-urls=https://h:1,http://h:1", None),
            ("--listen-peer-urls=http://0.0.0.0:1", None),
            ("--data-dir=/d", None),
            ("--data-dir=/e", Some("data_dir")),
            ("--data-dir=d", None),
        ] {
            let argv: Vec<_> = format!("/bin/etcd {more}").split_whitespace().map(str::to_owned).collect();
            let no_file = |_: &Path| None;
            let found = |argv: &[String], env: &BTreeMap<String, String>| {
                objection(&Told { argv, env, read: &no_file }, "m4", &urls, Some(Path::new("/d")))
            };
            let by_flag = found(&argv, &BTreeMap::new());
            let env = argv[1..].iter().filter_map(|word| word.strip_prefix("--")?.split_once('='));
            let env =
                env.map(|(flag, given)| (format!("ETCD_{}", flag.to_uppercase().replace('-', "_")), given.to_owned()));
            let by_env = found(&argv[..1], &env.collect());
            assert!(by_env.is_none() || by_env == by_flag, "{more}: {by_env:?}");
            assert!(!more.starts_with("--data-dir=/") || by_env == by_flag, "{more}: {by_env:?}");
            match expected {
                None => assert_eq!(by_flag, None, "{more}"),
                Some(words) => assert!(by_flag.as_ref().is_some_and(|why| why.contains(words)), "{more}: {by_flag:?}"),
            }
        }
    }

    #[test]
    fn a_configuration_file_that_contradicts_the_playbook_is_told() {
        let urls = ["http://h:1".to_owned()];
        for (line, expected) in [
            ("name: m4", None),
            ("name: m5", Some("another `name`")),
            ("data-dir: /d", None),
            ("data-dir: /e", Some("`data_dir` is not its `data-dir`")),
            ("discovery: http://x", Some("discovery")),
            ("initial-cluster: m1=http://h:3,m4=http://h:1", None),
            ("initial-cluster: m1=http://h:3", Some("m4 itself is not in its `initial-cluster`")),
            ("initial-advertise-peer-urls: http://h:2", Some("peer_urls")),
            ("initial-cluster-state: new", Some("existing")),
        ] {
            let argv = ["/bin/etcd", "--config-file=/c", "--data-dir=/flags/do/not/count"].map(str::to_owned);
            let read = |_: &Path| Some(format!("{line}\n"));
            let told = Told { argv: &argv, env: &BTreeMap::new(), read: &read };
            let found = objection(&told, "m4", &urls, Some(Path::new("/d")));
            assert_eq!(found.is_some(), expected.is_some(), "{line}: {found:?}");
            assert!(expected.is_none_or(|words| found.is_some_and(|why| why.contains(words))), "{line}");
        }
    }
}
