//! Whether a cluster may be replaced: one that serves is not, unless a person says so, and never while a part of it would go on.

use std::collections::BTreeSet;

use super::record::Founders;

/// A voter of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Voter {
    /// Empty while it has never started.
    pub name: String,
    pub urls: BTreeSet<String>,
}

/// What was seen of the cluster that is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// A majority agrees on a leader; its voters.
    Yes(Vec<Voter>),
    /// Nobody answers, or no majority agrees.
    No,
    /// Somebody answers, and what is not known.
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the cluster serves: {}; what was written since the file was saved would be lost", listed(.0))]
    Serves(Vec<Voter>),
    #[error("whether the cluster serves is not known: {0}")]
    Unknown(String),
    /// Its voters, of which so many could keep a majority while the new cluster has one, too.
    #[error(
        "the cluster serves, or may, with {}, and these are not the new one's: both could have a majority at once; end the members that are to go first",
        listed(.0)
    )]
    BothWouldServe(Vec<Voter>),
}

fn listed(voters: &[Voter]) -> String {
    let called = |voter: &Voter| match voter.name.is_empty() {
        true => voter.urls.iter().cloned().collect::<Vec<_>>().join(", "),
        false => voter.name.clone(),
    };
    voters.iter().map(called).collect::<Vec<_>>().join(", ")
}

/// Each host that goes over takes its member from the old majority. Where the members stay the same one of the two serves at most.
/// `known` are its voters as data or file list them, for where it does not say itself who they are.
///
/// # Errors
/// [`Refused`].
pub fn judge(serving: &Serving, known: &[Voter], founders: &Founders, discard: bool) -> Result<(), Refused> {
    let voters = match serving {
        Serving::No => return Ok(()),
        Serving::Yes(voters) if !discard => return Err(Refused::Serves(voters.clone())),
        Serving::Unknown(why) if !discard => return Err(Refused::Unknown(why.clone())),
        Serving::Yes(voters) => voters,
        Serving::Unknown(_) => known,
    };
    match !voters.is_empty() && both_could_serve(voters, founders) {
        true => Err(Refused::BothWouldServe(voters.to_vec())),
        false => Ok(()),
    }
}

/// Whether so many can have gone over that the new cluster has a majority, and so few that the old one still has its own.
fn both_could_serve(voters: &[Voter], founders: &Founders) -> bool {
    let majority = |members: usize| members / 2 + 1;
    // Where it is says which member it is: one host has one of the two there.
    let stays = |voter: &&Voter| founders.values().any(|urls| *urls == voter.urls);
    let common = voters.iter().filter(stays).count();
    let newcomers = founders.len() - common;
    let needed = majority(founders.len()).saturating_sub(newcomers);
    let to_spare = voters.len().saturating_sub(majority(voters.len()));
    needed <= common.min(to_spare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(name: &str) -> BTreeSet<String> {
        [format!("http://{name}:2380")].into()
    }

    fn voters(names: &str) -> Vec<Voter> {
        names.split_whitespace().map(|name| Voter { name: name.into(), urls: urls(name) }).collect()
    }

    fn founders(names: &str) -> Founders {
        names.split_whitespace().map(|name| (name.to_owned(), urls(name))).collect()
    }

    /// Of up to seven members before, and up to seven after, whichever of them have gone over by now.
    #[test]
    fn whatever_is_let_through_has_one_majority_at_most() {
        let names = |set: u32| (0..7).filter(|at| set >> at & 1 == 1).map(|at| format!("m{at} ")).collect::<String>();
        for (old, new) in (1_u32..128).flat_map(|old| (1_u32..128).map(move |new| (old, new))) {
            let majority = |set: u32| set.count_ones() / 2 + 1;
            let both_serve =
                |over: u32| (over & new).count_ones() >= majority(new) && (old & !over).count_ones() >= majority(old);
            let may_both = (0_u32..128).any(|over| over & !new == 0 && both_serve(over));
            let judged = judge(&Serving::Yes(voters(&names(old))), &[], &founders(&names(new)), true);
            assert_eq!(judged.is_err(), may_both, "{old:b} {new:b}");
            // Nor where all that is known of it is who its voters were.
            let unknown = Serving::Unknown("x".into());
            let judged = judge(&unknown, &voters(&names(old)), &founders(&names(new)), true);
            assert_eq!(judged.is_err(), may_both, "{old:b} {new:b}");
        }
    }

    #[test]
    fn a_cluster_that_serves_is_not_replaced_unasked_and_never_serves_beside_the_new_one() {
        let yes = |names: &str| Serving::Yes(voters(names));
        let mut moved = voters("a b c");
        moved[1].urls = urls("x");
        moved[2].urls = urls("y");
        let mut unstarted = voters("a b c");
        unstarted[2].name.clear();
        for (serving, new, discard, expected) in [
            (Serving::No, "a b c", false, "Ok"),
            (yes("a b c"), "a b c", false, "Err(Serves"),
            (yes("a b c"), "a b c", true, "Ok"),
            (Serving::Yes(unstarted), "a b c", true, "Ok"),
            (yes("a"), "a", true, "Ok"),
            (yes("a b c"), "a b", true, "Ok"), // one that is left is no majority
            (yes("a b c d e"), "a b c", true, "Err(BothWouldServe"),
            (yes("a b c"), "a b d", true, "Err(BothWouldServe"),
            (yes("a b c"), "a b c d e", true, "Err(BothWouldServe"),
            (yes("a b c"), "d e f", true, "Err(BothWouldServe"),
            (Serving::Yes(moved), "a b c", true, "Err(BothWouldServe"), // other hosts by the same names
            (Serving::Unknown("x".into()), "a", false, "Err(Unknown"),
            (Serving::Unknown("x".into()), "a", true, "Ok"),
        ] {
            let judged = format!("{:?}", judge(&serving, &[], &founders(new), discard));
            assert!(judged.starts_with(expected), "{serving:?} {new} {discard}: {judged}");
        }
    }
}
