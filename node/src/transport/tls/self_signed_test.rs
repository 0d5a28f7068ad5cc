use std::{
    fs::Permissions,
    net::Ipv4Addr,
    os::unix::fs::{PermissionsExt, chown, symlink},
};

use futures_util::StreamExt;
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

use super::{
    super::{ClientTls, ServerTls},
    *,
};
use crate::{
    config::PEER_TLS,
    host::{Address, Host, RealHost, tcp},
};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn settings(data_dir: &Path) -> TlsSettings {
    let hosts = vec!["127.0.0.1".to_owned(), "::1".to_owned(), "localhost".to_owned()];
    let own = SelfSigned { data_dir: data_dir.to_owned(), folder: "peer", hosts, years: 1 };
    TlsSettings { identity: Some(own.identity()), self_signed: Some(own), ..TlsSettings::default() }
}

fn made_at(settings: &TlsSettings, now: Duration) -> Result<(), String> {
    let (own, files) = (settings.self_signed.as_ref().unwrap(), settings.identity.as_ref().unwrap());
    Making { own, files, flag: "peer-auto-tls" }.where_needed(now).map_err(|error| error.to_string())
}

/// Certificate and key, as they are there.
fn there(settings: &TlsSettings) -> [Option<Vec<u8>>; 2] {
    let files = settings.identity.as_ref().unwrap();
    [&files.cert, &files.key].map(|path| fs::read(path).ok())
}

#[test]
fn a_certificate_is_the_member_s_alone_and_stays_until_it_has_ended() {
    let data = tempfile::tempdir().unwrap();
    let settings = settings(data.path());
    made_at(&settings, now()).unwrap();
    let first = there(&settings);
    let Identity { cert, key } = settings.identity.as_ref().unwrap();
    assert_eq!(*cert, data.path().join("fixtures/peer/cert.pem"));
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let folders = [cert.parent().unwrap(), &data.path().join("fixtures")].map(mode);
    assert_eq!((mode(cert), mode(key), folders), (0o600, 0o600, [0o700; 2]));
    let making =
        Making { own: settings.self_signed.as_ref().unwrap(), files: settings.identity.as_ref().unwrap(), flag: "" };
    let shown = making.usable(now()).unwrap();
    let shown = ParsedCertificate::try_from(&shown).unwrap();
    for host in ["127.0.0.1", "::1", "localhost"] {
        verify_server_name(&shown, &ServerName::try_from(host).unwrap()).unwrap();
    }
    for (days, stays) in [(0, true), (364, true), (366, false)] {
        made_at(&settings, now() + days * DAY).unwrap();
        assert_eq!(there(&settings) == first, stays, "{days} days later");
    }
}

/// A socket's "host" is the name of its file, whatever that is.
#[test]
fn a_certificate_is_for_what_can_be_a_name_alone() {
    let data = tempfile::tempdir().unwrap();
    let mut settings = settings(data.path());
    let name = |settings: &mut TlsSettings, hosts: &[&str]| {
        settings.self_signed.as_mut().unwrap().hosts = hosts.iter().map(ToString::to_string).collect();
    };
    let strange = ["", "m1.2379", "fe80::1%eth0", "m\u{e4}", "a b", "m1.sock", "127.0.0.1", "0.0.0.0"];
    name(&mut settings, &strange);
    made_at(&settings, now()).unwrap();
    let missing = |settings: &TlsSettings| {
        let making = Making {
            own: settings.self_signed.as_ref().unwrap(),
            files: settings.identity.as_ref().unwrap(),
            flag: "",
        };
        let shown = making.usable(now()).unwrap();
        making.missing_in(&shown).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(missing(&settings), [""; 0], "it is made, and a warning would help nobody");
    name(&mut settings, &[&strange[..], &["localhost", "::"]].concat());
    assert_eq!(missing(&settings), ["localhost"], "it was not there before");
}

/// Its disk or its limits may be at fault, and it may be good. Root can read everything, but not what is too large.
#[test]
fn what_cannot_be_read_is_not_replaced() {
    let data = tempfile::tempdir().unwrap();
    let settings = settings(data.path());
    let Identity { cert, key } = settings.identity.clone().unwrap();
    for path in [&cert, &key] {
        made_at(&settings, now()).unwrap();
        let whole = fs::read(path).unwrap();
        fs::write(path, [&whole[..], &[b'\n'; 1 << 20]].concat()).unwrap();
        let before = there(&settings);
        let error = made_at(&settings, now()).unwrap_err();
        assert!(error.contains(&format!("cannot read {}: it is no file of at most", path.display())), "{error}");
        assert!(there(&settings) == before);
        fs::write(path, whole).unwrap();
    }
}

#[test]
fn what_is_broken_is_made_again() {
    let data = tempfile::tempdir().unwrap();
    let settings = settings(data.path());
    let Identity { cert, key } = settings.identity.clone().unwrap();
    let half = |path: &Path| {
        let text = fs::read(path).unwrap();
        fs::write(path, &text[..text.len() / 2]).unwrap();
    };
    let breaks: [&dyn Fn(); 6] = [
        &|| half(&cert),
        &|| half(&key),
        &|| fs::write(&cert, "").unwrap(),
        &|| fs::remove_file(&cert).unwrap(),
        &|| fs::remove_file(&key).unwrap(),
        &|| fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap(),
    ];
    for (at, break_it) in breaks.iter().enumerate() {
        made_at(&settings, now()).unwrap();
        break_it();
        let broken = there(&settings);
        made_at(&settings, now()).unwrap();
        assert!(ServerTls::new(settings.clone(), PEER_TLS).is_ok(), "break {at}");
        assert!(there(&settings).iter().zip(&broken).all(|(now, before)| now != before), "break {at}: both are new");
    }
}

#[test]
fn what_another_may_have_put_there_is_neither_shown_nor_touched() {
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |data: &Path, name: &str| data.join("fixtures").join(name);
    let permit = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let link = |path: &Path, to: &Path| {
        fs::remove_dir_all(path).or_else(|_| fs::remove_file(path)).unwrap();
        symlink(to, path).unwrap();
    };
    let copied = elsewhere.path().join("key.pem");
    let moved = |data: &Path| {
        fs::copy(at(data, "peer/key.pem"), &copied).unwrap();
        permit(&copied, 0o600);
        link(&at(data, "peer/key.pem"), &copied);
    };
    type Spoil<'a> = Box<dyn Fn(&Path) + 'a>;
    let mut spoiled: Vec<(Spoil<'_>, &str)> = vec![
        (
            Box::new(|data: &Path| permit(&at(data, "peer/key.pem"), 0o640)),
            "peer/key.pem: other users may read or write it",
        ),
        (Box::new(|data: &Path| permit(&at(data, "peer/cert.pem"), 0o622)), "peer/cert.pem: other users may write it"),
        (Box::new(|data: &Path| permit(&at(data, "peer"), 0o777)), "peer: other users may write it"),
        (Box::new(|data: &Path| permit(&at(data, ""), 0o730)), "fixtures: other users may write it"),
        (Box::new(|data: &Path| link(&at(data, "peer"), elsewhere.path())), "peer: it is no folder, or a link to one"),
        (
            Box::new(|data: &Path| link(&data.join("fixtures"), elsewhere.path())),
            "fixtures: it is no folder, or a link to one",
        ),
        (Box::new(moved), "peer/key.pem: it is no regular file"),
    ];
    // Only root can give a file away.
    let foreign = |data: &Path| chown(at(data, "peer/cert.pem"), Some(1), None).unwrap();
    if rustix::process::geteuid().is_root() {
        spoiled.push((Box::new(foreign), "peer/cert.pem: it belongs to another user"));
    }
    for (spoil, words) in spoiled {
        let data = tempfile::tempdir().unwrap();
        let settings = settings(data.path());
        made_at(&settings, now()).unwrap();
        spoil(data.path());
        let before = there(&settings);
        // One that has ended would be replaced.
        let error = made_at(&settings, now() + 400 * DAY).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(there(&settings), before, "{words}");
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1, "nothing is written through a link");
}

#[test]
fn two_do_not_make_one_at_once() {
    let data = tempfile::tempdir().unwrap();
    let settings = settings(data.path());
    made_at(&settings, now()).unwrap();
    let held = disk::real(&data.path().join("fixtures/peer")).unwrap();
    held.lock().unwrap();
    assert!(made_at(&settings, now()).unwrap_err().contains("another process"));
    drop(held);
    made_at(&settings, now()).unwrap();
}

/// Whether a member with these settings comes to speak with one of those, by the name of its host.
async fn meet(called: &TlsSettings, calls: &TlsSettings) -> bool {
    let server = Arc::new(ServerTls::new(called.clone(), PEER_TLS).unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut secured = server.secure(tcp(listener, Arc::new(Semaphore::new(8))), 4);
    let taking = tokio::spawn(async move { secured.next().await.map(drop) });
    let client = Arc::new(ClientTls::new(calls.clone(), PEER_TLS).unwrap());
    let socket = RealHost::default()
        .connect(&Address::Tcp { host: address.ip().to_string(), port: address.port() })
        .await
        .unwrap();
    let shaken = timeout(Duration::from_secs(20), client.connect("127.0.0.1", socket)).await.unwrap();
    taking.abort();
    shaken.is_ok()
}

#[tokio::test]
async fn members_believe_each_other_and_others_believe_the_certificate_that_they_trust() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [one, other] = [&one, &other].map(|data| settings(data.path()));
    for settings in [&one, &other] {
        made_at(settings, now()).unwrap();
    }
    assert!(meet(&one, &other).await, "each with a certificate of its own");
    let trusting = |settings: &TlsSettings| {
        let trusted_ca = Some(settings.identity.as_ref().unwrap().cert.clone());
        TlsSettings { trusted_ca, ..TlsSettings::default() }
    };
    assert!(meet(&one, &trusting(&one)).await, "its certificate is trusted");
    assert!(!meet(&one, &trusting(&other)).await, "that of another member is trusted");
    let files = TlsSettings { self_signed: None, ..other.clone() };
    assert!(!meet(&one, &files).await, "who names files and no authority believes nobody");
}
