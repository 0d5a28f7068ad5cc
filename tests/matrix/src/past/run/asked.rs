//! What the agent says of a hop beforehand: `agent plan` on every host, which touches nothing.
//!
//! It is asked before each hop. Where a plan fails before the first, the cluster that it has broken is what an agent would find.

use std::{collections::BTreeSet, fmt, fs, os::unix::fs::OpenOptionsExt as _, path::Path, process::Stdio};

use proto::Release;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Broken, stage::Stage};
use crate::{past::flags, plan::Host};

/// What it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub from: Release,
    pub to: Release,
    /// Whether the plan had failed by then.
    pub is_broken: bool,
    /// Its refusals, each once, from all hosts; none where every host may go.
    pub refusals: BTreeSet<String>,
    /// What it warns of or would do first, likewise.
    pub warnings: BTreeSet<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = if self.is_broken { " (the plan has failed)" } else { "" };
        write!(f, "the agent, {} to {}{broken}: ", self.from, self.to)?;
        match self.refusals.is_empty() {
            true => f.write_str("it would go")?,
            false => f.write_str(&joined(&self.refusals))?,
        }
        if self.warnings.is_empty() { Ok(()) } else { write!(f, "; it says: {}", joined(&self.warnings)) }
    }
}

fn joined(texts: &BTreeSet<String>) -> String {
    texts.iter().cloned().collect::<Vec<_>>().join("; ")
}

/// Asks on every host, if there is an agent to be asked.
pub(super) async fn ask(stage: &mut Stage, to: &Release, is_broken: bool) -> Result<(), Broken> {
    let Some(agent) = stage.agent.clone() else { return Ok(()) };
    let (mut refusals, mut warnings) = (BTreeSet::new(), BTreeSet::new());
    for host in stage.hosts() {
        let playbook = stage.member(host)?.dir.join("asked.yaml");
        fs::write(&playbook, playbook_of(stage, host, to)?.to_string())?;
        let (refusal, warned) = asked(&agent, &playbook).await?;
        refusals.extend(refusal);
        warnings.extend(warned);
    }
    let (from, to) = (stage.release.clone(), to.clone());
    stage.answers.push(Answer { from, to, is_broken, refusals, warnings });
    Ok(())
}

async fn asked(agent: &Path, playbook: &Path) -> Result<(Option<String>, Vec<String>), Broken> {
    let mut command = Command::new(agent);
    command.arg("plan").arg(playbook).args(["--output", "json"]).stdin(Stdio::null()).kill_on_drop(true);
    let done = command.output().await?;
    let said: Value = serde_json::from_slice(&done.stdout)?;
    let text = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
    let warnings = said["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(|warning| warning.as_str().map(String::from)).collect();
    let refusal = (!done.status.success()).then(|| format!("{}: {}", text("reason"), text("message")));
    Ok((refusal, warnings))
}

/// The playbook of a host that knows which flags each of the two releases takes. JSON is YAML.
fn playbook_of(stage: &Stage, host: Host, to: &Release) -> Result<Value, Broken> {
    let (member, from) = (stage.member(host)?, &stage.release);
    let build = stage.builds.get(to).ok_or_else(|| format!("etcd {to} is not there"))?;
    let next = from.cluster_version();
    let own: Vec<_> =
        ["{{binary}}".to_owned()].into_iter().chain(stage.flags.get(&host).into_iter().flatten().cloned()).collect();
    let mut cluster = json!({ "name": "local", "endpoints": stage.layout().endpoints() });
    if let Some((user, password)) = &stage.layout().user {
        let file = member.dir.join("password");
        let mut options = fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&file)?;
        std::io::Write::write_all(&mut &opened, password.as_bytes())?;
        cluster["auth"] = json!({ "user": user, "password_file": file });
    }
    Ok(json!({
        "apiVersion": "baton/v1",
        "kind": "Upgrade",
        "cluster": cluster,
        "from": format!(">={from}, <{}.{}", next.major, next.minor + 1),
        "to": to.to_string(),
        "artifact": { "source": build.executable() },
        "state_dir": member.state_dir(),
        "nodes": [{
            "name": member.name,
            "runtime": {
                "kind": "process",
                "argv": own,
                "args": [
                    { "add": flags::of(&stage.habits, from), "for": format!("<{to}") },
                    { "add": flags::of(&stage.habits, to), "for": format!(">={to}") },
                ],
                "log": member.log(),
            },
            "binary": member.binary(),
        }],
        "strategy": { "soak": "0s" },
    }))
}
