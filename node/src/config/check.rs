//! What is wrong with settings that are each possible alone.

use std::{collections::BTreeSet, time::Duration};

use super::{
    Config,
    source::{ConfigError, Given, Origin},
    tls::{Allowed, CLIENT_TLS, PEER_TLS, TlsFlags, TlsSettings},
    url::Url,
};
use crate::features::{ALL, Level, Overrides, Registry};

/// As etcd has it (`maxElectionMs`): who waits longer has no failover worth the name.
const MAX_ELECTION_TIMEOUT: Duration = Duration::from_millis(50_000);

pub(super) fn check(config: &Config, given: &Given, registry: Registry) -> Result<(), ConfigError> {
    let wrong = |name: &'static str, found: String, expected: String| {
        Err(ConfigError::Value { origin: Origin::of(given, name), found, expected })
    };
    let (beat, election) = (config.heartbeat_interval, config.election_timeout);
    if election > MAX_ELECTION_TIMEOUT {
        let most = MAX_ELECTION_TIMEOUT.as_millis();
        return wrong("election-timeout", election.as_millis().to_string(), format!("{most} or less"));
    }
    if election < 5 * beat {
        let least = (5 * beat).as_millis();
        return wrong("election-timeout", election.as_millis().to_string(), format!("{least} or more: 5 heartbeats"));
    }
    let is_open = |urls: &[Url]| urls.iter().any(|url| !url.is_loopback());
    if is_open(&config.listen_client_urls) && !given.contains_key("advertise-client-urls") {
        let expected = "where clients shall come, as this listens for more than this machine".into();
        return wrong("advertise-client-urls", String::new(), expected);
    }
    // `etcdctl` and agents take a member without a name for one that has not started.
    if config.name.is_empty() {
        return wrong("name", String::new(), "a name".into());
    }
    let listens = [
        ("listen-peer-urls", &config.listen_peer_urls, PEER_TLS, &config.peer_tls),
        ("listen-client-urls", &config.listen_client_urls, CLIENT_TLS, &config.client_tls),
        ("listen-client-http-urls", &config.listen_client_http_urls, CLIENT_TLS, &config.client_tls),
        ("listen-metrics-urls", &config.listen_metrics_urls, CLIENT_TLS, &config.client_tls),
    ];
    let addresses = listens.into_iter().flat_map(|(setting, urls, ..)| urls.iter().map(move |url| (setting, url)));
    // Where the system chooses a port, it is another each time.
    if let Some((setting, url)) = twice(addresses.filter(|(_, url)| !url.is_any_port())) {
        return wrong(setting, url.to_string(), "an address that nothing else of this member listens at".into());
    }
    let members = config.initial_cluster.values().flatten();
    if let Some((_, url)) = twice(members.filter(|url| !url.is_any_port()).map(|url| ((), url))) {
        return wrong("initial-cluster", url.to_string(), "each address once".into());
    }
    for (setting, urls, flags, settings) in listens {
        certificate(flags, settings, (setting, urls), given)?;
    }
    vouched(CLIENT_TLS, &config.client_tls, given, &wrong)?;
    vouched(PEER_TLS, &config.peer_tls, given, &wrong)?;
    let open = |url: &&Url| !url.is_loopback() && !url.is_tls();
    if let Some(url) = config.listen_peer_urls.iter().find(open).filter(|_| config.require_peer_tls) {
        return wrong("listen-peer-urls", url.to_string(), "https, as --require-peer-tls says".into());
    }
    gates(config, given, registry)
}

/// What a member that has no data yet cannot found or join a cluster with. Later `--initial-cluster` counts for nothing (etcd,
/// `VerifyBootstrap`).
pub(super) fn first_start(config: &Config, given: &Given) -> Result<(), ConfigError> {
    let wrong = |name: &'static str, found: String, expected: String| {
        Err(ConfigError::Value { origin: Origin::of(given, name), found, expected })
    };
    let Some(own) = config.initial_cluster.get(&config.name) else {
        let names: Vec<_> = config.initial_cluster.keys().map(String::as_str).collect();
        return wrong("name", config.name.clone(), format!("one of --initial-cluster: {}", names.join(", ")));
    };
    if *own != config.initial_advertise_peer_urls {
        let list = |urls: &[Url]| urls.iter().map(Url::to_string).collect::<Vec<_>>().join(",");
        let expected = format!("what --initial-cluster has for {}: {}", config.name, list(own));
        return wrong("initial-advertise-peer-urls", list(&config.initial_advertise_peer_urls), expected);
    }
    Ok(())
}

/// The first address that is there a second time, with TLS or without.
fn twice<'a, T>(mut urls: impl Iterator<Item = (T, &'a Url)>) -> Option<(T, &'a Url)> {
    let mut seen = BTreeSet::new();
    urls.find(|(_, url)| !seen.insert(url.address()))
}

/// Where TLS is spoken, there must be something to show.
fn certificate(
    flags: TlsFlags,
    settings: &TlsSettings,
    (listens, urls): (&'static str, &[Url]),
    given: &Given,
) -> Result<(), ConfigError> {
    match urls.iter().find(|url| url.is_tls()) {
        Some(url) if settings.identity.is_none() => {
            let words = no_certificate(flags, listens, url);
            Err(ConfigError::NoCertificate { origin: Origin::of(given, listens), words })
        }
        _ => Ok(()),
    }
}

/// What is asked of certificates needs somebody who vouches for them.
fn vouched(
    flags: TlsFlags,
    settings: &TlsSettings,
    given: &Given,
    wrong: &impl Fn(&'static str, String, String) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    let asked = [
        (flags.client_cert_auth, settings.wants_certificates),
        (flags.crl, settings.crl.is_some()),
        (flags.allowed_hosts, matches!(settings.allowed, Allowed::Hosts(_))),
        (flags.allowed_names.unwrap_or_default(), matches!(settings.allowed, Allowed::CommonNames(_))),
    ];
    let (client_cert, _) = flags.client_identity.unwrap_or_default();
    let with_files =
        [(flags.trusted_ca, settings.trusted_ca.is_some()), (client_cert, settings.client_identity.is_some())];
    let TlsFlags { cert, key, auto, trusted_ca, .. } = flags;
    let (more, expected) = match (&settings.self_signed, &settings.trusted_ca) {
        // What the member makes is known to nobody, and none of others is asked for. etcd passes over what says otherwise, and
        // lets everybody in.
        (Some(_), _) => {
            (&with_files[..], format!("--{cert} and --{key} with it; by --{auto} nobody is asked for a certificate"))
        }
        (None, None) => (&[][..], format!("--{trusted_ca} with it")),
        (None, Some(_)) => return Ok(()),
    };
    match asked.iter().chain(more).find(|(_, is_asked)| *is_asked) {
        Some((flag, _)) => {
            let found = given.get(flag).map_or_else(String::new, |(_, text)| text.clone());
            wrong(flag, found, expected)
        }
        None => Ok(()),
    }
}

/// etcd's words (`ErrMissingClientTLSInfoForMetricsURL`, `configureClientListeners`); of members' it says less.
fn no_certificate(flags: TlsFlags, listens: &str, url: &Url) -> String {
    let files = format!("TLS key/cert (--{}, --{}) must be provided for", flags.cert, flags.key);
    match listens {
        "listen-metrics-urls" => format!("client {files} metrics secure url"),
        "listen-peer-urls" => format!("{files} peer url {url} with HTTPS scheme"),
        _ => format!("{files} client url {url} with HTTPS scheme"),
    }
}

/// A name that this release does not have is a typing error, or of another one; one of the other level has the wrong flag
/// (KEP-4647, "Set the Feature Gates").
pub(super) fn gates(config: &Config, given: &Given, registry: Registry) -> Result<(), ConfigError> {
    // What has no gates has no names to compare with. It takes what its successor is started with.
    if !registry.has_gates() {
        return Ok(());
    }
    let sides = [
        (&config.cluster_feature_gates, Level::Cluster, "cluster-feature-gates"),
        (&config.feature_gates, Level::Server, "feature-gates"),
    ];
    let wrong = |flag: &'static str, found: &str, expected: String| {
        Err(ConfigError::Value { origin: Origin::of(given, flag), found: found.into(), expected })
    };
    for (Overrides(said), level, flag) in sides {
        for name in said.keys() {
            match registry.get(name) {
                _ if level == Level::Server && ALL.iter().any(|(all, _)| all == name) => {}
                Some((feature, _)) if feature.level == level => {}
                Some((feature, _)) => {
                    let right =
                        if feature.level == Level::Cluster { "--cluster-feature-gates" } else { "--feature-gates" };
                    return wrong(flag, name, format!("it in {right}, where this feature belongs"));
                }
                None => {
                    let known = registry.iter().filter(|(feature, _)| feature.level == level);
                    let known: Vec<_> = known.map(|(feature, _)| feature.name).collect();
                    return wrong(flag, name, format!("one of {}", known.join(", ")));
                }
            }
        }
    }
    Ok(())
}
