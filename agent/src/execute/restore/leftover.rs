//! What the saved cluster's agents had written: a run and its locks name members by ids that the new cluster does not have. They are
//! deleted, each by compare, by whichever host sees them; a run that was begun since names the new cluster, and stays.

use std::{collections::BTreeSet, sync::Arc};

use proto::{ClusterId, MemberId};

use crate::{
    keys::{KeyName, Keys},
    observe::Observer,
    playbook::Playbook,
    store::{Compare, Op, Store, TxnAnswer, stored},
    words::with_causes,
};

/// Deletes them; what there is to warn of.
pub(super) async fn clear(playbook: &Playbook, cluster: ClusterId) -> Vec<String> {
    let observer = match Observer::connect(&playbook.cluster) {
        Ok(observer) => observer,
        Err(why) => return vec![with_causes(&why)],
    };
    observer.access().directory().settle(cluster);
    let store = Store::new(&observer, Arc::default());
    let unknown = |why: String| {
        vec![format!("whether keys of the old cluster's run are left is not known: {why}; agent keys shows them")]
    };
    let members: BTreeSet<_> = match observer.members().await {
        Ok(listed) => listed.into_iter().map(|member| member.id).collect(),
        Err(why) => return unknown(with_causes(&why)),
    };
    let snapshot = match store.read().await {
        Ok(snapshot) => snapshot,
        Err(why) => return unknown(with_causes(&why)),
    };
    let keys = match stored::keys(&snapshot) {
        Ok(keys) => keys,
        Err(why) => return unknown(with_causes(&why)),
    };
    let mut warnings = Vec::new();
    if !keys.hosts.is_empty() {
        warnings.push(
            "what is known of the hosts names members of the old cluster: agent adopt on each host writes it anew"
                .to_owned(),
        );
    }
    for raw in &snapshot.keys {
        let Some(name) = stored::name(&raw.key).filter(|name| is_left_over(*name, &keys, cluster, &members)) else {
            continue;
        };
        let compares = [Compare::Modified(raw.key.clone(), raw.modified)];
        match store.txn(&compares, &[Op::Delete { key: raw.key.clone() }]).await {
            // Another host has done so, or somebody has begun something new.
            TxnAnswer::Yes { .. } | TxnAnswer::No(_) => {}
            other => warnings
                .push(format!("{name:?} of the old cluster's run was not deleted: {other:?}; agent keys shows it")),
        }
    }
    warnings
}

/// Agents and the baton end with their leases.
fn is_left_over(name: KeyName, keys: &Keys, cluster: ClusterId, members: &BTreeSet<MemberId>) -> bool {
    match name {
        KeyName::Run => keys.run.as_ref().is_some_and(|run| run.value.intent.cluster != cluster),
        KeyName::Step => keys.step.as_ref().is_some_and(|step| !members.contains(&step.value.member)),
        KeyName::Abandoned(member) => !members.contains(&member),
        KeyName::Agent(_) | KeyName::Baton | KeyName::Host(_) => false,
    }
}
