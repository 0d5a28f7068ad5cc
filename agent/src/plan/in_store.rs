//! What of the catalogue one member's database and the members that it lists show, the one against the other: 3.6 believes the database alone, and earlier
//! releases answer by their old store. Source: etcd#20967, etcd#19557.

use std::collections::BTreeMap;

use proto::{MemberId, Release};

use crate::{
    hazards::{self, Hazard},
    observe::{database::Told, view::Role},
};

/// An entry that is met, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    pub hazard: &'static Hazard,
    /// The members that show it; none where it is no member's.
    pub members: Vec<MemberId>,
}

impl Met {
    /// The members that show it, if any do.
    pub fn words(&self) -> Option<String> {
        let ids: Vec<_> = self.members.iter().map(ToString::to_string).collect();
        (!ids.is_empty()).then(|| ids.join(", "))
    }
}

/// Those that a database shows.
const SHOWN: [&str; 8] = [
    "zombie-members",
    "member-only-v2",
    "learner-returns",
    "peer-url-clients",
    "auth-34-35",
    "auth-not-loaded",
    "auth-start-panic",
    "down-auth-35-34",
];

/// Whether anything that a database may show matters on this way, and it is to be read.
pub fn is_asked(from: &Release, to: &Release) -> bool {
    ahead(from, to).next().is_some()
}

/// What is to be refused by it.
pub fn met(told: &Told, from: &Release, to: &Release) -> Vec<Met> {
    let stored = &told.content.members;
    let listed: BTreeMap<MemberId, Role> = told.listed.iter().map(|member| (member.id, member.role)).collect();
    let only_stored = without(stored, &listed);
    let only_listed = without(&listed, stored);
    let was_promoted = |(id, role): (&MemberId, &Role)| {
        let is_learner_again = *role == Role::Learner && listed.get(id) == Some(&Role::Voter);
        is_learner_again.then_some(*id)
    };
    let learners: Vec<_> = stored.iter().filter_map(was_promoted).collect();
    let at_peer_urls =
        told.listed.iter().filter(|member| member.serves_at_a_peer_url).map(|member| member.id).collect();
    let found = |members: &Vec<MemberId>| Some(members.clone()).filter(|members| !members.is_empty());
    let shown = |id: &str| match id {
        "zombie-members" => found(&only_stored),
        "member-only-v2" => found(&only_listed),
        "learner-returns" => found(&learners),
        "peer-url-clients" => found(&at_peer_urls),
        // Those of authentication.
        _ => told.content.auth_is_on.then(Vec::new),
    };
    ahead(from, to).filter_map(|hazard| Some(Met { hazard, members: shown(hazard.id)? })).collect()
}

/// Those that matter on this way. What is found in the database itself counts from whichever release before: a patch that makes no more of it may have kept it.
pub fn ahead(from: &Release, to: &Release) -> impl Iterator<Item = &'static Hazard> {
    SHOWN.iter().filter_map(|id| hazards::find(id)).filter(|hazard| hazard.is_ahead(from, to))
}

fn without(some: &BTreeMap<MemberId, Role>, others: &BTreeMap<MemberId, Role>) -> Vec<MemberId> {
    some.keys().filter(|id| !others.contains_key(id)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{database::content::Content, directory::Listed};

    /// `1 2- 3` are two voters and a learner.
    fn members(text: &str) -> BTreeMap<MemberId, Role> {
        let role = |word: &str| if word.ends_with('-') { Role::Learner } else { Role::Voter };
        text.split_whitespace()
            .map(|word| (MemberId(word.trim_end_matches('-').parse().unwrap()), role(word)))
            .collect()
    }

    fn listed((id, role): (MemberId, Role)) -> Listed {
        Listed {
            id,
            name: String::new(),
            role,
            client_urls: Vec::new(),
            unused: Vec::new(),
            serves_at_a_peer_url: false,
        }
    }

    #[test]
    fn a_database_is_held_against_the_list_of_its_own_member() {
        for (list, stored, auth_is_on, from, to, expected) in [
            ("1 2 3", "1 2 3", false, "3.5.21", "3.6.14", vec![]),
            ("1 2 3", "1 2 3 4 5", false, "3.5.21", "3.6.14", vec![("zombie-members", vec![4, 5])]),
            ("1 2 3", "1 2 3 4", false, "3.5.33", "3.6.14", vec![("zombie-members", vec![4])]), // it is still there
            ("1 2 3", "1 2 3 4", false, "3.5.21", "3.5.33", vec![]),                            // which cleans it
            ("1 2 3", "1 2 3 4", false, "3.6.13", "3.6.14", vec![]),
            ("1 2 3", "1 2", false, "3.5.33", "3.6.14", vec![("member-only-v2", vec![3])]),
            ("1 2 3", "1 2- 3-", false, "3.5.16", "3.6.14", vec![("learner-returns", vec![2, 3])]),
            ("1 2 3-", "1 2 3-", false, "3.5.16", "3.6.14", vec![]),
            ("1 2 3-", "1 2 3", false, "3.5.16", "3.6.14", vec![]), // promoted at this very moment
            (
                "1 2",
                "1- 3",
                false,
                "3.5.16",
                "3.6.14",
                vec![("zombie-members", vec![3]), ("member-only-v2", vec![2]), ("learner-returns", vec![1])],
            ),
            ("1", "1", true, "3.4.45", "3.5.33", vec![("auth-34-35", vec![])]),
            ("1", "1", true, "3.5.21", "3.5.33", vec![]),
            ("1", "1", true, "3.4.10", "3.4.20", vec![("auth-not-loaded", vec![])]),
            ("1", "1", true, "3.5.21", "3.5.3", vec![]),
            ("1", "1", true, "3.5.1", "3.5.3", vec![("auth-start-panic", vec![])]),
            ("1", "1", true, "3.5.33", "3.4.45", vec![("down-auth-35-34", vec![])]),
            ("1", "1", true, "3.6.14", "3.5.33", vec![]),
            ("1", "1", true, "3.5.33", "3.6.14", vec![]),
        ] {
            let [from, to]: [Release; 2] = [from, to].map(|release| release.parse().unwrap());
            let content = Content { members: members(stored), auth_is_on };
            let told = Told { listed: members(list).into_iter().map(listed).collect(), content };
            let found = met(&told, &from, &to);
            let found: Vec<_> =
                found.iter().map(|met| (met.hazard.id, met.members.iter().map(|id| id.0).collect())).collect();
            assert_eq!(found, expected, "{list} against {stored}, {from} to {to}");
            assert!(expected.is_empty() || is_asked(&from, &to));
        }
        let release = |text: &str| text.parse::<Release>().unwrap();
        let mut both: Vec<_> = members("1 2").into_iter().map(listed).collect();
        both[1].serves_at_a_peer_url = true;
        let told = Told { listed: both, content: Content { members: members("1 2"), auth_is_on: false } };
        let found = met(&told, &release("3.5.33"), &release("3.6.14"));
        assert_eq!(
            found.iter().map(|met| (met.hazard.id, met.words())).collect::<Vec<_>>(),
            [("peer-url-clients", Some(MemberId(2).to_string()))]
        );
        assert!(!is_asked(&release("3.6.14"), &release("3.7.1")), "nothing that it shows matters there");
    }
}
