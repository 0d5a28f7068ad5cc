//! The user's token: asked for once, kept, and renewed when a member does not know it any more.
//!
//! A token that any member gives is good on all of them at first: one password is checked, which is dear. A member
//! forgets all tokens when it restarts, and every token after a while without use; and members of 3.4 and 3.5 do not
//! take each other's. So a member that refuses a token is asked for one of its own. Source: etcd documentation, "Auth
//! design".

use std::{
    collections::{BTreeSet, HashMap},
    future::ready,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex as Lock, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use proto::etcdserverpb::{AuthenticateRequest, auth_client::AuthClient};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep, timeout},
};
use tonic::{
    Code, Status,
    metadata::{Ascii, MetadataValue},
};

use super::{
    access::CALL,
    error::{CallError, ObserveError},
    line::Line,
    secret_file::read,
};
use crate::{playbook::cluster::Auth, words::said};

/// How long nobody is asked again after nobody could be asked, as a token needs a quorum, or after a refusal: a password is
/// dear to check.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a member has for itself before the next is asked too: a password is dear to check, so all are not asked at
/// once.
const HEAD_START: Duration = Duration::from_millis(250);

/// Who we are to the cluster.
#[derive(Debug)]
pub(super) struct Login {
    user: Option<Arc<Credentials>>,
    session: Mutex<Session>,
    /// By address: what was given there, a token or a refusal, after another's token had been refused. A call waits for
    /// nobody but who is asked for the token that it needs.
    own: Lock<HashMap<String, Arc<Mutex<Session>>>>,
}

type Token = MetadataValue<Ascii>;

struct Credentials {
    name: String,
    password_file: PathBuf,
    /// As it was last read: the file may be changed while a run is under way.
    password: Lock<String>,
}

#[derive(Debug, Default)]
enum Session {
    #[default]
    NotYet,
    Token(Token),
    /// The cluster has auth switched off.
    NotNeeded,
    /// Nobody who answers takes the user or the password, in their words, since then.
    Refused(String, Instant),
    NoAnswer(Instant),
}

impl Login {
    pub(super) fn new(auth: Option<&Auth>) -> Result<Self, ObserveError> {
        let user = auth.map(Credentials::read).transpose()?.map(Arc::new);
        Ok(Self { user, session: Mutex::default(), own: Lock::default() })
    }

    /// The same user, without a token yet.
    pub(super) fn anew(&self) -> Self {
        Self { user: self.user.clone(), session: Mutex::default(), own: Lock::default() }
    }

    /// Whether there is a user at all.
    pub(super) fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// Gets a token unless there is one.
    pub(super) async fn check<F>(&self, lines: impl FnOnce() -> Vec<F>) -> Result<(), ObserveError>
    where
        F: Future<Output = Result<Arc<Line>, CallError>>,
    {
        let Some(user) = &self.user else { return Ok(()) };
        let mut session = self.session.lock().await;
        let is_refused = session.is_refused();
        if !is_refused && !matches!(*session, Session::Token(_) | Session::NotNeeded) {
            *session = authenticate(user, lines()).await;
        }
        match &*session {
            Session::Refused(reason, _) => Err(ObserveError::Auth { user: user.name.clone(), reason: reason.clone() }),
            _ => Ok(()),
        }
    }

    /// The token for calls to this address, if there is one or one can be had.
    pub(super) async fn token<F>(&self, address: &str, lines: impl FnOnce() -> Vec<F>) -> Option<Token>
    where
        F: Future<Output = Result<Arc<Line>, CallError>>,
    {
        let user = self.user.as_ref()?;
        if let Some(own) = self.own(address).lock().await.token() {
            return Some(own);
        }
        let mut session = self.session.lock().await;
        let ask = match &*session {
            Session::NotYet => true,
            Session::NoAnswer(since) => since.elapsed() > PAUSE,
            Session::Token(_) | Session::NotNeeded | Session::Refused(..) => false,
        };
        if ask {
            *session = authenticate(user, lines()).await;
        }
        session.token()
    }

    /// The user's name, once the cluster has given it a token.
    pub(super) async fn user_with_token(&self) -> Option<String> {
        let user = self.user.as_ref()?;
        self.session.lock().await.token().map(|_| user.name.clone())
    }

    /// Whether a call was refused for its token alone.
    pub(super) fn wants_renewal(&self, status: &Status) -> bool {
        self.user.is_some()
            && match status.code() {
                Code::Unauthenticated => true,
                // "revision of auth store is old" after a change of users, "user name is empty" without a token.
                Code::InvalidArgument => {
                    status.message() == "etcdserver: revision of auth store is old"
                        || status.message() == "etcdserver: user name is empty"
                }
                _ => false,
            }
    }

    /// A token that whoever is at the other end gives itself, instead of `refused`; of calls refused side by side, the
    /// first renews it for all.
    pub(super) async fn renew(&self, line: &Arc<Line>, refused: Option<Token>) -> Option<Token> {
        let user = self.user.as_ref()?;
        let own = self.own(&line.address);
        let mut own = own.lock().await;
        let is_refused = own.is_refused() || self.session.lock().await.is_refused();
        if !is_refused && (own.token().is_none() || own.token() == refused) {
            *own = authenticate(user, vec![ready(Ok(Arc::clone(line)))]).await;
            let mut session = self.session.lock().await;
            match (&*own, &*session) {
                // The whole cluster says so.
                (Session::NotNeeded, _) => *session = Session::NotNeeded,
                (Session::Refused(words, since), Session::Refused(..)) => {
                    *session = Session::Refused(words.clone(), *since);
                }
                // One says so: the next call asks the others too.
                (Session::Refused(..), _) => *session = Session::NotYet,
                _ => {}
            }
        }
        own.token()
    }

    /// Lets go of the tokens of other addresses than these.
    pub(super) fn forget_others(&self, known: &BTreeSet<String>) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).retain(|address, _| known.contains(address));
    }

    /// Nothing panics with the lock held, so what a poisoned lock guards is whole.
    fn own(&self, address: &str) -> Arc<Mutex<Session>> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(own.entry(address.to_owned()).or_default())
    }
}

impl Session {
    /// Whether the cluster refused the user a moment ago.
    fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_, since) if since.elapsed() < PAUSE)
    }

    fn token(&self) -> Option<Token> {
        match self {
            Self::Token(token) => Some(token.clone()),
            _ => None,
        }
    }
}

impl Credentials {
    fn read(auth: &Auth) -> Result<Self, ObserveError> {
        let password = Lock::new(first_line(&auth.password_file)?);
        Ok(Self { name: auth.user.clone(), password_file: auth.password_file.clone(), password })
    }

    /// The password as the file has it now; where it cannot be read, or is empty, as it had it before.
    fn password(&self) -> String {
        let mut password = self.password.lock().unwrap_or_else(PoisonError::into_inner);
        match first_line(&self.password_file) {
            Ok(now) if !now.is_empty() => *password = now,
            Ok(_) => {}
            Err(error) => {
                let error = &error as &(dyn std::error::Error + 'static);
                tracing::warn!(error, "the password is used as it was read before");
            }
        }
        password.clone()
    }
}

fn first_line(path: &Path) -> Result<String, ObserveError> {
    let no_text = |_| ObserveError::File { path: path.to_owned(), source: io::ErrorKind::InvalidData.into() };
    let text = String::from_utf8(read(path)?).map_err(no_text)?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", self.name)
    }
}

/// Asks all members, each a little after the one before, so that a dead one costs little. The first who gives a token
/// decides; a refusal is one member's, and counts where nobody gives one.
async fn authenticate<F>(user: &Credentials, lines: Vec<F>) -> Session
where
    F: Future<Output = Result<Arc<Line>, CallError>>,
{
    let mut asked = FuturesUnordered::new();
    for (line, head_start) in lines.into_iter().zip((0..).map(|place| HEAD_START * place)) {
        asked.push(async move {
            sleep(head_start).await;
            let line = line.await.inspect_err(|why| tracing::debug!(%why, "no login there")).ok()?;
            let request = AuthenticateRequest { name: user.name.clone(), password: user.password() };
            let answer = timeout(CALL, AuthClient::new(line.channel.clone()).authenticate(request)).await.ok()?;
            Some((line, answer))
        });
    }
    let mut refused = Vec::new();
    while let Some(answer) = asked.next().await {
        let Some((line, answer)) = answer else { continue };
        let said = match answer {
            Ok(response) => response.into_inner().token.parse().ok().map(Session::Token),
            Err(status) => refusal(&line.address, &status),
        };
        match said {
            Some(Session::Refused(words, _)) => refused.push(words),
            Some(session) => return session,
            None => {}
        }
    }
    match refused.is_empty() {
        true => Session::NoAnswer(Instant::now()),
        false => Session::Refused(refused.join("; "), Instant::now()),
    }
}

/// What an error says of the user, if anything.
fn refusal(address: &str, status: &Status) -> Option<Session> {
    match status.code() {
        Code::FailedPrecondition if status.message() == "etcdserver: authentication is not enabled" => {
            Some(Session::NotNeeded)
        }
        Code::InvalidArgument | Code::PermissionDenied | Code::Unauthenticated => {
            Some(Session::Refused(format!("{address} says: {}", said(status.message())), Instant::now()))
        }
        // Among them FailedPrecondition, which speaks for this one member: a learner takes no logins.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_that_was_changed_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let password_file = folder.path().join("password");
        let write = |text: &[u8]| fs::write(&password_file, text).unwrap();
        write(b"first\nsecond\n");
        let user = Credentials::read(&Auth { user: "root".into(), password_file: password_file.clone() }).unwrap();
        assert_eq!(user.password(), "first");
        write(b"newer\n");
        assert_eq!(user.password(), "newer");
        for half_written in [b"".as_slice(), b"\n", b"\xff\n"] {
            write(half_written);
            assert_eq!(user.password(), "newer");
        }
        fs::remove_file(&password_file).unwrap();
        assert_eq!(user.password(), "newer");
    }

    #[test]
    fn only_words_on_user_and_password_are_a_refusal() {
        for (code, words, refused) in [
            (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password", true),
            (Code::FailedPrecondition, "etcdserver: rpc not supported for learner", false),
            (Code::FailedPrecondition, "etcdserver: not capable", false),
            (Code::Unavailable, "etcdserver: no leader", false),
        ] {
            let found = refusal("http://m1", &Status::new(code, words));
            assert_eq!(matches!(found, Some(Session::Refused(..))), refused, "{words}");
        }
        let off =
            refusal("http://m1", &Status::new(Code::FailedPrecondition, "etcdserver: authentication is not enabled"));
        assert!(matches!(off, Some(Session::NotNeeded)));
    }
}
