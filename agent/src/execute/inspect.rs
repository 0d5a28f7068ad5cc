//! The half of setting up and preparing that only reads, for `agent plan`: what `agent run` would refuse on this host.
//!
//! Takes no lock and writes nothing. What only a try can show (a download, a full disk) is left to the run. Source:
//! agent/PROTOCOL.md, "Preflight".

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use proto::MemberId;

use super::{
    backup,
    data_dir::DataDirError,
    error::ActError,
    hop::{self, of_hop},
    intent,
    line::{Line, Past, past},
    look::closed_until,
    membership::with_initial_cluster,
    node::{OwnNode, Side},
    own_certificate,
    own_data::data,
    own_store::Looked,
    port_owner::must_answer_itself,
    prepare,
    process_member::must_be_the_member,
    setup::{SetupError, illegal},
    v2_api::IN_LOG,
};
use crate::{
    host::{
        files::state_dir::Layout,
        release::artifact,
        runtime::{Status, systemd::check::Trying},
    },
    journal::{
        file::{Journal, JournalError},
        progress::InHand,
    },
    keys::{Intent, change::Change},
    observe::{Observer, secret_file, view::ClusterView},
    plan::membership::survey::{Data, Place},
    playbook::{self, Node, Playbook},
};

/// What is said of an artifact that only a run takes apart.
pub const UNTRIED: &str = "whether the new release takes the member's arguments is not tried here, as its artifact is not unpacked yet; \
                           agent run tries it before the stop";

/// What a run would find on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    pub warnings: Vec<String>,
    /// Members that it would start, as they do not run.
    pub down: Vec<MemberId>,
    /// Where each node has its data and address, for a change of members.
    pub places: Vec<Place>,
    /// Why this host could not make the backup that the playbook asks for.
    pub no_backup: Option<String>,
    /// When this host's window opens, where it is closed.
    pub closed_until: Option<Arc<str>>,
}

/// Looks at this host's journal and nodes as a run would.
///
/// # Errors
/// What the run would be refused for.
pub async fn inspect(
    whole: &Playbook,
    intent: &Intent,
    view: &ClusterView,
    observer: &Observer,
) -> Result<Inspected, SetupError> {
    let playbook = &intent::at(whole, &intent.change);
    let later = hop::later(whole, intent);
    let layout = Layout::of(&playbook.state_dir);
    let past = read_journal(&layout, view)?;
    let mut found = Inspected { closed_until: closed_until(playbook), ..Inspected::default() };
    match backup::check(playbook, Some(view)) {
        Ok(warning) => found.warnings.extend(warning),
        Err(why) => found.no_backup = Some(why.to_string()),
    }
    let of_host = SetupError::of_node(&super::identity::host_name());
    found.warnings.extend(prepare::judge_cgroup(playbook).await.map_err(of_host)?);
    let certificate = own_certificate::check(observer.access(), SystemTime::now(), playbook);
    found.warnings.extend(certificate.map_err(SetupError::of_node(&super::identity::host_name()))?);
    found.warnings.extend(secret_file::warnings(&playbook.cluster));
    for node in &playbook.nodes {
        let Some(member) = view.members.iter().find(|member| *member.name == node.name) else {
            if node.may_join {
                found.places.push(place(node, &layout, false).await);
                let inspected = inspect_newcomer(node, &intent.change, observer, &layout).await;
                found.warnings.extend(inspected.map_err(SetupError::of_node(&node.name))?);
                continue;
            }
            let known = view.members.iter().map(|member| member.name.to_string()).collect();
            return Err(SetupError::NoSuchMember { name: node.name.clone(), known });
        };
        if node.may_join {
            let place = place(node, &layout, member.report().is_some()).await;
            let has_nothing = matches!(place.data, Data::None | Data::NoLog);
            found.places.push(place);
            // A run never starts a member on nothing, and the planner says what is to be made of it.
            if has_nothing && playbook.kind.changes_members() {
                continue;
            }
        }
        let inspected = inspect_node(node, member.id, playbook, (view, observer), &layout, &past).await;
        let (warnings, is_down) = inspected.map_err(SetupError::of_node(&node.name))?;
        found.warnings.extend(warnings);
        found.down.extend(is_down.then_some(member.id));
        let later = inspect_later(node, member.id, &later, playbook, &layout).await;
        found.warnings.extend(later.map_err(SetupError::of_node(&node.name))?);
    }
    Ok(found)
}

/// Refuses a cluster that this host's members are not of, such as a twin of the same names: what is written there nobody reads here.
///
/// # Errors
/// The journal, or the process of a member, is of another cluster.
pub async fn must_be_of_this_host(
    playbook: &Playbook,
    view: &ClusterView,
    observer: &Observer,
) -> Result<(), SetupError> {
    let layout = Layout::of(&playbook.state_dir);
    let past = read_journal(&layout, view)?;
    for node in &playbook.nodes {
        let Some(member) = view.members.iter().find(|member| *member.name == node.name) else { continue };
        let judged = async {
            let mut own = OwnNode::open(node, member.id, &layout, past.sides.get(&member.id).cloned())?;
            own.look_up().await?;
            must_answer_itself(&own, &member.client_urls).await?;
            must_be_the_member(&own, observer, Duration::ZERO).await
        };
        judged.await.map_err(SetupError::of_node(&node.name))?;
    }
    Ok(())
}

fn read_journal(layout: &Layout, view: &ClusterView) -> Result<Past, SetupError> {
    let path = layout.journal();
    let Some((header, lines)) = Journal::<Line>::peek(&path).map_err(SetupError::Journal)? else {
        return Ok(Past::default());
    };
    let past = past(&lines).map_err(illegal(layout))?;
    match past.is_empty() || header.cluster == view.cluster {
        true => Ok(past),
        false => {
            let (found, expected) = (header.cluster, view.cluster);
            Err(SetupError::Journal(JournalError::OtherCluster { path, found, expected }))
        }
    }
}

/// How this host's members stand, before a person is asked anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostState {
    /// Whether an earlier run is in the middle of a step, or its journal cannot be read: a matter for the run itself.
    pub is_in_hand: bool,
    /// That step, with its member's name.
    pub step: Option<(String, InHand)>,
    /// The names of other members whose process does not run.
    pub down: Vec<String>,
}

/// Looks at this host alone, at its journal and its processes.
pub async fn host_state(playbook: &Playbook) -> HostState {
    let layout = Layout::of(&playbook.state_dir);
    let unreadable = HostState { is_in_hand: true, ..HostState::default() };
    let in_hand = match Journal::<Line>::peek(&layout.journal()) {
        Ok(None) => None,
        Ok(Some((header, lines))) => match past(&lines) {
            Ok(past) => past.in_hand.map(|in_hand| {
                let member = header.members.into_iter().find(|(_, id)| *id == in_hand.member());
                (member.map_or_else(|| in_hand.member().to_string(), |(name, _)| name), in_hand)
            }),
            Err(_) => return unreadable,
        },
        Err(_) => return unreadable,
    };
    let Processes { mut down, .. } = processes(playbook).await;
    down.retain(|down| !matches!(&in_hand, Some((name, _)) if name == down));
    HostState { is_in_hand: in_hand.is_some(), step: in_hand, down }
}

/// Which of this host's members do not run, by name; for what is told of a run that could not begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// Their process does not run.
    pub down: Vec<String>,
    /// It could not be looked at.
    pub unclear: Vec<String>,
}

/// Looks for the processes of this host's members, and at nothing else.
pub async fn processes(playbook: &Playbook) -> Processes {
    let layout = Layout::of(&playbook.state_dir);
    let mut found = Processes::default();
    for node in &playbook.nodes {
        match peek(node, &layout).await {
            Ok(status) if status.is_running() => {}
            Ok(_) => found.down.push(node.name.clone()),
            Err(_) => found.unclear.push(node.name.clone()),
        }
    }
    found
}

/// What cannot be looked at is not taken for stopped.
async fn place(node: &Node, layout: &Layout, answers: bool) -> Place {
    let runs = answers || peek(node, layout).await.is_ok_and(|status| status.is_running());
    Place { peer_urls: node.peer_urls.clone(), data: data(node).await, runs }
}

async fn peek(node: &Node, layout: &Layout) -> Result<Status, ActError> {
    let node = with_initial_cluster(node, &layout.nodes());
    let mut own = OwnNode::open(&node, MemberId::default(), layout, None)?;
    own.look_up().await?;
    own.peek().await
}

/// One that nobody lists yet, and that may join.
async fn inspect_newcomer(
    node: &Node,
    change: &Change,
    observer: &Observer,
    layout: &Layout,
) -> Result<Vec<String>, ActError> {
    let node = with_initial_cluster(node, &layout.nodes());
    let own = OwnNode::open(&node, MemberId::default(), layout, None)?;
    let side = own.current().await?;
    own.check_newcomer(change, observer, &side).await?;
    own.check_safe(&side).await?;
    own.check_arguments(&side).await
}

/// What later hops need of this host.
async fn inspect_later(
    node: &Node,
    member: MemberId,
    later: &[playbook::Hop],
    playbook: &Playbook,
    layout: &Layout,
) -> Result<Vec<String>, ActError> {
    let own = OwnNode::open(node, member, layout, None)?;
    let mut warnings = Vec::new();
    let mut before = match playbook.kind.hop() {
        Some(hop) if !later.is_empty() => installed(&own, hop).await?,
        _ => return Ok(warnings),
    };
    for hop in later {
        let after = installed(&own, hop).await.map_err(of_hop(&hop.to))?;
        if let (Some(before), Some(after)) = (&before, &after) {
            let checked = own.check_hop((before, after), playbook).await;
            warnings.extend(checked.map_err(of_hop(&hop.to))?);
        }
        if after.is_none() {
            warnings.push(format!("{}, for {}: {UNTRIED}", node.name, hop.to));
        }
        before = after;
    }
    Ok(warnings)
}

/// A hop's release, where it lies unpacked already.
async fn installed(own: &OwnNode, hop: &playbook::Hop) -> Result<Option<Side>, ActError> {
    let Some(releases) = own.releases() else { return Err("`binary` is missing".into()) };
    match artifact::check(&prepare::wanted(&hop.to, &hop.artifact)?, &releases)? {
        Some(executable) => Ok(Some(own.must_be(executable, &hop.to).await?)),
        None => Ok(None),
    }
}

async fn inspect_node(
    node: &Node,
    member: MemberId,
    playbook: &Playbook,
    (view, observer): (&ClusterView, &Observer),
    layout: &Layout,
    past: &Past,
) -> Result<(Vec<String>, bool), ActError> {
    let node = &with_initial_cluster(node, &layout.nodes());
    let mut own = OwnNode::open(node, member, layout, past.sides.get(&member).cloned())?;
    if past.in_hand.is_none() && !playbook.kind.changes_members() {
        // Where it runs is said, if that can be seen.
        let _ = own.look_up().await;
        own.check_has_data().await?;
    }
    if past.in_hand.is_some_and(|in_hand| in_hand.member() == member) {
        own.check_begun()?;
    }
    let seen = view.member(member);
    own.reported = seen.and_then(|member| member.release().cloned());
    let current = own.current().await?;
    own.look_up().await?;
    let mut capability_warning = None;
    let target = match playbook.kind.hop() {
        Some(playbook::Hop { to, artifact, .. }) => {
            let Some(releases) = own.releases() else { return Err("`binary` is missing".into()) };
            let wanted = prepare::wanted(to, artifact)?;
            let executable = artifact::check(&wanted, &releases)?;
            capability_warning = own.look_at_capabilities(&current, to, executable.as_deref())?;
            let new = match executable {
                Some(executable) => Some(own.must_be(executable, to).await?),
                None => None,
            };
            own.check_hooks(playbook, to)?;
            own.check(&current, to).await?;
            new
        }
        None => {
            own.check(&current, &current.release).await?;
            Some(current.clone())
        }
    };
    own.check_safe(&current).await?;
    for side in [Some(&current), target.as_ref()].into_iter().flatten() {
        own.check_config_file(side).await?;
        own.check_next_start(side).await?;
    }
    own.check_hooks(playbook, &current.release)?;
    // A release that is not there yet is tried by the run.
    let mut warnings = own.check_unit(&current, &playbook.strategy, Trying::Look).await?;
    warnings.extend(capability_warning);
    warnings.extend(own.still_ending().await);
    // In the middle of a step link and process differ, and the run ends the step first.
    if past.in_hand.is_some_and(|in_hand| in_hand.member() == member) {
        return Ok((warnings, false));
    }
    let status = own.peek().await?;
    own.check_what_runs(&status)?;
    own.check_alone().await?;
    if let Some(member) = seen.filter(|member| member.report().is_some()) {
        must_answer_itself(&own, &member.client_urls).await?;
    }
    warnings.extend(must_be_the_member(&own, observer, Duration::ZERO).await?.warning);
    let answers = seen.is_some_and(|member| member.report().is_some());
    let is_down = !status.is_running() && !own.peek().await?.is_running();
    if answers && is_down {
        return Err(own.unseen());
    }
    match &target {
        Some(target) => {
            let accepted = &playbook.strategy.accept_hazards;
            own.check_known_hazards(&current.release, target, accepted).await?;
            own.check_fsync(target, accepted).await?;
            own.check_settings((&current, target), accepted).await?;
            warnings.extend(own.check_environment((&current, target), accepted).await?);
            let folder = std::env::temp_dir();
            if let Looked::Unread(why) =
                own.check_store(observer, (&current.release, target), accepted, &folder).await?
            {
                warnings.push(why);
            }
            warnings.extend(own.check_certificates((&current, target), accepted).await?);
            warnings.extend(own.check_arguments(target).await?);
        }
        None => warnings.push(format!("{}: {UNTRIED}", node.name)),
    }
    let new = playbook.target().unwrap_or(&current.release);
    let accepted = &playbook.strategy.accept_hazards;
    warnings.extend(match own.check_v2((&current, new), target.as_ref(), accepted).await {
        // The run sees to it (`snapshot.rs`).
        Err(ActError::KnownHazard { node, id: IN_LOG, .. }) => Some(format!(
            "{node}: agent run has it take a snapshot first, as {new} cannot read what its log has of the v2 API"
        )),
        looked => looked?,
    });
    warnings.extend(match own.check_data_dir(&current.release, new).await {
        // The run sees to it (`snapshot.rs`).
        Err(DataDirError::OldLog { node, .. }) => vec![format!(
            "{node}: agent run has it take a snapshot first, as {new} cannot read what 3.5 wrote into its log"
        )],
        looked => looked?,
    });
    Ok((warnings, is_down))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use proto::{ClusterId, Release};

    use super::*;
    use crate::{
        execute::node::{Side, Sides},
        journal::{
            file::Header,
            progress::Entry,
            restart::{self, Direction, Step},
        },
        keys::{AttemptId, host_id::HostId},
        observe::view::Leader,
    };

    #[test]
    fn a_journal_is_read_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::of(&folder.path().join("state"));
        let view = |cluster| ClusterView {
            cluster: ClusterId(cluster),
            leader: Leader::Unknown,
            members: Vec::new(),
            warnings: Vec::new(),
        };
        read_journal(&layout, &view(1)).unwrap();
        assert!(!folder.path().join("state").exists(), "nothing is made");

        fs::create_dir(folder.path().join("state")).unwrap();
        let header = Header::new(ClusterId(1), HostId { machine: None, instance: 7 }, BTreeMap::new());
        let mut journal = Journal::<Line>::create(&layout.journal(), header).unwrap();
        assert!(read_journal(&layout, &view(2)).unwrap().is_empty(), "nothing stands in it that is of a cluster");
        let side = Side { release: Release::new(3, 5, 30), executable: None };
        let sides = Sides { old: side.clone(), new: side, binary: None };
        let step = Step { member: MemberId(1), attempt: AttemptId(1), direction: Direction::Forward };
        journal.append(&Line::new(Entry::Restart(restart::Entry::Planned(step)), Some(sides))).unwrap();
        read_journal(&layout, &view(1)).unwrap();
        let other = read_journal(&layout, &view(2)).unwrap_err();
        assert!(matches!(other, SetupError::Journal(JournalError::OtherCluster { .. })), "{other}");

        // A tail that is just being written is nobody's to cut but its writer's.
        let torn = [fs::read(layout.journal()).unwrap(), b"0123".to_vec()].concat();
        fs::write(layout.journal(), &torn).unwrap();
        read_journal(&layout, &view(1)).unwrap();
        assert_eq!(fs::read(layout.journal()).unwrap(), torn);
        fs::write(layout.journal(), "no journal\n").unwrap();
        assert!(matches!(read_journal(&layout, &view(1)), Err(SetupError::Journal(_))));
    }
}
