//! A certificate authority for one cluster, and the certificates it gives out: written as files, since
//! members and agent read them so.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
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
        fs::create_dir_all(folder)?;
        let key = KeyPair::generate()?;
        let mut params = named("Baton test authority", &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca = folder.join("ca.pem");
        fs::write(&ca, params.self_signed(&key)?.pem())?;
        let issuer = Issuer::new(params, key);
        Ok(Self {
            ca,
            server: identity(folder, "member", &["127.0.0.1", "localhost"], &issuer)?,
            client: identity(folder, "client", &[], &issuer)?,
        })
    }
}

fn named(name: &str, hosts: &[&str]) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn identity(folder: &Path, name: &str, hosts: &[&str], issuer: &Issuer<'_, KeyPair>) -> Result<Identity, Error> {
    let key = KeyPair::generate()?;
    let mut params = named(name, hosts)?;
    // A member is its peers' client, and the client of its own HTTP gateway.
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let paths = Identity { cert: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
    fs::write(&paths.cert, params.signed_by(&key, issuer)?.pem())?;
    fs::write(&paths.key, key.serialize_pem())?;
    fs::set_permissions(&paths.key, fs::Permissions::from_mode(0o600))?;
    Ok(paths)
}
