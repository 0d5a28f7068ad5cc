//! Somebody listens at an http URL that a member advertises, and notes every byte. No password and no token may be
//! among them. Of etcd alone: the bundled node has neither users nor TLS.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, OnceLock},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

use super::{lock, one, status, warnings};

const PASSWORD: &str = "S3cretPassw0rd";
/// The name of the metadata `token` as HTTP/2 writes it (RFC 7541, appendix B).
const TOKEN: [u8; 4] = [0x49, 0xfa, 0x96, 0xaf];

/// What was heard, connection by connection.
type Notes = Arc<Mutex<Vec<Vec<u8>>>>;

/// Passes what comes on to a member, once there is one, and keeps it.
struct Thief {
    url: String,
    notes: Notes,
    /// The member's port.
    member: Arc<OnceLock<u16>>,
    task: AbortHandle,
}

impl Thief {
    async fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (notes, member) = (Notes::default(), Arc::<OnceLock<u16>>::default());
        let (heard, to) = (notes.clone(), member.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let place = {
                    let mut heard = heard.lock().expect("whole");
                    heard.push(Vec::new());
                    heard.len() - 1
                };
                tokio::spawn(pass(client, to.get().copied(), heard.clone(), place));
            }
        });
        Self { url, notes, member, task: task.abort_handle() }
    }

    fn connections(&self) -> usize {
        self.notes.lock().expect("whole").len()
    }

    fn has_heard(&self, words: &[u8]) -> bool {
        let notes = self.notes.lock().expect("whole");
        notes.iter().any(|note| note.windows(words.len()).any(|window| window == words))
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that breaks is the two ends' matter.
async fn pass(client: TcpStream, member: Option<u16>, notes: Notes, place: usize) {
    let Ok(member) = TcpStream::connect((Ipv4Addr::LOCALHOST, member.unwrap_or_default())).await else { return };
    let ((mut said, mut heard), (mut answers, mut asked)) = (client.into_split(), member.into_split());
    let back = tokio::spawn(async move { copy(&mut answers, &mut heard).await });
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = said.read(&mut bytes).await {
        notes.lock().expect("whole")[place].extend_from_slice(&bytes[..length]);
        if asked.write_all(&bytes[..length]).await.is_err() {
            break;
        }
    }
    back.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tls_nobody_speaks_to_an_http_url_that_is_advertised() {
    let thief = Thief::new().await;
    let Some(mut case) = one("3.5", true, Some(&thief.url)).await else { return };
    lock(&mut case, PASSWORD).await;
    let agent = status(&case).await;
    agent.must_be(0, "looked");
    assert_eq!(agent.result.as_ref().expect("an object")["members"][0]["state"], "ready");
    assert!(warnings(&agent).contains(&format!("{} is not used", thief.url)), "{agent}");
    assert_eq!(thief.connections(), 0, "somebody came");
}

async fn no_secret_goes_to_a_url_that_the_playbook_does_not_list(version: &str) {
    let thief = Thief::new().await;
    let Some(mut case) = one(version, false, Some(&thief.url)).await else { return };
    thief.member.set(case.member(0).client_port).expect("set once");
    lock(&mut case, PASSWORD).await;
    let agent = status(&case).await;
    agent.must_be(0, "looked");
    assert_eq!(agent.result.as_ref().expect("an object")["members"][0]["state"], "ready", "{agent}");
    assert!(!thief.has_heard(PASSWORD.as_bytes()), "the password went over the wire");
    assert!(!thief.has_heard(&TOKEN), "a token went over the wire");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_goes_to_a_url_that_the_playbook_does_not_list_on_3_4() {
    no_secret_goes_to_a_url_that_the_playbook_does_not_list("3.4").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_goes_to_a_url_that_the_playbook_does_not_list_on_3_5() {
    no_secret_goes_to_a_url_that_the_playbook_does_not_list("3.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_goes_to_a_url_that_the_playbook_does_not_list_on_3_6() {
    no_secret_goes_to_a_url_that_the_playbook_does_not_list("3.6").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: 3.7 is built from source"]
async fn no_secret_goes_to_a_url_that_the_playbook_does_not_list_on_3_7() {
    no_secret_goes_to_a_url_that_the_playbook_does_not_list("3.7").await;
}
