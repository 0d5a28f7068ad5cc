use std::collections::BTreeSet;

use super::*;
use crate::past::hunted::HUNTED;

fn ground(way: &[&str]) -> Ground {
    Ground { way: way.iter().map(|release| release.parse().unwrap()).collect(), size: 3 }
}

#[test]
fn a_seed_is_a_plan() {
    let way = ground(&["3.4.23", "3.5.16", "3.6.14"]);
    let plans: Vec<_> = (1..=6).map(|seed| plan(&way, seed).to_string()).collect();
    insta::assert_snapshot!(plans.join("\n"));
}

/// All that is done, with what is done while somebody is away.
fn flat(actions: impl IntoIterator<Item = Action>) -> Vec<Action> {
    let inside = |action: Action| match &action {
        Action::Away { meanwhile, .. } => [vec![action.clone()], flat(meanwhile.clone())].concat(),
        _ => vec![action],
    };
    actions.into_iter().flat_map(inside).collect()
}

#[test]
fn every_plan_is_the_same_again_goes_the_whole_way_and_makes_sense() {
    for hunted in &HUNTED {
        let ground = hunted.ground().unwrap();
        for seed in 0..300 {
            let made = plan(&ground, seed);
            assert_eq!(made, plan(&ground, seed));
            let hops = made.steps.iter().filter_map(|step| match &step.action {
                Action::Hop { to, .. } => Some(to.clone()),
                _ => None,
            });
            assert_eq!(hops.collect::<Vec<_>>(), ground.way[1..], "{made}");
            let mut now: BTreeSet<_> = (0..ground.size).collect();
            let (mut auth, mut release) = (false, ground.way[0].clone());
            for action in flat(made.steps.iter().map(|step| step.action.clone())) {
                match action {
                    Action::Change { leaves, joins, .. } => {
                        assert!(leaves.is_none_or(|host| now.remove(&host)), "{made}");
                        assert!(joins.into_iter().all(|host| now.insert(host)), "{made}");
                        assert!((3..=LARGEST).contains(&now.len()), "{made}");
                    }
                    Action::Auth { on } => {
                        assert_ne!(on, auth, "{made}");
                        auth = on;
                    }
                    Action::Hop { to, order, .. } => {
                        assert_eq!(order.into_iter().collect::<BTreeSet<_>>(), now, "{made}");
                        release = to;
                    }
                    Action::OldApi { .. } => assert!(release.to_string().starts_with("3.4."), "{made}"),
                    Action::Restart { member } | Action::Defragment { member } | Action::Away { member, .. } => {
                        assert!(now.contains(&member), "{made}");
                    }
                    Action::Rejoin { .. } => panic!("a file says it, and no chance: {made}"),
                    Action::Start | Action::Write { .. } | Action::Compact { .. } => {}
                    Action::AddUser | Action::Grant | Action::Restore => {}
                }
            }
        }
    }
}

#[test]
fn everything_comes_to_pass_on_every_ground_of_old_releases() {
    let way = ground(&["3.4.23", "3.5.30"]);
    let actions = flat((0..200).flat_map(|seed| plan(&way, seed).steps).map(|step| step.action));
    let kinds: BTreeSet<_> = actions.iter().map(|action| format!("{action:?}")).collect();
    let words = "Write Compact Defragment Auth AddUser Grant OldApi Restart Change Restore Away Hop Puts Churn Large \
                 Transactions Leases Stopped Killed Paused";
    for word in words.split_whitespace() {
        assert!(kinds.iter().any(|kind| kind.contains(word)), "{word}");
    }
}
