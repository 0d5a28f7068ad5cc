//! `agent abandon`: give up a step whose host does not come back, in one Txn; and with
//! `--host-is-fenced` say that this host is dead for good.

use std::time::Duration;

use proto::MemberId;
use tokio::time::{Instant, sleep};

use super::{
    Outcome, abandon_join,
    ask::{is_person, is_yes, no_signals},
    look::{ClusterSnapshot, Prober},
};
use crate::{
    cli::{self, Output},
    event::trouble::Trouble,
    execute::interrupt::Interrupt,
    keys::{At, Keys, StepLock, rules::Rules, seat::Seats, txn::Txn},
    playbook::Playbook,
    report::{
        file::json::{Facts, members},
        live::text,
        names::Names,
        shown::gates::gates,
        stop::abandoned,
    },
    store::{
        Store, TxnAnswer,
        stored::{self, StoredError},
    },
};

/// How long an answer is asked for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const ASKED_EVERY: Duration = Duration::from_millis(200);

/// Gives the step up, and says what its member counts as now. Asks before, where there is a person to answer.
///
/// # Errors
/// There is no such member or step, its agent is at work, it changed meanwhile, or nobody answers.
pub async fn abandon(typed: &cli::Abandon, output: Output) -> Result<Outcome, Trouble> {
    let playbook = Playbook::load(&typed.playbook)?;
    let prober = Prober::open(&playbook.cluster)?;
    let mut first = prober.look().await?;
    let first_keys = first.keys()?;
    if let Some(given_up) = abandon_join::abandon(&prober, typed, &first, &first_keys).await? {
        return Ok(given_up);
    }
    let (mut snapshot, mut keys, mut member) = look(&prober, typed).await?;
    if !typed.yes && output == Output::Text && is_person() {
        if let Some(question) = question(typed, &snapshot.names, &keys, member) {
            let interrupt = Interrupt::install().map_err(no_signals)?;
            if !is_yes(&question, &interrupt).await? {
                return Err(Trouble::NotConfirmed);
            }
        }
        // Whoever thinks it over may think long.
        (snapshot, keys, member) = look(&prober, typed).await?;
    }
    let name = snapshot.names.member(member);
    let mut lost = keys.abandoned.get(&member).cloned();
    let mut abandoned = None;
    if let Some(down) = keys.step.as_ref().filter(|down| down.value.member == member) {
        abandoned = Some(down.value.clone());
        lost = Some(give_up(&prober.store, down, &name).await?);
    }
    let Some(lost) = lost else { return Err(Trouble::NothingToAbandon { member: name }) };
    if typed.host_is_fenced {
        clear(&prober.store, member, &lost, &name).await?;
    }
    let changed = abandoned.is_some() || typed.host_is_fenced;
    Ok(told(typed, &snapshot, &keys, &lost.value, changed))
}

/// By name or id; an abandoned step may be of somebody who is no member any more.
fn find(typed: &str, snapshot: &ClusterSnapshot, keys: &Keys) -> Result<MemberId, Trouble> {
    let recorded =
        |id: &MemberId| keys.abandoned.contains_key(id) || keys.step.as_ref().is_some_and(|d| d.value.member == *id);
    let found = snapshot.names.find(typed).or_else(|| typed.parse().ok().filter(recorded));
    found.ok_or_else(|| {
        let ids: Vec<_> = snapshot.view.members.iter().map(|member| member.id).collect();
        Trouble::NoSuchMember { typed: typed.to_owned(), members: snapshot.names.list(&ids) }
    })
}

/// Looks, and finds the member. An agent that is at work can still do what its step announces.
async fn look(prober: &Prober, typed: &cli::Abandon) -> Result<(ClusterSnapshot, Keys, MemberId), Trouble> {
    let mut snapshot = prober.look().await?;
    let keys = snapshot.keys()?;
    let member = find(&typed.member, &snapshot, &keys)?;
    let at_work = stands(&keys, member).filter(|record| keys.agents.contains_key(&record.host));
    match at_work {
        Some(record) if !typed.yes => {
            let (member, host) = (snapshot.names.member(member), record.host_name.clone());
            Err(Trouble::AgentAtWork { member, host })
        }
        _ => Ok((snapshot, keys, member)),
    }
}

/// The step of a member that stands, or was given up before.
fn stands(keys: &Keys, member: MemberId) -> Option<&StepLock> {
    let down = keys.step.as_ref().filter(|down| down.value.member == member);
    down.or_else(|| keys.abandoned.get(&member)).map(|at| &at.value)
}

/// What a yes would have everybody believe; nothing where nothing would change.
fn question(typed: &cli::Abandon, names: &Names, keys: &Keys, member: MemberId) -> Option<String> {
    let record = stands(keys, member)?;
    let is_given_up = keys.step.as_ref().is_none_or(|down| down.value.member != member);
    match typed.host_is_fenced {
        true => Some(abandoned::ask_fenced(record, names)),
        false => (!is_given_up).then(|| abandoned::ask(record, names)),
    }
}

/// Deletes the record and leaves its sign. Sending it again settles an unknown answer: the sign carries the
/// attempt's id.
async fn give_up(store: &Store, down: &At<StepLock>, name: &str) -> Result<At<StepLock>, Trouble> {
    let txn = Txn::abandon(down, &Rules::default());
    let sign = match send(store, &txn).await? {
        Ok(revision) => Some(At { created: revision, modified: revision, value: down.value.clone() }),
        Err(keys) => {
            keys.abandoned.get(&down.value.member).filter(|lost| lost.value.attempt == down.value.attempt).cloned()
        }
    };
    sign.ok_or_else(|| Trouble::StepLockChanged { member: name.to_owned() })
}

async fn clear(store: &Store, member: MemberId, lost: &At<StepLock>, name: &str) -> Result<(), Trouble> {
    match send(store, &Txn::clear_abandoned(member, lost.created)).await? {
        Ok(_) => Ok(()),
        Err(keys) if !keys.abandoned.contains_key(&member) => Ok(()),
        Err(_) => Err(Trouble::StepLockChanged { member: name.to_owned() }),
    }
}

/// Sends until there is an answer: the revision of a yes, or the keys of a no.
pub(super) async fn send(store: &Store, txn: &Txn) -> Result<Result<proto::Revision, Keys>, Trouble> {
    let deadline = Instant::now() + PATIENCE;
    let (compares, ops) = stored::txn(txn, None);
    loop {
        match store.txn(&compares, &ops).await {
            TxnAnswer::Yes { revision } => return Ok(Ok(revision)),
            TxnAnswer::No(snapshot) => return Ok(Err(stored::keys(&snapshot)?)),
            TxnAnswer::Oversize(error) => return Err(StoredError::from(error).into()),
            TxnAnswer::Refused(why) => return Err(Trouble::refused(&why)),
            TxnAnswer::LeaseGone => {
                return Err(Trouble::NoAnswer("it speaks of a lease, and none was asked for".into()));
            }
            TxnAnswer::Unknown(why) if Instant::now() > deadline => return Err(Trouble::no_answer(why.to_string())),
            TxnAnswer::Unknown(_) => sleep(ASKED_EVERY).await,
        }
    }
}

fn told(typed: &cli::Abandon, snapshot: &ClusterSnapshot, keys: &Keys, record: &StepLock, changed: bool) -> Outcome {
    let (gates, members) =
        (gates(&snapshot.view, &snapshot.names), members(&snapshot.view, &snapshot.names, &Seats::default()));
    let mut facts = Facts { changed, members, gates, ..Facts::default() };
    facts.run = keys.run.as_ref().map(|run| run.value.id);
    facts.warnings.extend(abandoned::warning(record, keys, &snapshot.names));
    let stop = match typed.host_is_fenced {
        true => abandoned::fenced(record, &snapshot.names, &snapshot.view, &typed.playbook),
        false => abandoned::abandoned(record, &snapshot.names, &snapshot.view, &typed.playbook),
    };
    Outcome { text: text::end(&stop), stop, facts }
}
