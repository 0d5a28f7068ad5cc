//! Whether this host may restore: file, members and cluster, looked at before anything is touched.

use super::{
    NotRestored, Order, Ready,
    member::{self, Member},
    of_node,
    place::Place,
    record::{Founders, Origin, Phase, Record},
    saved::Saved,
};
use crate::{
    execute::{bring_up::open_node, error::ActError, line::Past, prepare::judge_cgroup},
    host::{
        blocking::blocking,
        files::{room, state_dir::Held},
    },
    playbook::Playbook,
};

impl Ready {
    /// Looks at file, host and cluster, and touches nothing.
    ///
    /// # Errors
    /// What stands in the way.
    pub async fn look(playbook: &Playbook, order: &Order) -> Result<Self, NotRestored> {
        judge_cgroup(playbook).await.map_err(NotRestored::Unfit)?;
        let held = Held::take(&playbook.state_dir)?;
        let known = Record::read(&held.restore())?;
        let past = known.as_ref().map(Record::clusters).unwrap_or_default();
        let from = order.from.clone();
        let (saved, origin) = match (blocking(move || Saved::read(&from)).await, &known) {
            (Ok(saved), _) => {
                let founders = founders(playbook, &saved).map_err(NotRestored::Unfit)?;
                let sha256 = saved.sha256.to_string();
                (saved, Origin { sha256, founders, bump: order.bump, again: order.again.clone() })
            }
            // What is in hand was made from it, and goes on without it.
            (Err(_), Some(known)) if known.phase == Phase::Placing && is_as_typed(known, order) => {
                (Saved::gone(&order.from), known.origin.clone())
            }
            (Err(why), _) => return Err(why.into()),
        };
        let record = match known {
            // What is done is done, whatever it is to run.
            Some(known) if known.origin == origin && (known.phase == Phase::Done || known.release == order.release) => {
                Some(known)
            }
            Some(known) if known.phase == Phase::Placing && order.again.is_none() => {
                return Err(NotRestored::Another(Box::new(known)));
            }
            _ => None,
        };
        let mut found = Vec::new();
        for node in &playbook.nodes {
            let opened = open_node(node, proto::MemberId::default(), &held, &Past::default()).await;
            let own = opened.map_err(|why| NotRestored::Unfit(of_node(&node.name, &why)))?;
            found.push(member::Found::of(own).await.map_err(|why| NotRestored::Unfit(of_node(&node.name, &why)))?);
        }
        let replaces = match &record {
            Some(record) => record.replaces,
            None => found.iter().find_map(member::Found::cluster),
        };
        if let Some(Record { phase: Phase::Done, cluster, .. }) = record
            && let Some(gone) = found.iter().find(|found| found.cluster().is_none())
        {
            return Err(NotRestored::DataGone { name: gone.own.node.name.clone(), cluster });
        }
        let mut members = Vec::new();
        for found in found {
            let name = found.own.node.name.clone();
            let of = record.as_ref().map(|record| record.cluster);
            let made = Member::ready(found, playbook, order, (&origin, &saved, of)).await;
            members.push(made.map_err(|why| NotRestored::Unfit(of_node(&name, &why)))?);
        }
        let places: Vec<_> = members.iter().map(|member| &member.place).collect();
        if let Some(short) = members.iter().find_map(|member| no_room(&member.place, &saved, &places)) {
            return Err(NotRestored::Unfit(short));
        }
        let discard = order.discard;
        let ready =
            Self { held, saved, origin, release: order.release.clone(), members, record, replaces, past, discard };
        if let Some(old) = replaces.filter(|_| ready.record.is_none()) {
            ready.judge_old(playbook, old, order.discard).await?;
        }
        Ok(ready)
    }
}

/// By the playbook, else as the file lists them, else as the nodes of this host are started.
fn founders(playbook: &Playbook, saved: &Saved) -> Result<Founders, ActError> {
    let named = playbook.restore.as_ref().map(|restore| &restore.members).filter(|members| !members.is_empty());
    let listed = saved.origin.as_ref().map(|origin| &origin.voters).filter(|voters| !voters.is_empty());
    let founders = match named.or(listed) {
        Some(founders) => founders.clone(),
        None => member::told_founders(playbook).ok_or(
            "who the new cluster's members are is not known: the file does not list them; name them: \
             `restore: { members: { NAME: [PEER-URL], … } }`",
        )?,
    };
    match playbook.nodes.iter().find(|node| !founders.contains_key(&node.name)) {
        None => Ok(founders),
        Some(node) => {
            let known: Vec<_> = founders.keys().map(String::as_str).collect();
            Err(format!(
                "{} is none of the members of the new cluster, which are {}; leave it out of the playbook, or name the new members: \
                 `restore: {{ members: {{ NAME: [PEER-URL], … }} }}`",
                node.name,
                known.join(", ")
            )
            .into())
        }
    }
}

/// A copy of the file, the database that is made of it, and the first files of a log.
fn no_room(place: &Place, saved: &Saved, all: &[&Place]) -> Option<ActError> {
    const LOG_BYTES: u64 = 160 << 20;
    let on_the_same = all.iter().filter(|other| other.device().is_some() && other.device() == place.device()).count();
    let one = saved.bytes.saturating_mul(2).saturating_add(LOG_BYTES);
    let wanted = one.saturating_mul(on_the_same.max(1) as u64);
    let free = room::free(place.folder()).ok().filter(|free| *free < wanted)?;
    let folder = place.folder().display();
    let mb = |bytes: u64| bytes.div_ceil(1_000_000);
    Some(
        format!(
            "{folder} has {} MB free, and the new data beside the old takes {}; make room there",
            mb(free),
            mb(wanted)
        )
        .into(),
    )
}

fn is_as_typed(known: &Record, order: &Order) -> bool {
    let Origin { bump, again, .. } = &known.origin;
    (&known.from, bump, again, &known.release) == (&order.from, &order.bump, &order.again, &order.release)
}
