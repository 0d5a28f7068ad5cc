//! The table of settings, and how the text of each becomes a value.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{
    Config, InitialState,
    source::{ConfigError, Given, Origin},
    tls::{Allowed, CLIENT_TLS, Identity, PEER_TLS, TlsFlags, TlsSettings},
    url::Url,
};
use crate::features::Overrides;

#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// As after `--`, and as a key of the file; `ETCD_` and capitals in the environment.
    pub name: &'static str,
    pub kind: Kind,
    /// What it is where nobody says anything.
    pub default: &'static str,
    /// What it is for, in a few words.
    pub help: &'static str,
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
    /// As Go writes it, of whole numbers.
    Duration,
    Number,
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
            Self::Number => "a whole number".into(),
            Self::Gates => "Name=true or Name=false, with commas between several".into(),
            Self::Flag => "true or false".into(),
        }
    }
}

const fn setting(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Setting {
    Setting { name, kind, default, help }
}

pub const SETTINGS: &[Setting] = &[
    setting("name", Kind::Text, "default", "this member's name"),
    setting("data-dir", Kind::Text, "", "where it keeps what it must not forget (NAME.etcd)"),
    setting("listen-client-urls", Kind::Urls, "http://localhost:2379", "where to listen for clients"),
    setting("advertise-client-urls", Kind::Urls, "", "where to tell clients to come (where it listens)"),
    setting("listen-peer-urls", Kind::Urls, "http://localhost:2380", "where to listen for other members"),
    setting("initial-advertise-peer-urls", Kind::Urls, "", "where to tell other members to come (where it listens)"),
    setting("initial-cluster", Kind::Members, "", "the members of a new cluster (this one alone)"),
    setting("initial-cluster-state", Kind::One(&["new", "existing"]), "new", "whether the cluster is new"),
    setting("initial-cluster-token", Kind::Text, "etcd-cluster", "tells one new cluster from another"),
    setting("heartbeat-interval", Kind::Millis, "100", "between two heartbeats of a leader, in milliseconds"),
    setting("election-timeout", Kind::Millis, "1000", "without a leader until an election, in milliseconds"),
    setting("snapshot-count", Kind::Number, "0", "entries between two snapshots; 0: by the size of the log alone"),
    setting("snapshot-catchup-entries", Kind::Number, "5000", "entries that stay in the log behind a snapshot"),
    setting("quota-backend-bytes", Kind::Number, "0", "how large the state may grow; 0 for 2 GiB"),
    setting("corrupt-check-time", Kind::Duration, "1h", "how often the leader compares what members hold; 0s: never"),
    setting("cluster-feature-gates", Kind::Gates, "", "what this member wants to be on for the whole cluster"),
    setting("feature-gates", Kind::Gates, "", "what is on for this server alone"),
    setting("cert-file", Kind::Text, "", "what clients by https are shown, in PEM"),
    setting("key-file", Kind::Text, "", "its key"),
    setting("trusted-ca-file", Kind::Text, "", "authorities of clients' certificates; then each must show one"),
    setting("client-cert-auth", Kind::Flag, "false", "clients must show a certificate"),
    setting("client-crl-file", Kind::Text, "", "clients' certificates that are revoked"),
    setting("client-cert-allowed-hostname", Kind::Text, "", "hosts whose certificates are taken of clients (all)"),
    setting("peer-cert-file", Kind::Text, "", "what members by https are shown, in PEM"),
    setting("peer-key-file", Kind::Text, "", "its key"),
    setting("peer-client-cert-file", Kind::Text, "", "what is shown to members that are called (--peer-cert-file)"),
    setting("peer-client-key-file", Kind::Text, "", "its key"),
    setting("peer-trusted-ca-file", Kind::Text, "", "authorities of members' certificates; then each must show one"),
    setting("peer-client-cert-auth", Kind::Flag, "false", "members must show a certificate"),
    setting("peer-crl-file", Kind::Text, "", "members' certificates that are revoked"),
    setting("peer-cert-allowed-cn", Kind::Text, "", "common names whose certificates are taken of members (all)"),
    setting("peer-cert-allowed-hostname", Kind::Text, "", "hosts whose certificates are taken of members (all)"),
    setting("tls-min-version", Kind::One(&["TLS1.2", "TLS1.3"]), "TLS1.2", "the oldest TLS that is spoken"),
    setting("require-peer-tls", Kind::Flag, "false", "do not listen for members of other machines without TLS"),
    setting("log-level", Kind::One(&["debug", "info", "warn", "error"]), "info", "what is logged"),
];

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
    Ok(Config {
        data_dir,
        advertise_client_urls: or(text.urls("advertise-client-urls")?, &listen_client_urls),
        initial_cluster: match members.is_empty() {
            true => BTreeMap::from([(name.clone(), advertised.clone())]),
            false => members,
        },
        initial_advertise_peer_urls: advertised,
        initial_cluster_state: match &*text.one("initial-cluster-state")? {
            "new" => InitialState::New,
            _ => InitialState::Existing,
        },
        initial_cluster_token: text.text("initial-cluster-token"),
        heartbeat_interval: text.millis("heartbeat-interval")?,
        election_timeout: text.millis("election-timeout")?,
        snapshot_count: text.parsed("snapshot-count")?,
        snapshot_catchup_entries: text.parsed("snapshot-catchup-entries")?,
        quota_backend_bytes: text.parsed("quota-backend-bytes")?,
        corrupt_check_time: Some(text.duration("corrupt-check-time")?).filter(|time| !time.is_zero()),
        cluster_feature_gates: text.gates("cluster-feature-gates")?,
        feature_gates: text.gates("feature-gates")?,
        client_tls: text.tls(CLIENT_TLS)?,
        peer_tls: text.tls(PEER_TLS)?,
        require_peer_tls: text.flag("require-peer-tls")?,
        log_level: text.one("log-level")?,
        listen_client_urls,
        listen_peer_urls,
        name,
    })
}

struct Reader<'a> {
    given: &'a Given,
}

impl Reader<'_> {
    fn setting(&self, name: &str) -> &'static Setting {
        SETTINGS.iter().find(|setting| setting.name == name).expect("only asked for what stands in the table")
    }

    fn text(&self, name: &str) -> String {
        self.given.get(name).map_or_else(|| self.setting(name).default.to_owned(), |(_, text)| text.clone())
    }

    fn wrong(&self, name: &str, found: &str, expected: String) -> ConfigError {
        let origin = self.given.get(name).map_or_else(|| Origin::Nobody(name.to_owned()), |(origin, _)| origin.clone());
        ConfigError::Value { origin, found: found.to_owned(), expected }
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

    /// As Go reads one (strconv.ParseBool).
    fn flag(&self, name: &str) -> Result<bool, ConfigError> {
        match &*self.text(name) {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
            text => Err(self.expected(name, text)),
        }
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

    fn tls(&self, flags: TlsFlags) -> Result<TlsSettings, ConfigError> {
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
        Ok(TlsSettings {
            identity: self.identity(flags.cert, flags.key)?,
            client_identity,
            trusted_ca: self.file(flags.trusted_ca),
            wants_certificates: self.flag(flags.client_cert_auth)?,
            crl: self.file(flags.crl),
            allowed,
            only_1_3: self.one("tls-min-version")? == "TLS1.3",
        })
    }

    fn gates(&self, name: &str) -> Result<Overrides, ConfigError> {
        let text = self.text(name);
        let gate = |part: &str| {
            let (feature, on) = part.split_once('=')?;
            Some((feature.trim().to_owned(), on.trim().parse().ok()?))
        };
        parts(&text)
            .map(|part| gate(part).ok_or_else(|| self.expected(name, part)))
            .collect::<Result<_, _>>()
            .map(Overrides)
    }
}

/// Numbers, each with its unit.
fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, behind) = behind.split_at(behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len()));
        let number: u64 = number.parse().ok()?;
        let one = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(60 * 60)?),
            _ => return None,
        };
        sum = sum.checked_add(one)?;
        rest = behind;
    }
    (!text.is_empty()).then_some(sum)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}
