//! From a playbook to an [`Execution`]: state directory, journal, connections, and which members are this
//! host's.
//!
//! Members that are down are started here already where nothing can be learnt of the cluster without them:
//! starting is free, and without a quorum it is all that helps (agent/PROTOCOL.md, "Repairing").

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use proto::{ClusterId, MemberId};

use super::{
    Cluster, Console, Execution, Host, Seen,
    bring_up::{bring_up, bring_up_what_can_be_read, open_node, start_what_is_down},
    error::ActError,
    guard::{Order, OwnCommand},
    hop, identity, intent,
    interrupt::Interrupt,
    line::{Line, Past, compact, past},
    node::OwnNode,
    own_data::begun_here,
    prepare::judge_cgroup,
    restore::{
        self,
        record::{Record, RecordError},
    },
    send::Leases,
    start_failure::ended_again,
};
use crate::{
    event::{RunEvent, trouble::Trouble},
    host::files::state_dir::{Held, Layout, StateDir, StateDirError},
    journal::{
        file::{Header, Journal, JournalError, Opened},
        progress::Illegal,
    },
    keys::{Intent, ProcessId, host_id::HostId},
    observe::{ObserveError, Observer, directory::Listed, secret_file},
    plan::{Guard, Me, Verb},
    playbook::Playbook,
    report::Reporter,
    store::{Store, endpoint::Excluded},
    words::with_causes,
};

/// Between two questions who the members are, after a start.
pub(super) const MEMBERS_PROBE_GAP: Duration = Duration::from_millis(200);

/// What was typed beside the playbook.
#[derive(Clone, Debug)]
pub struct Options {
    pub verb: Verb,
    /// `--expect-agents`
    pub expect_agents: Option<usize>,
    /// What `agent guard` runs.
    pub order: Option<Order>,
    /// `--host-stays`
    pub host_stays: bool,
}

/// Why a run could not even begin. Nothing was touched, but that members may have been started.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the state directory cannot be used")]
    StateDir(#[source] StateDirError),
    #[error("the journal cannot be used")]
    Journal(#[source] JournalError),
    /// `agent restore` was begun here, and not ended: which member has whose data is its own to know.
    #[error("a restore from {} is in hand on this host", .0.from.display())]
    Restoring(Box<Record>),
    /// What `agent restore` wrote down cannot be read.
    #[error("whether a restore is in hand is not known")]
    RestoreRecord(#[source] RecordError),
    /// The journal's entries contradict each other.
    #[error("{} is damaged", path.display())]
    Illegal { path: PathBuf, source: Illegal },
    /// The cluster cannot be reached as the playbook says.
    #[error("the cluster cannot be looked at")]
    Observe(#[source] ObserveError),
    /// The cluster has no member of this name.
    #[error("the cluster has no member {name}; it has {}", known.join(", "))]
    NoSuchMember { name: String, known: Vec<String> },
    /// The cluster has two members of this name.
    #[error("the cluster has two members {name}, {} and {}: it cannot be told which one runs here", ids[0], ids[1])]
    SameName { name: String, ids: [MemberId; 2] },
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
        name: String,
        known: Vec<String>,
        step: String,
        /// Whether the step may have stopped it.
        may_be_down: bool,
        /// Where it is written down.
        journal: PathBuf,
    },
    /// This host's members were started, and nobody answers for the cluster.
    #[error("this host's members were started, but the cluster does not answer")]
    NoQuorum {
        source: ObserveError,
        /// What is known of those that have ended again.
        ended: String,
    },
    /// This host is not fit to start anything.
    #[error("{0}")]
    Unfit(#[source] Box<ActError>),
    /// A signal asked for an end.
    #[error("a signal asked for an end before anything was begun")]
    Interrupted,
    /// Something about a node of this host.
    #[error("{name}: {why}")]
    Node {
        name: String,
        #[source]
        why: Box<ActError>,
    },
    /// This process cannot be told apart from others, or handle signals.
    #[error("the agent cannot find out about its own process")]
    Own(#[source] std::io::Error),
}

impl SetupError {
    /// Gives what is wrong with a node the node's name.
    pub(super) fn of_node(name: &str) -> impl FnOnce(ActError) -> Self + use<> {
        let name = name.to_owned();
        |why| Self::Node { name, why: Box::new(why) }
    }
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
    if let Some(warning) = judge_cgroup(&playbook).await.map_err(|why| SetupError::Unfit(Box::new(why)))? {
        reporter.tell(RunEvent::Warning(&warning));
    }
    secret_file::warnings(&playbook.cluster).iter().for_each(|warning| reporter.tell(RunEvent::Warning(warning)));
    let only_asks = options.verb == Verb::Guard(Guard::Check);
    let held = Held::take(&playbook.state_dir).map_err(SetupError::StateDir)?;
    let (host, opened) = match open(&held) {
        Ok(opened) => opened,
        // A member that is down may have the data of either cluster.
        Err(error @ (SetupError::Restoring(_) | SetupError::RestoreRecord(_))) => return Err(error),
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
        found = find(&playbook, known, &past, &state, (reporter, !only_asks)) => found,
        () = interrupt.asked(1) => Err(SetupError::Interrupted),
    };
    let (observer, identity, nodes) = match (found, known) {
        (Ok(found), _) => found,
        (Err(error), _) if only_asks => return Err(error),
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
    let excluded = Arc::new(Excluded::default());
    let store = Store::new(&observer, excluded.clone());
    let whole = intent::intent(&playbook, identity.cluster);
    let intent = hop::found(whole, &past, (&observer, &store), &nodes).await;
    let me = Arc::new(me(&playbook, intent, &options, &state, &identity));
    reporter.learn(&identity.members);
    reporter.own(&me.seats);
    reporter.tell(RunEvent::Begun { change: Some(&me.intent.change), cluster: &playbook.cluster.name });
    hop::tell(&me, reporter);
    Ok(Execution {
        playbook: intent::at(&playbook, &me.intent.change),
        whole: playbook,
        me,
        process,
        cluster: Cluster { observer, store, excluded, leases: Leases::default(), watch: None, downgrade_asked: None },
        seen: Seen::default(),
        host: Host { nodes, state, journal, past, unwritable, removed: Vec::new(), touched: false, confirmed: None },
        command: OwnCommand::of(options.order, options.host_stays),
        console: Console { reporter, interrupt, warned: BTreeSet::new() },
        began: Instant::now(),
        progress: super::stall::Progress::new(),
        canary: None,
        trouble: None,
    })
}

fn me(playbook: &Playbook, intent: Arc<Intent>, options: &Options, state: &StateDir, identity: &Identity) -> Me {
    let seats = identity::seats(playbook, state.host(), &identity.members);
    let me = identity::me(playbook, intent, state.host(), seats, options.verb);
    let command = options.order.as_ref().map_or_else(|| Arc::from(""), |order| order.argv.name().into());
    Me { expect_agents: options.expect_agents, command, ..me }
}

/// The entries of this state directory's journal contradict each other.
pub(super) fn illegal(state: &Layout) -> impl FnOnce(Illegal) -> SetupError {
    let path = state.journal();
    |source| SetupError::Illegal { path, source }
}

/// Who this host is, and its journal.
pub(super) fn open(held: &Held) -> Result<(HostId, Option<Opened<Line>>), SetupError> {
    if let Some(record) = restore::in_hand(held).map_err(SetupError::RestoreRecord)? {
        return Err(SetupError::Restoring(Box::new(record)));
    }
    let host = held.host().map_err(SetupError::StateDir)?;
    let journal = Journal::open(&held.journal()).map_err(SetupError::Journal)?;
    Ok((host, journal))
}

/// Refusals do not pass; silence may be this host's own doing.
pub(super) fn may_pass(error: &ObserveError) -> bool {
    matches!(error, ObserveError::NobodyAnswered { .. } | ObserveError::NoMembership { .. })
}

/// The way to the cluster, who this host is in it, and its nodes.
async fn find(
    playbook: &Playbook,
    journal: Option<&Journal<Line>>,
    past: &Past,
    state: &StateDir,
    (reporter, starts): (&mut Reporter, bool),
) -> Result<(Observer, Identity, Vec<OwnNode>), SetupError> {
    let observer = Observer::connect(&playbook.cluster).map_err(SetupError::Observe)?;
    let identity =
        Identity::find(playbook, &observer, journal.map(Journal::header), past, state, (reporter, starts)).await?;
    if let Some(journal) = journal {
        // One in which nothing stands yet is of no cluster: it is begun anew.
        let checked = if past.is_empty() { Ok(()) } else { journal.check_cluster(identity.cluster) };
        checked.map_err(SetupError::Journal)?;
    }
    let mut nodes = Vec::new();
    for node in &playbook.nodes {
        let member = match identity.members.contains_key(&node.name) || !node.may_join {
            true => identity.member(&node.name, past, state)?,
            false => MemberId::default(),
        };
        nodes.push(open_node(node, member, state, past).await.map_err(SetupError::of_node(&node.name))?);
    }
    Ok((observer, identity, nodes))
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
            let step = past.in_hand.map(|in_hand| in_hand.member()).unwrap_or_default();
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
        (reporter, starts): (&mut Reporter, bool),
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
                Ok(listed) => return Self::of(playbook, observer, listed).await,
                Err(error) => error,
            };
            if starts && !was_started && may_pass(&error) {
                was_started = start_what_is_down(playbook, header, state, reporter).await?;
            }
            if !was_started || !may_pass(&error) {
                return Err(SetupError::Observe(error));
            }
            if Instant::now() > deadline {
                let known = header.map(|header| header.members.clone()).unwrap_or_default();
                let ended = ended_again(playbook, &known, state, past).await;
                return Err(SetupError::NoQuorum { source: error, ended });
            }
            tokio::time::sleep(MEMBERS_PROBE_GAP).await;
        }
    }

    async fn of(playbook: &Playbook, observer: &Observer, listed: Vec<Listed>) -> Result<Self, SetupError> {
        let known: Vec<String> = listed.iter().map(|member| member.name.clone()).collect();
        let cluster = observer.access().directory().cluster().unwrap_or_default();
        let mut members = BTreeMap::new();
        for node in &playbook.nodes {
            let mut named = listed.iter().filter(|member| member.name == node.name);
            let Some(found) = named.next() else {
                if node.may_join {
                    let begun = begun_here(node, cluster, &listed).await;
                    members.extend(begun.map(|member| (node.name.clone(), member)));
                    continue;
                }
                return Err(SetupError::NoSuchMember { name: node.name.clone(), known });
            };
            if let Some(another) = named.next() {
                return Err(SetupError::SameName { name: node.name.clone(), ids: [found.id, another.id] });
            }
            members.insert(node.name.clone(), found.id);
        }
        Ok(Self { cluster, members })
    }
}
