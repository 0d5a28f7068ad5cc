//! The table of settings that are carried out. etcd's others are in `etcd_flag.rs`.

use super::etcd_flag::ETCD_FLAGS;

#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As after `--`, and as a key of the file; `ETCD_` and capitals in the environment.
    pub name: &'static str,
    pub kind: Kind,
    /// What it is where nobody says anything.
    pub default: &'static str,
    pub role: Role,
}

/// What becomes of a setting that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is carried out. What it is for, in a few words.
    Used(&'static str),
    /// It is an older name of this one.
    Renamed(&'static str),
    /// It is an older way to say this at `--feature-gates`.
    Feature(&'static str),
    /// A warning, with this reason.
    Unused(&'static str),
    /// The member does not start, for this reason.
    Refused(&'static str),
}

/// What a setting's text must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    One(&'static [&'static str]),
    /// URLs with commas between.
    Urls,
    /// `name=url` with commas between.
    Members,
    /// A whole number of milliseconds above 0.
    Millis,
    /// As Go writes it.
    Duration,
    Number,
    /// One that may be below 0.
    Integer,
    /// `Name=true` or `Name=false` with commas between.
    Gates,
    /// `true` or `false`; a flag alone is `true`, and the next argument is another one, as Go has it.
    Flag,
}

impl Kind {
    pub(super) fn expected(self) -> String {
        match self {
            Self::Text => "a text".into(),
            Self::One(words) => words.join(" or "),
            Self::Urls => "http://HOST:PORT or https://HOST:PORT, with commas between several".into(),
            Self::Members => "NAME=http://HOST:PORT, with commas between several".into(),
            Self::Millis => "a whole number of milliseconds above 0".into(),
            Self::Duration => "a duration, such as 30s or 1h30m".into(),
            Self::Number | Self::Integer => "a whole number".into(),
            Self::Gates => "Name=true or Name=false, with commas between several".into(),
            Self::Flag => "true or false".into(),
        }
    }
}

const fn setting(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Setting {
    Setting { name, kind, default, role: Role::Used(help) }
}

/// A setting of the node, or of etcd.
pub(super) fn setting_of(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().chain(ETCD_FLAGS).find(|setting| setting.name == name)
}

const LOG_LEVELS: &[&str] = &["debug", "info", "warn", "error", "dpanic", "panic", "fatal"];

pub const SETTINGS: &[Setting] = &[
    setting("name", Kind::Text, "default", "this member's name"),
    setting("data-dir", Kind::Text, "", "where it keeps what it must not forget (NAME.etcd)"),
    setting("listen-client-urls", Kind::Urls, "http://localhost:2379", "where to listen for clients"),
    setting(
        "listen-client-http-urls",
        Kind::Urls,
        "",
        "where to listen for HTTP; then gRPC alone is at --listen-client-urls",
    ),
    setting("advertise-client-urls", Kind::Urls, "", "where to tell clients to come (where it listens)"),
    setting("listen-metrics-urls", Kind::Urls, "", "where to listen for /metrics and /health alone, too"),
    setting("listen-peer-urls", Kind::Urls, "http://localhost:2380", "where to listen for other members"),
    setting("initial-advertise-peer-urls", Kind::Urls, "", "where to tell other members to come (where it listens)"),
    setting("initial-cluster", Kind::Members, "", "the members of a new cluster (this one alone)"),
    setting(
        "initial-cluster-state",
        Kind::One(&["new", "existing"]),
        "new",
        "whether a member without data founds a cluster, or joins one that it was added to",
    ),
    setting("strict-reconfig-check", Kind::Flag, "true", "members come and go only where a quorum stays"),
    setting("max-learners", Kind::Number, "1", "as many learners there may be"),
    setting(
        "join-policy",
        Kind::One(&["compatible", "strict"]),
        "compatible",
        "beside whom it takes part: releases that fit the cluster version, or its own alone",
    ),
    setting("initial-cluster-token", Kind::Text, "etcd-cluster", "tells one new cluster from another"),
    setting("heartbeat-interval", Kind::Millis, "100", "between two heartbeats of a leader, in milliseconds"),
    setting("election-timeout", Kind::Millis, "1000", "without a leader until an election, in milliseconds"),
    setting(
        "linearizable-read-mode",
        Kind::One(&["quorum", "lease"]),
        "quorum",
        "what a read waits for at the leader: a quorum round, or nothing while its lease runs (see README)",
    ),
    setting("snapshot-count", Kind::Number, "0", "entries between two snapshots; 0: by the size of the log alone"),
    setting("snapshot-catchup-entries", Kind::Number, "5000", "entries that stay in the log behind a snapshot"),
    setting("quota-backend-bytes", Kind::Integer, "0", "how large the state may grow; 0 for 2 GiB, -1 for no bound"),
    setting("max-txn-ops", Kind::Number, "128", "as many operations a transaction may have"),
    setting("max-request-bytes", Kind::Number, "1572864", "how large a client's request may be"),
    setting("max-concurrent-streams", Kind::Number, "4294967295", "as many calls under way on one connection"),
    setting(
        "grpc-keepalive-interval",
        Kind::Duration,
        "30s",
        "a client that says nothing is pinged so often; 0s: never",
    ),
    setting("grpc-keepalive-timeout", Kind::Duration, "20s", "how long an answer to that is waited for"),
    setting(
        "auto-compaction-mode",
        Kind::One(&["periodic", "revision"]),
        "periodic",
        "what is kept: a time, or revisions",
    ),
    setting(
        "auto-compaction-retention",
        Kind::Text,
        "0",
        "how much of it: 5m, hours, or a number of revisions; 0: all",
    ),
    setting(
        "watch-progress-notify-interval",
        Kind::Duration,
        "10m",
        "a quiet watch that asked for it is told so often",
    ),
    setting("corrupt-check-time", Kind::Duration, "1h", "how often the leader compares what members hold; 0s: never"),
    setting(
        "warning-unary-request-duration",
        Kind::Duration,
        "300ms",
        "a request that takes longer is logged (request stats)",
    ),
    setting("warning-apply-duration", Kind::Duration, "100ms", "so is what takes longer to be applied or read"),
    setting("cluster-feature-gates", Kind::Gates, "", "what this member wants to be on for the whole cluster"),
    setting("feature-gates", Kind::Gates, "", "what is on for this server alone"),
    setting("cert-file", Kind::Text, "", "what clients by https are shown, in PEM"),
    setting("key-file", Kind::Text, "", "its key"),
    setting("trusted-ca-file", Kind::Text, "", "authorities of clients' certificates; then each must show one"),
    setting("client-cert-auth", Kind::Flag, "false", "clients must show a certificate"),
    setting("client-crl-file", Kind::Text, "", "clients' certificates that are revoked"),
    setting("client-cert-allowed-hostname", Kind::Text, "", "hosts whose certificates are taken of clients (all)"),
    setting("auto-tls", Kind::Flag, "false", "without --cert-file: the member makes a certificate for clients itself"),
    setting("peer-cert-file", Kind::Text, "", "what members by https are shown, in PEM"),
    setting("peer-key-file", Kind::Text, "", "its key"),
    setting("peer-client-cert-file", Kind::Text, "", "what is shown to members that are called (--peer-cert-file)"),
    setting("peer-client-key-file", Kind::Text, "", "its key"),
    setting("peer-trusted-ca-file", Kind::Text, "", "authorities of members' certificates; then each must show one"),
    setting("peer-client-cert-auth", Kind::Flag, "false", "members must show a certificate"),
    setting("peer-crl-file", Kind::Text, "", "members' certificates that are revoked"),
    setting("peer-cert-allowed-cn", Kind::Text, "", "common names whose certificates are taken of members (all)"),
    setting("peer-cert-allowed-hostname", Kind::Text, "", "hosts whose certificates are taken of members (all)"),
    setting(
        "peer-auto-tls",
        Kind::Flag,
        "false",
        "the same for members; then each believes any other: nobody is kept out",
    ),
    setting("self-signed-cert-validity", Kind::Number, "1", "how long what it makes is valid, in years"),
    setting("tls-max-version", Kind::One(&["", "TLS1.2", "TLS1.3"]), "", "the newest (the newest there is)"),
    setting("tls-min-version", Kind::One(&["TLS1.2", "TLS1.3"]), "TLS1.2", "the oldest TLS that is spoken"),
    setting("require-peer-tls", Kind::Flag, "false", "do not listen for members of other machines without TLS"),
    setting("logger", Kind::One(&["zap"]), "zap", "that of etcd: its keys, in its form"),
    setting("log-level", Kind::One(LOG_LEVELS), "info", "what is logged"),
    setting("log-format", Kind::One(&["json", "console"]), "json", "how a line looks"),
    setting("log-outputs", Kind::Text, "default", "stderr, stdout or files, with commas between; default is stderr"),
];

/// As Go reads one (strconv.ParseBool).
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
