//! How the text of each setting becomes a value.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

use consensus::ReadMode;

use super::{
    AutoCompaction, Config, InitialState, JoinPolicy, Keepalive, LogOutput, LogSettings,
    duration::duration,
    setting::{Kind, Setting, setting_of, truth},
    source::{ConfigError, Given, Origin},
    tls::{Allowed, CLIENT_TLS, Identity, PEER_TLS, SelfSigned, TlsFlags, TlsSettings, TlsVersions},
    url::Url,
};
use crate::features::{Features, Overrides};

pub(super) fn build(given: &Given) -> Result<Config, ConfigError> {
    let text = Reader { given };
    let name = text.text("name");
    let or = |urls: Vec<Url>, default: &[Url]| if urls.is_empty() { default.to_vec() } else { urls };
    let listen_client_urls = text.urls("listen-client-urls")?;
    let listen_peer_urls = text.urls("listen-peer-urls")?;
    let advertised = or(text.urls("initial-advertise-peer-urls")?, &listen_peer_urls);
    let members = text.members("initial-cluster")?;
    let data_dir = match text.text("data-dir") {
        dir if dir.is_empty() => PathBuf::from(format!("{name}.etcd")),
        dir => dir.into(),
    };
    let listen_metrics_urls = text.urls("listen-metrics-urls")?;
    let listen_client_http_urls = text.urls("listen-client-http-urls")?;
    let advertise_client_urls = or(text.urls("advertise-client-urls")?, &listen_client_urls);
    // Where clients are told to come, too: of `0.0.0.0` nobody asks (etcd has those alone that are listened at).
    let for_clients = [&listen_client_urls, &listen_client_http_urls, &advertise_client_urls].into_iter().flatten();
    let for_clients = for_clients.chain(listen_metrics_urls.iter().filter(|url| url.is_tls()));
    let client_tls = text.tls(CLIENT_TLS, &data_dir, for_clients)?;
    let peer_tls = text.tls(PEER_TLS, &data_dir, &listen_peer_urls)?;
    let warnings = [text.not_made(CLIENT_TLS, &client_tls)?, text.not_made(PEER_TLS, &peer_tls)?];
    Ok(Config {
        first_start: Ok(()),
        data_dir,
        advertise_client_urls,
        initial_cluster: match members.is_empty() {
            true => BTreeMap::from([(name.clone(), advertised.clone())]),
            false => members,
        },
        initial_advertise_peer_urls: advertised,
        initial_cluster_state: match &*text.one("initial-cluster-state")? {
            "new" => InitialState::New,
            _ => InitialState::Existing,
        },
        join_policy: match &*text.one("join-policy")? {
            "strict" => JoinPolicy::Strict,
            _ => JoinPolicy::Compatible,
        },
        strict_reconfig_check: text.flag("strict-reconfig-check")?,
        max_learners: text.parsed("max-learners")?,
        initial_cluster_token: text.text("initial-cluster-token"),
        heartbeat_interval: text.millis("heartbeat-interval")?,
        election_timeout: text.millis("election-timeout")?,
        linearizable_reads: match &*text.one("linearizable-read-mode")? {
            "lease" => ReadMode::Lease,
            _ => ReadMode::Quorum,
        },
        snapshot_count: text.parsed("snapshot-count")?,
        snapshot_catchup_entries: text.parsed("snapshot-catchup-entries")?,
        quota_backend_bytes: text.quota()?,
        corrupt_check_time: Some(text.duration("corrupt-check-time")?).filter(|time| !time.is_zero()),
        // 0 is the default there, as with etcd.
        warning_unary_request: Some(text.duration("warning-unary-request-duration")?)
            .filter(|time| !time.is_zero())
            .unwrap_or(DEFAULT_WARNING_UNARY),
        warning_apply: text.duration("warning-apply-duration")?,
        cluster_feature_gates: text.gates("cluster-feature-gates")?,
        feature_gates: text.gates("feature-gates")?,
        server_features: Features::default(),
        client_tls,
        peer_tls,
        require_peer_tls: text.flag("require-peer-tls")?,
        max_txn_operations: text.parsed("max-txn-ops")?,
        max_request_bytes: text.request_bytes()?,
        // 0 is no bound, as with grpc-go.
        max_concurrent_streams: text
            .parsed("max-concurrent-streams")
            .map(|most| if most == 0 { u32::MAX } else { most })?,
        keepalive: Keepalive {
            interval: Some(text.duration("grpc-keepalive-interval")?).filter(|time| !time.is_zero()),
            timeout: text.duration("grpc-keepalive-timeout")?,
        },
        auto_compaction: text.auto_compaction()?,
        progress_interval: text.duration("watch-progress-notify-interval")?,
        listen_metrics_urls,
        log: text.log()?,
        warnings: warnings.into_iter().flatten().collect(),
        listen_client_http_urls,
        listen_client_urls,
        listen_peer_urls,
        name,
    })
}

/// etcd, `DefaultWarningUnaryRequestDuration`.
const DEFAULT_WARNING_UNARY: Duration = Duration::from_millis(300);
/// What is larger would fit in no message between members beside others.
const MOST_REQUEST_BYTES: usize = 32 << 20;

const VALIDITY: &str = "self-signed-cert-validity";
/// A longer life of a certificate is a typing error; etcd's would end before it began from 293 on.
const MOST_YEARS: u64 = 100;

struct Reader<'a> {
    given: &'a Given,
}

impl Reader<'_> {
    fn setting(&self, name: &str) -> &'static Setting {
        setting_of(name).expect("only asked for what stands in the table")
    }

    fn text(&self, name: &str) -> String {
        self.given.get(name).map_or_else(|| self.setting(name).default.to_owned(), |(_, text)| text.clone())
    }

    fn wrong(&self, name: &str, found: &str, expected: String) -> ConfigError {
        ConfigError::Value { origin: Origin::of(self.given, name), found: found.to_owned(), expected }
    }

    fn expected(&self, name: &str, found: &str) -> ConfigError {
        self.wrong(name, found, self.setting(name).kind.expected())
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<T, ConfigError> {
        let text = self.text(name);
        text.parse().map_err(|_| self.expected(name, &text))
    }

    fn one(&self, name: &str) -> Result<String, ConfigError> {
        let text = self.text(name);
        match self.setting(name).kind {
            Kind::One(words) if !words.contains(&&*text) => Err(self.expected(name, &text)),
            _ => Ok(text),
        }
    }

    fn millis(&self, name: &str) -> Result<Duration, ConfigError> {
        match self.parsed(name)? {
            0 => Err(self.expected(name, "0")),
            millis => Ok(Duration::from_millis(millis)),
        }
    }

    fn duration(&self, name: &str) -> Result<Duration, ConfigError> {
        let text = self.text(name);
        duration(&text).ok_or_else(|| self.expected(name, &text))
    }

    fn urls(&self, name: &str) -> Result<Vec<Url>, ConfigError> {
        let text = self.text(name);
        parts(&text).map(|part| part.parse().map_err(|e: super::UrlError| self.wrong(name, part, e.0.into()))).collect()
    }

    fn members(&self, name: &str) -> Result<BTreeMap<String, Vec<Url>>, ConfigError> {
        let text = self.text(name);
        let mut members: BTreeMap<String, Vec<Url>> = BTreeMap::new();
        for part in parts(&text) {
            let (member, url) = part.split_once('=').ok_or_else(|| self.expected(name, part))?;
            let url = url.parse().map_err(|error: super::UrlError| self.wrong(name, part, error.0.into()))?;
            members.entry(member.to_owned()).or_default().push(url);
        }
        Ok(members)
    }

    fn flag(&self, name: &str) -> Result<bool, ConfigError> {
        let text = self.text(name);
        truth(&text).ok_or_else(|| self.expected(name, &text))
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(Into::into)
    }

    /// A certificate and its key, or neither.
    fn identity(&self, cert: &str, key: &str) -> Result<Option<Identity>, ConfigError> {
        match (self.file(cert), self.file(key)) {
            (Some(cert), Some(key)) => Ok(Some(Identity { cert, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(self.wrong(key, "", format!("the key of --{cert}"))),
            (None, Some(_)) => Err(self.wrong(cert, "", format!("the certificate of --{key}"))),
        }
    }

    fn tls<'a>(
        &self,
        flags: TlsFlags,
        data_dir: &Path,
        listens: impl IntoIterator<Item = &'a Url>,
    ) -> Result<TlsSettings, ConfigError> {
        let list = |name: &str| parts(&self.text(name)).map(str::to_owned).collect::<Vec<_>>();
        let names = flags.allowed_names.map(list).unwrap_or_default();
        let hosts = list(flags.allowed_hosts);
        let allowed = match (names.is_empty(), hosts.is_empty()) {
            (true, true) => Allowed::All,
            (false, true) => Allowed::CommonNames(names),
            (true, false) => Allowed::Hosts(hosts),
            (false, false) => {
                let other = flags.allowed_names.unwrap_or_default();
                return Err(self.wrong(
                    flags.allowed_hosts,
                    &hosts.join(","),
                    format!("nothing, or nothing in --{other}"),
                ));
            }
        };
        let client_identity = flags.client_identity.map(|(cert, key)| self.identity(cert, key)).transpose()?.flatten();
        let named = self.identity(flags.cert, flags.key)?;
        let years = self.parsed(VALIDITY)?;
        let self_signed = match self.flag(flags.auto)? && named.is_none() {
            true => Some(SelfSigned {
                data_dir: data_dir.to_owned(),
                folder: flags.side,
                hosts: hosts_of(listens),
                years: self.validity(years)?,
            }),
            false => None,
        };
        Ok(TlsSettings {
            identity: named.or_else(|| self_signed.as_ref().map(SelfSigned::identity)),
            self_signed,
            client_identity,
            trusted_ca: self.file(flags.trusted_ca),
            wants_certificates: self.flag(flags.client_cert_auth)?,
            crl: self.file(flags.crl),
            allowed,
            versions: self.tls_versions()?,
        })
    }

    /// Files that are named come before what the member would make (etcd, `ClientSelfCert`).
    fn not_made(&self, flags: TlsFlags, settings: &TlsSettings) -> Result<Option<String>, ConfigError> {
        let is_asked_for = self.flag(flags.auto)? && settings.self_signed.is_none();
        Ok(is_asked_for
            .then(|| format!("--{} is not used: --{} and --{} are given", flags.auto, flags.cert, flags.key)))
    }

    /// In a file, 0 is the default (etcd, `configFromFile`).
    fn validity(&self, years: u64) -> Result<u64, ConfigError> {
        match years {
            0 if matches!(self.given.get(VALIDITY), Some((Origin::Key(..), _))) => Ok(1),
            1..=MOST_YEARS => Ok(years),
            _ => Err(self.wrong(VALIDITY, &years.to_string(), format!("1 to {MOST_YEARS} years"))),
        }
    }

    fn tls_versions(&self) -> Result<TlsVersions, ConfigError> {
        let (oldest, newest) = (self.one("tls-min-version")?, self.one("tls-max-version")?);
        match (&*oldest, &*newest) {
            ("TLS1.3", "TLS1.2") => {
                Err(self.wrong("tls-max-version", &newest, "--tls-min-version or a newer one".into()))
            }
            ("TLS1.3", _) => Ok(TlsVersions::Only13),
            (_, "TLS1.2") => Ok(TlsVersions::Only12),
            _ => Ok(TlsVersions::Both),
        }
    }

    /// Below 0 there is no bound (etcd, `NewBackendQuota`).
    fn quota(&self) -> Result<u64, ConfigError> {
        let bytes: i64 = self.parsed("quota-backend-bytes")?;
        Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    fn request_bytes(&self) -> Result<usize, ConfigError> {
        let bytes = self.parsed("max-request-bytes")?;
        match bytes {
            1..=MOST_REQUEST_BYTES => Ok(bytes),
            _ => Err(self.wrong("max-request-bytes", &bytes.to_string(), format!("1 to {MOST_REQUEST_BYTES}"))),
        }
    }

    /// As etcd reads it: a time without a unit is in hours.
    fn auto_compaction(&self) -> Result<AutoCompaction, ConfigError> {
        let name = "auto-compaction-retention";
        let (mode, retention) = (self.one("auto-compaction-mode")?, self.text(name));
        let number = retention.parse::<u32>();
        let kept = match (&*mode, number) {
            (_, Ok(0)) => Some(AutoCompaction::Off),
            ("revision", number) => number.ok().map(|number| AutoCompaction::Revisions(number.into())),
            (_, Ok(hours)) => Some(AutoCompaction::Periodic(Duration::from_secs(u64::from(hours) * 3600))),
            (_, Err(_)) => duration(&retention).map(|time| match time.is_zero() {
                true => AutoCompaction::Off,
                false => AutoCompaction::Periodic(time),
            }),
        };
        let expected = if mode == "revision" { "a number of revisions" } else { "hours, or a duration such as 30m" };
        kept.ok_or_else(|| self.wrong(name, &retention, expected.into()))
    }

    fn log(&self) -> Result<LogSettings, ConfigError> {
        self.one("logger")?;
        let level = match &*self.one("log-level")? {
            "dpanic" | "panic" | "fatal" => "error".to_owned(),
            level => level.to_owned(),
        };
        let outputs = parts(&self.text("log-outputs")).map(LogOutput::of).collect();
        Ok(LogSettings { level, is_json: self.one("log-format")? == "json", outputs })
    }

    fn gates(&self, name: &str) -> Result<Overrides, ConfigError> {
        let text = self.text(name);
        let gate = |part: &str| {
            let (feature, on) = part.split_once('=')?;
            let feature = Some(feature.trim()).filter(|feature| !feature.is_empty())?;
            Some((feature.to_owned(), on.trim().parse().ok()?))
        };
        parts(&text)
            .map(|part| gate(part).ok_or_else(|| self.expected(name, part)))
            .collect::<Result<_, _>>()
            .map(Overrides)
    }
}

/// Each once, an IPv6 address without its brackets.
fn hosts_of<'a>(urls: impl IntoIterator<Item = &'a Url>) -> Vec<String> {
    let hosts = urls.into_iter().map(|url| url.host().trim_matches(['[', ']']).to_owned());
    hosts.collect::<BTreeSet<_>>().into_iter().collect()
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}
