//! What this host must have before it may take the baton: the new release in place and checked, the way back
//! known, files and users as they must be (agent/PROTOCOL.md, "Preflight").

use std::time::Duration;

use proto::Release;
use tokio::{
    sync::watch,
    time::{Instant, interval_at},
};

use super::{
    Execution, backup,
    error::ActError,
    node::{OwnNode, Side, Sides},
    port_owner::must_answer_itself,
    process_member::must_be_the_member,
};
use crate::{
    event::{RunEvent, trouble::Trouble},
    host::{
        blocking::blocking,
        process::cgroup,
        release::{
            artifact::{self, Underway},
            download,
        },
        runtime::systemd::check::Trying,
    },
    journal::restart::{Direction, InHand, Stage},
    observe::{Observer, awake::within, permission::Permission, view::Member},
    plan::{Guard, Verb},
    playbook::{self, Playbook},
};

/// How long a corrected artifact is waited for while its member may be down.
const TO_CORRECT: Duration = Duration::from_secs(30);
/// How long a member is waited for that was just started and does not say yet who it is.
const TO_ANSWER: Duration = Duration::from_secs(20);
/// How long a member whose process is not found may take to answer.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How often it is told how far a download is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

impl Execution<'_> {
    pub(super) async fn prepare(&mut self) -> Result<(), ActError> {
        let interrupt = self.console.interrupt.clone();
        tokio::select! {
            prepared = self.prepare_all() => prepared,
            () = interrupt.asked(1) => Err(ActError::from("interrupted")),
        }
    }

    /// A step that has begun to start its new binary, or to leave it, goes on with the artifact that the playbook names
    /// now: the one it had may be what failed, and where the way back is closed only another one repairs it.
    pub(super) async fn correct_new_side(&mut self) {
        let Some(InHand { step, stage }) =
            self.host.past.restart().filter(|in_hand| in_hand.step.direction == Direction::Forward)
        else {
            return;
        };
        if !matches!(
            stage,
            Stage::Starting(Direction::Forward) | Stage::Stopping(Direction::Back) | Stage::Switched(Direction::Back)
        ) {
            return;
        }
        let kind = self.playbook.kind.clone();
        let Some(playbook::Hop { to, artifact, .. }) = kind.hop() else { return };
        let Some(at) = self.host.nodes.iter().position(|node| node.member == step.member) else { return };
        let Some(known) = self.host.nodes[at].sides.clone().filter(|sides| sides.new.release == *to) else { return };
        // The member may be down: a mirror that does not answer must not keep it so.
        let installed = tokio::time::timeout(TO_CORRECT, self.install(at, to, artifact)).await;
        match installed.unwrap_or_else(|_| Err(ActError::from("it was not there in time"))) {
            Ok(new) => self.host.nodes[at].sides = Some(Sides { new, ..known }),
            Err(why) => self.warn(&format!("{} stays on the artifact it had: {why}", self.name_of(step.member))),
        }
    }

    async fn prepare_all(&mut self) -> Result<(), ActError> {
        if let Some(trouble) = self.host.unwritable.take() {
            return Err(ActError::Trouble(trouble));
        }
        self.judge_access().await?;
        if let Verb::Guard(asked) = self.me.verb {
            if asked != Guard::Finish && self.host.past.in_hand.is_none() {
                return self.prepare_for_a_command().await;
            }
            return Ok(());
        }
        self.check_own_certificate()?.iter().for_each(|warning| self.warn(warning));
        if self.me.verb != Verb::Rollback {
            // Whether one is still owed is not known yet.
            let playbook = self.playbook.clone();
            match blocking(move || backup::check(&playbook, None)).await {
                Ok(warning) => warning.iter().for_each(|warning| self.warn(warning)),
                Err(why) => self.warn(&format!("no backup can be made on this host: {why}")),
            }
        }
        self.learn_releases().await;
        for at in 0..self.host.nodes.len() {
            // A step in hand is brought to its end first, of whichever member.
            if !self.me.intent.change.changes_members() && self.host.past.in_hand.is_none() {
                self.host.nodes[at].check_has_data().await?;
            }
            let sides = self.sides(at).await?;
            let node = &mut self.host.nodes[at];
            node.check_newcomer(&self.me.intent.change, &self.cluster.observer, &sides.new).await?;
            node.check(&sides.old, &sides.new.release).await?;
            for side in [&sides.old, &sides.new] {
                node.check_safe(side).await?;
                node.check_hooks(&self.playbook, &side.release)?;
            }
            node.check_runtime(&sides.new).await?;
            for side in [&sides.old, &sides.new] {
                node.check_config_file(side).await?;
            }
            node.check_next_start(&sides.old).await?;
            // What keeps the new one from its start does not keep a member from its way back.
            if self.me.verb != Verb::Rollback {
                node.check_next_start(&sides.new).await?;
            }
            node.rehearse(&sides).await?;
            if self.me.verb != Verb::Rollback && node.current().await? != sides.new {
                node.check_capabilities(&sides)?;
                node.check_put_back(&sides)?;
            }
            if self.me.verb == Verb::Rollback && node.current().await? == sides.new {
                node.check_way_back(&sides)?;
            }
            node.look_up().await?;
            let mut warnings = node.check_unit(&sides.new, &self.playbook.strategy, Trying::Order).await?;
            node.sides = Some(sides);
            node.check_what_runs(&node.status().await?)?;
            node.check_alone().await?;
            let urls: Vec<_> = self.cluster.observer.access().directory().address_of(node.member).into_iter().collect();
            must_answer_itself(node, &urls).await?;
            warnings.extend(must_be_the_member(node, &self.cluster.observer, TO_ANSWER).await?.warning);
            warnings.iter().for_each(|warning| self.warn(warning));
            if is_unseen(&self.host.nodes[at], &self.cluster.observer).await? {
                return Err(self.host.nodes[at].unseen());
            }
            if self.me.verb != Verb::Rollback {
                // A step that has begun is brought to its end.
                let begins = self.host.past.in_hand.is_none();
                if begins && let Some(sides) = &self.host.nodes[at].sides {
                    let (own, accepted) = (&self.host.nodes[at], &self.playbook.strategy.accept_hazards);
                    let current = own.current().await?;
                    own.check_known_hazards(&current.release, &sides.new, accepted).await?;
                    own.check_fsync(&sides.new, accepted).await?;
                    own.check_settings((&current, &sides.new), accepted).await?;
                    let mut warnings = own.check_environment((&current, &sides.new), accepted).await?;
                    warnings.extend(own.check_certificates((&current, &sides.new), accepted).await?);
                    warnings.iter().for_each(|warning| self.warn(warning));
                }
                let warning = self.check_target(at).await?;
                warning.iter().for_each(|warning| self.warn(warning));
                if begins && matches!(self.me.verb, Verb::Run | Verb::Resume) {
                    self.prepare_later_hops(at).await?;
                }
                // Last, as they read most.
                let of_v2 = if begins { self.check_v2(at).await? } else { None };
                if begins && let Some(sides) = &self.host.nodes[at].sides {
                    let (own, accepted) = (&self.host.nodes[at], &self.playbook.strategy.accept_hazards);
                    let current = own.current().await?;
                    let way = (&current.release, &sides.new);
                    let (observer, folder) = (&self.cluster.observer, self.host.state.path());
                    let in_store = own.must_be_fit(observer, way, accepted, folder).await?;
                    [of_v2, in_store].iter().flatten().for_each(|warning| self.warn(warning));
                }
            }
        }
        download::clear(&self.host.state.downloads())?;
        Ok(())
    }

    /// A guarded command changes neither binary nor file, and the agent stops no process itself. What the command stops must be
    /// what the cluster was asked about, and may not begin anew.
    async fn prepare_for_a_command(&mut self) -> Result<(), ActError> {
        for node in &mut self.host.nodes {
            node.look_up().await?;
            node.check_has_data().await?;
            match node.current().await {
                Ok(side) => {
                    node.check_config_file(&side).await?;
                    node.check_next_start(&side).await?;
                }
                Err(_) => node.check_start_now().await?,
            }
            let urls: Vec<_> = self.cluster.observer.access().directory().address_of(node.member).into_iter().collect();
            must_answer_itself(node, &urls).await?;
            must_be_the_member(node, &self.cluster.observer, TO_ANSWER).await?;
        }
        Ok(())
    }

    /// Of members that only they themselves can tell it of.
    async fn learn_releases(&mut self) {
        if !self.host.nodes.iter().any(OwnNode::needs_report) {
            return;
        }
        let Ok(view) = self.cluster.observer.probe().await else { return };
        for node in &mut self.host.nodes {
            node.reported =
                view.member(node.member).and_then(|member| member.release().cloned()).or(node.reported.take());
        }
    }

    /// What the member ran before and is to run after.
    async fn sides(&mut self, at: usize) -> Result<Sides, ActError> {
        let current = self.host.nodes[at].current().await?;
        let binary = self.host.nodes[at].node.binary.clone();
        let kind = self.playbook.kind.clone();
        let Some(playbook::Hop { from, to, artifact }) = kind.hop() else {
            return Ok(Sides { old: current.clone(), new: current, binary });
        };
        let known = self.host.nodes[at].sides.clone().filter(|sides| sides.new.release == *to);
        let is_new = current.release == *to;
        let new = match (&known, self.me.verb) {
            (_, Verb::Rollback) if is_new => current.clone(),
            (Some(sides), Verb::Rollback) => sides.new.clone(),
            _ => self.install(at, to, artifact).await?,
        };
        // Another file of the same release is no way back: a corrected artifact took its place.
        if !is_new {
            return Ok(Sides { old: current, new, binary });
        }
        let previous = match known {
            Some(sides) if sides.old.release != *to => Some(sides.old),
            _ => self.host.nodes[at].previous(from).await,
        };
        match (previous, self.me.verb) {
            (Some(old), _) => Ok(Sides { old, new, binary }),
            (None, Verb::Rollback) => Err(ActError::from(format!(
                "{}: no release that `from` allows lies beside {}, so there is nothing to go back to",
                self.host.nodes[at].node.name,
                self.host.nodes[at].node.binary.as_ref().map_or(String::new(), |binary| binary.display().to_string())
            ))),
            (None, _) => Ok(Sides { old: current, new, binary }),
        }
    }

    pub(super) async fn install(
        &mut self,
        at: usize,
        to: &Release,
        artifact: &playbook::Artifact,
    ) -> Result<Side, ActError> {
        let Some(releases) = self.host.nodes[at].releases() else { return Err(ActError::from("`binary` is missing")) };
        let downloads = self.host.state.downloads();
        let artifact = wanted(to, artifact)?;
        let (teller, mut told) = watch::channel(None);
        let tell = |underway| drop(teller.send_replace(Some(underway)));
        let installed = artifact::install(&artifact, &releases, &downloads, &tell);
        tokio::pin!(installed);
        let mut ticks = interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
        let installed = loop {
            tokio::select! {
                installed = &mut installed => break installed?,
                _ = ticks.tick() => self.tell_what_is_new(&mut told),
            }
        };
        self.host.nodes[at].must_be(installed.executable, to).await
    }

    fn tell_what_is_new(&mut self, told: &mut watch::Receiver<Option<Underway>>) {
        if !told.has_changed().unwrap_or(false) {
            return;
        }
        if let Some(underway) = told.borrow_and_update().as_ref() {
            self.tell(RunEvent::Preparing { what: &in_words(underway) });
        }
    }

    async fn judge_access(&mut self) -> Result<(), ActError> {
        match &self.playbook.cluster.auth {
            Some(auth) => {
                let user = auth.user.clone();
                if !self.cluster.observer.is_administrator().await? {
                    return Err(ActError::Trouble(Trouble::NotRoot { user }));
                }
            }
            // Some releases answer all but the keys.
            None if self.cluster.observer.reads_keys().await == Some(Permission::UserWanted) => {
                return Err(ActError::Trouble(Trouble::user_wanted()));
            }
            None => {}
        }
        Ok(())
    }
}

fn in_words(underway: &Underway) -> String {
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    match underway {
        Underway::Download { bytes, of: Some(of) } => format!("download: {} of {} MiB", mib(*bytes), mib(*of)),
        Underway::Download { bytes, of: None } => format!("download: {} MiB", mib(*bytes)),
        Underway::Another(folder) => format!("another agent unpacks in {}", folder.display()),
    }
}

/// Whether what is started here would outlive the agent; a warning where it would not outlive a login session.
///
/// # Errors
/// It would be killed with the agent.
pub(super) async fn judge_cgroup(playbook: &Playbook) -> Result<Option<String>, ActError> {
    let is_process = |node: &playbook::Node| matches!(node.runtime, playbook::Runtime::Process(_));
    if !playbook.nodes.iter().any(is_process) {
        return Ok(None);
    }
    match cgroup::judge_own().await {
        cgroup::Judgement::Safe => Ok(None),
        cgroup::Judgement::UntilLogout { unit } => {
            Ok(Some(format!("nodes of the process runtime live in {unit} and end with the login session")))
        }
        cgroup::Judgement::Killed { unit, why } => Err(ActError::from(format!(
            "nodes started here would be killed with {unit}: {why}; run the agent outside it, or under a unit with KillMode=process"
        ))),
    }
}

/// Whether a member's process is not found, before and after the member itself answers. Whoever answers late, or in the name
/// of a member that others list otherwise, keeps no member down (I-10).
pub(super) async fn is_unseen(node: &OwnNode, observer: &Observer) -> Result<bool, ActError> {
    if node.status().await?.is_running() {
        return Ok(false);
    }
    let view = within(ANSWERS_WITHIN, observer.probe()).await.and_then(Result::ok);
    let answers = view.is_some_and(|view| view.member(node.member).is_some_and(answers_itself));
    // A supervisor may have started it in between.
    Ok(answers && !node.status().await?.is_running())
}

/// Whether it is this member that answers, as far as all lists agree.
pub(super) fn answers_itself(member: &Member) -> bool {
    member.report().is_some() && !member.is_disputed
}

/// The artifact of the playbook, as this host knows artifacts.
pub fn wanted(to: &Release, artifact: &playbook::Artifact) -> Result<artifact::Artifact, ActError> {
    Ok(artifact::Artifact {
        release: to.clone(),
        source: source(&artifact.source)?,
        sha256: artifact.source.sha256().copied(),
        executable: artifact.executable.clone(),
    })
}

fn source(source: &playbook::Source) -> Result<artifact::Source, ActError> {
    match source {
        playbook::Source::Path { path, .. } => Ok(artifact::Source::Path(path.clone())),
        playbook::Source::Url { url, .. } => Ok(artifact::Source::Url(url.parse().map_err(ActError::Address)?)),
    }
}
