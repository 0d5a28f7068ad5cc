//! Who the members are from step to step. A host that comes has a number that no host had before, and a host that went does not come
//! back.

use std::collections::BTreeSet;

use super::{Action, Host, Plan, Step};

impl Action {
    /// The members after this, where these were the members before.
    pub fn after(&self, members: &[Host]) -> Vec<Host> {
        match self {
            Self::Scale { to } => to.clone(),
            Self::Replace { member, by } => {
                members.iter().map(|host| if host == member { *by } else { *host }).collect()
            }
            _ => members.to_vec(),
        }
    }

    /// Whether members come or go.
    pub fn changes_members(&self) -> bool {
        matches!(self, Self::Scale { .. } | Self::Replace { .. })
    }
}

/// The hosts of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Whose agents are at work where all are: the members before it, and who comes.
    pub all: Vec<Host>,
    /// Who is a member all the time, with its data.
    pub stay: Vec<Host>,
    /// Who is a member from the plan's beginning to its end, with its data.
    pub steady: Vec<Host>,
}

impl Plan {
    /// The members before each step, and the step.
    pub fn with_members(&self) -> impl Iterator<Item = (Vec<Host>, &Step)> {
        let mut members: Vec<Host> = (0..self.cell.size).collect();
        self.steps.iter().map(move |step| {
            let after = step.action.after(&members);
            (std::mem::replace(&mut members, after), step)
        })
    }

    /// The hosts of each step.
    pub fn casts(&self) -> Vec<Cast> {
        let casts: Vec<_> = self.with_members().map(|(members, step)| Cast::of(step, &members)).collect();
        let stay = |host: &Host| casts.iter().all(|cast| cast.stay.contains(host));
        let steady: Vec<Host> = (0..self.cell.size).filter(stay).collect();
        casts.into_iter().map(|cast| Cast { steady: steady.clone(), ..cast }).collect()
    }
}

impl Cast {
    /// Of a step before which these are the members; nobody is known to be there all the time.
    pub fn of(step: &Step, members: &[Host]) -> Self {
        let after = step.action.after(members);
        let loses_its_data = |host: &Host| matches!(step.action, Action::Replace { member, .. } if member == *host);
        let stay = members.iter().filter(|host| after.contains(host) && !loses_its_data(host)).copied().collect();
        let all: BTreeSet<Host> = members.iter().chain(&after).copied().collect();
        Self { all: all.into_iter().collect(), stay, steady: Vec::new() }
    }
}
