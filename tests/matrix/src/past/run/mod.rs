//! Carries a plan out on real members, and judges after every step.

mod asked;
mod away;
mod chores;
mod judge;
mod membership;
mod restore;
mod stage;
mod users;
mod v2;
mod watch;
mod writes;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lab::{cluster::Cluster, system::Build};
use proto::Release;

use super::{Action, Plan, Step};
pub use asked::Answer;
use stage::Stage;
use tokio::sync::oneshot;

/// The releases on this machine.
pub type Builds = BTreeMap<Release, Build>;

/// What came of a plan.
#[derive(Debug)]
pub struct Outcome {
    /// What the agent said of each hop beforehand, where one is asked.
    pub answers: Vec<Answer>,
    pub failure: Option<Failure>,
    pub took: Duration,
}

/// A promise that was broken, and when.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In which step.
    pub step: usize,
    pub broken: Broken,
    /// The lines of members' logs with which a program ends that gives up.
    pub last_lines: Vec<String>,
    pub folder: PathBuf,
}

/// What was seen that must not be.
#[derive(Clone, Debug)]
pub struct Broken {
    pub symptom: Symptom,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// A member ended, does not start or does not serve.
    DoesNotServe,
    /// Members disagree about who is a member, or all are wrong.
    Membership,
    /// Members hold different data at the same place in the log.
    Data,
    /// A write that was acknowledged is not there.
    LostWrite,
    /// Members disagree about users, or do not let them in.
    Auth,
    /// A watch missed an event, or had one twice or out of order.
    Watch,
    /// The plan could not be carried out: nothing is known of the cluster.
    NotCarriedOut,
}

impl Broken {
    fn new(symptom: Symptom, text: impl Into<String>) -> Self {
        Self { symptom, text: text.into() }
    }
}

impl<E: Into<lab::Error>> From<E> for Broken {
    fn from(error: E) -> Self {
        Self::new(Symptom::NotCarriedOut, error.into().to_string())
    }
}

/// What plans are run with.
#[derive(Clone, Debug)]
pub struct Bench {
    pub builds: Builds,
    /// An agent that is asked, before each hop, whether it would go.
    pub agent: Option<PathBuf>,
}

/// Runs a plan in this folder, to its end or to the first broken promise. The folder is left only where one was broken.
pub async fn run(plan: &Plan, bench: &Bench, folder: &Path) -> Outcome {
    let began = Instant::now();
    let (failure, answers) = match Stage::laid_out(plan, bench, folder) {
        Err(broken) => (Some(failure(0, broken, None, folder)), Vec::new()),
        Ok(mut stage) => {
            let ended = carry_out(plan, &mut stage).await.err();
            let failure = ended.map(|(step, broken)| failure(step, broken, Some(&stage), folder));
            if failure.is_some() && stage.answers.is_empty() && plan.ground.way.len() > 1 {
                // What could not be asked is not told.
                let _ = asked::ask(&mut stage, &plan.ground.way[1], true).await;
            }
            (failure, std::mem::take(&mut stage.answers))
        }
    };
    if failure.is_none() {
        let _ = fs::remove_dir_all(folder);
    }
    Outcome { failure, answers, took: began.elapsed() }
}

/// What is left of a plan that was carried out.
#[derive(Debug)]
pub struct Raised {
    /// At rest.
    pub cluster: Cluster,
    /// What keys hold that clients know; `None` where they were deleted.
    pub known: BTreeMap<String, Option<Vec<u8>>>,
}

/// Carries a plan out in this folder, and leaves its cluster there, at rest.
///
/// # Errors
/// The first broken promise; its folder is left, too.
pub async fn raise(plan: &Plan, bench: &Bench, folder: &Path) -> Result<Raised, Failure> {
    let mut stage = Stage::laid_out(plan, bench, folder).map_err(|broken| failure(0, broken, None, folder))?;
    if let Err((step, broken)) = carry_out(plan, &mut stage).await {
        return Err(failure(step, broken, Some(&stage), folder));
    }
    let last = plan.steps.len();
    stage.at_rest().map_err(|broken| failure(last, broken, None, folder))
}

async fn carry_out(plan: &Plan, stage: &mut Stage) -> Result<(), (usize, Broken)> {
    for step in &plan.steps {
        let done = async {
            step_of(stage, step).await?;
            judge::judge(stage).await
        };
        done.await.map_err(|broken| (step.id, broken))?;
    }
    Ok(())
}

/// A step, with the chores that go on meanwhile and the kill that hits it.
async fn step_of(stage: &mut Stage, step: &Step) -> Result<(), Broken> {
    let (answered, answer) = oneshot::channel();
    let (chores, kill) = (chores::chores(stage)?, chores::kill(stage, step.kill.as_ref(), answer));
    let done = async {
        let action = async {
            let done = perform(stage, &step.action).await;
            // Nobody waits for it where the kill came earlier, or none does.
            let _ = answered.send(());
            done
        };
        let (done, killed) = tokio::join!(action, kill);
        // A member that could not be started again is what the judge sees, too.
        done.and(killed)
    };
    tokio::select! {
        done = done => done,
        never = chores => never,
    }
}

async fn perform(stage: &mut Stage, action: &Action) -> Result<(), Broken> {
    match action {
        Action::Start => stage.start().await,
        Action::Write { mix, count } => writes::write(stage, *mix, *count).await,
        Action::Compact { behind } => writes::compact(stage, *behind).await,
        Action::Defragment { member } => writes::defragment(stage, *member).await,
        Action::Auth { on: true } => users::turn_on(stage).await,
        Action::Auth { on: false } => users::turn_off(stage).await,
        Action::AddUser => users::add(stage).await,
        Action::Grant => users::grant(stage).await,
        Action::OldApi { kept } => v2::write(stage, *kept).await,
        Action::Restart { member } => stage.restart(*member).await,
        Action::Change { leaves, joins, as_learner } => membership::change(stage, *leaves, joins, *as_learner).await,
        Action::Rejoin { member, as_learner } => membership::rejoin(stage, *member, *as_learner).await,
        Action::Restore => restore::restore(stage).await,
        Action::Away { member, how, meanwhile } => away::away(stage, *member, *how, meanwhile).await,
        Action::Hop { to, order, writes } => stage.hop(to, order, *writes).await,
    }
}

fn failure(step: usize, broken: Broken, stage: Option<&Stage>, folder: &Path) -> Failure {
    let last_lines = stage.map(Stage::last_lines).unwrap_or_default();
    // Whatever was tried then: it failed because a member had ended.
    let has_ended = stage.and_then(Stage::who_has_ended);
    let broken = match (broken.symptom, has_ended) {
        (Symptom::NotCarriedOut, Some(name)) => {
            Broken::new(Symptom::DoesNotServe, format!("{name} has ended; {}", broken.text))
        }
        _ => broken,
    };
    Failure { step, broken, last_lines, folder: folder.into() }
}
