//! What stops an upgrade, or the one after it.

use super::{
    Act::{Refuse, Tell, Warn},
    Hazard,
    Place::{Log, Members, Nowhere, Settings, Store},
    Proof::{Deduced, Guide, Reported, Seen, Source},
};

pub(super) const HAZARDS: &[Hazard] = &[
    Hazard::way(
        "skip-minor-36",
        "<3.5.0",
        ">=3.6.0",
        "two minors at once: it is undefined what becomes of the data, and etcd does not stop it",
    )
    .act(Refuse, "go one minor at a time")
    .certain()
    .known(&[Guide], &["etcd guide upgrade_3_6"]),
    Hazard::way(
        "skip-minor-37",
        "<3.6.0",
        ">=3.7.0",
        "two minors at once: the member panics at each start (\"unmarshal should never fail\")",
    )
    .act(Refuse, "go one minor at a time")
    .certain()
    .known(&[Seen, Reported, Guide], &["k0sproject/k0smotron#1578", "k0rdent/kcm#3047"]),
    Hazard::way(
        "hop-too-fast-37",
        ">=3.6.0, <3.7.0",
        ">=3.7.0, <3.8.0",
        "a member panics at each start, and a loop that does not look loses the whole cluster: 3.7 replays what is behind the newest \
         snapshot, and does not know the entries by which 3.5 published members and versions",
    )
    .when(Log, "the log of a member has entries of 3.5 behind its newest snapshot, as after 3.5 to 3.6 to 3.7 at once")
    .act(
        Refuse,
        "`agent run` has each member take a snapshot first; without it, as many entries as `--snapshot-count` says (10,000) have to be \
         written on 3.6, as a restart makes one of old entries alone where the log has more than 1 MB",
    )
    .certain()
    .known(&[Seen], &["etcd v3.7.1, server/etcdserver/server.go"]),
    Hazard::way(
        "floor-36",
        ">=3.5.0, <3.5.26",
        ">=3.6.0",
        "members that were removed come back, or voters become learners: 3.6 believes another store than those patches keep",
    )
    .act(Refuse, "take 3.5.26 or later first, better the newest 3.5")
    .known(&[Guide], &["etcd guide upgrade_3_6", "etcd#20967", "etcd#19557"]),
    Hazard::way(
        "advised-36",
        ">=3.5.26, <3.5.32",
        ">=3.6.0",
        "etcd's guide asks for 3.5.32 before 3.6: the last patches find more of what 3.6 does not start on",
    )
    .act(Warn, "take the newest 3.5 first")
    .known(&[Guide], &["etcd guide upgrade_3_6"]),
    Hazard::way(
        "floor-37",
        ">=3.6.0, <3.6.11",
        ">=3.7.0",
        "etcd's guide calls them perhaps not compatible with a rolling upgrade; nobody has said why",
    )
    .act(Refuse, "take 3.6.11 or later first")
    .known(&[Guide], &["etcd guide upgrade_3_7", "website#1165"]),
    Hazard::way(
        "target-36-floor",
        "*",
        ">=3.6.0, <3.6.4",
        "the start fails where a learner was promoted (safe from 3.6.4), members panic as one is promoted or named (from 3.6.1), and \
         what is left of v2 authentication counts as content (from 3.6.3)",
    )
    .act(Refuse, "go to 3.6.9 or later")
    .known(&[Source], &["etcd#20387", "etcd#20051", "etcd#20370"]),
    Hazard::way(
        "zombie-members",
        "<3.5.26",
        ">=3.6.0",
        "members that were removed long ago come back and are counted: the quorum is lost",
    )
    .when(Store, "a member's database has members that it does not list")
    .act(Refuse, "take 3.5.26 or later on all members first, and look again")
    .known(&[Seen, Source, Guide], &["etcd#20967", "etcd#20995", "k3s-io/k3s#13485"]),
    Hazard::way("member-only-v2", ">=3.5.0, <3.6.0", ">=3.6.0", "3.6 does not know a member that only the old store has")
        .when(Store, "a member lists one that its database does not have")
        .act(Refuse, "remove that member, and add it again")
        .known(&[Deduced], &["etcd v3.5.33, server/etcdserver/api/membership/cluster.go"]),
    Hazard::way(
        "zombie-35",
        "<3.5.0",
        "=3.5.0",
        "members of long ago come back and cannot be removed; members panic (\"unexpected removal of unknown remote peer\")",
    )
    .act(Refuse, "go to a later 3.5")
    .known(&[Reported, Source], &["etcd#13196", "etcd#13119", "etcd#13348"]),
    Hazard::way(
        "learner-returns",
        ">=3.5.1, <3.5.24",
        ">=3.6.0",
        "voters become learners: with two or more of them the start fails (\"too many learner members in cluster\")",
    )
    .when(Store, "a voter is a learner in the database")
    .act(Refuse, "take 3.5.24 or later first; where 3.5.20 to 3.5.23 came by replacement, restart each member once more")
    .known(&[Seen, Source, Guide], &["etcd#19557", "etcd#19636", "etcd#20793"]),
    Hazard::way("v2-content-snap", "<3.6.0", ">=3.6.0", "the start fails: \"detected disallowed custom content in v2store\"")
        .when(Log, "the newest snapshot has keys or users of the v2 API")
        .act(Refuse, "empty it by the v2 API on 3.5; 3.5.32 and 3.6.13 take `--v2-deprecation=write-only-skip-check`")
        .known(&[Seen, Source, Guide], &["etcd#20351", "etcd#21850"]),
    Hazard::way("v2-content-wal", ">=3.5.0, <3.6.0", ">=3.6.0", "panics: \"detected disallowed v2 WAL\"")
        .when(
            Log,
            "the log has requests of the v2 API behind the newest snapshot; in 3.4, and with `--enable-v2`, each of `/health` is one, too",
        )
        .act(Refuse, "turn `--enable-v2` off; `agent run` then has the member take a snapshot")
        .known(&[Seen, Source, Reported], &["etcd#20809", "etcd#20870", "etcd#21849"]),
    Hazard::run(
        "v2-check-false",
        ">=3.5.18, <3.5.22 || >=3.6.0, <3.6.3",
        "their `etcdutl check v2store` calls a store unclean that is clean",
    )
    .when(Nowhere, "the store is checked by it")
    .act(Tell, "take etcdutl 3.5.32 or later")
    .known(&[Source], &["etcd#20357", "etcd#20370"]),
    Hazard::way(
        "v2-still-on",
        ">=3.5.0, <3.6.0",
        ">=3.6.0",
        "while a 3.5 with `--enable-v2` takes a write of the v2 API, every 3.6 panics on it",
    )
    .when(Settings, "`--enable-v2` is on for any member")
    .act(Refuse, "turn it off on all members first")
    .known(&[Seen, Reported], &["etcd#17009", "etcd#16989"]),
    Hazard::way("v3-db-missing", "<3.5.0", ">=3.5.0", "panics: there is no `member/snap/db`")
        .when(Log, "a member has data of v2 alone")
        .act(Refuse, "bring the data to v3 first")
        .known(&[Source, Guide], &["etcd#9480"]),
    Hazard::way(
        "auth-34-35",
        ">=3.4.0, <3.5.0",
        ">=3.5.0, <3.6.0",
        "users that are made or changed while both run differ between members; etcd does not support it",
    )
    .when(Store, "authentication is on")
    .act(Refuse, "change no user until the cluster version is 3.5")
    .known(&[Seen, Guide, Source], &["etcd guide upgrade_3_5", "etcd#11943"]),
    Hazard::way(
        "flags-gone-35",
        "<3.5.0",
        ">=3.5.0",
        "it does not start with `--log-output`, `--log-package-levels`, `--logger=capnslog`, `--debug` and \
         `--experimental-backend-bbolt-freelist-type`",
    )
    .when(Settings, "one of them is set")
    .act(Refuse, "`--log-outputs`, `--log-level` and `--backend-bbolt-freelist-type` are in their place")
    .known(&[Seen, Source], &["CHANGELOG-3.5"]),
    Hazard::way(
        "flags-gone-36",
        "<3.6.0",
        ">=3.6.0",
        "it does not start with `--enable-v2`, `--experimental-enable-v2v3`, `--proxy` and its kin, nor with a flag beside the same \
         feature gate",
    )
    .when(Settings, "one of them is set")
    .act(Refuse, "leave them out")
    .known(&[Seen, Source], &["etcd guide upgrade_3_6", "etcd v3.6.14, server/embed/config.go"]),
    Hazard::way("flags-gone-37", "<3.7.0", ">=3.7.0", "it does not start with any `--experimental-…`, nor with `--discovery-proxy`")
        .when(Settings, "one of them is set")
        .act(Refuse, "3.6 takes the new names and `--feature-gates`, too: change them there first")
        .known(&[Seen, Source], &["etcd#19959", "etcd#20109"]),
    Hazard::way("flags-gone-38", "<3.8.0", ">=3.8.0", "it does not start with `--max-snapshots` and `--v2-deprecation`")
        .when(Settings, "one of them is set")
        .act(Refuse, "leave them out")
        .known(&[Reported], &["website#1217"]),
    Hazard::way(
        "setting-lost",
        "*",
        "*",
        "a setting that the release does not know is ignored, and with it checks, checkpoints or traces turn themselves off",
    )
    .when(Settings, "it is set by the environment or the configuration file, and not by a flag")
    .act(Refuse, "give it the name that the target knows")
    .known(&[Seen, Source], &["etcd v3.7.1, pkg/flags/flag.go and server/embed/config.go"]),
    Hazard::way(
        "defaults-move-35",
        "<3.5.0",
        ">=3.5.0",
        "what is not set changes: pre-vote is on, logs are JSON, the free list of the database is a map",
    )
    .when(Settings, "`--pre-vote` or `--logger` is not set")
    .act(Tell, "set what must stay")
    .known(&[Seen, Guide], &["etcd guide upgrade_3_5"]),
    Hazard::way(
        "defaults-move-36",
        "<3.6.0",
        ">=3.6.0",
        "what is not set changes: a snapshot is taken each 10,000 entries and not each 100,000, and v2 is no more written",
    )
    .when(Settings, "`--snapshot-count` is not set")
    .act(Tell, "set what must stay")
    .known(&[Seen, Guide], &["etcd guide upgrade_3_6"]),
    Hazard::way("peer-url-clients", "<3.6.0", ">=3.6.0", "clients that speak to the peer port are refused")
        .when(Members, "a client URL is a peer URL, or somebody else is connected to that port, which the agent does not see")
        .act(Refuse, "have clients use the client URL")
        .known(&[Seen, Source], &["etcd#13565"]),
    Hazard::way(
        "tools-moved-36",
        "<3.6.0",
        ">=3.6.0",
        "`etcdctl snapshot status`, `snapshot restore` and `defrag --data-dir` are gone, and a deletion without `--range` waits for 2 s",
    )
    .when(Nowhere, "scripts run them, such as those that make backups")
    .act(Tell, "`etcdutl` has them")
    .known(&[Seen, Source], &["etcd#13809", "etcd#13793", "etcd#16662", "etcd#13747"]),
    Hazard::way(
        "image-no-shell",
        "<3.4.23 || >=3.5.0, <3.5.7",
        ">=3.4.23, <3.5.0 || >=3.5.7",
        "the image has no `/bin/sh`: probes and scripts that run in it fail",
    )
    .when(Nowhere, "members run in containers, and a probe has a shell")
    .act(Warn, "have the probe ask `/health`")
    .known(&[Source, Reported], &["etcd#15016", "etcd#15017", "etcd#21840"]),
    Hazard::way(
        "metrics-renamed-35",
        "<3.5.0",
        ">=3.5.0",
        "five metrics of the database and its calls lose `debugging` in their name",
    )
    .when(Nowhere, "alerts or dashboards name them")
    .act(Tell, "name both while members are mixed")
    .known(&[Seen, Guide], &["etcd guide upgrade_3_5"]),
    Hazard::way("memberlist-quorum", "<3.5.0", ">=3.5.0", "a list of members needs a quorum")
        .when(Nowhere, "scripts ask for it while there is none")
        .act(Tell, "`--consistency=s` asks the member alone")
        .known(&[Seen, Source], &["etcd#11639"]),
    Hazard::way("datadir-mode", "*", ">=3.4.10, <3.4.13", "the start fails where the data directory's mode is not 0700")
        .when(Settings, "it has another mode")
        .act(Warn, "`chmod 0700` it")
        .known(&[Source], &["etcd#11798", "etcd#12242"]),
    Hazard::way("no-fsync", "*", "*", "a crash loses what was acknowledged, and may bring removed members back")
        .when(Settings, "`--unsafe-no-fsync` is set")
        .act(Refuse, "leave it out: no rolling restart is safe with it")
        .known(&[Guide], &["etcd blog zombie_members_upgrade"]),
    Hazard::run("end-of-life-34", ">=3.4.0, <3.5.0", "it gets no fixes any more; its last is 3.4.45, of June 2026")
        .act(Tell, "go on to 3.5")
        .known(&[Guide], &["etcd blog june-patch-release"]),
];
