//! Members of this host that are down are started: on what the journal says, where a step is in hand.
//!
//! Starting needs neither the cluster nor a journal that can be written (R-6, I-10).

use std::time::Instant;

use proto::MemberId;

use super::{
    error::ActError,
    line::{Line, Past, past},
    membership::with_initial_cluster,
    node::OwnNode,
    prepare::{ANSWERS_WITHIN, answers_itself, judge_cgroup},
    process::Start,
    setup::{MEMBERS_PROBE_GAP, SetupError, illegal, may_pass, open},
    start_failure::ended_again,
    step::files_are_wrong,
};
use crate::{
    event::RunEvent,
    host::{
        files::state_dir::{Held, Layout, StateDir},
        runtime::Listens,
    },
    journal::file::{Header, Journal},
    observe::{Observer, awake::within},
    playbook::{self, Playbook},
    report::Reporter,
};

/// A node of this host, as the step in hand has it where it is that step's.
///
/// # Errors
/// What of it cannot be used.
pub(super) async fn open_node(
    node: &playbook::Node,
    member: MemberId,
    state: &Layout,
    past: &Past,
) -> Result<OwnNode, ActError> {
    let node = &with_initial_cluster(node, &state.nodes());
    let mut own = OwnNode::open(node, member, state, past.sides.get(&member).cloned())?;
    if let Some(in_hand) = past.restart().filter(|in_hand| in_hand.step.member == member) {
        own.check_begun()?;
        own.restore_link(in_hand.binary())?;
        own.may_be_stopped = in_hand.may_have_stopped();
        own.look_up_in_step().await?;
    } else {
        own.look_up().await?;
    }
    Ok(own)
}

/// A journal that cannot be written may still be read, and so may one beside a damaged host id: no reason to leave down
/// what it says is down.
pub(super) async fn bring_up_what_can_be_read(playbook: &Playbook, layout: &Layout, reporter: &mut Reporter) {
    let Ok(Some((header, lines))) = Journal::<Line>::peek(&layout.journal()) else { return };
    if let Ok(past) = past(&lines) {
        bring_up(playbook, &header, &past, layout, reporter).await;
    }
}

/// Starts what is down of the members that the journal knows, whatever stands in the way of the run: the one of the
/// step in hand on the binary that the last durable entry says.
pub(super) async fn bring_up(
    playbook: &Playbook,
    header: &Header,
    past: &Past,
    state: &Layout,
    reporter: &mut Reporter,
) {
    reporter.learn(&header.members);
    for (name, member) in &header.members {
        let Some(node) = playbook.node(name) else { continue };
        match bring_up_one(node, *member, state, past).await {
            Ok(Some(warnings)) => {
                warnings.iter().for_each(|warning| reporter.tell(RunEvent::Warning(warning)));
                reporter.tell(RunEvent::Mended { member: *member });
            }
            Ok(None) => {}
            Err(why) => reporter.tell(RunEvent::Warning(&format!("{name} could not be started: {why}"))),
        }
    }
}

/// Starts the member of the step in hand and no other, if it is down; its name and what there is to warn of, if it was.
///
/// # Errors
/// What keeps this host from working at all, or the member from being started.
pub async fn start_in_hand(playbook: &Playbook) -> Result<Option<(String, Vec<String>)>, SetupError> {
    judge_cgroup(playbook).await.map_err(|why| SetupError::Unfit(Box::new(why)))?;
    let held = Held::take(&playbook.state_dir).map_err(SetupError::StateDir)?;
    let (_, opened) = open(&held)?;
    let Some((journal, lines)) = opened else { return Ok(None) };
    let past = past(&lines).map_err(illegal(&held))?;
    let Some(in_hand) = past.restart() else { return Ok(None) };
    let of_step = journal.header().members.iter().find(|(_, member)| **member == in_hand.step.member);
    let Some((name, member)) = of_step else { return Ok(None) };
    let Some(node) = playbook.node(name) else { return Ok(None) };
    let started = bring_up_one(node, *member, &held, &past).await;
    let named = started.map(|started| started.map(|warnings| (name.clone(), warnings)));
    named.map_err(SetupError::of_node(name))
}

/// Starts this host's members that are down, as a person has said, and waits until somebody answers for the cluster. The run
/// is set up once, after its plan was said yes to, too.
///
/// # Errors
/// What keeps this host from working at all, a member from being started, or the cluster from answering.
pub async fn start_down(playbook: &Playbook, reporter: &mut Reporter) -> Result<(), SetupError> {
    judge_cgroup(playbook).await.map_err(|why| SetupError::Unfit(Box::new(why)))?;
    let held = Held::take(&playbook.state_dir).map_err(SetupError::StateDir)?;
    let (known, past) = match open(&held)? {
        (_, Some((journal, lines))) => (journal.header().members.clone(), past(&lines).map_err(illegal(&held))?),
        (_, None) => Default::default(),
    };
    let observer = Observer::connect(&playbook.cluster).map_err(SetupError::Observe)?;
    let view = within(ANSWERS_WITHIN, observer.probe()).await.and_then(Result::ok);
    let members = || view.iter().flat_map(|view| &view.members);
    // One that answers is up, whatever process it is: the plan says what is wrong.
    let answers = |name: &str| members().any(|member| *member.name == *name && answers_itself(member));
    for node in playbook.nodes.iter().filter(|node| !answers(&node.name)) {
        let listed = || members().find(|member| *member.name == node.name).map(|member| member.id);
        let member = known.get(&node.name).copied().or_else(listed).unwrap_or_default();
        let started = bring_up_one(node, member, &held, &past).await.map_err(SetupError::of_node(&node.name))?;
        if let Some(warnings) = started {
            warnings.iter().for_each(|warning| reporter.tell(RunEvent::Warning(warning)));
            reporter.tell(RunEvent::NodeStarted { node: &node.name });
        }
    }
    let deadline = Instant::now() + playbook.strategy.health;
    loop {
        match observer.members().await {
            Ok(_) => return Ok(()),
            Err(error) if !may_pass(&error) => return Err(SetupError::Observe(error)),
            Err(error) if Instant::now() > deadline => {
                let ended = ended_again(playbook, &known, &held, &past).await;
                return Err(SetupError::NoQuorum { source: error, ended });
            }
            Err(_) => tokio::time::sleep(MEMBERS_PROBE_GAP).await,
        }
    }
}

/// What there is to warn of, where it was down and has been started.
async fn bring_up_one(
    node: &playbook::Node,
    member: MemberId,
    state: &Layout,
    past: &Past,
) -> Result<Option<Vec<String>>, ActError> {
    let in_hand = past.restart().filter(|in_hand| in_hand.step.member == member);
    // Whatever the playbook says by now, it is down by the `binary` that its step began with.
    let begun = in_hand.and_then(|_| past.sides.get(&member)?.binary.clone());
    let node = playbook::Node { binary: begun.or_else(|| node.binary.clone()), ..node.clone() };
    let mut own = open_node(&node, member, state, past).await?;
    if let Some(why) = own.why_nothing_to_start().await {
        // Of a newcomer the plan says what is to be done.
        return if node.may_join { Ok(None) } else { Err(why) };
    }
    match (own.status().await, in_hand) {
        (Ok(status), _) if status.is_running() => Ok(None),
        (Err(why), None) => Err(why),
        (_, None) => own.start().await.map(Start::if_new),
        (Err(why), Some(in_hand)) if !in_hand.may_have_stopped() => Err(why),
        (_, Some(in_hand)) => {
            let wrong = own.switch_to_start(in_hand.binary())?;
            let started = match in_hand.may_have_stopped() {
                true => own.start_stopped(Listens::Perhaps).await?,
                false => own.start().await?,
            };
            let wrong = wrong.iter().map(|why| files_are_wrong(&node.name, why));
            Ok(started.if_new().map(|warnings| wrong.chain(warnings).collect()))
        }
    }
}

/// Whether anything was down and has been started; these are known to have begun before.
pub(super) async fn start_what_is_down(
    playbook: &Playbook,
    known: Option<&Header>,
    state: &StateDir,
    reporter: &mut Reporter,
) -> Result<bool, SetupError> {
    let mut was_down = false;
    for node in &playbook.nodes {
        let fault = || SetupError::of_node(&node.name);
        let member = known.and_then(|known| known.members.get(&node.name)).copied().unwrap_or_default();
        let mut own = open_node(node, member, state, &Past::default()).await.map_err(fault())?;
        if own.status().await.map_err(fault())?.is_running() {
            continue;
        }
        if let Some(gone) = own.why_nothing_to_start().await {
            // A newcomer that has not begun is nothing to speak of.
            (!node.may_join).then(|| reporter.tell(RunEvent::Warning(&gone.to_string())));
            continue;
        }
        own.start().await.map_err(fault())?;
        reporter.tell(RunEvent::NodeStarted { node: &node.name });
        was_down = true;
    }
    Ok(was_down)
}
