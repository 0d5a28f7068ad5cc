//! How an agent ended, and what scenarios demand of that.

use std::fmt;

use serde_json::Value;

use crate::events::Event;

#[derive(Clone, Debug)]
pub struct Ended {
    /// Its verb and its playbook.
    pub command: String,
    /// Its exit code; `None` when a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The one object that `--output json` prints.
    pub result: Option<Value>,
    pub stderr: String,
    /// What it wrote with `--events`.
    pub events: Vec<Event>,
}

/// For a person who looks for the reason.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.result.as_ref().map(Value::to_string).unwrap_or_default();
        let Self { command, exit, signal, stderr, .. } = self;
        write!(f, "{command}: exit {exit:?}, signal {signal:?}, {result}\n{stderr}")
    }
}

impl Ended {
    /// The `reason` of its result.
    pub fn reason(&self) -> &str {
        self.said("reason")
    }

    /// The `message` of its result.
    pub fn message(&self) -> &str {
        self.said("message")
    }

    pub fn said(&self, field: &str) -> &str {
        self.result.as_ref().and_then(|result| result[field].as_str()).unwrap_or_default()
    }

    /// The `warnings` of its result, as JSON.
    pub fn warnings(&self) -> String {
        self.result.as_ref().map(|result| result["warnings"].to_string()).unwrap_or_default()
    }

    /// Its warnings but for etcd's advice to have the newest 3.5 before 3.6, which the bundled node's 3.5.0 earns, too, and for what is
    /// known of the patches of etcd that are tested with.
    pub fn unadvised_warnings(&self) -> Vec<String> {
        let warnings = self.result.as_ref().and_then(|result| result["warnings"].as_array());
        let warnings = warnings.into_iter().flatten().map(Value::to_string);
        let is_advice =
            |warning: &String| ["a 3.5 below 3.5.", "known of etcd "].iter().any(|words| warning.contains(words));
        warnings.filter(|warning| !is_advice(warning)).collect()
    }

    /// It must have ended like this.
    ///
    /// # Panics
    /// It has not.
    #[track_caller]
    pub fn must_be(&self, exit: i32, reason: &str) {
        assert_eq!((self.exit, self.reason()), (Some(exit), reason), "{self}");
    }

    /// It must have ended well, whatever it found to do.
    ///
    /// # Panics
    /// It has not.
    #[track_caller]
    pub fn must_succeed(&self) {
        assert_eq!(self.exit, Some(0), "{self}");
    }
}

/// Each of them must have ended like this.
///
/// # Panics
/// One has not.
#[track_caller]
pub fn all_must_be(agents: &[Ended], exit: i32, reason: &str) {
    for agent in agents {
        agent.must_be(exit, reason);
    }
}

/// Each of them must have ended like this, and said that this is how far the cluster is.
///
/// # Panics
/// One has not.
#[track_caller]
pub fn all_must_leave(agents: &[Ended], exit: i32, reason: &str, cluster: &str) {
    for agent in agents {
        agent.must_be(exit, reason);
        assert_eq!(agent.said("cluster"), cluster, "{agent}");
    }
}

/// One of them must have failed for this reason, and each other one because of it; which one it was.
///
/// # Panics
/// They have not.
#[track_caller]
pub fn one_must_fail(agents: &[Ended], reason: &str) -> usize {
    let owner = agents.iter().position(|agent| agent.reason() == reason).unwrap_or(0);
    for (index, agent) in agents.iter().enumerate() {
        agent.must_be(1, if index == owner { reason } else { "run_failed" });
    }
    owner
}
