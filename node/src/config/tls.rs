//! What is said of TLS for one of the two ports, as etcd's flags say it (etcd, `transport.TLSInfo`).

use std::path::PathBuf;

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Whose certificates are taken, of those that the authority vouches for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    #[default]
    All,
    /// With one of these common names.
    CommonNames(Vec<String>),
    /// Of one of these hosts, by name or address.
    Hosts(Vec<String>),
}

/// The folder in a data directory that has the certificates which a member makes for itself, as with etcd.
pub const FIXTURES: &str = "fixtures";

/// A certificate that the member makes for itself (etcd, `transport.SelfCert`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfSigned {
    pub data_dir: PathBuf,
    /// Its folder in [`FIXTURES`].
    pub folder: &'static str,
    /// For whom it is: names and addresses.
    pub hosts: Vec<String>,
    /// How long it is valid.
    pub years: u64,
}

impl SelfSigned {
    /// Where it lies, with its key.
    pub fn identity(&self) -> Identity {
        let folder = self.data_dir.join(FIXTURES).join(self.folder);
        Identity { cert: folder.join("cert.pem"), key: folder.join("key.pem") }
    }
}

/// What is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    #[default]
    Both,
    Only12,
    Only13,
}

/// The files of a port, and whom they let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// What this member shows.
    pub identity: Option<Identity>,
    /// Set where the member makes its own certificate. It then believes any other, as etcd does.
    pub self_signed: Option<SelfSigned>,
    /// What it shows to members that it calls, where that is another one.
    pub client_identity: Option<Identity>,
    /// The authorities whose certificates are taken. Where there are any, whoever calls must show one, as with etcd.
    pub trusted_ca: Option<PathBuf>,
    /// Whether that was asked for in so many words.
    pub wants_certificates: bool,
    /// What they have revoked, in PEM or DER.
    pub crl: Option<PathBuf>,
    pub allowed: Allowed,
    pub versions: TlsVersions,
}

/// The flags of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsFlags {
    /// `client` or `peer`: as etcd's log names the side, and the folder of its certificates.
    pub side: &'static str,
    /// What has the member make a certificate.
    pub auto: &'static str,
    pub cert: &'static str,
    pub key: &'static str,
    pub trusted_ca: &'static str,
    pub client_cert_auth: &'static str,
    pub crl: &'static str,
    pub allowed_hosts: &'static str,
    pub allowed_names: Option<&'static str>,
    pub client_identity: Option<(&'static str, &'static str)>,
}

impl TlsFlags {
    /// The flags that what is shown comes from.
    pub fn of(self, settings: &TlsSettings) -> Self {
        match settings.self_signed {
            Some(_) => Self { cert: self.auto, key: self.auto, ..self },
            None => self,
        }
    }
}

pub const CLIENT_TLS: TlsFlags = TlsFlags {
    side: "client",
    auto: "auto-tls",
    cert: "cert-file",
    key: "key-file",
    trusted_ca: "trusted-ca-file",
    client_cert_auth: "client-cert-auth",
    crl: "client-crl-file",
    allowed_hosts: "client-cert-allowed-hostname",
    allowed_names: None,
    client_identity: None,
};

pub const PEER_TLS: TlsFlags = TlsFlags {
    side: "peer",
    auto: "peer-auto-tls",
    cert: "peer-cert-file",
    key: "peer-key-file",
    trusted_ca: "peer-trusted-ca-file",
    client_cert_auth: "peer-client-cert-auth",
    crl: "peer-crl-file",
    allowed_hosts: "peer-cert-allowed-hostname",
    allowed_names: Some("peer-cert-allowed-cn"),
    client_identity: Some(("peer-client-cert-file", "peer-client-key-file")),
};
