//! What stops a downgrade, or loses data in it.

use super::{
    Act::{Refuse, Wait},
    Hazard,
    Place::{Log, Members, Revisions, Settings, Store},
    Proof::{Deduced, Guide, Reported, Seen, Source},
};

pub(super) const HAZARDS: &[Hazard] = &[
    Hazard::back(
        "old-binary-after-rise",
        "*",
        "*",
        "an older member panics: \"invalid downgrade; server version is lower than determined cluster version\"",
    )
    .when(Members, "the cluster version is above the release, and no downgrade is enabled")
    .act(Refuse, "enable the downgrade first; `kind: Downgrade` does")
    .certain()
    .known(&[Seen, Source], &["etcd v3.6.14, server/etcdserver/version/downgrade.go"]),
    Hazard::back("newer-data-dir", ">=3.7.0", ">=3.6.0, <3.7.0", "the older release does not start on a store of 3.7")
        .when(Store, "the storage version is 3.7")
        .act(Refuse, "`etcdutl migrate` lowers it, with the member stopped")
        .certain()
        .known(&[Seen, Source], &["CHANGELOG-3.6"]),
    Hazard::back(
        "down-flags-36-35",
        ">=3.6.0, <3.7.0",
        ">=3.5.0, <3.6.0",
        "3.5 does not know `--feature-gates`, `--log-format` and the names without `experimental-`: it does not start",
    )
    .when(Settings, "one of them is set")
    .act(Refuse, "write them under `files` with `for:`, so that they change with the release")
    .known(&[Seen, Guide], &["etcd guide downgrade_3_6"]),
    Hazard::back(
        "down-auth-35-34",
        ">=3.5.0, <3.6.0",
        ">=3.4.0, <3.5.0",
        "etcd does not support it with authentication on",
    )
    .when(Store, "authentication is on")
    .act(Refuse, "turn authentication off first")
    .known(&[Guide], &["etcd guide downgrade_3_5"]),
    Hazard::back("down-floor-34", ">=3.5.0, <3.6.0", ">=3.4.0, <3.4.32", "the older member panics at its start")
        .act(Refuse, "take 3.4.32 or later, with `--next-cluster-version-compatible`")
        .certain()
        .known(&[Seen, Source], &["etcd#17330", "etcd#17665", "etcd#17821"]),
    Hazard::way(
        "down-up-35",
        ">=3.4.0, <3.5.0",
        ">=3.5.0, <3.5.3",
        "data differs between members that were of 3.5 before and come back to it",
    )
    .when(Revisions, "the cluster was downgraded from 3.5")
    .act(Refuse, "go up to 3.5.3 or later, and compare the hashes")
    .known(&[Reported], &["etcd#13514", "etcd#13854"]),
    Hazard::back(
        "down-snapshot-37",
        ">=3.7.0, <3.7.2",
        ">=3.6.0, <3.7.0",
        "a member that lowers its storage reads the newest `.snap` file, and panics where there is none",
    )
    .when(Log, "that file is missing or broken, and the log begins later")
    .act(Refuse, "wait for a release of 3.7 that has it mended")
    .known(&[Source, Deduced], &["etcd#22171", "etcd#22201"]),
    Hazard::back(
        "down-38-37-36",
        ">=3.7.0, <3.8.0",
        ">=3.6.0, <3.7.0",
        "3.8 deletes `.snap` files, and 3.6 does not start without one",
    )
    .when(Log, "the member came down from 3.8, and 3.7 has not taken a snapshot yet")
    .act(Wait, "until 3.7 has taken its first snapshot")
    .known(&[Reported], &["website#1217"]),
    Hazard::back(
        "down-wal-newer",
        ">=3.6.0, <3.7.0",
        ">=3.5.0, <3.6.0",
        "\"cannot downgrade storage, WAL contains newer entries\" until a snapshot is behind them",
    )
    .when(Log, "the log has entries of 3.6")
    .act(Wait, "it passes by itself")
    .known(&[Source], &["etcd v3.6.14, server/storage/schema/schema.go", "etcd#13405"]),
    Hazard::back(
        "down-cancels-itself",
        ">=3.6.0",
        ">=3.5.0, <3.7.0",
        "the leader ends the downgrade once all members match, so binaries alone do not tell the cluster version",
    )
    .when(Members, "every member runs the older release")
    .act(Wait, "until the cluster version itself is lower")
    .known(&[Seen, Source], &["etcd#19427", "etcd#15878"]),
];
