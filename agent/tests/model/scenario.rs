//! What one search explores: how many members, which faults, which rules.

use std::sync::Arc;

use agent::{
    plan::{Me, Verb},
    rollout::{
        keys::{Change, Finalize, Intent},
        rules::Rules,
    },
};
use proto::ClusterId;

use super::{
    faults::Faults,
    world::{NEW, World, id_of},
};

/// One search.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub members: usize,
    pub faults: Faults,
    pub rules: Rules,
    pub finalize: Finalize,
    pub intent: Arc<Intent>,
}

impl Scenario {
    pub fn new(name: &str, faults: Faults) -> Self {
        Self {
            name: name.into(),
            members: 3,
            faults,
            rules: Rules::default(),
            finalize: Finalize::Auto,
            intent: intent(Finalize::Auto),
        }
    }

    pub fn held(mut self) -> Self {
        self.finalize = Finalize::Manual;
        self.intent = intent(Finalize::Manual);
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    pub fn me(&self, world: &World, host: usize, verb: Verb) -> Arc<Me> {
        Arc::new(Me {
            host: world.host_id(host),
            host_name: Arc::from(""),
            owns: vec![id_of(host)],
            intent: self.intent.clone(),
            verb,
            allow_degraded: false,
            allow_downtime: false,
            put_back: true,
            expect_agents: None,
        })
    }
}

fn intent(finalize: Finalize) -> Arc<Intent> {
    let from = ">=3.4, <3.5".parse().unwrap();
    Arc::new(Intent {
        cluster: ClusterId(1),
        change: Change::Upgrade { from, to: NEW },
        gates: Default::default(),
        finalize,
    })
}
