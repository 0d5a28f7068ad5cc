//! The table itself: a field a row, in the order in which a playbook is written.

use super::{
    Field, Need, Of,
    Shape::{
        self, Argv, AsWritten, Bool, Choice, Count, Deadline, Digest, Duration, Group, Groups, Like, ListOf, MapOf,
        Name, Path, PeerUrl, Release, Requirement, SetOf, Size, Text, Url, Window, Word,
    },
};
use crate::playbook::parse::MOST_REVISIONS;

const UP_OR_DOWN: &[&str] = &["Upgrade", "Downgrade"];

/// Every field that a playbook may have.
pub const FIELDS: &[Field] = &[
    row("apiVersion", Choice(&["baton/v1"]), "baton/v1", "The format that the playbook is written in.").required(),
    row("kind", Choice(&["Upgrade", "Downgrade", "Restart", "Scale", "Replace"]), "Upgrade", "What is done: every member brought to a newer release, to an older one, or started once more; or members that come and go.").required(),
    group("cluster", Group, "The cluster, and how it is reached.").required(),
    row("cluster.name", Name, "orders", "What people call the cluster; also the default folder of the state.").required(),
    row("cluster.endpoints", SetOf(&Url), "[http://10.0.0.1:2379, http://10.0.0.2:2379, http://10.0.0.3:2379]", "The client URLs of all members, each at the member itself: no load balancer; a password goes to no other http URL.").required(),
    row("cluster.election_timeout", Deadline, "1s", "The members' `--election-timeout`, which the cluster cannot be asked for.").default("1s"),
    group("cluster.tls", Group, "Certificates as PEM files: needed for `https` endpoints, refused for `http`."),
    row("cluster.tls.ca", Path, "/etc/baton/ca.pem", "The authority that signed the members' certificates.").required(),
    row("cluster.tls.cert", Path, "/etc/baton/agent.pem", "The agent's own certificate, where members ask their clients for one.").beside("key"),
    row("cluster.tls.key", Path, "/etc/baton/agent.key", "The key of `cert`.").beside("cert"),
    group("cluster.auth", Group, "The user to authenticate as, where the cluster has authentication on."),
    row("cluster.auth.user", Text, "root", "The user's name; it needs the role root.").required(),
    row("cluster.auth.password_file", Path, "/etc/baton/password", "A file that holds the password, which never stands in the playbook.").required(),
    row("cluster.http", MapOf(&Url), "{ orders-1: http://10.0.0.1:2381 }", "By member, where `/version` is served, if not on the client URL (`--listen-client-http-urls`).").default("{}"),
    row("from", Requirement, "\">=3.5.32, <3.6\"", "What every member must run now, unless it is at `to` already; a pre-release meets no requirement that does not name one.").of(UP_OR_DOWN).required(),
    row("to", Release, "3.6.14", "The release that every member runs in the end.").of(UP_OR_DOWN).required(),
    row("hops", SetOf(&Release), "[3.5.32]", "Releases that are gone over on the way to `to`, in this order: one of each minor in between, as etcd leaves none out; `artifact` is for all of them, by its `{{version}}`.").of(UP_OR_DOWN).instead("artifacts"),
    row("artifacts", MapOf(&Like("artifact")), "{ 3.5.32: { source: /srv/etcd-v3.5.32.tar.gz }, 3.6.14: { source: /srv/etcd-v3.6.14.tar.gz } }", "By release, where each on the way comes from, `to` among them.").of(UP_OR_DOWN).instead("artifact"),
    group("artifact", Group, "Where the release `to` comes from.").of(UP_OR_DOWN).unless("artifacts"),
    row("artifact.source", Text, "/srv/etcd-v{{version}}.tar.gz", "A path or an http(s) URL of a directory, one executable, or a .tar.gz; `{{version}}` stands for the release.").required(),
    row("artifact.sha256", Digest, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "The digest that the artifact must have; a URL needs one, and so does a path that others than root may write to."),
    row("artifact.executable", Text, "etcd", "The executable's file name in a directory or archive that holds several."),
    group("restart", Group, "Which restart this is.").of(&["Restart"]).required(),
    row("restart.id", AsWritten, "OPS-1742", "Free text, the same on every host, such as a ticket or a date; another id is another restart.").required(),
    row("members", SetOf(&Name), "[orders-1, orders-2, orders-3]", "The names of all voters at the end, an odd number, the same on every host; whoever is not there joins, whoever is left out leaves.").of(&["Scale"]).required(),
    group("replace", Group, "Which member goes, and which one comes.").of(&["Replace"]).required(),
    row("replace.member", Name, "orders-2", "Who goes, by name.").required(),
    row("replace.by", Name, "orders-4", "Who comes in its place; the same name where a host has lost its disk.").required(),
    row("state_dir", Path, "/var/lib/baton/orders", "Journal, host id and lock of this host; one cluster each, and no other user may write to it.").default("/var/lib/baton/<cluster.name>"),
    group("nodes", Groups(1), "The members that run on this host.").required(),
    row("nodes[].name", Name, "orders-1", "The member's name in the cluster.").required(),
    group("nodes[].runtime", Group, "How its process is started and stopped.").required(),
    row("nodes[].runtime.kind", Choice(&["process", "command", "systemd"]), "process", "Who starts it: the agent itself, commands that ask a supervisor of yours, or the host's systemd.").required(),
    row("nodes[].runtime.argv", Argv, "[\"{{binary}}\", --config-file, /etc/etcd/etcd.yaml]", "Its program and arguments, never a shell; `{{binary}}`, `{{node}}`, `{{version}}` and `{{initial_cluster}}` are filled in.").runtime("process").required(),
    group("nodes[].runtime.args", Groups(0), "Arguments for some releases only, after those of `argv`, in this order.").runtime("process").default("[]"),
    row("nodes[].runtime.args[].add", ListOf(&Word), "[--feature-gates=InitialCorruptCheck=true]", "The arguments.").required(),
    row("nodes[].runtime.args[].for", Requirement, "\">=3.6\"", "The releases that get them; all of them where it is left out."),
    row("nodes[].runtime.env", MapOf(&Word), "{ GOGC: \"100\" }", "Variables set for it, beside a fixed `PATH` and nothing else; numbers in quotes.").runtime("process").default("{}"),
    row("nodes[].runtime.cwd", Path, "/var/lib/etcd", "The folder it is started in; `/` where it is left out.").runtime("process"),
    row("nodes[].runtime.user", Name, "etcd", "The user it runs as, which takes an agent of root; the agent's own where it is left out.").runtime("process"),
    row("nodes[].runtime.log", Path, "/var/log/etcd/orders-1.log", "The file that its output is appended to; it is opened as `user` where others than root may write to its folder.").runtime("process").default("<state_dir>/<nodes[].name>.log"),
    row("nodes[].runtime.start", Argv, "[sv, -w, \"30\", start, etcd]", "The command that has the member started.").runtime("command").required(),
    row("nodes[].runtime.stop", Argv, "[sv, -w, \"30\", stop, etcd]", "The command that has it stopped.").runtime("command").required(),
    row("nodes[].runtime.status", Argv, "[/usr/local/bin/etcd-status]", "A command that exits 0 while the member runs, 3 when it is stopped, and prints the pid if it knows it.").runtime("command").required(),
    row("nodes[].runtime.unit", Name, "etcd.service", "The unit that runs it.").runtime("systemd").required(),
    row("nodes[].binary", Path, "/opt/etcd/current", "The symlink to its executable, which is switched while the member is down.").needed_for(UP_OR_DOWN),
    group("nodes[].files", Groups(0), "Files that change with the release, and are put back with it; of several with one `path` one may match.").default("[]"),
    row("nodes[].files[].path", Path, "/etc/etcd/etcd.yaml", "The file that the member reads, in a folder that only root may write to.").required(),
    row("nodes[].files[].source", Path, "files/etcd-3.6.yaml", "What it shall hold; a file that only root may write to.").required(),
    row("nodes[].files[].for", Requirement, "\">=3.6\"", "The releases that it is for; all of them where it is left out."),
    group("nodes[].stop", Group, "How its process is asked to end."),
    row("nodes[].stop.timeout", Deadline, "30s", "How long it has, once it was asked with SIGTERM.").default("30s"),
    row("nodes[].stop.kill", Bool, "false", "Whether it is killed after that, with `kind: command` only where it shows that it is the member; the step fails otherwise.").default("false"),
    row("nodes[].peer_urls", SetOf(&PeerUrl), "[http://10.0.0.4:2380]", "Where the others reach it, the same as its `--initial-advertise-peer-urls`: needed where it joins."),
    row("nodes[].data_dir", Path, "/var/lib/etcd/orders-1", "Its `--data-dir`: needed where it joins or leaves, as old data is put aside there."),
    group("strategy", Group, "How the rollout proceeds."),
    row("strategy.order", Choice(&["leader_last"]), "leader_last", "In which order members go: those that are not ready, learners, followers, and the leader at the end.").default("leader_last"),
    row("strategy.soak", Duration, "10s", "How long a member must be ready before the next may go.").default("10s"),
    group("strategy.health", Group, "How soon a member must be ready after its start."),
    row("strategy.health.timeout", Deadline, "2m", "The time it has.").required().default("2m"),
    group("strategy.convergence", Group, "How soon versions, gates and hashes must agree after the last member."),
    row("strategy.convergence.timeout", Deadline, "2m", "The time they have.").required().default("2m"),
    row("strategy.stall_timeout", Deadline, "10m", "How long this host waits while nobody makes progress; longer than twice `health.timeout`, `soak` and 20s together; with `on_failure: stop` than `health.timeout` and `soak`.").default("10m"),
    row("strategy.join_window", Duration, "5s", "How long to wait for other hosts to take part.").default("5s"),
    row("strategy.finalize", Choice(&["auto", "manual"]), "auto", "Whether the run goes on by itself at the step that cannot be taken back, or is held before it until `agent finalize`.").default("auto"),
    row("strategy.on_failure", Choice(&["rollback", "stop"]), "rollback", "Whether a member that failed is put back, where that is safe, or left as it is.").default("rollback"),
    row("strategy.allow_degraded", Bool, "false", "Whether, of five members or more, a healthy one may go while another is not ready.").default("false"),
    row("strategy.allow_downtime", Bool, "false", "Whether a cluster of one or two voters may be down for a moment.").default("false"),
    row("strategy.max_learners", Count(9), "2", "How many newcomers may take in the data at once; no more than the members' `--max-learners`, which is 1 where nobody says otherwise.").default("1"),
    row("strategy.probe", Argv, "[/usr/local/bin/orders-probe, \"{{node}}\"]", "Your own health check of a member that was restarted, run as a hook is, every 5s of its soak: while it fails the member is not ready, and it has `health.timeout` to pass as any member has."),
    row("strategy.window", Window, "Sat 01:00-05:00 Europe/Berlin", "When this host may begin a step, by the day on which the window begins: one in hand ends, `agent rollback` waits for no window, and the agent waits for it however long that takes; at any time where it is left out."),
    row("strategy.canary", Bool, "true", "Whether the agent reads through the cluster all the while a run goes on, ten times a second, and says at its end how many attempts failed, and for how long nothing was answered.").default("false"),
    row("strategy.accept_hazards", ListOf(&Text), "[floor-36]", "Hazards for which a run would be refused, and which you know to do no harm here: ids of `agent hazards`.").default("[]"),
    group("verify", Group, "What is compared at the end."),
    row("verify.max_db", Size, "256MiB", "The largest database whose hash is asked for: the scan stalls the member.").default("256MiB"),
    group("gates", Group, "The cluster's feature gates, on servers that agree on them; no release of etcd does."),
    row("gates.expect", MapOf(&Bool), "{ ClusterLeaseCheckpoint: true }", "What they must be at the end, by name.").default("{}"),
    group("hooks", Group, "Programs run around each step as the agent's user, never through a shell; nobody else may write to them; templates as in `argv`."),
    row("hooks.before_node", ListOf(&Argv), "[[/usr/local/bin/silence, \"{{node}}\", 10m]]", "Run before a member is taken down; one that fails stops the step.").default("[]"),
    row("hooks.after_node", ListOf(&Argv), "[[/usr/local/bin/unsilence, \"{{node}}\"]]", "Run after a member is back; one that fails is a warning.").default("[]"),
    group("backup", Group, "Has the first host that is at work save a member's database before anything is changed, and every hop of a way one; where none can be made, nothing is changed; all hosts say it, or none."),
    row("backup.dir", Path, "/var/backups/etcd", "The folder of this host that it is written to, best on another disk than the data; it has a file of its own name each time, for `etcdutl snapshot restore`.").required(),
    row("backup.keep", Count(9999), "5", "How many of the cluster's backups stay there, the new one counted; all of them where it is left out."),
    group("restore", Group, "How `agent restore` makes the cluster anew; every host says the same, but for the tool."),
    row("restore.tool", Path, "/opt/etcd-3.6/etcdutl", "The program that makes a data directory from the file, as `etcdutl snapshot restore` does; where it is left out, the etcdutl beside the member's executable, the bundled node itself, or else etcdctl or the host's etcdutl."),
    row("restore.bump_revision", Count(MOST_REVISIONS), "1000000000", "How many revisions are left out, so that watchers notice that time went back; 1000000000 where it is left out, and `--bump-revision 0` leaves none out."),
    row("restore.members", MapOf(&SetOf(&Text)), "{ orders-1: [\"http://10.0.0.1:2380\"] }", "The new cluster's voters by name, each with its peer URLs; where it is left out, those that the file lists, or that `--initial-cluster` names."),
    row("expect_members", MapOf(&SetOf(&Text)), "{ 8e9e05c52164694d: [\"http://10.0.0.1:2380\"] }", "Who the members are, by id, each with its peer URLs: what `agent verify membership` compares."),
];

const fn row(path: &'static str, shape: Shape, example: &'static str, meaning: &'static str) -> Field {
    Field { path, shape, of: Of::Every, need: Need::Optional, default: None, meaning, example }
}

/// What it holds has rows of its own.
const fn group(path: &'static str, shape: Shape, meaning: &'static str) -> Field {
    row(path, shape, "", meaning)
}

impl Field {
    const fn required(self) -> Self {
        Self { need: Need::Required, ..self }
    }

    const fn needed_for(self, kinds: &'static [&'static str]) -> Self {
        Self { need: Need::For(kinds), ..self }
    }

    const fn beside(self, key: &'static str) -> Self {
        Self { need: Need::Beside(key), ..self }
    }

    const fn unless(self, key: &'static str) -> Self {
        Self { need: Need::Unless(key), ..self }
    }

    const fn instead(self, key: &'static str) -> Self {
        Self { need: Need::Instead(key), ..self }
    }

    const fn of(self, kinds: &'static [&'static str]) -> Self {
        Self { of: Of::Kinds(kinds), ..self }
    }

    const fn runtime(self, kind: &'static str) -> Self {
        Self { of: Of::Runtime(kind), ..self }
    }

    const fn default(self, text: &'static str) -> Self {
        Self { default: Some(text), ..self }
    }
}
