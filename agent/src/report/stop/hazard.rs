//! Hazards, as a person reads them.

use crate::{hazards, plan::hazard::Hazard, report::names::Names};

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
        Hazard::Known { id, members } => {
            let known = hazards::find(id);
            let (symptom, remedy) = known.map_or(("", ""), |known| (known.symptom, known.remedy));
            Words {
                found: format!("{id}, of {}: {symptom}", names.list(members)),
                remedy: format!("{remedy}; or `strategy.accept_hazards: [{id}]`, if you know better"),
            }
        }
    }
}
