//! Who led when, as members say it: a leader is told to hand over before its agent stops it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lab::{
    Error,
    client::Client,
    events::{self, Event},
    witness::now_in_ms,
};
use tokio::task::AbortHandle;

use super::stage::Stage;

/// The time between two looks. What an agent does between a hand-over and a stop may take less, so what it says of its
/// hand-over counts too.
const PERIOD: Duration = Duration::from_millis(20);
/// What a member that is down or stands still may hold a look up for.
const PATIENCE: Duration = Duration::from_millis(200);

/// Who led, from when on, in milliseconds since 1970; a member by its name.
type Led = Arc<Mutex<Vec<(u64, String)>>>;

/// A look at all members, again and again; it ends with the value.
pub(super) struct Leaders {
    led: Led,
    before: BTreeSet<PathBuf>,
    task: AbortHandle,
}

impl Leaders {
    pub(super) fn watch(stage: &Stage) -> Result<Self, Error> {
        let led = Led::default();
        let names = stage.layout().members.iter().map(|member| member.name.clone());
        let members: Vec<_> = names.zip(stage.clients()?).collect();
        let told = led.clone();
        let task = tokio::spawn(async move {
            let mut members = members;
            loop {
                if let Some(place) = leader(&members).await {
                    let name = members[place].0.clone();
                    // Most often it leads next time, too.
                    members.swap(0, place);
                    told.lock().unwrap_or_else(PoisonError::into_inner).push((now_in_ms(), name));
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
        Ok(Self { led, before: files(stage), task: task.abort_handle() })
    }

    /// Judges what agents told since this began. Where somebody else has moved leadership meanwhile nobody can be blamed,
    /// nor where there is nobody to hand over to.
    pub(super) fn judge(&self, stage: &Stage, was_moved: bool) -> Result<(), Error> {
        if was_moved || stage.size() == 1 {
            return Ok(());
        }
        let led = self.led.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files(stage).difference(&self.before) {
            if let Some(why) = fault(&events::read(file)?, &led)? {
                return Err(why.into());
            }
        }
        Ok(())
    }
}

impl Drop for Leaders {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The events files of all agents so far.
pub(super) fn files(stage: &Stage) -> BTreeSet<PathBuf> {
    let of = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join("events")).filter(|file| file.is_file()).collect::<Vec<_>>()
    };
    stage.layout().members.iter().chain(stage.newcomers.values()).flat_map(|member| of(&member.dir)).collect()
}

async fn leader(members: &[(String, Client)]) -> Option<usize> {
    for (place, (_, client)) in members.iter().enumerate() {
        if let Ok(Ok(status)) = tokio::time::timeout(PATIENCE, client.status()).await
            && status.leader == status.header.as_ref().map_or(0, |header| header.member_id)
        {
            return Some(place);
        }
    }
    None
}

/// What one agent did wrong: it stopped a member that led when it was last looked at, without a hand-over since it took
/// the baton.
fn fault(told: &[Event], led: &[(u64, String)]) -> Result<Option<String>, Error> {
    let mut handed_over = BTreeSet::new();
    for event in told {
        let Some(member) = &event.member else { continue };
        match event.event.as_str() {
            "handed_over" => drop(handed_over.insert(member)),
            "member_ready" => drop(handed_over.remove(member)),
            "member_stopping" if !handed_over.contains(member) => {
                let at = events::millis(&event.time)?;
                let last = led.iter().rev().find(|(when, _)| *when < at);
                if last.is_some_and(|(_, name)| name == member) {
                    return Ok(Some(format!("{member} led when it was stopped, and was not told to hand over")));
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_that_is_stopped_must_have_handed_over() {
        let event = |second: u64, event: &str, member: &str| Event {
            time: format!("1970-01-01T00:00:0{second}.000Z"),
            event: event.into(),
            member: Some(member.into()),
            step: None,
            why: None,
            waiting_for: None,
            seconds: None,
        };
        let led = [(1_000, "m1".to_owned()), (3_000, "m2".to_owned())];
        for (told, is_wrong) in [
            (vec![event(2, "member_stopping", "m1")], true),
            (vec![event(2, "member_stopping", "m2")], false),
            (vec![event(4, "member_stopping", "m2")], true),
            (vec![event(4, "member_stopping", "m1")], false),
            // Looked at too seldom to have seen the new leader.
            (vec![event(1, "handed_over", "m1"), event(2, "member_stopping", "m1")], false),
            // A hand-over of another turn.
            (
                vec![event(1, "handed_over", "m1"), event(1, "member_ready", "m1"), event(2, "member_stopping", "m1")],
                true,
            ),
        ] {
            assert_eq!(fault(&told, &led).unwrap().is_some(), is_wrong, "{told:?}");
        }
    }
}
