//! A member's own certificates, before it is stopped: whether the Go in its new executable refuses what the one before takes, and whether
//! they are valid. A connection outlives the certificate that it was made with, and a member that was restarted has to make new ones
//! (etcd's documentation, "Transport security model"). How each program was built it says itself (`host/program/go_build.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    error::ActError,
    lost_settings::{GODEBUG, config_file},
    node::{OwnNode, Side},
};
use crate::{
    calendar::rfc3339,
    host::{
        blocking::blocking,
        files::{
            certificate::{self, Certificates, Fault, Purpose},
            etcd_config,
        },
        program::go_build::{GoBuild, Refused},
        runtime::same_node::value,
    },
    regular_file,
};

/// What is known of one that is not valid.
const NOT_VALID: &str = "certificate-not-valid";
/// One that ends sooner is spoken of.
const SOON: Duration = Duration::from_secs(24 * 3600);
const MAX_FILE: usize = 1024 * 1024;

/// The flags that name certificates, and what for. With `peer-` before it each is for members among themselves.
const FLAGS: [(&str, Purpose); 3] =
    [("cert-file", Purpose::Server), ("client-cert-file", Purpose::Client), (AUTHORITIES, Purpose::Authorities)];

/// A flag that ends so names a certificate, and one that ends so its key.
const CERTIFICATE: &str = "cert-file";
const KEY: &str = "key-file";
const AUTHORITIES: &str = "trusted-ca-file";
const PEERS: &str = "peer-transport-security";

/// Where the keys of [`FLAGS`] lie in the configuration file, what stands before the flag of the same meaning, and which URLs they are for:
/// without one of TLS etcd does not look at them.
const PARTS: [(&str, &str, &[&str]); 2] = [
    ("client-transport-security", "", &["listen-client-urls", "listen-client-http-urls", "listen-metrics-urls"]),
    (PEERS, "peer-", &["listen-peer-urls", "initial-advertise-peer-urls"]),
];

/// The entry of the catalogue, and which Go refuses it. Source: Go's release notes, 1.18, 1.23 and 1.24.
const fn known(fault: Fault) -> (&'static str, Refused) {
    const FOR_EVER: u32 = u32::MAX;
    match fault {
        Fault::NoNames => ("tls-cn-only", Refused { since: 15, unless: Some(("x509ignoreCN", "0", 17)) }),
        Fault::Sha1 => ("tls-118", Refused { since: 18, unless: Some(("x509sha1", "1", 24)) }),
        Fault::NegativeSerial => {
            ("tls-123", Refused { since: 23, unless: Some(("x509negativeserial", "1", FOR_EVER)) })
        }
        Fault::ShortKey => ("tls-124", Refused { since: 24, unless: Some(("rsa1024min", "0", FOR_EVER)) }),
    }
}

/// A certificate file of a member's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// How it is given: `--cert-file`, ``ETCD_CERT_FILE``.
    by: String,
    path: PathBuf,
    purpose: Purpose,
    /// Its key, and how that is given.
    key: Option<(String, PathBuf)>,
    /// Whom members know each other by: one that shows what they did not sign would be alone.
    authorities: Option<PathBuf>,
}

impl OwnNode {
    /// Refuses a start with a certificate that is not valid, or that the new executable refuses and the one before does not; gives what is
    /// to be known all the same.
    ///
    /// # Errors
    /// Which file, where the playbook does not accept it.
    pub(super) async fn check_certificates(
        &self,
        (old, new): (&Side, &Side),
        accepted: &BTreeSet<String>,
    ) -> Result<Vec<String>, ActError> {
        let (environment, named) = (self.variables(new).await?, self.certificates(new).await?);
        let builds = [old, new].map(|side| side.executable.clone());
        let found = blocking(move || {
            let [before, after] = builds.map(|executable| executable.and_then(|path| GoBuild::of(&path)));
            let read = |one: Named| (certificate::read(&one.path, one.purpose), wrong_key(&one), unknown(&one), one);
            (before, after, named.into_iter().map(read).collect::<Vec<_>>())
        });
        let (before, after, read) = found.await;
        let settings = environment.get(GODEBUG).map(String::as_str);
        let mut told = Vec::new();
        for (read, wrong_key, unknown, Named { by, path, .. }) in read {
            let its = format!("{by} {}", path.display());
            // A member would not start with it either.
            let unfit = read.as_ref().err().map(|why| format!("{its} cannot be used: {why}")).or(wrong_key);
            let (Ok(read), None) = (read, &unfit) else {
                if accepted.contains(NOT_VALID) {
                    continue;
                }
                let shown = format!(", whose {}", unfit.unwrap_or_default());
                return Err(ActError::KnownHazard { node: self.node.name.clone(), id: NOT_VALID, shown });
            };
            match objection(&read, (before.as_ref(), after.as_ref()), settings, SystemTime::now()) {
                Objection::Refuse(id, why) if !accepted.contains(id) => {
                    let shown = format!(", whose {its} {why}");
                    return Err(ActError::KnownHazard { node: self.node.name.clone(), id, shown });
                }
                _ if unknown.is_some() && !accepted.contains(NOT_VALID) => {
                    let shown = format!(", whose {its} {}", unknown.unwrap_or_default());
                    return Err(ActError::KnownHazard { node: self.node.name.clone(), id: NOT_VALID, shown });
                }
                Objection::Tell(why) => told.push(format!("{}: its {its} {why}", self.node.name)),
                Objection::None | Objection::Refuse(..) => {}
            }
        }
        Ok(told)
    }

    async fn certificates(&self, side: &Side) -> Result<Vec<Named>, ActError> {
        let arguments = self.arguments(side).await?.unwrap_or_default();
        let variables = self.variables(side).await?;
        let read = |path: &Path| {
            let path = self.put_for(&self.cwd().join(path), side).ok()?;
            regular_file::read(&path, MAX_FILE).ok()
        };
        let mut named = named(&arguments, &variables, read);
        for one in &mut named {
            one.path = self.put_for(&self.cwd().join(&one.path), side)?;
            if let Some((_, key)) = &mut one.key {
                *key = self.put_for(&self.cwd().join(&*key), side)?;
            }
            if let Some(authorities) = &mut one.authorities {
                *authorities = self.put_for(&self.cwd().join(&*authorities), side)?;
            }
            // Of a unit a relative one lies in a folder that is not known here.
            one.key.take_if(|(_, key)| key.is_relative());
            one.authorities.take_if(|authorities| authorities.is_relative());
        }
        named.retain(|one| one.path.is_absolute());
        Ok(named)
    }
}

fn named(
    arguments: &[String],
    variables: &BTreeMap<String, String>,
    read: impl Fn(&Path) -> Option<Vec<u8>>,
) -> Vec<Named> {
    // With a file that alone counts.
    let settings = config_file(arguments, variables)
        .map(|file| etcd_config::settings(&read(Path::new(file)).unwrap_or_default()).unwrap_or_default());
    // In the configuration file a part may lie around it.
    let given = |part: Option<&str>, before: &str, key: &str| {
        let (by, path) = match &settings {
            Some(settings) => {
                let by = part.map_or_else(|| format!("`{key}`"), |part| format!("`{part}.{key}`"));
                let within = match part {
                    Some(part) => settings.get(part)?.as_mapping()?,
                    None => settings,
                };
                (by, within.get(key)?.as_str()?)
            }
            None => {
                let flag = format!("{before}{key}");
                let variable = format!("ETCD_{}", flag.to_uppercase().replace('-', "_"));
                match value(arguments, &flag) {
                    Some(path) => (format!("`--{flag}`"), path),
                    None => (format!("`{variable}`"), variables.get(&variable)?.as_str()),
                }
            }
        };
        (!path.is_empty()).then(|| (by, path.to_owned()))
    };
    let is_by_tls = |url: &&str| given(None, "", url).is_some_and(|(_, urls)| urls.to_lowercase().contains("https://"));
    let parts = PARTS.into_iter().filter(|(_, _, urls)| urls.iter().any(is_by_tls));
    let all = parts.flat_map(|(part, before, _)| FLAGS.map(|flag| (part, before, flag)));
    let named = all.filter_map(|(part, before, (certificate, purpose))| {
        let (by, path) = given(Some(part), before, certificate)?;
        let key = certificate.ends_with(CERTIFICATE).then(|| certificate.replace(CERTIFICATE, KEY));
        let key = key.and_then(|key| given(Some(part), before, &key)).map(|(by, path)| (by, path.into()));
        let is_shown_to_members = part == PEERS && purpose != Purpose::Authorities;
        let authorities = given(Some(part), before, AUTHORITIES).filter(|_| is_shown_to_members);
        let authorities = authorities.map(|(_, path)| path.into());
        Some(Named { by, path: path.into(), purpose, key, authorities })
    });
    named.collect()
}

fn unknown(named: &Named) -> Option<String> {
    certificate::check_authority(&named.path, named.authorities.as_ref()?).err()
}

/// What is wrong with its key, if anything is.
fn wrong_key(named: &Named) -> Option<String> {
    let (by, key) = named.key.as_ref()?;
    let why = certificate::check_key(&named.path, key).err()?;
    Some(format!("{by} {} cannot be used: {why}", key.display()))
}

/// What is to be said of a file.
#[derive(Debug, PartialEq, Eq)]
enum Objection {
    None,
    Tell(String),
    /// By this entry of the catalogue.
    Refuse(&'static str, String),
}

fn objection(
    found: &Certificates,
    (before, after): (Option<&GoBuild>, Option<&GoBuild>),
    environment: Option<&str>,
    now: SystemTime,
) -> Objection {
    let refuses = |build: Option<&GoBuild>, what| build.is_some_and(|build| build.refuses(what, environment));
    let mut refused = found.faults.iter().filter(|fault| {
        let (_, what) = known(**fault);
        refuses(after, what) && !refuses(before, what)
    });
    if let Some(fault) = refused.next() {
        return Objection::Refuse(known(*fault).0, in_words(*fault).to_owned());
    }
    match found.valid {
        Some((from, _)) if now < from => {
            Objection::Refuse(NOT_VALID, format!("is valid from {} only, by this host's clock", rfc3339(from)))
        }
        Some((_, end)) if end <= now => Objection::Refuse(NOT_VALID, format!("ended at {}", rfc3339(end))),
        Some((_, end)) if end <= now + SOON => {
            Objection::Tell(format!("ends at {}: renew it, members read the new one by themselves", rfc3339(end)))
        }
        _ => Objection::None,
    }
}

fn in_words(fault: Fault) -> &'static str {
    match fault {
        Fault::NoNames => "has no subject alternative name",
        Fault::Sha1 => "is signed by SHA-1",
        Fault::NegativeSerial => "has a negative serial number",
        Fault::ShortKey => "has an RSA key below 1024 bits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_found_however_they_are_given() {
        let yaml = "name: m1\nname: m2\nListen-Client-Urls: HTTPS://:2379\nlisten-peer-urls: https://:2380\nclient-transport-security:\n  cert-file: /c\n  client-cert-auth: true\npeer-transport-security:\n  trusted-ca-file: /p\n  cert-file: ''\n";
        let tls = "--listen-client-urls=http://127.0.0.1:1,https://:2379 --listen-peer-urls https://:2380";
        for (arguments, variables, expected) in [
            ("--name m1", &[][..], ""),
            ("--listen-client-urls=http://:2379 --listen-peer-urls=http://:2380", &[], ""), // nobody looks at them
            (
                "--listen-metrics-urls=https://:1 --listen-client-urls=http://:2379 --listen-peer-urls=http://:1",
                &[],
                "`--cert-file` /only",
            ),
            ("--cert-file /a --peer-cert-file=/b", &[], "`--cert-file` /a; `--peer-cert-file` /b"),
            ("--cert-file /a", &[("ETCD_CERT_FILE", "/z")], "`--cert-file` /a"),
            ("--peer-cert-file=/b --peer-key-file /k", &[], "`--peer-cert-file` /b with `--peer-key-file` /k"),
            ("--cert-file=/b", &[("ETCD_KEY_FILE", "/k")], "`--cert-file` /b with `ETCD_KEY_FILE` /k"),
            ("", &[("ETCD_PEER_TRUSTED_CA_FILE", "/z")], "`ETCD_PEER_TRUSTED_CA_FILE` /z"),
            (
                "--config-file /f --cert-file /a",
                &[],
                "`client-transport-security.cert-file` /c; `peer-transport-security.trusted-ca-file` /p",
            ),
            ("--config-file /gone --cert-file /a", &[], ""),
        ] {
            let arguments = match arguments.contains("listen") {
                true => format!("--cert-file /only --peer-cert-file /no {arguments}"),
                false => format!("{tls} {arguments}"),
            };
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let read = |path: &Path| (path == Path::new("/f")).then(|| yaml.as_bytes().to_vec());
            let found = named(&arguments, &variables, read);
            let text = |one: &Named| {
                let key = one.key.as_ref().map(|(by, key)| format!(" with {by} {}", key.display()));
                format!("{} {}{}", one.by, one.path.display(), key.unwrap_or_default())
            };
            assert_eq!(found.iter().map(text).collect::<Vec<_>>().join("; "), expected, "{arguments:?}");
        }
    }

    #[test]
    fn only_what_the_new_one_refuses_and_the_old_one_takes_is_refused() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let build = |minor| GoBuild::with(minor, "");
        let found = |faults: &[Fault]| Certificates { faults: faults.iter().copied().collect(), valid: None };
        for (faults, before, after, environment, expected) in [
            (&[][..], Some(build(19)), Some(build(26)), None, None),
            (&[Fault::ShortKey], Some(build(19)), Some(build(26)), None, Some("tls-124")),
            (&[Fault::ShortKey], Some(build(19)), Some(build(26)), Some("rsa1024min=0"), None),
            (&[Fault::ShortKey], Some(build(25)), Some(build(26)), None, None), // it is refused by now
            (&[Fault::ShortKey], Some(build(19)), Some(GoBuild::with(26, "rsa1024min=0")), None, None),
            (&[Fault::NegativeSerial], Some(build(22)), Some(build(23)), None, Some("tls-123")),
            (&[Fault::Sha1], None, Some(build(19)), None, Some("tls-118")), // so old that it does not say
            (&[Fault::Sha1], Some(build(19)), Some(build(26)), None, None),
            (&[Fault::NoNames], None, Some(build(18)), Some("x509ignoreCN=0"), Some("tls-cn-only")),
            (&[Fault::NoNames, Fault::Sha1], Some(build(19)), None, None, None), // the bundled node
        ] {
            let objection = objection(&found(faults), (before.as_ref(), after.as_ref()), environment, at(0));
            let id = match objection {
                Objection::Refuse(id, _) => Some(id),
                _ => None,
            };
            assert_eq!(id, expected, "{faults:?}: {before:?} to {after:?}");
        }
        const DAY: u64 = 24 * 3600;
        for (now, expected) in [(9, "refuse"), (10, "none"), (9 * DAY + 1, "tell"), (10 * DAY, "refuse")] {
            let valid = Certificates { faults: BTreeSet::new(), valid: Some((at(10), at(10 * DAY))) };
            let said = match objection(&valid, (None, None), None, at(now)) {
                Objection::None => "none",
                Objection::Tell(_) => "tell",
                Objection::Refuse(id, _) => {
                    assert_eq!(id, NOT_VALID);
                    "refuse"
                }
            };
            assert_eq!(said, expected, "at {now}");
        }
    }
}
