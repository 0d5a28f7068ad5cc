//! Authentication: turned on and off, and users with roles. And etcdctl of the release that runs, which all this is typed into.

use std::time::{Duration, Instant};

use super::{Broken, Symptom, stage::Stage};
use crate::etcdctl::command;

const ROOT: &str = "root";
const PASSWORD: &str = "secret";
/// For so long the same command is typed again.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);
/// What says that an earlier attempt has had its effect.
const DONE_BEFORE: [&str; 4] =
    ["already exists", "already granted", "already enabled", "can only promote a learner member"];
/// What says that it has not: the learner is behind.
const NOT_YET: &str = "in sync with leader";

pub(super) async fn turn_on(stage: &mut Stage) -> Result<(), Broken> {
    if !stage.has_root {
        let user = format!("{ROOT}:{PASSWORD}");
        for words in [&["user", "add", &user][..], &["role", "add", ROOT], &["user", "grant-role", ROOT, ROOT]] {
            typed(stage, words).await?;
        }
        stage.has_root = true;
    }
    typed(stage, &["auth", "enable"]).await?;
    stage.log_in(Some((ROOT.into(), PASSWORD.into())));
    Ok(())
}

pub(super) async fn turn_off(stage: &mut Stage) -> Result<(), Broken> {
    typed(stage, &["auth", "disable"]).await?;
    stage.log_in(None);
    Ok(())
}

/// A user with a role of its own that may write some keys.
pub(super) async fn add(stage: &mut Stage) -> Result<(), Broken> {
    let number = stage.users.len();
    let ((user, password), role) = (account(number), role(number));
    typed(stage, &["user", "add", &format!("{user}:{password}")]).await?;
    typed(stage, &["role", "add", &role]).await?;
    typed(stage, &["role", "grant-permission", &role, "readwrite", "k/", "--prefix=true"]).await?;
    typed(stage, &["user", "grant-role", &user, &role]).await?;
    stage.users.push(0);
    Ok(())
}

/// The first user that was granted least may read and write some more keys.
pub(super) async fn grant(stage: &mut Stage) -> Result<(), Broken> {
    let Some((number, grants)) = stage.users.iter().copied().enumerate().min_by_key(|(_, grants)| *grants) else {
        return add(stage).await;
    };
    let more = granted(number, grants);
    typed(stage, &["role", "grant-permission", &role(number), "readwrite", &more]).await?;
    stage.users[number] += 1;
    Ok(())
}

/// The key that a user may read since it was granted more for the so-many-th time.
pub(super) fn granted(number: usize, grant: usize) -> String {
    format!("granted/{number}/{grant}")
}

fn role(number: usize) -> String {
    format!("role-{number}")
}

/// Name and password of a user that was added.
pub(super) fn account(number: usize) -> (String, String) {
    (format!("user-{number}"), PASSWORD.into())
}

/// Types it through one member after the other, until one does it.
pub(super) async fn typed(stage: &Stage, words: &[&str]) -> Result<String, Broken> {
    let began = Instant::now();
    let endpoints: Vec<_> = stage
        .standing()
        .into_iter()
        .map(|host| Ok(stage.member(host)?.client_url.clone()))
        .collect::<Result<_, Broken>>()?;
    for endpoint in endpoints.iter().cycle() {
        let said = once(stage, endpoint, words).await?;
        match said {
            Ok(text) => return Ok(text),
            Err(text) if DONE_BEFORE.iter().any(|words| text.contains(words)) && !text.contains(NOT_YET) => {
                return Ok(text);
            }
            Err(text) if began.elapsed() > LIMIT => {
                let text = format!("etcdctl {}: {}", words.join(" "), text.trim());
                return Err(Broken::new(Symptom::NotCarriedOut, text));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    Err(Broken::new(Symptom::NotCarriedOut, "nobody to ask"))
}

/// What etcdctl prints, or complains of.
pub(super) async fn once(stage: &Stage, endpoint: &str, words: &[&str]) -> Result<Result<String, String>, Broken> {
    let mut command = command(&stage.build()?.bin.join("etcdctl"), stage.layout(), &[endpoint.to_owned()]);
    let done = command.args(words).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) })
}
