//! What happens to the others while a member becomes ready: an alarm, a death, or both. A member that runs is not
//! stopped for that, and every agent that waits says the alarm.

use rustix::process::Signal;
use tests::{
    agent::Agent,
    case::Case,
    ended::Ended,
    on_both,
    rollout::{Ends, LIMIT, Rollout},
    sick::Illness,
    system::System,
    wait,
};

use crate::SICK;

const ALONE: &str = "join_window: 100ms";

on_both! {
    #[ignore = "slow: two minutes; an alarm keeps a run from beginning by default"]
    an_alarm_ends_the_step_and_stops_nobody;
    #[ignore = "slow: more than a minute; it is as with an alarm alone"]
    an_alarm_and_a_death_end_the_step_and_stop_nobody;
    #[ignore = "slow: more than a minute; it is as with an alarm"]
    a_death_keeps_a_new_binary_that_hangs_from_being_put_back;
}

/// A rollout, the host whose agent runs, and another follower.
struct Pair {
    rollout: Rollout,
    first: usize,
    other: usize,
}

impl Pair {
    async fn of(case: Case) -> Self {
        let rollout = case.strategy(&[ALONE]).begin().await;
        let (leader, size) = (rollout.leader().await, rollout.hosts.len());
        Self { rollout, first: (leader + 1) % size, other: (leader + 2) % size }
    }

    fn pid(&self) -> Option<i32> {
        self.rollout.pids()[self.first]
    }

    fn other_dies(&self) {
        self.rollout.member(self.other).end(Signal::KILL).expect("killed");
    }

    fn name_of_first(&self) -> &str {
        &self.rollout.member(self.first).name
    }

    /// Agents of hosts that only wait, as they will say: the leader's, and the other's where that is left alive.
    async fn waiting(&self, does_other_die: bool) -> Vec<Agent> {
        let leaders = (self.first + self.rollout.hosts.len() - 1) % self.rollout.hosts.len();
        let hosts = std::iter::once(leaders).chain((!does_other_die).then_some(self.other));
        let agents: Vec<_> = hosts.map(|host| self.rollout.start(host)).collect();
        self.until_all_say(&agents, &format!("waits for {} to come back", self.name_of_first())).await;
        agents
    }

    async fn until_all_say(&self, agents: &[Agent], words: &str) {
        wait::until("those that wait to say so", LIMIT, || async {
            match agents.iter().map(Agent::log).find(|log| !log.contains(words)) {
                Some(log) => Err(log),
                None => Ok(()),
            }
        })
        .await
        .expect("said");
    }

    fn name_of_other(&self) -> &str {
        &self.rollout.member(self.other).name
    }

    /// In the end everybody goes, together.
    async fn all_go(&mut self) {
        self.rollout.upgrade.strategy.retain(|line| line != ALONE);
        self.rollout.upgrade.strategy.push("join_window: 30s".into());
        self.rollout.playbooks = self.rollout.write();
        // One that comes late finds nothing to do.
        self.rollout.all("run").await.iter().for_each(Ended::must_succeed);
    }

    async fn alarm(&self, is_raised: bool) {
        let client = self.rollout.client(self.other);
        wait::until("the alarm", LIMIT, || async {
            client.alarm_no_space(is_raised).await.map_err(|status| status.to_string())
        })
        .await
        .expect("raised or taken back");
    }
}

/// An alarm of another member within the first one's soak.
async fn in_the_soak(system: System, does_other_die: bool) {
    let Some(mut case) = Case::of(system).await else { return };
    case.upgrade.strategy = vec!["soak: 15s".into(), "health: { timeout: 8s }".into()];
    let mut pair = Pair::of(case).await;
    let rollout = &pair.rollout;
    let agent = rollout.start(pair.first);
    wait::until("the step lock", LIMIT, || async {
        if rollout.keys().await.contains_key("step") { Ok(()) } else { Err(agent.log()) }
    })
    .await
    .expect("put");
    let waiting = pair.waiting(does_other_die).await;
    let new = rollout.to.release.to_string();
    wait::until("the first member to run the new release", LIMIT, || async {
        let said = rollout.client(pair.first).versions().await.map_err(|error| error.to_string())?;
        if said.server == new { Ok(()) } else { Err(said.server) }
    })
    .await
    .expect("it goes");
    let pid = pair.pid();
    pair.alarm(true).await;
    if does_other_die {
        pair.other_dies();
    }
    let alarm = format!("waits for the alarm NOSPACE of {} to be disarmed", pair.name_of_other());
    pair.until_all_say(&waiting, &alarm).await;
    let ended = agent.ends().await;
    assert_eq!(pair.pid(), pid, "it serves: {ended}");
    ended.must_be(1, "alarm");
    for words in ["NOSPACE", pair.name_of_other(), "step lock"] {
        assert!(ended.message().contains(words), "{ended}");
    }
    assert!(ended.said("left").contains("etcdctl alarm disarm"), "{ended}");
    // Its agent is gone, and the alarm keeps the lock: the others wait no longer.
    for agent in waiting {
        let ended = agent.ends().await;
        ended.must_be(3, "alarm");
        assert!(ended.message().contains("NOSPACE") && ended.message().contains(pair.name_of_other()), "{ended}");
    }

    // The same command stops nobody, however often.
    let again = rollout.one("run", pair.first).await;
    again.must_be(3, "alarm");
    assert_eq!(pair.pid(), pid, "{again}");

    if does_other_die {
        // Its own agent starts it, alarm or not.
        rollout.one("run", pair.other).await.must_be(3, "alarm");
        assert!(rollout.member(pair.other).is_running());
    }
    pair.alarm(false).await;
    rollout.one("run", pair.first).await.must_be(0, "partial");
    assert_eq!(pair.pid(), pid);
    pair.all_go().await;
    pair.rollout.done().await;
}

async fn an_alarm_ends_the_step_and_stops_nobody(system: System) {
    in_the_soak(system, false).await;
}

async fn an_alarm_and_a_death_end_the_step_and_stop_nobody(system: System) {
    in_the_soak(system, true).await;
}

/// Of five members, so that a quorum stands beside the two.
async fn a_death_keeps_a_new_binary_that_hangs_from_being_put_back(system: System) {
    let Some(case) = Case::with(system, |spec| spec.size = 5).await else { return };
    let mut pair = Pair::of(case.strategy(&["health: { timeout: 8s }"])).await;
    let sick = pair.rollout.sick(SICK, Illness::Hangs);
    pair.rollout.write_one(pair.first, &sick);
    let agent = pair.rollout.start(pair.first);
    // Said, not seen: before it the new binary is tried, for a moment.
    let started = format!("{}  started", pair.rollout.member(pair.first).name);
    wait::until("the new binary to be started", LIMIT, || async {
        if agent.log().contains(&started) { Ok(()) } else { Err(agent.log()) }
    })
    .await
    .expect("started");
    let pid = pair.pid();
    pair.other_dies();
    let ended = agent.ends().await;
    assert_eq!(pair.pid(), pid, "it was left as it is: {ended}");
    ended.must_be(1, "step_failed");
    for words in ["was not stopped to be put back", &format!("{} (", pair.name_of_other()), "is not ready"] {
        assert!(ended.message().contains(words), "{ended}");
    }
    assert!(pair.rollout.keys().await.contains_key("step"), "its record stands");

    // Once the other is back, the same command puts it back.
    let others = pair.rollout.start(pair.other);
    wait::until("the other to be back", LIMIT, || async {
        pair.rollout.client(pair.other).get("any").await.map_err(|status| status.to_string())
    })
    .await
    .expect("its own agent starts it");
    pair.rollout.one("run", pair.first).await.must_be(1, "put_back");
    others.ends().await.must_be(1, "run_failed");
    pair.all_go().await;
    pair.rollout.arrives().await;
    pair.rollout.end(2).await;
}
