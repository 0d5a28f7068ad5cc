//! What is in hand on this host, given up: its members keep the data that they have, and what was made beside it goes.

use std::path::PathBuf;

use proto::ClusterId;

use super::{
    NotRestored,
    found::Found,
    member, of_node,
    place::Place,
    record::{Phase, Record},
    standing::Has,
};
use crate::{
    execute::{bring_up::open_node, error::ActError, line::Past},
    host::{blocking::blocking, files::state_dir::Held},
    playbook::Playbook,
};

/// What was given up.
#[derive(Clone, Debug)]
pub struct GivenUp {
    pub cluster: ClusterId,
    /// Where old data is that was found beside its place.
    pub aside: Vec<(String, PathBuf)>,
    /// Whether members of this host were to run another release, and may be set to by now.
    pub has_release: bool,
}

/// Gives it up, where no member of this host has gone over.
///
/// # Errors
/// Nothing is in hand, or a member has its new data.
pub async fn give_up(playbook: &Playbook) -> Result<GivenUp, NotRestored> {
    let held = Held::take(&playbook.state_dir)?;
    let mut record = match Record::read(&held.restore())? {
        Some(record) if record.phase == Phase::Placing => record,
        Some(Record { phase: Phase::Done, cluster, .. }) => return Err(has_gone_over(cluster)),
        _ => return Err(NotRestored::Unfit("no restore is in hand on this host".into())),
    };
    let (cluster, token) = (record.cluster, record.origin.token());
    let (mut places, mut may_have_served) = (Vec::new(), false);
    for node in &playbook.nodes {
        let unfit = |why: ActError| NotRestored::Unfit(of_node(&node.name, &why));
        let own = open_node(node, proto::MemberId::default(), &held, &Past::default()).await.map_err(unfit)?;
        let found = Found::of(own).await.map_err(unfit)?;
        if found.has(cluster) == Has::New {
            let why = "it has its new data already; the same command without --give-up goes on";
            return Err(unfit(why.into()));
        }
        let lies_beside = found.lies_beside(&record).await.map_err(unfit)?;
        may_have_served |= !lies_beside;
        // Whose it is is asked only where something is: the data itself may be gone.
        if Place::of(&found.data, &token).is_ok_and(|place| place.is_begun()) {
            let place = member::place(&found, &token).await.map_err(unfit)?;
            places.push((node.name.clone(), place, lies_beside));
        }
    }
    let mut aside = Vec::new();
    for (name, place, lies_beside) in places {
        // What lies beside the data was never in its place, and nobody wants it; anything else may be old data.
        let end = move |place: &Place| if lies_beside { place.discard().map(|()| None) } else { place.clear() };
        let unfit = |why: ActError| NotRestored::Unfit(of_node(&name, &why));
        let kept = place.have(end).await.map_err(|why| unfit(why.into()))?;
        aside.extend(kept.map(|kept| (name.clone(), kept)));
    }
    let has_release = record.release.is_some();
    record.give_up(may_have_served);
    blocking(move || record.write(&held.restore())).await?;
    Ok(GivenUp { cluster, aside, has_release })
}

fn has_gone_over(cluster: ClusterId) -> NotRestored {
    let why = format!(
        "this host's members run on their new data, of cluster {cluster}, and nothing is in hand; where the other hosts keep their old data \
         after all, go back by hand: stop the member, give its data another name, and `DATA.archived-…` the data's; then `agent run`"
    );
    NotRestored::Unfit(why.into())
}
