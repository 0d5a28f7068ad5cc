//! Flags of etcd that mean nothing here: each is taken under another name, taken and not used, or refused, with the reason.
//!
//! Source: `etcd --help` of etcd 3.4 to 3.6. A unit file that starts etcd starts this node, or is told by name why not.

use super::{
    duration::duration,
    setting::{Kind, Role, Setting, setting_of, truth},
    source::{ConfigError, Given},
};

const fn renamed(name: &'static str, kind: Kind, now: &'static str) -> Setting {
    Setting { name, kind, default: "", role: Role::Renamed(now) }
}

const fn feature(name: &'static str, feature: &'static str) -> Setting {
    Setting { name, kind: Kind::Flag, default: "", role: Role::Feature(feature) }
}

const fn unused(name: &'static str, kind: Kind, default: &'static str, why: &'static str) -> Setting {
    Setting { name, kind, default, role: Role::Unused(why) }
}

const fn refused(name: &'static str, kind: Kind, default: &'static str, why: &'static str) -> Setting {
    Setting { name, kind, default, role: Role::Refused(why) }
}

const NO_LOCK: &str = "memory is not locked; keep swap off";
const NO_BBOLT: &str = "the state is not kept in bbolt";
const NO_DISCOVERY: &str = "there is no discovery; name the members in --initial-cluster";
const NO_USERS: &str = "there are no users";
const NO_PROXY: &str = "there is no proxy";
const NO_TRACING: &str = "nothing is traced";
const NO_SNAP_FILES: &str = "the node itself decides how many files it keeps";
/// Of all that have two names, the one that etcd refuses under both at once (`parseWarningUnaryRequestDuration` in
/// server/etcdmain/config.go).
const WARNING_UNARY: &str = "warning-unary-request-duration";
const WARNING_UNARY_OLD: &str = "experimental-warning-unary-request-duration";
const FIRST_BEAT: &str = "a start waits no longer than it must anyway";

pub const ETCD_FLAGS: &[Setting] = &[
    renamed("experimental-corrupt-check-time", Kind::Duration, "corrupt-check-time"),
    renamed("experimental-snapshot-catch-up-entries", Kind::Number, "snapshot-catchup-entries"),
    renamed("experimental-snapshot-catchup-entries", Kind::Number, "snapshot-catchup-entries"),
    renamed("experimental-watch-progress-notify-interval", Kind::Duration, "watch-progress-notify-interval"),
    renamed("experimental-warning-apply-duration", Kind::Duration, "warning-apply-duration"),
    renamed(WARNING_UNARY_OLD, Kind::Duration, WARNING_UNARY),
    feature("experimental-compact-hash-check-enabled", "CompactHashCheck"),
    feature("experimental-enable-lease-checkpoint", "LeaseCheckpoint"),
    feature("experimental-enable-lease-checkpoint-persist", "LeaseCheckpointPersist"),
    feature("experimental-initial-corrupt-check", "InitialCorruptCheck"),
    feature("experimental-stop-grpc-service-on-defrag", "StopGRPCServiceOnDefrag"),
    feature("experimental-txn-mode-write-with-shared-buffer", "TxnModeWriteWithSharedBuffer"),
    unused("auth-token", Kind::Text, "simple", NO_USERS),
    unused("auth-token-ttl", Kind::Number, "300", NO_USERS),
    unused("backend-batch-interval", Kind::Duration, "", NO_BBOLT),
    unused("backend-batch-limit", Kind::Number, "0", NO_BBOLT),
    unused("backend-bbolt-freelist-type", Kind::Text, "map", NO_BBOLT),
    unused("bcrypt-cost", Kind::Number, "10", NO_USERS),
    unused("bootstrap-defrag-threshold-megabytes", Kind::Number, "0", NO_BBOLT),
    unused("client-cert-file", Kind::Text, "", "the node calls no clients' port"),
    unused("client-key-file", Kind::Text, "", "the node calls no clients' port"),
    unused("compact-hash-check-time", Kind::Duration, "1m", "--corrupt-check-time says how often members are compared"),
    unused("compaction-batch-limit", Kind::Number, "1000", "a compaction goes in steps of its own"),
    unused("compaction-sleep-interval", Kind::Duration, "10ms", "a compaction goes in steps of its own"),
    unused("cors", Kind::Text, "*", "there is no JSON gateway"),
    unused("discovery-fallback", Kind::Text, "exit", NO_DISCOVERY),
    unused("distributed-tracing-address", Kind::Text, "localhost:4317", NO_TRACING),
    unused("distributed-tracing-instance-id", Kind::Text, "", NO_TRACING),
    unused("distributed-tracing-sampling-rate", Kind::Number, "0", NO_TRACING),
    unused("distributed-tracing-service-name", Kind::Text, "etcd", NO_TRACING),
    unused("downgrade-check-time", Kind::Duration, "5s", "the leader looks whenever a member changes"),
    unused("enable-distributed-tracing", Kind::Flag, "false", NO_TRACING),
    unused("enable-grpc-gateway", Kind::Flag, "true", "there is no JSON gateway"),
    unused("enable-pprof", Kind::Flag, "false", "there are no profiles"),
    unused("experimental-bootstrap-defrag-threshold-megabytes", Kind::Number, "0", NO_BBOLT),
    unused(
        "experimental-compact-hash-check-time",
        Kind::Duration,
        "1m",
        "--corrupt-check-time says how often members are compared",
    ),
    unused("experimental-compaction-batch-limit", Kind::Number, "1000", "a compaction goes in steps of its own"),
    unused("experimental-compaction-sleep-interval", Kind::Duration, "10ms", "a compaction goes in steps of its own"),
    unused("experimental-distributed-tracing-address", Kind::Text, "localhost:4317", NO_TRACING),
    unused("experimental-distributed-tracing-instance-id", Kind::Text, "", NO_TRACING),
    unused("experimental-distributed-tracing-sampling-rate", Kind::Number, "0", NO_TRACING),
    unused("experimental-distributed-tracing-service-name", Kind::Text, "etcd", NO_TRACING),
    unused("experimental-downgrade-check-time", Kind::Duration, "5s", "the leader looks whenever a member changes"),
    unused("experimental-enable-distributed-tracing", Kind::Flag, "false", NO_TRACING),
    unused("experimental-memory-mlock", Kind::Flag, "false", NO_LOCK),
    unused("experimental-peer-skip-client-san-verification", Kind::Flag, "false", "it is not looked at anyway"),
    unused("grpc-keepalive-min-time", Kind::Duration, "5s", "a client may ping as often as it likes"),
    unused("initial-election-tick-advance", Kind::Flag, "true", FIRST_BEAT),
    unused("max-snapshots", Kind::Number, "5", NO_SNAP_FILES),
    unused("max-wals", Kind::Number, "5", NO_SNAP_FILES),
    unused("memory-mlock", Kind::Flag, "false", NO_LOCK),
    unused("metrics", Kind::One(&["basic", "extensive"]), "basic", "there is one level"),
    unused("peer-skip-client-san-verification", Kind::Flag, "false", "it is not looked at anyway"),
    unused("pre-vote", Kind::Flag, "true", "it is always done"),
    unused("raft-read-timeout", Kind::Duration, "5s", "members' connections have bounds of their own"),
    unused("raft-write-timeout", Kind::Duration, "5s", "members' connections have bounds of their own"),
    unused("socket-reuse-address", Kind::Flag, "false", "it is set anyway"),
    unused("unsafe-no-fsync", Kind::Flag, "false", "what is acknowledged is on disk"),
    unused("v2-deprecation", Kind::Text, "write-only", "there is no v2 store"),
    unused("enable-v2", Kind::Flag, "false", "there is no v2 API"),
    unused("experimental-backend-bbolt-freelist-type", Kind::Text, "map", NO_BBOLT),
    unused("log-package-levels", Kind::Text, "", "--log-level is for all"),
    unused("proxy-dial-timeout", Kind::Number, "1000", NO_PROXY),
    unused("proxy-failure-wait", Kind::Number, "5000", NO_PROXY),
    unused("proxy-read-timeout", Kind::Number, "0", NO_PROXY),
    unused("proxy-refresh-interval", Kind::Number, "30000", NO_PROXY),
    unused("proxy-write-timeout", Kind::Number, "5000", NO_PROXY),
    refused("cipher-suites", Kind::Text, "", "the cipher suites are those of TLS 1.3, and of 1.2 with forward secrecy"),
    refused("discovery", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-cacert", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-cert", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-dial-timeout", Kind::Duration, "2s", NO_DISCOVERY),
    refused("discovery-endpoints", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-insecure-skip-tls-verify", Kind::Flag, "false", NO_DISCOVERY),
    refused("discovery-insecure-transport", Kind::Flag, "true", NO_DISCOVERY),
    refused("discovery-keepalive-time", Kind::Duration, "2s", NO_DISCOVERY),
    refused("discovery-keepalive-timeout", Kind::Duration, "6s", NO_DISCOVERY),
    refused("discovery-key", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-password", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-proxy", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-request-timeout", Kind::Duration, "5s", NO_DISCOVERY),
    refused("discovery-srv", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-srv-name", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-token", Kind::Text, "", NO_DISCOVERY),
    refused("discovery-user", Kind::Text, "", NO_DISCOVERY),
    refused("enable-log-rotation", Kind::Flag, "false", "files are rotated by others: logrotate with `copytruncate`"),
    refused("force-new-cluster", Kind::Flag, "false", "a cluster that has lost its quorum is restored from a snapshot"),
    refused("host-whitelist", Kind::Text, "*", "whoever reaches the port is answered"),
    refused(
        "log-rotation-config-json",
        Kind::Text,
        LOG_ROTATION,
        "files are rotated by others: logrotate with `copytruncate`",
    ),
    refused("experimental-enable-v2v3", Kind::Text, "", "there is no v2 API"),
    refused("proxy", Kind::One(&["off", "readonly", "on"]), "off", NO_PROXY),
    refused("socket-reuse-port", Kind::Flag, "false", "two members at one port would each get some of its calls"),
    refused("wal-dir", Kind::Text, "", "the log is kept in --data-dir"),
];

const LOG_ROTATION: &str = r#"{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}"#;

/// What was given, under the names of settings that are carried out; and what is to be said of the rest.
///
/// # Errors
/// [`ConfigError`]: one that is refused, or no value of its kind.
pub(super) fn settle(given: Given) -> Result<(Given, Vec<String>), ConfigError> {
    let (mut settled, mut warnings, mut features) = (Given::new(), Vec::new(), Vec::new());
    let (used, others): (Given, Given) = given
        .into_iter()
        .partition(|(name, _)| setting_of(name).is_some_and(|setting| matches!(setting.role, Role::Used(_))));
    for (name, (origin, text)) in others {
        let Some(setting) = setting_of(name) else { continue };
        if !is_possible(setting.kind, &text) {
            return Err(ConfigError::Value { origin, found: text, expected: setting.kind.expected() });
        }
        match setting.role {
            Role::Used(_) => {}
            Role::Renamed(WARNING_UNARY) if used.contains_key(WARNING_UNARY) => {
                return Err(ConfigError::Refused {
                    origin,
                    why: "--warning-unary-request-duration is given, too; use that one",
                });
            }
            Role::Renamed(now) => {
                warnings.push(format!("{origin} is the older name of --{now}"));
                settled.insert(now, (origin, text));
            }
            Role::Feature(feature) => {
                warnings.push(format!("{origin} is the older form of --feature-gates={feature}={text}"));
                features.push((origin, format!("{feature}={}", truth(&text) == Some(true))));
            }
            _ if is_default(setting, &text) => {}
            Role::Unused(why) => warnings.push(format!("{origin} is not used: {why}")),
            Role::Refused(why) => return Err(ConfigError::Refused { origin, why }),
        }
    }
    settled.extend(used);
    // Of a feature that is said twice, `--feature-gates` counts.
    for (origin, said) in features {
        let (_, gates) = settled.entry("feature-gates").or_insert((origin, String::new()));
        *gates = format!("{said},{gates}");
    }
    Ok((settled, warnings))
}

fn is_possible(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Flag => truth(text).is_some(),
        Kind::Number => text.parse::<u64>().is_ok(),
        Kind::Integer => text.parse::<i64>().is_ok(),
        Kind::Duration => text.is_empty() || duration(text).is_some(),
        Kind::One(words) => words.contains(&text),
        Kind::Text | Kind::Urls | Kind::Members | Kind::Millis | Kind::Gates => true,
    }
}

/// Whoever says what holds anyway has asked for nothing. etcd's unit files often do.
fn is_default(setting: &Setting, text: &str) -> bool {
    let asks_nothing = text == setting.default || text.is_empty();
    asks_nothing || setting.kind == Kind::Flag && truth(text) == truth(setting.default)
}
