//! Certificates that do not fit, and what is typed instead of a playbook. Of etcd: what the node says stands in its own tests.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;
use tests::{agent, case::Case, certificates::Certificates, wait};

use super::{lock, one};

fn typed(endpoint: &str, more: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(agent::executable().expect("an agent"));
    command.args(["status", "--output", "json", "--endpoints", endpoint]);
    for (flag, file) in more {
        command.arg(flag).arg(file);
    }
    command
}

fn ended(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("it ran");
    let result: Value = serde_json::from_slice(&stdout).unwrap_or_default();
    let text = |field: &str| result[field].as_str().unwrap_or_default().to_owned();
    (status.code(), text("reason"), text("message") + &String::from_utf8_lossy(&stderr))
}

/// What a handshake shows is looked for within a second: a member that is slower is asked again.
const TRIES: usize = 5;

/// Must end so, with these words.
#[track_caller]
fn is(mut command: Command, exit: i32, reason: &str, words: &str) {
    let mut outcomes = (0..TRIES).map(|_| ended(&mut command));
    let is_slow = |(_, why, _): &(Option<i32>, String, String)| why == "unreachable" && why != reason;
    let (found, why, said) = outcomes.find(|ended| !is_slow(ended)).unwrap_or_else(|| ended(&mut command));
    assert_eq!((found, why.as_str()), (Some(exit), reason), "{said}");
    assert!(said.contains(words), "{said}");
}

fn files(case: &Case) -> Certificates {
    case.layout().certificates.clone().expect("TLS")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_certificate_is_said_and_is_no_silence() {
    let Some(case) = one("3.6", true, None).await else { return };
    let (own, other) = (files(&case), Certificates::create(&case.layout().dir.join("other")).expect("made"));
    let https = case.member(0).client_url.clone();
    let http = https.replace("https", "http");
    let with = |ca: &Certificates, of: &Certificates| {
        let (cert, key) = (of.client.cert.clone(), of.client.key.clone());
        typed(&https, &[("--ca", ca.ca.as_path()), ("--cert", cert.as_path()), ("--key", key.as_path())])
    };
    is(with(&own, &own), 0, "looked", "");
    is(with(&other, &own), 3, "credentials", "its certificate is not signed by an authority in `cluster.tls.ca`");
    is(with(&own, &other), 3, "credentials", "it does not take the agent's certificate");
    is(typed(&https, &[("--ca", &own.ca)]), 3, "credentials", "it wants a certificate of the agent");
    is(typed(&http, &[]), 3, "credentials", "it speaks TLS");
    let elsewhere = https.replace("127.0.0.1", "127.0.0.2");
    // Nobody listens there: with one that is silent it is no longer the files alone.
    is(typed(&format!("{https},{elsewhere}"), &[("--ca", &other.ca)]), 3, "unreachable", "is not signed by");
    is(typed(&http, &[("--ca", &own.ca)]), 2, "usage", "certificates are for https");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_tls_is_said_to_have_none() {
    let Some(case) = one("3.6", false, None).await else { return };
    let other = Certificates::create(&case.layout().dir.join("other")).expect("made");
    let https = case.member(0).client_url.replace("http", "https");
    is(typed(&https, &[("--ca", &other.ca)]), 3, "credentials", "it speaks plain http, not TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_without_a_playbook_takes_certificates_and_a_user() {
    let Some(mut case) = one("3.6", true, None).await else { return };
    let password = lock(&mut case, "secret").await;
    let (own, https) = (files(&case), case.member(0).client_url.clone());
    let look = |file: &Path| {
        let (cert, key) = (own.client.cert.as_path(), own.client.key.as_path());
        let mut command =
            typed(&https, &[("--ca", &own.ca), ("--cert", cert), ("--key", key), ("--password-file", file)]);
        command.args(["--user", "root"]);
        command
    };
    is(look(&password), 0, "looked", "");
    let wrong = case.layout().dir.join("wrong");
    fs::write(&wrong, "guess\n").expect("written");
    is(look(&wrong), 3, "auth_refused", "root");
    is(look(&case.layout().dir.join("missing")), 3, "credentials", "missing");
}

/// A process of the test's own; it ends with the value.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An authority that is renewed while the agent runs: it goes on with the new one, in the same process.
#[tokio::test(flavor = "multi_thread")]
async fn renewed_files_are_used_by_an_agent_that_runs() {
    let Some(case) = one("3.6", true, None).await else { return };
    let (own, dir) = (files(&case), case.layout().dir.clone());
    let other = Certificates::create(&dir.join("other")).expect("made");
    let (ca, seen) = (dir.join("ca.pem"), dir.join("seen.json"));
    fs::copy(&other.ca, &ca).expect("copied");
    let (cert, key) = (own.client.cert.as_path(), own.client.key.as_path());
    let mut command = typed(&case.member(0).client_url, &[("--ca", &ca), ("--cert", cert), ("--key", key)]);
    command.arg("--watch").stdout(fs::File::create(&seen).expect("made")).stderr(Stdio::null());
    let _watching = Watching(command.spawn().expect("started"));
    let until = |reason: &'static str| {
        let seen = &seen;
        wait::until(reason, wait::GENEROUS, move || async move {
            let text = fs::read_to_string(seen).map_err(|error| error.to_string())?;
            let last = text.lines().last().unwrap_or_default();
            last.contains(&format!("\"reason\":\"{reason}\"")).then_some(()).ok_or_else(|| last.to_owned())
        })
    };
    until("credentials").await.expect("the authority is another one");
    fs::copy(&own.ca, &ca).expect("copied");
    until("looked").await.expect("the authority is the members'");
}
