use openraft::Instant as _;

use super::*;

fn reported(leader: u64, evidence: Evidence) -> Reported {
    let status = RaftStatus { term: 3, leader: Some(leader), is_learner: false, is_running: true };
    Reported { status, evidence }
}

fn after_looks(silence: &mut Silence, looks: u32, reported: Reported, was_heard: bool) -> Option<u64> {
    for _ in 0..looks {
        silence.look();
        silence.hears(reported, was_heard);
    }
    silence.status().leader
}

#[test]
fn a_follower_that_hears_nothing_has_no_leader_until_it_hears_it_again() {
    let of_another = reported(2, Evidence::Heard);
    let mut silence = Silence::new(of_another);
    assert_eq!(after_looks(&mut silence, 100, of_another, true), Some(2));
    assert_eq!(after_looks(&mut silence, LOOKS, of_another, false), Some(2), "an election timeout is not over");
    assert_eq!(after_looks(&mut silence, 1, of_another, false), None);
    assert_eq!(silence.status().term, 3, "the term stays");
    assert_eq!(after_looks(&mut silence, 1, of_another, true), Some(2));
}

#[test]
fn a_leader_that_no_majority_answers_leads_nobody() {
    let answered = |at| reported(1, Evidence::Answered(at));
    let now = InstantOf::<Types>::now();
    let mut silence = Silence::new(answered(Some(now)));
    // An append of its own term is from nobody else.
    assert_eq!(after_looks(&mut silence, LOOKS + 1, answered(Some(now)), true), None);
    silence.hears(answered(Some(now + Duration::from_millis(1))), false);
    assert_eq!(silence.status().leader, Some(1), "it need not wait for a look");
    let mut unanswered = Silence::new(answered(None));
    assert_eq!(after_looks(&mut unanswered, LOOKS + 1, answered(None), false), None);
}

#[test]
fn a_member_alone_asks_nobody() {
    let alone = reported(1, Evidence::Alone);
    assert_eq!(after_looks(&mut Silence::new(alone), 100, alone, false), Some(1));
}

#[test]
fn another_leader_or_term_begins_anew() {
    let mut silence = Silence::new(reported(2, Evidence::Heard));
    assert_eq!(after_looks(&mut silence, LOOKS + 1, reported(2, Evidence::Heard), false), None);
    silence.hears(reported(1, Evidence::Heard), false);
    assert_eq!(silence.status().leader, Some(1));
}
