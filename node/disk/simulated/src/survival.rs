//! What is left of a disk when the power is back: all that was synced, and of the rest what chance leaves.

use std::collections::BTreeMap;

use crate::{Chance, Content, World, apply_name_change, write};

/// What a drive writes in one go.
const SECTOR: usize = 512;

/// What is left of the writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    Nothing,
    Everything,
    /// The first so many bytes, in the order of the writes.
    Prefix,
    /// Any sectors.
    Sectors,
}

impl Survival {
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Everything, Self::Prefix, Self::Sectors];
}

pub(crate) fn surviving(content: &Content, survival: Survival, chance: &mut Chance) -> Content {
    let mut bytes = content.durable.clone();
    match survival {
        Survival::Nothing => {}
        Survival::Everything => content.writes.iter().for_each(|(offset, written)| write(&mut bytes, *offset, written)),
        Survival::Prefix => {
            let total: usize = content.writes.iter().map(|(_, written)| written.len()).sum();
            let mut left = chance.below(total + 1);
            for (offset, written) in &content.writes {
                let part = left.min(written.len());
                write(&mut bytes, *offset, &written[..part]);
                left -= part;
            }
        }
        Survival::Sectors => {
            for (offset, written) in &content.writes {
                let mut at = 0;
                while at < written.len() {
                    let end = written.len().min(at + SECTOR - (offset + at) % SECTOR);
                    if chance.below(2) == 0 {
                        write(&mut bytes, offset + at, &written[at..end]);
                    }
                    at = end;
                }
            }
        }
    }
    Content::durable(bytes)
}

pub(crate) fn surviving_names(world: &World, survival: Survival, chance: &mut Chance) -> BTreeMap<String, usize> {
    let mut names = world.durable_names.clone();
    let changes = &world.name_changes;
    let prefix = chance.below(changes.len() + 1);
    for (at, change) in changes.iter().enumerate() {
        let survives = match survival {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Prefix => at < prefix,
            Survival::Sectors => chance.below(2) == 0,
        };
        if survives {
            apply_name_change(&mut names, change);
        }
    }
    names
}
