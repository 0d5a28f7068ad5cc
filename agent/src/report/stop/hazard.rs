//! Hazards, as a person reads them.

use crate::{
    hazards,
    plan::hazard::Hazard,
    report::{differing, names::Names},
};

/// What was found, and what to do about it.
#[derive(Debug)]
pub struct Words {
    pub found: String,
    pub remedy: String,
}

pub fn words(hazard: &Hazard, names: &Names) -> Words {
    match hazard {
        Hazard::Quota { member, percent } => Words {
            found: format!("the database of {} uses {percent} % of its quota", names.member(*member)),
            remedy: "compact and defragment it, or raise its `--quota-backend-bytes`".to_owned(),
        },
        Hazard::Differs(difference) => {
            let id = Hazard::of_difference(difference);
            let (_, remedy) = known(id, "");
            Words { found: format!("{id}: {}", differing::words(difference, names)), remedy }
        }
        Hazard::Known { id, members } => {
            let (found, remedy) = known(id, &names.list(members));
            Words { found, remedy }
        }
    }
}

/// What the catalogue has of this id, found of these members, and what to do about it.
pub fn known(id: &str, of: &str) -> (String, String) {
    let known = hazards::find(id);
    let (symptom, remedy) = known.map_or(("", ""), |known| (known.symptom, known.remedy));
    let accepting = match known.is_some_and(hazards::Hazard::can_be_accepted) {
        true => format!("; or `strategy.accept_hazards: [{id}]`, if you know better"),
        false => String::new(),
    };
    (format!("{id}, of {of}: {symptom}"), format!("{remedy}{accepting}"))
}

/// What to type to learn more.
pub fn explained(id: &str) -> String {
    format!("agent hazards --explain {id}")
}
