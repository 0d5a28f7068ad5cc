//! A playbook written down for a person to read, from what was found: `agent init`.
//!
//! Pure. What is known stands there as it is to stay; what only a person knows has a comment that begins with `CHECK`.

mod members;

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    path::{Path, PathBuf},
};

use proto::Release;

pub use members::DraftPlace;

use super::{Cluster, fields::is_plain, unit::format_duration};

/// What is to stand in a playbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub host: String,
    /// The cluster, its endpoints left out.
    pub cluster: Cluster,
    pub members: Vec<DraftMember>,
    pub voters: usize,
    pub work: Work,
    /// Where the state lies, if not at the default.
    pub state_dir: Option<PathBuf>,
    /// The members of this host.
    pub nodes: Vec<DraftNode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftMember {
    /// Where it answers, or says that it does.
    pub endpoint: String,
    /// Its name and what else a person wants to know.
    pub remark: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    Release {
        /// `Upgrade` or `Downgrade`.
        kind: &'static str,
        /// The lowest release that a member runs.
        lowest: Release,
        /// What is gone over before `to`.
        hops: Vec<Release>,
        /// The release for every member.
        to: Release,
        /// Where it comes from, if that is known.
        source: Option<String>,
        sha256: Option<String>,
        executable: String,
    },
    Restart {
        id: String,
    },
    Scale {
        members: Vec<String>,
    },
    Replace {
        member: String,
        by: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftNode {
    pub name: String,
    /// The symlink that is switched; none for a restart.
    pub binary: Option<PathBuf>,
    /// What is to be done before that is one.
    pub to_link: Option<[String; 2]>,
    pub runtime: DraftRuntime,
    /// Only where members come and go.
    pub place: Option<DraftPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftRuntime {
    /// By systemd, as this unit.
    Unit(String),
    /// By nobody who would start it again.
    Process(DraftProcess),
    /// It has not run yet.
    Newcomer,
}

/// A process as it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftProcess {
    /// Its program; `binary` where there is one.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Variables that are kept out of the file.
    pub withheld: Vec<String>,
    pub cwd: PathBuf,
    /// Its user, where that is another than the agent's.
    pub user: Option<String>,
    /// The file that its output goes to.
    pub log: Option<PathBuf>,
}

impl Draft {
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        self.head(text)?;
        self.cluster(text)?;
        self.work.write(text)?;
        if let Some(state_dir) = &self.state_dir {
            writeln!(text, "\n# Journal, host id and lock of this host; one cluster each.")?;
            writeln!(text, "state_dir: {}", path(state_dir))?;
        }
        writeln!(text, "\n# The members that run on this host, {}.\nnodes:", one_line(&self.host))?;
        let state_dir = self.state_dir.clone().unwrap_or_else(|| self.cluster.default_state_dir());
        self.nodes.iter().try_for_each(|node| node.write(text, &state_dir, &self.host))?;
        writeln!(text, "\nstrategy:\n  soak: 10s    # a member is ready this long before the next may go")?;
        match self.voters {
            0..=2 if !self.work.changes_members() => writeln!(
                text,
                "  # CHECK: one or two voters are down for a moment. Where they may:\n  # allow_downtime: true"
            ),
            _ => Ok(()),
        }
    }

    fn head(&self, text: &mut String) -> fmt::Result {
        let (kind, what) = match &self.work {
            Work::Release { kind, to, .. } => {
                (*kind, format!("Take every member of {} to {to}", one_line(&self.cluster.name)))
            }
            Work::Restart { .. } => {
                ("Restart", format!("Restart every member of {} once", one_line(&self.cluster.name)))
            }
            Work::Scale { members } => {
                ("Scale", format!("Give {} {} voters", one_line(&self.cluster.name), members.len()))
            }
            Work::Replace { member, by } => {
                let what =
                    format!("Replace {} of {} by {}", one_line(member), one_line(&self.cluster.name), one_line(by));
                ("Replace", what)
            }
        };
        writeln!(text, "# {what}, one at a time: this host's part, as `agent init` found it.")?;
        writeln!(text, "# Read it, then `agent plan` on this file shows what would be done, and `agent run` does it.")?;
        writeln!(text, "# `agent explain` says what else may stand here. Every host has a file of its own.")?;
        writeln!(text, "apiVersion: baton/v1\nkind: {kind}\n")
    }

    fn cluster(&self, text: &mut String) -> fmt::Result {
        let cluster = &self.cluster;
        writeln!(text, "cluster:\n  name: {}\n  endpoints:", scalar(&cluster.name))?;
        let width = self.members.iter().map(|member| scalar(&member.endpoint).len()).max().unwrap_or(0);
        for member in &self.members {
            writeln!(text, "    - {:width$}    # {}", scalar(&member.endpoint), one_line(&member.remark))?;
        }
        match cluster.election_timeout == Cluster::DEFAULT_ELECTION_TIMEOUT {
            true => writeln!(text, "  # CHECK: the members' --election-timeout, where it is not 1s.")?,
            false => writeln!(text, "  election_timeout: {}", format_duration(cluster.election_timeout))?,
        }
        if let Some(tls) = &cluster.tls {
            let own = tls.cert.as_ref().zip(tls.key.as_ref());
            let own = own.map(|(cert, key)| format!("    cert: {}\n    key: {}\n", path(cert), path(key)));
            write!(text, "  tls:\n    ca: {}\n{}", path(&tls.ca), own.unwrap_or_default())?;
        }
        if let Some(auth) = &cluster.auth {
            writeln!(text, "  auth:\n    user: {}", scalar(&auth.user))?;
            writeln!(text, "    password_file: {}", path(&auth.password_file))?;
        }
        Ok(())
    }
}

impl Work {
    fn changes_members(&self) -> bool {
        matches!(self, Self::Scale { .. } | Self::Replace { .. })
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        match self {
            Self::Restart { id } => {
                writeln!(text, "\n# The same on every host; another id is another restart.")?;
                writeln!(text, "restart:\n  id: {}", scalar(id))
            }
            Self::Scale { members } => members::scale(text, members),
            Self::Replace { member, by } => members::replace(text, member, by),
            Self::Release { lowest, hops, to, source, sha256, executable, .. } => {
                let version = lowest.cluster_version();
                writeln!(text, "\n# What every member must run now, unless it is at `to` already.")?;
                writeln!(text, "from: \">={lowest}, <{}.{}\"\nto: {to}", version.major, version.minor + 1)?;
                if !hops.is_empty() {
                    let hops: Vec<_> = hops.iter().map(ToString::to_string).collect();
                    writeln!(
                        text,
                        "# Every release on the way, in this order. Each hop has a point of no return of its own."
                    )?;
                    writeln!(text, "hops: [{}]", hops.join(", "))?;
                }
                writeln!(text, "\nartifact:")?;
                match source {
                    Some(source) => writeln!(text, "  source: {}", scalar(source))?,
                    None => {
                        writeln!(text, "  # CHECK: put the release there, or say where it is: a directory, one")?;
                        writeln!(text, "  # executable, or a .tar.gz; or a URL, with its `sha256`.")?;
                        writeln!(text, "  source: releases/{executable}-v{{{{version}}}}.tar.gz")?;
                    }
                }
                if let Some(digest) = sha256 {
                    writeln!(text, "  sha256: {}", scalar(digest))?;
                }
                writeln!(text, "  executable: {}", scalar(executable))
            }
        }
    }
}

impl DraftNode {
    fn write(&self, text: &mut String, state_dir: &Path, host: &str) -> fmt::Result {
        writeln!(text, "  - name: {}", scalar(&self.name))?;
        if let Some([install, link]) = &self.to_link {
            writeln!(
                text,
                "    # CHECK: this is no symlink yet, so it cannot be switched in one step. To make it one:"
            )?;
            writeln!(text, "    #   {}\n    #   {}", one_line(install), one_line(link))?;
            writeln!(text, "    # and restart the member once, so that it runs what the link leads to.")?;
        }
        if let Some(binary) = &self.binary {
            writeln!(text, "    binary: {}", path(binary))?;
        }
        match (&self.runtime, &self.place) {
            (DraftRuntime::Unit(unit), _) => {
                writeln!(text, "    runtime: {{ kind: systemd, unit: {} }}", scalar(unit))?;
            }
            (DraftRuntime::Process(process), _) => process.write(text, self.binary.is_some())?,
            (DraftRuntime::Newcomer, place) => {
                let place = place.clone().unwrap_or_default();
                return place.write_new(text, &self.name, state_dir, host);
            }
        }
        self.place.iter().try_for_each(|place| place.write(text))
    }
}

impl DraftProcess {
    fn write(&self, text: &mut String, has_binary: bool) -> fmt::Result {
        writeln!(text, "    runtime:\n      # The agent starts it itself; nobody starts it after a reboot.")?;
        let program = if has_binary { "\"{{binary}}\"".to_owned() } else { path(&self.program) };
        writeln!(text, "      kind: process\n      argv:\n        - {program}")?;
        for argument in &self.arguments {
            writeln!(text, "        - {}", scalar(argument))?;
        }
        if !self.withheld.is_empty() {
            let names = one_line(&self.withheld.join(", "));
            writeln!(text, "      # CHECK: {names} is set for it and looks like a secret, so it does not stand here.")?;
        }
        if !self.env.is_empty() {
            writeln!(text, "      env:")?;
            for (name, value) in &self.env {
                writeln!(text, "        {}: {}", scalar(name), quoted(value))?;
            }
        }
        writeln!(text, "      cwd: {}", path(&self.cwd))?;
        if let Some(user) = &self.user {
            writeln!(text, "      user: {}", scalar(user))?;
        }
        match &self.log {
            Some(log) => writeln!(text, "      log: {}", path(log)),
            None => writeln!(
                text,
                "      # CHECK: its output goes to no file yet; from its next start on to <state_dir>/<name>.log."
            ),
        }
    }
}

/// As plain as YAML takes it for a text.
fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// JSON's strings are YAML's double-quoted ones.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn path(path: &Path) -> String {
    scalar(&path.to_string_lossy())
}

/// For a comment, which must not end before it is over: what a member's user has chosen would go on as the playbook's own
/// lines, hooks among them, which root runs.
fn one_line(text: &str) -> String {
    let ends = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    text.chars().map(|c| if ends(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::{Auth, Playbook, Tls};

    fn draft() -> Draft {
        let process = DraftProcess {
            program: "/usr/bin/etcd".into(),
            arguments: [
                "--name=a",
                "-x",
                "a=http://h:1,b=http://h:2",
                "",
                "-",
                "--",
                "7",
                "yes",
                "1:30",
                "a:",
                "yes: no",
                "# x",
            ]
            .map(str::to_owned)
            .into(),
            env: [("ETCD_LOG_LEVEL".to_owned(), "7".to_owned())].into(),
            withheld: vec!["ETCD_ROOT_PASSWORD".into()],
            cwd: "/".into(),
            user: Some("etcd".into()),
            log: None,
        };
        let cluster = Cluster {
            name: "orders".into(),
            endpoints: Vec::new(),
            election_timeout: std::time::Duration::from_millis(2500),
            tls: Some(Tls { ca: "/a b/ca.pem".into(), cert: Some("/c".into()), key: Some("/k".into()) }),
            auth: Some(Auth { user: "root".into(), password_file: "/p".into() }),
            http: BTreeMap::new(),
        };
        let (lowest, to) = (Release::new(3, 5, 30), Release::new(3, 6, 14));
        let executable = "etcd".to_owned();
        Draft {
            host: "vm\n".into(),
            cluster,
            members: vec![DraftMember { endpoint: "https://10.0.0.1:2379".into(), remark: "a, 3.5.30".into() }],
            voters: 1,
            work: Work::Release { kind: "Upgrade", lowest, hops: vec![], to, source: None, sha256: None, executable },
            state_dir: Some("/srv/state".into()),
            nodes: vec![DraftNode {
                name: "a".into(),
                binary: Some("/opt/etcd/current".into()),
                to_link: Some(["install x".into(), "ln y".into()]),
                runtime: DraftRuntime::Process(process),
                place: None,
            }],
        }
    }

    /// Whatever a member's user calls his program, files and variables, no line of the playbook is his.
    #[test]
    fn nothing_that_was_found_begins_a_line() {
        let evil = "x\nhooks: { before_node: [[/bin/sh]] }\u{2028}# \u{85}'\"]] #\r\ny";
        let mut draft = draft();
        let before = draft.text().lines().count();
        draft.cluster.name = evil.into();
        draft.members[0].remark = evil.into();
        draft.host = evil.into();
        let node = &mut draft.nodes[0];
        (node.name, node.to_link) = (evil.into(), Some([evil.into(), evil.into()]));
        let DraftRuntime::Process(process) = &mut node.runtime else { panic!() };
        process.withheld = vec![evil.into(), evil.into()];
        process.env = [(evil.to_owned(), evil.to_owned())].into();
        process.user = Some(evil.into());
        let text = draft.text();
        assert_eq!(text.lines().count(), before, "{text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("hooks")), "{text}");
        assert!(!text.contains('\r'), "{text:?}");
    }

    #[test]
    fn a_draft_is_a_playbook_that_says_what_was_found() {
        let draft = draft();
        let text = draft.text();
        let read = Playbook::parse(&text, Path::new("/x.yaml")).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read.cluster.endpoints, ["https://10.0.0.1:2379"]);
        assert_eq!(Cluster { endpoints: Vec::new(), ..read.cluster.clone() }, draft.cluster);
        assert_eq!(read.kind.hop().unwrap().from.to_string(), ">=3.5.30, <3.6");
        let crate::playbook::Runtime::Process(process) = &read.nodes[0].runtime else { panic!("{text}") };
        let DraftRuntime::Process(found) = &draft.nodes[0].runtime else { panic!() };
        assert_eq!((&process.argv[0], &process.argv[1..]), (&"{{binary}}".to_owned(), &found.arguments[..]));
        assert_eq!((&process.env, &process.user), (&found.env, &found.user));
        assert!(text.contains("# CHECK: ETCD_ROOT_PASSWORD is set"), "{text}");
    }

    #[test]
    fn a_restart_needs_no_link() {
        let mut draft = draft();
        draft.work = Work::Restart { id: "2026-11-22".into() };
        (draft.nodes[0].binary, draft.nodes[0].to_link) = (None, None);
        let text = draft.text();
        let read = Playbook::parse(&text, Path::new("/x.yaml")).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let crate::playbook::Runtime::Process(process) = &read.nodes[0].runtime else { panic!("{text}") };
        assert_eq!(process.argv[0], "/usr/bin/etcd");
    }

    #[test]
    fn a_service_is_named() {
        let mut draft = draft();
        draft.nodes[0].runtime = DraftRuntime::Unit("etcd@a.service".into());
        assert!(draft.text().contains("\n    runtime: { kind: systemd, unit: etcd@a.service }\n"), "{}", draft.text());
    }
}
