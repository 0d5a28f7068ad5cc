//! Whether this host may restore: file, members and cluster, looked at before anything is touched.

use super::{
    NotRestored, Order, Ready,
    found::Found,
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
    observe::database::origin as database,
    playbook::{Playbook, cluster::Cluster},
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
        let known = known.filter(|known| known.phase != Phase::GivenUp);
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
            // The same with another release is no other cluster, whatever its name is.
            Some(known) if known.phase == Phase::Placing && (order.again.is_none() || known.origin == origin) => {
                return Err(NotRestored::Another(Box::new(known)));
            }
            _ => None,
        };
        let mut found = Vec::new();
        for node in &playbook.nodes {
            let opened = open_node(node, proto::MemberId::default(), &held, &Past::default()).await;
            let own = opened.map_err(|why| NotRestored::Unfit(of_node(&node.name, &why)))?;
            let unfit = |why: ActError| NotRestored::Unfit(of_node(&node.name, &why));
            let one = Found::of(own).await.map_err(unfit)?;
            if let Some(record) = &record {
                let judged = one.judge(record).await.map_err(unfit)?;
                judged.map_err(|spent| NotRestored::spent(spent, &node.name, record.cluster))?;
            }
            found.push(one);
        }
        judge_revision(&saved, order.bump).map_err(NotRestored::Unfit)?;
        if record.is_none() && wants_a_user(&saved, &playbook.cluster) {
            return Err(NotRestored::UserWanted(saved.path));
        }
        let replaces = match &record {
            Some(record) => record.replaces,
            None => found.iter().find_map(Found::cluster),
        };
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
        ready.judge_left(playbook).await?;
        Ok(ready)
    }
}

/// By the playbook, else as the file lists them, else as the nodes of this host are started.
fn founders(playbook: &Playbook, saved: &Saved) -> Result<Founders, ActError> {
    let named = playbook.restore.as_ref().map(|restore| &restore.members).filter(|members| !members.is_empty());
    let named_of = |origin: &database::Origin| -> Founders {
        let named = origin.voters().filter(|voter| !voter.name.is_empty());
        named.map(|voter| (voter.name.clone(), voter.peer_urls.iter().cloned().collect())).collect()
    };
    let listed = saved.origin.as_ref().map(named_of).filter(|voters| !voters.is_empty());
    let founders = match named.cloned().or(listed) {
        Some(founders) => founders,
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

/// Revisions are numbers of 64 bits, and the tools do not look whether there are as many left.
fn judge_revision(saved: &Saved, bump: u64) -> Result<(), ActError> {
    let Some(revision) = saved.origin.as_ref().and_then(|origin| origin.revision) else { return Ok(()) };
    match revision.0.checked_add_unsigned(bump) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the file is at revision {}, and {bump} more leave no revision for the next write; leave out fewer: --bump-revision",
            revision.0
        )
        .into()),
    }
}

/// Whether nobody is named for a cluster that will ask. A client certificate may name one.
fn wants_a_user(saved: &Saved, cluster: &Cluster) -> bool {
    let has_certificate = cluster.tls.as_ref().is_some_and(|tls| tls.cert.is_some());
    let is_on = saved.origin.as_ref().is_some_and(|origin| origin.auth_is_on);
    is_on && cluster.auth.is_none() && !has_certificate
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

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::Path, time::Duration};

    use proto::Revision;

    use super::*;
    use crate::playbook::cluster::{Auth, Tls};

    fn saved(revision: i64, auth_is_on: bool) -> Saved {
        let revision = Some(Revision(revision));
        let origin = database::Origin { members: Vec::new(), version: None, revision, auth_is_on };
        Saved { origin: Some(origin), ..Saved::gone(Path::new("/b.db")) }
    }

    #[test]
    fn no_more_revisions_are_left_out_than_there_are() {
        for (revision, bump, is_right) in [
            (5, 0, true),
            (5, 1 << 62, true),
            (1 << 62, (1 << 62) - 1, true),
            (1 << 62, 1 << 62, false),
            (i64::MAX, 1, false),
        ] {
            assert_eq!(judge_revision(&saved(revision, false), bump).is_ok(), is_right, "{revision} {bump}");
        }
        assert!(judge_revision(&Saved::gone(Path::new("/b.db")), u64::MAX).is_ok(), "its tool knows");
    }

    #[test]
    fn a_cluster_that_will_ask_for_a_user_wants_one_in_the_playbook() {
        let tls = |cert: Option<&str>| {
            Some(Tls { ca: "/ca".into(), cert: cert.map(Into::into), key: cert.map(|_| "/key".into()) })
        };
        let auth = || Some(Auth { user: "root".into(), password_file: "/p".into() });
        for (is_on, tls, auth, expected) in [
            (false, None, None, false),
            (true, None, None, true),
            (true, tls(None), None, true),
            (true, tls(Some("/cert")), None, false),
            (true, None, auth(), false),
        ] {
            let cluster = Cluster {
                name: "orders".into(),
                endpoints: Vec::new(),
                election_timeout: Duration::from_secs(1),
                tls,
                auth,
                http: BTreeMap::new(),
            };
            assert_eq!(wants_a_user(&saved(1, is_on), &cluster), expected, "{is_on} {cluster:?}");
        }
    }
}
