//! From a playbook to an [`Execution`]: state directory, journal, connections, and which members are this
//! host's.
//!
//! Members that are down are started here already where nothing can be learnt of the cluster without them:
//! starting is free, and without a quorum it is all that helps (ARCHITECTURE.md, "Mending").

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{ClusterId, MemberId};

use super::{
    Execution, identity,
    interrupt::Interrupt,
    line::{Line, Past, compact, past},
    node::{OwnNode, Why, why},
    prepare::judge_cgroup,
    send::Leases,
    wait,
};
use crate::{
    host::state_dir::{Held, Layout, StateDir, StateDirError},
    journal::{
        file::{Header, Journal, JournalError, Opened},
        progress::Illegal,
    },
    observe::{ObserveError, Observer},
    plan::{Me, Verb},
    playbook::{self, Playbook},
    report::{Happening, Reporter, stop::Trouble},
    rollout::{Store, host_id::HostId, keys::ProcessId, route::Excluded},
    words::with_causes,
};

/// What was typed beside the playbook.
#[derive(Clone, Debug)]
pub struct Options {
    /// The verb.
    pub verb: Verb,
    /// `--expect-agents`
    pub expect_agents: Option<usize>,
}

/// Why a run could not even begin. Nothing was touched, but that members may have been started.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The state directory.
    #[error("the state directory cannot be used")]
    StateDir(#[source] StateDirError),
    /// The journal.
    #[error("the journal cannot be used")]
    Journal(#[source] JournalError),
    /// The journal's entries contradict each other.
    #[error("{} is damaged", path.display())]
    Illegal {
        /// The journal.
        path: PathBuf,
        /// Which two.
        source: Illegal,
    },
    /// The cluster cannot be reached as the playbook says.
    #[error("the cluster cannot be looked at")]
    Observe(#[source] ObserveError),
    /// The cluster has no member of this name.
    #[error("the cluster has no member {name}; it has {}", known.join(", "))]
    NoSuchMember {
        /// The playbook's name.
        name: String,
        /// The members' names.
        known: Vec<String>,
    },
    /// The cluster has two members of this name.
    #[error("the cluster has two members {name}, {} and {}: it cannot be told which one runs here", ids[0], ids[1])]
    SameName {
        /// The playbook's name.
        name: String,
        /// Two of them.
        ids: [MemberId; 2],
    },
    /// The playbook has a node that it did not have when the step in hand began.
    #[error(
        "a step of {step} is in hand{}, and the playbook had {} when it began, not {name}: give the node the name {step} \
         again, with everything else as it was, and run that; the step ends once {step} is ready. Where that name was wrong \
         from the start: move {} away, `agent abandon PLAYBOOK {step} --host-is-fenced`, and run the corrected playbook; \
         {name} is then started if it is down",
        if *may_be_down { ", whose process may be down" } else { "" },
        known.join(", "),
        journal.display()
    )]
    NewNode {
        /// The playbook's name.
        name: String,
        /// The names then.
        known: Vec<String>,
        /// Whose step.
        step: String,
        /// Whether the step may have stopped it.
        may_be_down: bool,
        /// Where it is written down.
        journal: PathBuf,
    },
    /// This host's members were started, and nobody answers for the cluster.
    #[error("this host's members were started, but the cluster does not answer")]
    NoQuorum(#[source] ObserveError),
    /// This host is not fit to start anything.
    #[error("{0}")]
    Unfit(Why),
    /// A signal asked for an end.
    #[error("a signal asked for an end before anything was begun")]
    Interrupted,
    /// Something about a node of this host.
    #[error("{name}: {why}")]
    Node {
        /// Its name.
        name: String,
        /// What.
        why: Why,
    },
    /// This process cannot be told apart from others, or handle signals.
    #[error("the agent cannot find out about its own process")]
    Own(#[source] std::io::Error),
}

/// Everything up to the machine's first event.
///
/// # Errors
/// [`SetupError`]
pub async fn set_up(
    playbook: Playbook,
    options: Options,
    reporter: &mut Reporter,
) -> Result<Execution<'_>, SetupError> {
    let interrupt = Interrupt::install().map_err(SetupError::Own)?;
    if let Some(warning) = judge_cgroup(&playbook).await.map_err(SetupError::Unfit)? {
        reporter.tell(Happening::Warning(&warning));
    }
    let held = Held::take(&playbook.state_dir).map_err(SetupError::StateDir)?;
    let (host, opened) = match open(&held) {
        Ok(opened) => opened,
        Err(error) => {
            bring_up_what_can_be_read(&playbook, &held, reporter).await;
            return Err(error);
        }
    };
    let state = StateDir::new(held, host);
    let lines = opened.as_ref().map_or_else(Vec::new, |(_, lines)| lines.clone());
    let past = past(&lines).map_err(illegal(&state))?;
    let known = opened.as_ref().map(|(journal, _)| journal);
    let found = tokio::select! {
        found = find(&playbook, known, &past, &state, reporter) => found,
        () = interrupt.asked(1) => Err(SetupError::Interrupted),
    };
    let (observer, identity, nodes) = match (found, known) {
        (Ok(found), _) => found,
        (Err(error), Some(known)) if past.in_hand.is_some() || matches!(error, SetupError::Observe(_)) => {
            tokio::select! {
                () = bring_up(&playbook, known.header(), &past, &state, reporter) => {}
                () = interrupt.asked(2) => {}
            }
            return Err(error);
        }
        (Err(error), _) => return Err(error),
    };
    let opened = opened.filter(|(journal, _)| journal.check_cluster(identity.cluster).is_ok());
    let (journal, unwritable) = match opened {
        Some((mut journal, _)) if past.in_hand.is_none() => {
            let rewritten = journal.rewrite(identity.members.clone(), &compact(lines));
            // Starting what is down needs no journal; nothing else is done without one.
            (journal, rewritten.err().map(|error| Trouble::StateDir(with_causes(&error))))
        }
        Some((journal, _)) => (journal, None),
        None => {
            let header = Header::new(identity.cluster, state.host(), identity.members.clone());
            (Journal::create(&state.journal(), header).map_err(SetupError::Journal)?, None)
        }
    };
    let process = ProcessId::own().map_err(SetupError::Own)?;
    let me = Arc::new(me(&playbook, &options, &state, &identity));
    reporter.learn(&identity.members);
    reporter.own(&me.owns);
    reporter.tell(Happening::Begun { change: Some(&me.intent.change) });
    let excluded = Arc::new(Excluded::default());
    let store = Store::new(&observer, excluded.clone());
    Ok(Execution {
        playbook,
        me,
        process,
        observer,
        store,
        excluded,
        nodes,
        state,
        journal,
        past,
        reporter,
        interrupt,
        changes: None,
        leases: Leases::default(),
        began: Instant::now(),
        progress: wait::Progress::new(),
        last_view: None,
        whole_view: None,
        last_seen: None,
        lowering: None,
        trouble: None,
        unwritable,
        blind: None,
        touched: false,
        warned: Default::default(),
    })
}

fn me(playbook: &Playbook, options: &Options, state: &StateDir, identity: &Identity) -> Me {
    let owns = identity.members.values().copied().collect();
    let me = identity::me(playbook, state.host(), identity.cluster, owns, options.verb);
    Me { expect_agents: options.expect_agents, ..me }
}

async fn open_node(
    node: &playbook::Node,
    member: MemberId,
    state: &Layout,
    past: &Past,
) -> Result<OwnNode, SetupError> {
    let fault = |why| SetupError::Node { name: node.name.clone(), why };
    let mut own = OwnNode::open(node, member, state, past.sides.get(&member).cloned()).map_err(fault)?;
    if let Some(in_hand) = past.in_hand.filter(|in_hand| in_hand.step.member == member) {
        own.check_begun().map_err(fault)?;
        own.restore_link(in_hand.binary()).map_err(fault)?;
    }
    own.look_up().await.map_err(fault)?;
    Ok(own)
}

/// The entries of this state directory's journal contradict each other.
pub(super) fn illegal(state: &Layout) -> impl FnOnce(Illegal) -> SetupError {
    let path = state.journal();
    |source| SetupError::Illegal { path, source }
}

/// Who this host is, and its journal.
fn open(held: &Held) -> Result<(HostId, Option<Opened<Line>>), SetupError> {
    let host = held.host().map_err(SetupError::StateDir)?;
    let journal = Journal::open(&held.journal()).map_err(SetupError::Journal)?;
    Ok((host, journal))
}

/// The way to the cluster, who this host is in it, and its nodes.
async fn find(
    playbook: &Playbook,
    journal: Option<&Journal<Line>>,
    past: &Past,
    state: &StateDir,
    reporter: &mut Reporter,
) -> Result<(Observer, Identity, Vec<OwnNode>), SetupError> {
    let observer = Observer::connect(&playbook.cluster).map_err(SetupError::Observe)?;
    let identity = Identity::find(playbook, &observer, journal.map(Journal::header), past, state, reporter).await?;
    if let Some(journal) = journal {
        // One in which nothing stands yet is of no cluster: it is begun anew.
        let checked = if past.is_empty() { Ok(()) } else { journal.check_cluster(identity.cluster) };
        checked.map_err(SetupError::Journal)?;
    }
    let mut nodes = Vec::new();
    for node in &playbook.nodes {
        nodes.push(open_node(node, identity.member(&node.name, past, state)?, state, past).await?);
    }
    Ok((observer, identity, nodes))
}

/// A journal that cannot be written may still be read, and so may one beside a damaged host id: no reason to leave down
/// what it says is down.
async fn bring_up_what_can_be_read(playbook: &Playbook, layout: &Layout, reporter: &mut Reporter) {
    let Ok(Some((header, lines))) = Journal::<Line>::peek(&layout.journal()) else { return };
    if let Ok(past) = past(&lines) {
        bring_up(playbook, &header, &past, layout, reporter).await;
    }
}

/// Starts what is down of the members that the journal knows, whatever stands in the way of the run: the one of the
/// step in hand on the binary that the last durable entry says.
async fn bring_up(playbook: &Playbook, header: &Header, past: &Past, state: &Layout, reporter: &mut Reporter) {
    reporter.learn(&header.members);
    for (name, member) in &header.members {
        let Some(node) = playbook.node(name) else { continue };
        match bring_up_one(node, *member, state, past).await {
            Ok(Some(warnings)) => {
                warnings.iter().for_each(|warning| reporter.tell(Happening::Warning(warning)));
                reporter.tell(Happening::Mended { member: *member });
            }
            Ok(None) => {}
            Err(why) => reporter.tell(Happening::Warning(&format!("{name} could not be started: {why}"))),
        }
    }
}

/// Starts the member of the step in hand and no other, if it is down; its name and what there is to warn of, if it was.
///
/// # Errors
/// What keeps this host from working at all, or the member from being started.
pub async fn start_in_hand(playbook: &Playbook) -> Result<Option<(String, Vec<String>)>, SetupError> {
    judge_cgroup(playbook).await.map_err(SetupError::Unfit)?;
    let held = Held::take(&playbook.state_dir).map_err(SetupError::StateDir)?;
    let (_, opened) = open(&held)?;
    let Some((journal, lines)) = opened else { return Ok(None) };
    let past = past(&lines).map_err(illegal(&held))?;
    let Some(in_hand) = past.in_hand else { return Ok(None) };
    let of_step = journal.header().members.iter().find(|(_, member)| **member == in_hand.step.member);
    let Some((name, member)) = of_step else { return Ok(None) };
    let Some(node) = playbook.node(name) else { return Ok(None) };
    let started = bring_up_one(node, *member, &held, &past).await;
    let named = started.map(|started| started.map(|warnings| (name.clone(), warnings)));
    named.map_err(|why| SetupError::Node { name: name.clone(), why })
}

/// What there is to warn of, where it was down and has been started.
async fn bring_up_one(
    node: &playbook::Node,
    member: MemberId,
    state: &Layout,
    past: &Past,
) -> Result<Option<Vec<String>>, Why> {
    let in_hand = past.in_hand.filter(|in_hand| in_hand.step.member == member);
    // Whatever the playbook says by now, it is down by the `binary` that its step began with.
    let begun = in_hand.and_then(|_| past.sides.get(&member)?.binary.clone());
    let node = playbook::Node { binary: begun.or_else(|| node.binary.clone()), ..node.clone() };
    let mut own = open_node(&node, member, state, past).await.map_err(|error| why(&error))?;
    match (own.status().await, in_hand) {
        (Ok(status), _) if status.is_running() => Ok(None),
        (Err(why), None) => Err(why),
        (_, None) => own.start().await.map(|()| Some(Vec::new())),
        (Err(why), Some(in_hand)) if !in_hand.may_have_stopped() => Err(why),
        (_, Some(in_hand)) => {
            own.switch(in_hand.binary())?;
            own.start_stopped().await.map(Some)
        }
    }
}

/// The cluster, and this host's members in it.
struct Identity {
    cluster: ClusterId,
    members: BTreeMap<String, MemberId>,
}

impl Identity {
    /// A step in hand binds the host to the nodes that it began with.
    fn member(&self, name: &str, past: &Past, state: &Layout) -> Result<MemberId, SetupError> {
        self.members.get(name).copied().ok_or_else(|| {
            let step = past.in_hand.map(|in_hand| in_hand.step.member).unwrap_or_default();
            let of_step = self.members.iter().find(|(_, member)| **member == step);
            SetupError::NewNode {
                name: name.to_owned(),
                known: self.members.keys().cloned().collect(),
                step: of_step.map_or_else(|| step.to_string(), |(name, _)| name.clone()),
                may_be_down: past.in_hand.is_some_and(|in_hand| in_hand.may_have_stopped()),
                journal: state.journal(),
            }
        })
    }

    /// A step in hand goes by the journal; anything else by what the members say, which needs one that answers.
    async fn find(
        playbook: &Playbook,
        observer: &Observer,
        header: Option<&Header>,
        past: &Past,
        state: &StateDir,
        reporter: &mut Reporter,
    ) -> Result<Self, SetupError> {
        if let (Some(header), Some(_)) = (header, past.in_hand) {
            // In the middle of a step an endpoint of another cluster is no reason to see nothing.
            observer.access().directory().settle(header.cluster);
            return Ok(Self { cluster: header.cluster, members: header.members.clone() });
        }
        let deadline = Instant::now() + playbook.strategy.health;
        let mut was_started = false;
        loop {
            let error = match observer.members().await {
                Ok(listed) => return Self::of(playbook, observer, listed),
                Err(error) => error,
            };
            // Refusals do not pass; silence may be this host's own doing.
            let passes = matches!(error, ObserveError::NobodyAnswered { .. } | ObserveError::NoMembership { .. });
            if !was_started && passes {
                was_started = start_what_is_down(playbook, state, reporter).await?;
            }
            if !was_started || !passes {
                return Err(SetupError::Observe(error));
            }
            if Instant::now() > deadline {
                return Err(SetupError::NoQuorum(error));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn of(
        playbook: &Playbook,
        observer: &Observer,
        listed: Vec<crate::observe::directory::Listed>,
    ) -> Result<Self, SetupError> {
        let known: Vec<String> = listed.iter().map(|member| member.name.clone()).collect();
        let mut members = BTreeMap::new();
        for node in &playbook.nodes {
            let mut named = listed.iter().filter(|member| member.name == node.name);
            let Some(found) = named.next() else {
                return Err(SetupError::NoSuchMember { name: node.name.clone(), known });
            };
            if let Some(another) = named.next() {
                return Err(SetupError::SameName { name: node.name.clone(), ids: [found.id, another.id] });
            }
            members.insert(node.name.clone(), found.id);
        }
        let cluster = observer.access().directory().cluster().unwrap_or_default();
        Ok(Self { cluster, members })
    }
}

/// Whether anything was down and has been started.
async fn start_what_is_down(
    playbook: &Playbook,
    state: &StateDir,
    reporter: &mut Reporter,
) -> Result<bool, SetupError> {
    let mut was_down = false;
    for node in &playbook.nodes {
        let mut own = open_node(node, MemberId::default(), state, &Past::default()).await?;
        let fault = |why| SetupError::Node { name: node.name.clone(), why };
        if !own.status().await.map_err(fault)?.is_running() {
            own.start().await.map_err(fault)?;
            reporter.tell(Happening::NodeStarted { node: &node.name });
            was_down = true;
        }
    }
    Ok(was_down)
}
