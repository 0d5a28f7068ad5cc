//! `agent init --print-role`: the etcdctl commands that make the users, for a person to type, and why they are these.
//!
//! No password stands on a command line: each is made into a file, which etcdctl reads on stdin and the playbook names.
//! Source: etcd documentation, "Role-based access control"; who needs what is [`roles`]' to say.

use proto::Release;
use serde_json::json;

use super::roles::{self, Span};
use crate::{playbook::Tls, report::names::printable, words::typed};

pub const COMMAND: &str = "agent init --print-role";

/// What a plan warns of that was made as a user who may look and not run.
pub fn not_asked(user: &str) -> String {
    format!(
        "not checked as user `{}`, who does not have the role root: whether agent run may ask etcd for all that it \
         needs (HashKV, MoveLeader, Downgrade, keys and leases); it is refused as this user",
        printable(user)
    )
}

/// What is to be typed, for one purpose.
struct Block {
    /// Under which scripts find it.
    name: &'static str,
    head: &'static [&'static str],
    commands: &'static [&'static str],
    /// What to know once it is typed.
    tail: &'static [&'static str],
}

const ENABLE: Block = Block {
    name: "enable",
    head: &[
        "Only where auth is off: etcd wants a user called root before it is switched on. From then on every client",
        "needs a user.",
    ],
    commands: &[
        "(umask 077; head -c 24 /dev/urandom | base64 > root.password)",
        "etcdctl user add root --interactive=false < root.password",
        "etcdctl user grant-role root root && etcdctl auth enable",
        "export ETCDCTL_USER=root ETCDCTL_PASSWORD=\"$(cat root.password)\"",
    ],
    tail: &[],
};

const ROOT: Block = Block {
    name: "root",
    head: &["1. For agent run, finalize, rollback, resume, abandon and init: a user with the role root."],
    commands: &[
        "(umask 077; head -c 24 /dev/urandom | base64 > baton.password)",
        "etcdctl user add baton --interactive=false < baton.password",
        "etcdctl user grant-role baton root",
    ],
    tail: &[
        "In the playbook, below `cluster`:  auth: { user: baton, password_file: /etc/baton/baton.password }",
        "For a run no less will do: HashKV wants the role root in every release of etcd, MoveLeader and Downgrade in most.",
    ],
};

const VIEWER: Block = Block {
    name: "viewer",
    head: &["2. For agent status and agent plan: a user who may read Baton's keys and nothing else."],
    commands: &[
        "(umask 077; head -c 24 /dev/urandom | base64 > baton-viewer.password)",
        "etcdctl role add baton-viewer",
        "etcdctl role grant-permission baton-viewer read /baton/ --prefix=true",
        "etcdctl user add baton-viewer --interactive=false < baton-viewer.password",
        "etcdctl user grant-role baton-viewer baton-viewer",
    ],
    tail: &["The file is for whoever looks, in a playbook of theirs. agent run is refused as this user."],
};

const LIST: Block = Block {
    name: "list",
    head: &[
        "3. Keep other users off Baton's keys: who may write them can stop every run, approve it, or turn it back.",
        "etcd cannot forbid keys, only grant them. So look for roles with a range over /baton/ under `KV Write`, such as",
        "`[ , <open ended>` or `[/, 0) (prefix /)`, and for users with the role root, who may do anything.",
    ],
    commands: &[
        "for role in $(etcdctl role list); do etcdctl role get \"$role\"; done",
        "for user in $(etcdctl user list); do etcdctl user get \"$user\"; done",
    ],
    tail: &[],
};

const NARROW: Block = Block {
    name: "narrow",
    head: &[
        "Then narrow them. A role `app` that has every key, and keeps all but Baton's (what reads across these, such as",
        "all keys below /, is refused to it from then on):",
    ],
    commands: &[
        "etcdctl role grant-permission app readwrite ' ' /baton/",
        "etcdctl role grant-permission app readwrite /baton0 --from-key=true",
        "etcdctl role revoke-permission app '' --prefix=true",
    ],
    tail: &[
        "Without auth there is nobody to keep off: whoever reaches a client port, with client certificates whoever has",
        "one, may write them.",
    ],
};

/// All that is to be typed, in its order.
const BLOCKS: [&Block; 5] = [&ENABLE, &ROOT, &VIEWER, &LIST, &NARROW];

/// The cluster that etcdctl is to be told of.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Where it is; anywhere without one.
    pub endpoints: &'a [String],
    pub tls: Option<&'a Tls>,
    /// The releases that run there.
    pub found: &'a [Release],
}

impl Asked<'_> {
    /// What etcdctl takes from the environment.
    fn exports(&self) -> Vec<String> {
        let endpoints = match self.endpoints {
            [] => "http://127.0.0.1:2379".to_owned(),
            endpoints => typed(&endpoints.join(",")),
        };
        let files =
            self.tls.map(|tls| [("CACERT", Some(&tls.ca)), ("CERT", tls.cert.as_ref()), ("KEY", tls.key.as_ref())]);
        let files = files.into_iter().flatten().filter_map(|(name, file)| Some((name, file?)));
        let files = files.map(|(name, file)| format!("export ETCDCTL_{name}={}", typed(&file.to_string_lossy())));
        [format!("export ETCDCTL_ENDPOINTS={endpoints}")].into_iter().chain(files).collect()
    }
}

const HEAD: &[&str] = &[
    "Users and roles of etcd for Baton. Type this in a folder that root alone may enter, such as /etc/baton. etcdctl takes",
    "from the environment where etcd is (for https with ETCDCTL_CACERT, _CERT and _KEY), and a user with the role root.",
];

/// No program is given the password, so none shows it.
const WHO: &str = "export ETCDCTL_USER=root; read -rs ETCDCTL_PASSWORD; export ETCDCTL_PASSWORD";

pub fn text(asked: &Asked) -> String {
    let mut text = String::new();
    says(&mut text, HEAD);
    asked.exports().iter().for_each(|line| text.push_str(&format!("{line}\n")));
    text.push_str(&format!("{WHO}    # where auth is on\n"));
    for block in BLOCKS {
        text.push('\n');
        says(&mut text, block.head);
        if block.name == VIEWER.name {
            for line in least(asked.found) {
                says(&mut text, &[&line]);
            }
        }
        block.commands.iter().for_each(|command| text.push_str(&format!("{command}\n")));
        says(&mut text, block.tail);
    }
    text
}

fn says(text: &mut String, lines: &[&str]) {
    for line in lines {
        text.push_str(&format!("# {line}\n"));
    }
}

/// Where that is enough: in these releases, or in all of them.
fn least(found: &[Release]) -> Vec<String> {
    if found.is_empty() {
        let spans = roles::spans();
        let list = |wanted: bool| {
            let words: Vec<_> =
                spans.iter().filter(|span| span.looking_needs_root() == wanted).map(Span::words).collect();
            words.join(", ")
        };
        return vec![
            format!("   Enough in etcd {}.", list(false)),
            format!("   The role root it takes in {}: Status is answered to no other.", list(true)),
        ];
    }
    let one = |release: &Release| match roles::span_of(release) {
        Some(span) if span.looking_needs_root() => {
            format!("   Not enough in etcd {release}, which runs here: Status is answered to the role root alone.")
        }
        Some(_) => format!("   Enough in etcd {release}, which runs here."),
        None => format!("   Nothing is known here of etcd {release}, which runs here."),
    };
    found.iter().map(one).collect()
}

/// For scripts: each block's commands, and the tables they come from.
pub fn object(asked: &Asked) -> serde_json::Value {
    let blocks = BLOCKS.iter().map(|block| (block.name.to_owned(), json!(block.commands)));
    let before = [("environment".to_owned(), json!(asked.exports())), ("login".to_owned(), json!([WHO]))];
    let commands: serde_json::Map<_, _> = blocks.chain(before).collect();
    let mut object = json!({ "commands": commands, "found": asked.found });
    if let (Some(object), serde_json::Value::Object(tables)) = (object.as_object_mut(), roles::object()) {
        object.extend(tables);
    }
    object
}
