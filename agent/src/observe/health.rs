//! Readiness rules: what a member's raw answers come to.
//!
//! Pure: reads answers, asks nobody, knows no clock. Source: PROTOCOL.md, "Ready"; a linearizable read waits until
//! the member has applied all that was committed when it was asked (raft dissertation, section 6.4), so a voter that
//! answers one has caught up. Alarms stand among the errors of `Status`, in every etcd since 3.4. They are
//! not asked for: `Alarm GET` is a raft proposal, so every look would write.

use proto::{LogIndex, MemberId};

use super::view::{Alarm, Health, Role};

/// What `Status` says while a member follows nobody; an election passes, so this is waited for.
const NO_LEADER: &str = "etcdserver: no leader";

/// What became of the linearizable read through a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// It was answered, or refused for lack of permission: the round of the quorum comes before that refusal.
    Answered,
    /// It was not, in the member's or the transport's own words.
    Failed(String),
    /// It was not asked: learners refuse it.
    NotAsked,
}

/// The answers that readiness is read off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// Whether the member votes.
    pub role: Role,
    /// The linearizable read through it.
    pub read: Read,
    /// What `Status` calls wrong, alarms among it.
    pub errors: Vec<String>,
    pub applied: LogIndex,
    /// The agreed leader's commit index, read before `applied`; `None` without a leader.
    pub leader_commit: Option<LogIndex>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ready,
    /// Not ready, and time may repair it: look twice.
    Behind(String),
    /// Not ready, and waiting is no help.
    Sick(String),
    /// Not ready, as alarms stand; and what else is wrong, if anything is.
    Alarmed(Vec<Alarm>, Option<String>),
}

/// How far a member had come at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub applied: LogIndex,
    /// How many bytes it had received from its peers, where that is known.
    pub received: Option<u64>,
}

/// Judges one look at a member.
pub fn judge(answers: &Answers) -> Verdict {
    let alarms: Vec<Alarm> = answers.errors.iter().filter_map(|error| alarm(error)).collect();
    match (alarms.is_empty(), judge_itself(answers)) {
        (true, verdict) => verdict,
        (false, Verdict::Behind(reason) | Verdict::Sick(reason)) => Verdict::Alarmed(alarms, Some(reason)),
        (false, _) => Verdict::Alarmed(alarms, None),
    }
}

/// What the member would be without alarms.
fn judge_itself(answers: &Answers) -> Verdict {
    let mut errors = answers.errors.iter().filter(|error| alarm(error).is_none());
    let lasting = errors.clone().find(|error| *error != NO_LEADER);
    match (lasting, &answers.read) {
        (Some(error), _) => Verdict::Sick(error.clone()),
        (None, _) if errors.next().is_some() => Verdict::Behind(NO_LEADER.to_owned()),
        (None, Read::Failed(reason)) => Verdict::Behind(format!("no linearizable read: {reason}")),
        (None, Read::Answered) => Verdict::Ready,
        (None, Read::NotAsked) => match (answers.role, answers.leader_commit) {
            (Role::Voter, _) => Verdict::Behind("no linearizable read was made".to_owned()),
            (Role::Learner, None) => Verdict::Behind("no leader to compare it with".to_owned()),
            (Role::Learner, Some(commit)) if answers.applied < commit => {
                Verdict::Behind(format!("applied {} of {commit} log entries", answers.applied))
            }
            (Role::Learner, Some(_)) => Verdict::Ready,
        },
    }
}

/// An alarm as etcd prints it has its member's id in decimal, which nothing else has.
fn alarm(error: &str) -> Option<Alarm> {
    let (id, kind) = error.trim().strip_prefix("memberID:")?.split_once(" alarm:")?;
    Some(Alarm { kind: kind.to_owned(), of: MemberId(id.parse().ok()?), name: None })
}

/// What etcd calls it when a member's space is used up.
const NOSPACE: &str = "NOSPACE";

/// Whether a member's own step may end with this health. An alarm says nothing of the binary that was started: one of
/// another member came without it, and so did one of its own that its space is used up, which the old binary would find
/// so, too. Any other alarm of its own, `CORRUPT` for one, is about its data, and a person must look at that first.
pub fn ends_step(member: MemberId, health: &Health) -> bool {
    match health {
        Health::Ready => true,
        Health::Alarmed { alarms, besides: None } => {
            alarms.iter().all(|alarm| alarm.of != member || alarm.kind == NOSPACE)
        }
        Health::Alarmed { .. } | Health::CatchingUp { .. } | Health::Sick { .. } => false,
    }
}

/// Judges a member that was not ready by two looks some time apart. Bytes from its peers count only while it is behind:
/// heartbeats are bytes too.
pub fn judge_twice(reason: String, before: Progress, now: Progress, leader_commit: Option<LogIndex>) -> Health {
    let behind = leader_commit.is_some_and(|commit| now.applied < commit);
    let receives = matches!((before.received, now.received), (Some(before), Some(now)) if now > before);
    if now.applied > before.applied || (behind && receives) {
        Health::CatchingUp { reason }
    } else {
        Health::Sick { reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voter_is_ready_by_its_read_a_learner_by_its_index() {
        use Role::{Learner, Voter};
        let failed = || Read::Failed("timed out".into());
        for (role, read, errors, applied, commit, expected) in [
            (Voter, Read::Answered, "", 7, Some(9), "ready"), // the read proves more than an older index
            (Voter, Read::Answered, "", 7, None, "ready"),
            (Voter, Read::Answered, "memberID:7 alarm:NOSPACE", 9, Some(9), "alarmed"),
            (Voter, Read::Answered, "memberID:7 alarm:NOSPACE|memberID:8 alarm:CORRUPT", 9, Some(9), "alarmed"),
            (Voter, Read::Answered, "no such thing|memberID:7 alarm:NOSPACE", 9, Some(9), "alarmed, sick"),
            (Voter, Read::Answered, "no such thing", 9, Some(9), "sick"),
            (Voter, Read::Answered, NO_LEADER, 9, Some(9), "behind"),
            (Voter, failed(), "", 9, Some(9), "behind"),
            (Voter, failed(), "memberID:7 alarm:CORRUPT ", 9, Some(9), "alarmed, sick"),
            (Voter, Read::NotAsked, "", 9, Some(9), "behind"),
            (Learner, Read::NotAsked, "", 9, Some(9), "ready"),
            (Learner, Read::NotAsked, "", 10, Some(9), "ready"),
            (Learner, Read::NotAsked, "", 8, Some(9), "behind"),
            (Learner, Read::NotAsked, "", 8, None, "behind"),
            (Learner, Read::NotAsked, "memberID:7 alarm:NOSPACE ", 9, Some(9), "alarmed"),
            (Learner, Read::NotAsked, "memberID:7 alarm:NOSPACE ", 8, Some(9), "alarmed, sick"),
        ] {
            let errors = errors.split('|').filter(|error| !error.is_empty()).map(str::to_owned).collect();
            let leader_commit = commit.map(LogIndex);
            let answers = Answers { role, read, errors, applied: LogIndex(applied), leader_commit };
            let verdict = match judge(&answers) {
                Verdict::Ready => "ready",
                Verdict::Behind(_) => "behind",
                Verdict::Sick(_) => "sick",
                Verdict::Alarmed(_, None) => "alarmed",
                Verdict::Alarmed(_, Some(_)) => "alarmed, sick",
            };
            assert_eq!(verdict, expected, "{answers:?}");
        }
    }

    #[test]
    fn an_alarm_ends_a_step_unless_it_is_about_the_members_own_data() {
        let (own, other) = (MemberId(1), MemberId(2));
        let besides = || Some("no linearizable read: timed out".to_owned());
        for (alarms, besides, ends) in [
            (vec![("NOSPACE", other)], None, true),
            (vec![("CORRUPT", other)], None, true),
            (vec![("NOSPACE", own)], None, true), // the old binary would find no space, either
            (vec![("NOSPACE", own), ("NOSPACE", other)], None, true),
            (vec![("CORRUPT", own)], None, false),
            (vec![("NOSPACE", other), ("CORRUPT", own)], None, false),
            (vec![("NEW", own)], None, false), // nobody knows what it means
            (vec![("NOSPACE", other)], besides(), false),
            (vec![("NOSPACE", own)], besides(), false),
        ] {
            let alarms = alarms.into_iter().map(|(kind, of)| Alarm { kind: kind.into(), of, name: None }).collect();
            let health = Health::Alarmed { alarms, besides };
            assert_eq!(ends_step(own, &health), ends, "{health:?}");
        }
        let reason = || "behind".to_owned();
        for (health, ends) in [
            (Health::Ready, true),
            (Health::Sick { reason: reason() }, false),
            (Health::CatchingUp { reason: reason() }, false),
        ] {
            assert_eq!(ends_step(own, &health), ends, "{health:?}");
        }
    }

    #[test]
    fn an_alarm_is_told_from_other_errors() {
        let of = MemberId(0x6628_2b47_568b_9f97);
        for (error, expected) in [
            ("memberID:7361181176331739031 alarm:NOSPACE ", Some(Alarm { kind: "NOSPACE".into(), of, name: None })),
            ("memberID:x alarm:NOSPACE", None),
            ("etcdserver: something", None),
        ] {
            assert_eq!(alarm(error), expected, "{error}");
        }
    }

    #[test]
    fn catching_up_is_moving() {
        for (before, now, commit, moving) in [
            ((5, None), (6, None), Some(9), true),
            ((5, None), (5, None), Some(9), false),
            ((5, Some(10)), (5, Some(11)), Some(9), true), // a snapshot is on its way
            ((5, Some(10)), (5, Some(11)), Some(5), false), // not behind: those are heartbeats
            ((5, Some(10)), (5, Some(11)), None, false),
            ((5, Some(10)), (5, Some(10)), Some(9), false),
            ((5, None), (5, Some(10)), Some(9), false), // one number is no movement
            ((5, Some(10)), (6, None), None, true),
            ((9, Some(99)), (1, Some(1)), Some(99), false), // it was started anew: nothing to compare
        ] {
            let at = |(applied, received)| Progress { applied: LogIndex(applied), received };
            let health = judge_twice("behind".into(), at(before), at(now), commit.map(LogIndex));
            assert_eq!(matches!(health, Health::CatchingUp { .. }), moving, "{before:?} {now:?} {commit:?}");
        }
    }
}
