//! A certificate authority for one cluster, and the certificates it gives out: written as files, since
//! members and agent read them so.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, date_time_ymd,
};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Where the files of one authority and of the two identities it vouches for are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificates {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// Of every member, for clients and peers.
    pub server: Identity,
    /// Of every client, the agent too.
    pub client: Identity,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Certificates {
    /// Makes a new authority in this folder.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        let authority = Authority::create(folder)?;
        let server = authority.identity("member", &["127.0.0.1", "localhost"], |_| {})?;
        Ok(Self { client: authority.identity("client", &[], |_| {})?, server, ca: authority.ca })
    }
}

/// Who vouches for certificates, as long as it is there.
pub struct Authority {
    folder: PathBuf,
    /// Its own certificate.
    pub ca: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// # Errors
    /// The files cannot be written.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder)?;
        let key = KeyPair::generate()?;
        fs::write(folder.join("ca.key"), key.serialize_pem())?;
        fs::write(folder.join("ca.pem"), Self::params()?.self_signed(&key)?.pem())?;
        Self::open(folder)
    }

    /// The one that was made in this folder.
    ///
    /// # Errors
    /// Its files cannot be read.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let key = KeyPair::from_pem(&fs::read_to_string(folder.join("ca.key"))?)?;
        Ok(Self { folder: folder.to_owned(), ca: folder.join("ca.pem"), issuer: Issuer::new(Self::params()?, key) })
    }

    fn params() -> Result<CertificateParams, Error> {
        let mut params = named("Baton test authority", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        Ok(params)
    }

    /// Gives out a certificate with this common name, for these hosts, changed as it is wanted.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn identity(
        &self,
        name: &str,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Result<Identity, Error> {
        let key = KeyPair::generate()?;
        let mut params = named(name, hosts)?;
        // A member is its peers' client, and the client of its own HTTP gateway.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let file = |kind: &str| self.folder.join(format!("{name}.{kind}"));
        let paths = Identity { cert: file("pem"), key: file("key") };
        fs::write(&paths.cert, params.signed_by(&key, &self.issuer)?.pem())?;
        fs::write(&paths.key, key.serialize_pem())?;
        fs::set_permissions(&paths.key, fs::Permissions::from_mode(0o600))?;
        Ok(paths)
    }

    /// Gives out a certificate that has expired.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn expired(&self, name: &str) -> Result<Identity, Error> {
        self.identity(name, &[], |params| params.not_after = date_time_ymd(2020, 1, 1))
    }

    /// Gives out a certificate that is not valid yet.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn later(&self, name: &str) -> Result<Identity, Error> {
        self.identity(name, &[], |params| params.not_before = date_time_ymd(2124, 1, 1))
    }

    /// Gives out a certificate that ends so long from now.
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn lasting(&self, name: &str, life: Duration) -> Result<Identity, Error> {
        let end = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)? + life;
        self.identity(name, &[], |params| params.not_after = date_time_ymd(1970, 1, 1) + end)
    }

    /// Revokes the certificates with these serial numbers, in a list.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn revoke(&self, serials: &[u64]) -> Result<PathBuf, Error> {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: (*serial).into(),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2124, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.folder.join("revoked.pem");
        fs::write(&path, params.signed_by(&self.issuer)?.pem()?)?;
        Ok(path)
    }
}

fn named(name: &str, hosts: &[&str]) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}
