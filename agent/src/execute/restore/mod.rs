//! A cluster made anew from a saved file: every host makes its own members' data from the same file, beside the old, and exchanges both.
//!
//! No host asks another one. Hosts that restore the same file for the same members make one cluster, as its token follows from these
//! (`record.rs`); any others make clusters that cannot meet. A host is either of the old cluster or of the new, so where the members are
//! the same no two majorities serve at once. Source: etcd, "Disaster recovery"; agent/RESTORE.md.

mod found;
mod give_up;
mod judge;
mod leftover;
mod look;
mod member;
mod place;
pub mod record;
mod rights;
mod saved;
mod serving;
mod standing;
mod tool;
mod wait;

use std::{collections::BTreeSet, path::PathBuf};

use proto::{ClusterId, Release};

use self::{
    member::Member,
    place::Place,
    record::{Founders, Origin, Phase, Record},
    saved::Saved,
    standing::Spent,
};
use super::{error::ActError, interrupt::Interrupt};
use crate::{
    host::files::{
        state_dir::{Held, Layout},
        whose::Whose,
    },
    observe::ObserveError,
    playbook::Playbook,
    words::with_causes,
};
pub use give_up::{GivenUp, give_up};
pub use judge::Refused;
pub use place::PlaceError;
pub use saved::Unusable;
pub use wait::Came;

/// What was typed.
#[derive(Clone, Debug)]
pub struct Order {
    pub from: PathBuf,
    /// What the members are to run; what they are set to run where nobody says.
    pub release: Option<Release>,
    /// How many revisions are left out.
    pub bump: u64,
    /// The cluster may go though it serves.
    pub discard: bool,
    /// The same file once more, by a name that every host is given.
    pub again: Option<String>,
}

/// Why nothing was restored, or not all.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    #[error("{}", with_causes(.0))]
    File(#[from] Unusable),
    #[error(transparent)]
    Refused(#[from] Refused),
    /// This host is not fit for it; nothing was stopped.
    #[error("{0}")]
    Unfit(ActError),
    #[error("{}", with_causes(.0))]
    StateDir(#[from] crate::host::files::state_dir::StateDirError),
    #[error("{}", with_causes(.0))]
    Record(#[from] record::RecordError),
    /// Another one was begun here, and not ended.
    #[error("on this host a restore from {} is in hand, and it is not this one", .0.from.display())]
    Another(Box<Record>),
    #[error("{}", with_causes(.0))]
    Observe(#[from] ObserveError),
    /// It was made from this file before, and its data is gone since: made again, it would vote by an id that has promised things.
    #[error("{name} was a member of cluster {cluster}, and its data is gone since")]
    DataGone { name: String, cluster: ClusterId },
    /// The name was used before: members of that cluster may stand with what they had of it.
    #[error(
        "{name} was in cluster {cluster} before, which this file, these members and this name make, and has left it since: give every host \
         a name that was never used: --again NAME"
    )]
    Left { name: String, cluster: ClusterId },
    /// Who restores it could not see what becomes of it.
    #[error("authentication is on in {}, and the playbook names no user, so nobody would see whether the new cluster serves", .0.display())]
    UserWanted(PathBuf),
    /// A signal, before anything was stopped.
    #[error("a signal asked for an end")]
    Interrupted,
    /// A second one, while what was made by then was cleared.
    #[error("stopped at once by a second signal")]
    LeftBeside,
    /// A second signal: members may be down.
    #[error("stopped at once by a second signal")]
    AtOnce,
    /// A member may be down.
    #[error("{name}: {why}")]
    Member { name: String, why: ActError },
    /// Any of these, once this process had stopped a member.
    #[error("{why}")]
    After { restored: Restored, why: Box<NotRestored> },
}

impl NotRestored {
    fn spent(spent: Spent, name: &str, cluster: ClusterId) -> Self {
        let name = name.to_owned();
        match spent {
            Spent::Gone => Self::DataGone { name, cluster },
            Spent::Left => Self::Left { name, cluster },
        }
    }
}

/// What is known before anything is touched.
#[derive(Debug)]
pub struct Ready {
    held: Held,
    saved: Saved,
    origin: Origin,
    release: Option<Release>,
    members: Vec<Member>,
    /// What this host has in hand, or had.
    record: Option<Record>,
    /// The cluster whose data is put aside, where this host has any.
    replaces: Option<ClusterId>,
    /// Every cluster that this host was restored into.
    past: BTreeSet<ClusterId>,
    /// Another cluster may go though it serves.
    discard: bool,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    pub cluster: ClusterId,
    /// Whether this process changed anything.
    pub changed: bool,
    /// Where each member's old data is.
    pub aside: Vec<(String, PathBuf)>,
    pub warnings: Vec<String>,
}

impl Ready {
    /// The new cluster's voters.
    pub fn founders(&self) -> &Founders {
        &self.origin.founders
    }

    /// The cluster whose data is put aside, where this host has any.
    pub fn replaces(&self) -> Option<ClusterId> {
        self.replaces
    }

    /// What the file says of its last write.
    pub fn revision(&self) -> Option<proto::Revision> {
        self.saved.origin.as_ref()?.revision
    }

    /// This host's members, each with the program that makes its data, and what it is to run.
    pub fn members(&self) -> impl Iterator<Item = (&str, &std::path::Path, &Release)> {
        self.members.iter().map(|one| (&*one.own.node.name, &*one.tool.program, &one.side.release))
    }

    /// Whether all that is left is to start them, and to wait.
    pub fn is_placed(&self) -> bool {
        self.members.iter().all(|member| member.is_placed)
    }

    /// Makes the members of this host anew, and starts them. `say` hears what happens.
    ///
    /// # Errors
    /// [`NotRestored`]. The same command goes on from wherever it ended.
    pub async fn restore(
        mut self,
        playbook: &Playbook,
        interrupt: &Interrupt,
        say: &mut impl FnMut(&str),
    ) -> Result<(Restored, Came), NotRestored> {
        let made = tokio::select! {
            made = self.make(playbook, say) => made,
            () = interrupt.asked(1) => Err(NotRestored::Interrupted),
        };
        let record = match made {
            Ok(record) => record,
            Err(why) => {
                tokio::select! {
                    () = self.clear() => return Err(why),
                    // A disk that does not answer holds nobody up.
                    () = interrupt.asked(2) => return Err(NotRestored::LeftBeside),
                }
            }
        };
        let mut restored = Restored { cluster: record.cluster, ..Restored::default() };
        match self.go_over(playbook, record, interrupt, &mut restored, say).await {
            Ok(came) => Ok((restored, came)),
            Err(why) if restored.changed => Err(NotRestored::After { restored, why: Box::new(why) }),
            Err(why) => Err(why),
        }
    }

    /// Clears what was made beside the data. What is in hand goes on with it, and its file may be gone.
    async fn clear(&self) {
        if self.record.is_none() {
            for member in self.members.iter().filter(|member| !member.is_placed) {
                drop(member.place.have(Place::clear).await);
            }
        }
    }

    /// From here on a member may be down.
    async fn go_over(
        &mut self,
        playbook: &Playbook,
        mut record: Record,
        interrupt: &Interrupt,
        restored: &mut Restored,
        say: &mut impl FnMut(&str),
    ) -> Result<Came, NotRestored> {
        let placed = tokio::select! {
            placed = self.place(playbook, &record, restored, say) => placed,
            () = interrupt.asked(2) => Err(NotRestored::AtOnce),
        };
        placed?;
        if record.phase != Phase::Done {
            record.phase = Phase::Done;
            record.write(&self.held.restore())?;
        }
        let came = tokio::select! {
            came = self.await_all(playbook, record.cluster, say) => came?,
            () = interrupt.asked(1) => Came::Interrupted,
        };
        if came.has_quorum() {
            restored.warnings.extend(leftover::clear(playbook, record.cluster).await);
        }
        Ok(came)
    }

    /// Makes the new data beside the old; what a killed agent has left of it is made again. From the record on a member may be down.
    async fn make(&mut self, playbook: &Playbook, say: &mut impl FnMut(&str)) -> Result<Record, NotRestored> {
        for member in &self.members {
            let unfit = |why: ActError| NotRestored::Unfit(of_node(&member.own.node.name, &why));
            for aside in member.clear_others().await.map_err(unfit)? {
                say(&format!(
                    "{}  old data that was left beside its place was put aside, as {}",
                    member.own.node.name,
                    aside.display()
                ));
            }
        }
        // All that it says was made lies beside its place, or in it.
        if let Some(record) = &self.record {
            return Ok(record.clone());
        }
        let mut cluster = None;
        for member in &self.members {
            let name = member.own.node.name.clone();
            say(&format!(
                "{name}  its data is made from {}, by {}",
                self.saved.path.display(),
                member.tool.program.display()
            ));
            let unfit = |why: ActError| NotRestored::Unfit(of_node(&name, &why));
            let made = member.make(&self.saved, &self.origin).await.map_err(unfit)?;
            if cluster.is_some_and(|other| other != made) {
                return Err(unfit("its tool makes it a member of another cluster than the other tools do".into()));
            }
            cluster = Some(made);
        }
        let Some(cluster) = cluster else { return Err(NotRestored::Unfit("the playbook has no node".into())) };
        for member in &mut self.members {
            member.settle(cluster).await.map_err(NotRestored::Unfit)?;
            member.must_be_new_in(playbook, cluster, &self.past).await?;
        }
        if self.replaces.is_none() {
            self.judge_other(playbook, cluster).await?;
        }
        let clusters = (cluster, self.replaces.filter(|old| *old != cluster));
        let past = std::mem::take(&mut self.past);
        let mut record = Record::new(&self.saved.path, self.origin.clone(), self.release.clone(), clusters, past);
        record.discard = self.discard;
        record.write(&self.held.restore())?;
        Ok(record)
    }

    async fn place(
        &mut self,
        playbook: &Playbook,
        record: &Record,
        restored: &mut Restored,
        say: &mut impl FnMut(&str),
    ) -> Result<(), NotRestored> {
        let failed = |name: String| move |why: ActError| NotRestored::Member { name, why };
        for member in &mut self.members {
            let name = member.own.node.name.clone();
            if !member.is_placed {
                restored.changed |= member.stop(playbook, say).await.map_err(failed(name.clone()))?;
                let aside = member.exchange(record.cluster).await.map_err(failed(name.clone()))?;
                restored.aside.extend(aside.map(|aside| (name.clone(), aside)));
                restored.changed = true;
            }
            if let Some(aside) = member.put_aside().await.map_err(failed(name.clone()))? {
                say(&format!("{name}  its old data was put aside, as {}", aside.display()));
                restored.aside.push((name, aside));
            }
        }
        // What the old cluster's run was about to do is over.
        if record.phase != Phase::Done {
            put_journal_aside(&self.held).map_err(|why| failed("the journal".to_owned())(why.into()))?;
        }
        for member in &mut self.members {
            let name = member.own.node.name.clone();
            let (is_new, warnings) = member.start().await.map_err(failed(name.clone()))?;
            if is_new {
                say(&format!("{name}  started"));
                restored.changed = true;
            }
            restored.warnings.extend(warnings);
        }
        Ok(())
    }
}

fn of_node(name: &str, why: &ActError) -> ActError {
    let text = why.to_string();
    if text.starts_with(&format!("{name}: ")) { text.into() } else { format!("{name}: {text}").into() }
}

fn put_journal_aside(layout: &Layout) -> std::io::Result<()> {
    let journal = layout.journal();
    let aside = PathBuf::from(format!("{}.before-restore", journal.display()));
    match std::fs::rename(&journal, &aside) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

/// What another command must not go on beside: members of this host may be down, and data be beside its place.
///
/// # Errors
/// It cannot be read.
pub fn in_hand(layout: &Layout) -> Result<Option<Record>, record::RecordError> {
    Ok(Record::read(&layout.restore())?.filter(|record| record.phase == Phase::Placing))
}

/// A member of the new cluster has data of it.
fn is_of(whose: &Whose, of: ClusterId) -> bool {
    matches!(whose, Whose::Member { cluster, .. } if *cluster == of)
}
