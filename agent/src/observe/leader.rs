//! Leadership rule: a leader is one whom a majority of voters name in the highest term any of them knows.
//!
//! Pure: counts statements, asks nobody. Source: raft paper, section 5.2: one leader a term at most; a minority that
//! still names an older one is not believed.

use proto::{MemberId, Term};

use super::view::Leader;

/// What one voter said of the leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    pub term: Term,
    /// Whom it follows, if anybody.
    pub leader: Option<MemberId>,
}

/// What the statements of those voters that answered come to, in a cluster of `voters`.
pub fn agreed(voters: usize, statements: &[Statement]) -> Leader {
    let Some(term) = statements.iter().map(|statement| statement.term).max() else { return Leader::Unknown };
    let newest = || statements.iter().filter(|statement| statement.term == term);
    let named = |leader| newest().filter(|statement| statement.leader == Some(leader)).count();
    newest()
        .filter_map(|statement| statement.leader)
        .find(|leader| named(*leader) > voters / 2)
        .map_or(Leader::Unknown, |member| Leader::Agreed { member, term })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_named_by_a_majority_of_voters_in_the_highest_term() {
        for (voters, said, expected) in [
            (3, "2:1 2:1 2:1", Some((1, 2))),
            (3, "2:1 2:1", Some((1, 2))),
            (3, "2:1", None),         // one voice is no majority
            (3, "2:1 2:2 2:-", None), // nobody has two
            (3, "2:1 2:1 3:-", None), // an election is on
            (3, "2:1 3:2 3:2", Some((2, 3))),
            (3, "2:1 2:1 3:2", None), // a newer term with one voice
            (1, "7:1", Some((1, 7))),
            (2, "7:1", None), // two voters need both
            (4, "7:1 7:1", None),
            (4, "7:1 7:1 7:1", Some((1, 7))),
            (5, "7:1 7:1 7:1 6:2 6:2", Some((1, 7))),
            (3, "", None),
        ] {
            let leader = match agreed(voters, &statements(said)) {
                Leader::Agreed { member, term } => Some((member.0, term.0)),
                Leader::Unknown => None,
            };
            assert_eq!(leader, expected, "{voters} voters, {said}");
        }
    }

    /// `term:leader`, `-` for nobody.
    fn statements(text: &str) -> Vec<Statement> {
        let statement = |word: &str| {
            let (term, leader) = word.split_once(':').unwrap();
            Statement { term: Term(term.parse().unwrap()), leader: leader.parse().ok() }
        };
        text.split_whitespace().map(statement).collect()
    }
}
