//! What a host would do next, in words.

use super::status::state;
use crate::{
    keys::membership::{RoleChange, Stage},
    plan::{Finish, Next, action::Action, membership::Move, refusal::Refusal},
    report::{
        change,
        names::{Names, printable},
        wait,
    },
};

/// As in `this host would now: …`; `refused` has the words for a refusal.
pub fn words(next: &Next, names: &Names, refused: impl Fn(&Refusal) -> String) -> String {
    let short = |member| names.short(member);
    match next {
        Next::Refuse(refusal) => format!("refuse: {}", refused(refusal)),
        Next::Wait(wait) => format!("wait for {}", wait::words(wait, names)),
        Next::Examine => "ask what the members say before a run begins".into(),
        Next::Begin => "begin the run".into(),
        Next::Move { to, .. } => format!("write the run's state: {}", state(to, names)),
        Next::CleanUp(_) => "delete what stands for nobody any more".into(),
        Next::Adopt(member) => format!("bring {} up and finish what an earlier agent began", short(*member)),
        Next::Step(Action::Restart(go)) => match go.hand_over {
            Some(to) => format!(
                "ask for the baton, pass leadership from {} to {}, then take it down",
                short(go.member),
                short(to)
            ),
            None => format!("ask for the baton, then take {} down", short(go.member)),
        },
        Next::Members(next) => members(next, names),
        Next::Step(Action::Guard(_)) => "ask for the baton, then run its command".into(),
        Next::BackUp => "ask for the baton, then save a member's database".into(),
        Next::Downgrade(Some(to)) => format!("enable a downgrade to {to}"),
        Next::Downgrade(None) => "cancel the downgrade".into(),
        Next::Settle => "wait until versions, gates and hashes agree".into(),
        Next::Hop(hop) => format!("go on with the next hop, {}", change::words(Some(hop)).run),
        Next::Finish(Finish::Held { member }) => format!("nothing: the run holds before {}", short(*member)),
        Next::Finish(Finish::Partial { left }) => format!("nothing: its part is done; left are {}", names.list(left)),
        Next::Finish(_) => "nothing".into(),
    }
}

fn members(next: &Move, names: &Names) -> String {
    let short = |member| names.short(member);
    match next {
        Move::Note(membership) => match membership.joins.last().map(|join| &join.stage) {
            Some(Stage::Reserved) => "take a place among the learners for its newcomer".into(),
            Some(Stage::Added) => "write into the run that its newcomer is added".into(),
            Some(Stage::Starting) => "write into the run that its newcomer begins".into(),
            Some(Stage::GivenUp { .. }) => "give its newcomer up".into(),
            None => "write into the run who the members are".into(),
        },
        Move::Host(_, None) => "forget a host that has left long ago".into(),
        Move::Host(_, Some(record)) => format!("write what is known of {} now", printable(&record.host_name)),
        Move::Archive(_) => "put the old data in a newcomer's directory aside".into(),
        Move::Add(_) => "have its newcomer added as a learner".into(),
        Move::Start(_, member) => format!("start {}", short(*member)),
        Move::TakeBack(member) => format!("remove {}, which was given up", short(*member)),
        Move::Retire(_) => "stop its former member for good, and put its data aside".into(),
        Move::HandOver { from, to } => format!("pass leadership from {} to {}", short(*from), short(*to)),
        Move::Lock(step) | Move::Call(step) => match step.change {
            RoleChange::Promote => format!("ask for the baton, then promote {}", short(step.member)),
            RoleChange::Leave => format!("ask for the baton, then remove {}", short(step.member)),
        },
        Move::Turn(member) => format!("take {} back, whose promotion was not made", short(*member)),
        Move::End(_) => "write what became of the step".into(),
    }
}
