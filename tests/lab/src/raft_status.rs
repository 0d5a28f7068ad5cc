//! What a refusal must leave as it was: processes, executables and links of every member, and the keys
//! that agents share.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use serde_json::Value;

use crate::{Error, agent::Agent, cluster::Layout, process::Process, wait};

/// Where agents keep their keys.
pub const PREFIX: &str = "/baton/";

/// How long one member may take to answer before another is asked: one that is frozen never does.
const ANSWER: Duration = Duration::from_secs(2);

/// How a cluster stands, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaftStatus {
    /// Each member's process, the file it runs and where its symlink points.
    pub members: BTreeMap<String, (Option<i32>, Option<PathBuf>, PathBuf)>,
    pub keys: BTreeMap<String, Value>,
}

impl RaftStatus {
    /// How it stands now; asked through the first member that answers.
    ///
    /// # Errors
    /// A link cannot be read, or no member answers.
    pub async fn of(layout: &Layout) -> Result<Self, Error> {
        let mut members = BTreeMap::new();
        for member in &layout.members {
            let process = member.process();
            let runs = process.as_ref().and_then(Process::executable);
            let link = fs::read_link(member.binary())?;
            members.insert(member.name.clone(), (process.map(|process| process.pid), runs, link));
        }
        Ok(Self { members, keys: keys(layout).await? })
    }
}

/// The keys that agents share, by name.
///
/// # Errors
/// No member answers within [`wait::GENEROUS`].
pub async fn keys(layout: &Layout) -> Result<BTreeMap<String, Value>, Error> {
    let clients = layout.members.iter().map(|member| layout.client(member)).collect::<Result<Vec<_>, _>>()?;
    let told = wait::until("a member to say which keys agents share", wait::GENEROUS, || async {
        let mut last = "no members".to_owned();
        for client in &clients {
            match tokio::time::timeout(ANSWER, client.under(PREFIX)).await {
                Ok(Ok(found)) => return Ok(found.iter().map(named).collect()),
                Ok(Err(status)) => last = status.to_string(),
                Err(elapsed) => last = elapsed.to_string(),
            }
        }
        Err(last)
    });
    Ok(told.await?)
}

fn named(kv: &proto::mvccpb::KeyValue) -> (String, Value) {
    let name = String::from_utf8_lossy(&kv.key).trim_start_matches(PREFIX).to_owned();
    (name, serde_json::from_slice(&kv.value).unwrap_or(Value::Null))
}

/// Whether this key, `baton` or `down`, was put by this agent.
pub fn is_of(key: Option<&Value>, agent: &Agent) -> bool {
    key.is_some_and(|value| value["process"]["pid"] == agent.pid())
}
