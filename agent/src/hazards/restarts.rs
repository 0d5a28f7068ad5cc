//! What members of a release do when they go down and come back, whatever for.

use super::{
    Act::{Never, Refuse, Tell, Wait, Warn},
    Hazard,
    Place::{Activity, Members, Nowhere, Revisions, Settings, Store},
    Proof::{Reported, Seen, Source},
};

pub(super) const HAZARDS: &[Hazard] = &[
    Hazard::run(
        "stale-read-hand-over",
        ">=3.4.20, <3.4.42 || >=3.5.0, <3.5.28 || >=3.6.0, <3.6.9",
        "a linearizable read gives old data as the leader changes; no write is lost",
    )
    .act(Warn, "take a later patch")
    .known(&[Source], &["etcd#20418", "etcd#21375", "etcd#21417"]),
    Hazard::run(
        "catch-up-window",
        ">=3.6.0, <3.8.0",
        "the leader keeps 5,000 entries: a member that missed more is sent a whole snapshot, which is slow",
    )
    .when(Activity, "more is written while a member is down")
    .act(Warn, "raise `--snapshot-catchup-entries` beforehand")
    .known(&[Seen, Source], &["etcd v3.6.14, server/etcdserver/server.go", "etcd#18825"]),
    Hazard::run(
        "environment-differs",
        "*",
        "a setting that came by the environment is another one after the restart, or its default: a quota, a limit, what TLS takes",
    )
    .when(Settings, "a member's process has other `ETCD_…` variables or another `GODEBUG` than the playbook's `env`")
    .act(Refuse, "put into `env` what it runs with; make a change that is meant first, by `kind: Restart`")
    .known(&[Seen], &["etcd's documentation, \"Configuration options\""]),
    Hazard::run(
        "defrag-while-snapshot",
        "<3.4.38 || >=3.5.0, <3.5.23 || >=3.6.0, <3.6.5",
        "the database of a member that is sent a snapshot meanwhile is corrupted (\"page … expected to be\")",
    )
    .when(Activity, "a defragmentation is under way")
    .act(Wait, "until it has ended")
    .known(&[Source], &["etcd#20271", "etcd#20650", "etcd#20653"]),
    Hazard::run("crash-in-defrag", ">=3.5.0, <3.5.6", "revisions differ after a crash in a defragmentation")
        .when(Activity, "a defragmentation is under way")
        .act(Wait, "until it has ended")
        .known(&[Source], &["etcd#14685", "etcd#14733"]),
    Hazard::run(
        "kill-in-compaction",
        "<3.4.32 || >=3.5.0, <3.5.14",
        "after a kill in a compaction whose newest revision is a deletion, the revision goes back and data differs",
    )
    .when(Activity, "a compaction is under way")
    .act(Never, "kill no member that can be asked to end, and give it the time for that")
    .known(&[Source], &["etcd#17780", "etcd#17864", "etcd#17865"]),
    Hazard::run(
        "compaction-hash-alarm",
        ">=3.5.5, <3.5.10",
        "a restart in a compaction makes a wrong hash: the alarm CORRUPT, though the data is right",
    )
    .when(Settings, "the check of compacted hashes is on")
    .act(Warn, "compare the hashes, then disarm it")
    .known(&[Source, Reported], &["etcd#15919"]),
    Hazard::run("wal-torn-tail", ">=3.5.0, <3.5.7", "a last record that is half on disk is not repaired, and the start fails")
        .when(Activity, "the host loses its power")
        .act(Warn, "take a later patch; a member that does not start is replaced")
        .known(&[Source], &["etcd#15069"]),
    Hazard::run(
        "35-inconsistent",
        ">=3.5.0, <3.5.3",
        "a crash under load skips an entry, and data differs for good",
    )
    .act(Warn, "take a later patch, and compare the hashes before and after")
    .known(&[Source], &["etcd#13766", "etcd#13908", "etcd#13933"]),
    Hazard::run(
        "data-differs",
        "*",
        "members answer the same question differently, and whatever is done next makes it harder to say who is right",
    )
    .when(Revisions, "members hold different data at one place of the log")
    .act(Refuse, "back up each member, find out whose data is right, and replace the others (`kind: Replace`)")
    .known(&[Seen, Source], &["etcd#13766", "etcd#18667", "etcd's documentation, \"Data corruption\""]),
    Hazard::run("users-differ", "*", "members allow the same user different things, and then hold different data")
        .when(Revisions, "users and roles were changed more often on one member than on another")
        .act(Refuse, "replace the members that stand alone (`kind: Replace`); a restart is enough where only memory is old")
        .known(&[Source], &["etcd#11651", "etcd#14571"]),
    Hazard::run("partial-txn", ">=3.5.0, <3.5.17", "a transaction that fails may be applied in part")
        .act(Warn, "take a later patch")
        .known(&[Source], &["etcd#18799"]),
    Hazard::run(
        "txn-range-diverges",
        "<3.7.0",
        "a transaction that writes, and reads a revision that is compacted or to come, fails on one member and is applied on others",
    )
    .when(Nowhere, "clients send such transactions")
    .act(Warn, "have them send none")
    .known(&[Seen, Source], &["etcd#18667", "etcd#21432"]),
    Hazard::run("auth-index-restart", ">=3.4.0, <3.4.8", "a restart applies changes of users again, and data differs")
        .when(Members, "authentication is on")
        .act(Warn, "take 3.4.8 or later")
        .known(&[Source], &["etcd#11651", "etcd#11652"]),
    Hazard::way("auth-not-loaded", "*", "=3.4.20", "users are not loaded at the start")
        .when(Store, "authentication is on")
        .act(Refuse, "take another patch")
        .known(&[Source], &["etcd#14409", "etcd#14410"]),
    Hazard::run(
        "auth-after-snapshot",
        ">=3.4.0, <3.4.22 || >=3.5.0, <3.5.6",
        "a member that was sent a snapshot keeps the users of before",
    )
    .when(Members, "authentication is on")
    .act(Warn, "take a later patch; restart that member")
    .known(&[Source], &["etcd#14571", "etcd#14648"]),
    Hazard::way("auth-start-panic", "*", "=3.5.3", "panics at its start")
        .when(Store, "authentication is on")
        .act(Refuse, "take another patch")
        .known(&[Source], &["etcd#13946"]),
    Hazard::way(
        "auth-tightened",
        "<3.4.42 || >=3.5.0, <3.5.28 || >=3.6.0, <3.6.9",
        ">=3.4.42, <3.5.0 || >=3.5.28, <3.6.0 || >=3.6.9",
        "monitors and tools whose user is not root are refused what they were answered before",
    )
    .when(Members, "authentication is on")
    .act(Warn, "the patches from 3.4.43, 3.5.32 and 3.6.12 on answer most of it again")
    .known(&[Seen, Source], &["CVE-2026-33413", "etcd#21549", "etcd#21811"]),
    Hazard::run(
        "alarm-list-power-off",
        "<3.5.5",
        "whoever asks for alarms as the power goes keeps the member from starting",
    )
    .act(Never, "`Status` says the same")
    .known(&[Source], &["etcd#14429"]),
    Hazard::run(
        "single-lost-write",
        ">=3.4.0, <3.4.21 || >=3.5.0, <3.5.5",
        "a crash of a sole member loses a write that was acknowledged",
    )
    .when(Members, "there is one voter")
    .act(Warn, "take a later patch; end it by SIGTERM")
    .known(&[Source], &["etcd#14370", "etcd#14423"]),
    Hazard::run("close-deadlock", "<3.4.36 || >=3.5.0, <3.5.18", "one that is told to end while it starts never ends")
        .when(Activity, "a member is not ready yet")
        .act(Wait, "until it is ready, or kill it after `stop.timeout`")
        .known(&[Source], &["etcd#19166", "etcd#19167"]),
    Hazard::run(
        "silent-connection",
        ">=3.5.8",
        "one that is told to end waits for ever for a connection to its client port that has sent nothing",
    )
    .when(Activity, "somebody holds such a connection")
    .act(Warn, "end that connection, or give `stop.kill`")
    .known(&[Seen], &["etcd v3.5.30, server/embed/serve.go"]),
    Hazard::run("two-snapshots-panic", "*", "panics when two snapshots come one right after the other")
        .when(Activity, "a member is sent snapshots")
        .act(Tell, "start it again")
        .known(&[Reported], &["etcd#18055"]),
    Hazard::run(
        "35-early-panics",
        ">=3.5.0, <3.5.2",
        "panics in its watches, and where its database comes as a snapshot",
    )
    .act(Warn, "take a later patch")
    .known(&[Source], &["etcd#13541", "etcd#13501"]),
    Hazard::run("promote-unstarted", "<3.4.24 || >=3.5.0, <3.5.7", "a learner can be promoted that has never started")
        .when(Members, "a learner has no name yet")
        .act(Never, "start it first")
        .known(&[Source], &["etcd#15096", "etcd#15097"]),
    Hazard::run("update-promotes", "<3.5.31 || >=3.6.0, <3.6.12", "to update a learner's URLs makes it a voter")
        .when(Members, "a member is a learner")
        .act(Never, "promote it first")
        .known(&[Seen, Source], &["etcd#21736", "etcd#21737"]),
    Hazard::run(
        "promote-with-auth",
        ">=3.5.0, <3.5.28 || >=3.6.0, <3.6.6",
        "a promotion that is asked of a follower fails",
    )
    .when(Members, "authentication is on")
    .act(Tell, "ask the leader")
    .known(&[Source], &["etcd#20874", "etcd#21494"]),
    Hazard::run(
        "add-while-one-down",
        "*",
        "with one of three voters down no member can be added, not even a learner (\"unhealthy cluster\")",
    )
    .when(Members, "a voter is down, or has been there for less than 5 s")
    .act(Wait, "for those seconds; else remove the dead one first")
    .known(&[Source, Seen], &["etcd#21667", "etcd#21669"]),
    Hazard::run(
        "force-new-leftovers",
        ">=3.5.0, <3.5.25 || >=3.6.0, <3.6.6",
        "`--force-new-cluster` leaves members behind",
    )
    .when(Store, "the cluster was restored by it")
    .act(Refuse, "restore with a later patch")
    .known(&[Source], &["etcd#20071", "etcd#20339"]),
    Hazard::run(
        "lease-revoked-by-old-leader",
        "<3.4.31 || >=3.5.0, <3.5.13",
        "a leader that has lost its office ends leases that live",
    )
    .act(Warn, "take a later patch; hand over before each stop")
    .known(&[Source], &["etcd#17425", "etcd#17465"]),
    Hazard::run(
        "lease-renewed-though-gone",
        "<3.4.38 || >=3.5.0, <3.5.23 || >=3.6.0, <3.6.5",
        "a lease that was ended can be renewed, by the answer",
    )
    .act(Warn, "take a later patch")
    .known(&[Source], &["etcd#20615", "etcd#20616"]),
    Hazard::run("lease-full-again", "*", "a new leader gives each lease its whole time once more")
        .when(Settings, "leases have no checkpoints")
        .act(Tell, "each hand-over costs that once")
        .known(&[Seen, Source], &["etcd#9888", "etcd#13508"]),
    Hazard::run("lease-checkpoint-mixed", "<3.6.0", "what is left of a lease differs between members, and no hash shows it")
        .when(Settings, "checkpoints are kept on some members alone")
        .act(Refuse, "set it alike on all hosts")
        .known(&[Source], &["etcd#13508"]),
    Hazard::run("lease-negative-id", "<3.4.20", "a lease whose id is negative sets members apart")
        .when(Revisions, "a client made such a lease")
        .act(Warn, "take a later patch")
        .known(&[Source], &["etcd#14239"]),
    Hazard::run(
        "watch-gaps",
        "<3.4.38 || >=3.5.0, <3.5.22 || >=3.6.0, <3.6.2",
        "a watch through a member that is restarted misses events, or gets old ones again",
    )
    .act(Warn, "take a later patch first")
    .known(&[Source], &["etcd#17529", "etcd#15271", "etcd#19179", "etcd#20221"]),
    Hazard::way(
        "memory-36",
        "<3.6.0",
        ">=3.6.0, <3.6.9",
        "it takes two fifths more memory than 3.5 on average, and more than twice as much at its peak",
    )
    .act(Warn, "go to 3.6.9 or later")
    .known(&[Reported, Source], &["etcd#21355", "etcd#21443"]),
    Hazard::way(
        "storage-version-missing",
        "<3.6.0",
        ">=3.6.0, <3.6.5",
        "no storage version is said until a snapshot is taken, and the log is full of that",
    )
    .act(Tell, "wait for it nowhere; go to 3.6.5 or later")
    .known(&[Source], &["etcd#20496"]),
    Hazard::run("quota-misreported", ">=3.6.0, <3.6.6", "`Status` tells a wrong quota")
        .act(Tell, "`/metrics` tells the right one")
        .known(&[Source], &["etcd#20790"]),
    Hazard::way(
        "tombstone-hash",
        "<3.4.34 || >=3.5.0, <3.5.16",
        ">=3.4.34, <3.5.0 || >=3.5.16",
        "newer members leave a deletion out of the hash that older ones count",
    )
    .when(Revisions, "hashes are compared while members are mixed")
    .act(Tell, "compare them when all run one release")
    .known(&[Source], &["etcd v3.5.16, server/storage/mvcc/hash.go"]),
];
