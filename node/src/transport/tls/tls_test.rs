use std::{net::Ipv4Addr, path::Path, sync::Arc, time::Duration};

use futures_util::StreamExt;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{CertificateRevocationListDer, pem::PemObject};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use super::{ClientTls, ServerTls};
use crate::{
    config::{Identity, PEER_TLS, TlsSettings},
    host::{Address, Host, RealHost, tcp},
};

fn authority(named: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, named);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), Issuer::new(params, key))
}

fn list(issuer: &Issuer<'_, KeyPair>) -> String {
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2024, 1, 1),
        next_update: date_time_ymd(2124, 1, 1),
        crl_number: 1.into(),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(issuer).unwrap().pem().unwrap()
}

/// The files of a member that an authority of this name vouches for.
fn files(folder: &Path, named: &str) -> (TlsSettings, Issuer<'static, KeyPair>) {
    let (ca, issuer) = authority(named);
    let key = KeyPair::generate().unwrap();
    let cert = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().signed_by(&key, &issuer).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let identity = Identity { cert: file("cert", cert.pem()), key: file("key", key.serialize_pem()) };
    let settings = TlsSettings { identity: Some(identity), trusted_ca: Some(file("ca", ca)), ..TlsSettings::default() };
    (settings, issuer)
}

#[tokio::test]
async fn who_begins_a_handshake_and_says_nothing_more_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, _) = files(folder.path(), "one");
    let server = Arc::new(ServerTls::new(settings.clone(), PEER_TLS).unwrap());
    let client = Arc::new(ClientTls::new(settings, PEER_TLS).unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut secured = server.secure(tcp(listener, Arc::new(Semaphore::new(8))), 4);
    let taking = tokio::spawn(async move { secured.next().await.unwrap().unwrap() });
    let mut silent = Vec::new();
    for _ in 0..40 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let _ = socket.write_all(b"\x16\x03\x01\x02\x00\x01").await;
        silent.push(socket);
    }
    let socket = RealHost::default()
        .connect(&Address::Tcp { host: address.ip().to_string(), port: address.port() })
        .await
        .unwrap();
    let shaken = timeout(Duration::from_secs(5), client.connect("127.0.0.1", socket)).await;
    assert!(shaken.expect("none of the silent ones is waited for").is_ok());
    drop(taking.await.unwrap());
}

#[test]
fn a_list_that_none_of_the_authorities_signed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, issuer) = files(folder.path(), "one");
    let (_, namesake) = authority("one");
    let (_, other) = authority("other");
    let path = folder.path().join("crl");
    let settings = TlsSettings { crl: Some(path.clone()), ..settings };
    for (issuer, is_taken) in [(&issuer, true), (&namesake, false), (&other, false)] {
        std::fs::write(&path, list(issuer)).unwrap();
        let server = ServerTls::new(settings.clone(), PEER_TLS);
        let why = server.err().map(|error| error.to_string());
        assert_eq!(why.is_none(), is_taken, "{why:?}");
        assert!(why.is_none_or(|why| why.contains("is signed by no authority in --peer-trusted-ca-file")));
    }
}

/// By OpenSSL 3, `ca -gencrl` without `crlnumber`.
const VERSION_1: &str = "\
-----BEGIN X509 CRL-----
MIGTMDwwCgYIKoZIzj0EAwIwDjEMMAoGA1UEAwwDb25lFw0yNjExMjYwMTMyMTha
GA8yMTI2MTEwMjAxMzIxOFowCgYIKoZIzj0EAwIDRwAwRAIgRKnIE9f6ahRtk5BR
R7h5FLd3B8ez/XODzQUuPFwqe1oCIDB1ChZSvtV+3T7oOFiaK9PXWQyc68B65GHH
o5ty1rk+
-----END X509 CRL-----
";

#[test]
fn a_file_that_holds_no_usable_list_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, issuer) = files(folder.path(), "one");
    let path = folder.path().join("crl");
    let settings = TlsSettings { crl: Some(path.clone()), ..settings };
    let good = CertificateRevocationListDer::from_pem_slice(list(&issuer).as_bytes()).unwrap().to_vec();
    for (bytes, words) in [
        (&b"\x17\x03 any bytes at all"[..], "cut off, damaged, or something else"),
        (&good[..good.len() / 2], "cut off, damaged, or something else"),
        (VERSION_1.as_bytes(), "it is of version 1"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        for why in [
            ServerTls::new(settings.clone(), PEER_TLS).err().map(|error| error.to_string()),
            ClientTls::new(settings.clone(), PEER_TLS).err().map(|error| error.to_string()),
        ] {
            let why = why.expect("refused");
            assert!(why.starts_with(&format!("--peer-crl-file: {} holds no usable", path.display())), "{why}");
            assert!(why.contains(words), "{why}");
        }
    }
}

#[test]
fn a_key_of_another_certificate_is_named_with_its_flag_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let (settings, _) = files(folder.path(), "one");
    let Identity { cert, key } = settings.identity.clone().unwrap();
    let strange = folder.path().join("strange");
    std::fs::write(&strange, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let unfit = Some(Identity { cert: cert.clone(), key: strange.clone() });
    for (own, of_client, flag, of) in [
        (unfit.clone(), None, "peer-key-file", "peer-cert-file"),
        (Some(Identity { cert: cert.clone(), key }), unfit, "peer-client-key-file", "peer-client-cert-file"),
    ] {
        let settings = TlsSettings { identity: own, client_identity: of_client, ..settings.clone() };
        let why = ClientTls::new(settings, PEER_TLS).err().unwrap().to_string();
        let names = format!("{} is not the key of {}, which --{of} names", strange.display(), cert.display());
        assert_eq!(why, format!("--{flag}: {names}"));
    }
}
