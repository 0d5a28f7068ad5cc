//! The cluster's gates, where members have any (KEP-4647): never decided while wishes at the cluster version are missing,
//! and in the end equal on all, and on only where every member wants them on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lab::{
    Error,
    metrics::Metrics,
    system::System,
    wait::{self, GENEROUS},
};
use proto::ClusterVersion;
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use super::stage::Stage;

/// The first cluster version with gates (KEP-4647, "Upgrade / Downgrade Strategy").
const FIRST: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
/// The time between two looks, each at the next member: what is seen to be wrong may last for one write of the log, and is
/// then the same on all.
const PERIOD: Duration = Duration::from_millis(10);
/// What a member that is down or stands still may hold a look up for.
const PATIENCE: Duration = Duration::from_millis(100);

/// The first thing that was seen to be wrong.
type Wrong = Arc<Mutex<Option<String>>>;

/// A look at every member's gates, again and again; it ends with the value.
pub(super) struct Gates {
    wrong: Wrong,
    task: Option<AbortHandle>,
}

impl Gates {
    /// Begins to look.
    pub(super) fn watch(stage: &Stage) -> Result<Self, Error> {
        let wrong = Wrong::default();
        if stage.layout().system != System::Node {
            return Ok(Self { wrong, task: None });
        }
        let names = stage.layout().members.iter().map(|member| member.name.clone());
        let members: Vec<_> = names.zip(stage.clients()?).collect();
        let told = wrong.clone();
        let task = tokio::spawn(async move {
            for (name, client) in members.iter().cycle() {
                if let Ok(Ok(page)) = timeout(PATIENCE, client.metrics()).await
                    && let Some(why) = decided_too_soon(&page, members.len())
                {
                    told.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(format!("{name}: {why}"));
                }
                sleep(PERIOD).await;
            }
        });
        Ok(Self { wrong, task: Some(task.abort_handle()) })
    }

    /// What was wrong, if anything.
    pub(super) fn judge(&self) -> Result<(), Error> {
        match self.wrong.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

/// Gates that are decided while more than one of so many members has said nothing at this cluster version: of a member
/// that has just started its own page has no wish yet. A change of the version must have opened them.
fn decided_too_soon(page: &Metrics, members: usize) -> Option<String> {
    let is_decided = page.figure("etcd_cluster_feature_undecided").is_ok_and(|undecided| undecided == 0.0);
    let wishes = page.family("etcd_cluster_feature_proposed");
    let said: BTreeSet<_> = wishes.keys().filter_map(|labels| labels.split(',').next()).collect();
    let version = page.family("etcd_cluster_version").into_keys().next().unwrap_or_default();
    (is_decided && said.len() + 1 < members).then(|| {
        format!("the gates are decided, though only {} of {members} members have a wish at {version}", said.len())
    })
}

/// Waits until every member has decided its gates, and all alike.
pub(super) async fn agree(stage: &Stage) -> Result<(), Error> {
    let has_gates = stage.layout().system == System::Node && stage.cluster_version() >= FIRST;
    if !has_gates {
        return none(stage).await;
    }
    Ok(wait::until("gates that are decided, equal, and wanted by all", GENEROUS, || alike(stage)).await?)
}

/// Below the first version with gates nothing is on, on any member.
async fn none(stage: &Stage) -> Result<(), Error> {
    for client in stage.clients()? {
        let on = client.metrics().await?.family("etcd_cluster_feature_enabled");
        if let Some((name, _)) = on.iter().find(|(_, value)| **value > 0.0) {
            return Err(format!("{name} is on at cluster version {}", stage.cluster_version()).into());
        }
    }
    Ok(())
}

async fn alike(stage: &Stage) -> Result<(), String> {
    let words = |error: Error| error.to_string();
    let mut first = None;
    for (client, member) in stage.clients().map_err(words)?.into_iter().zip(&stage.layout().members) {
        let page = client.metrics().await.map_err(words)?;
        if page.figure("etcd_cluster_feature_undecided").map_err(words)? != 0.0 {
            return Err(format!("{} has them undecided", member.name));
        }
        let on = page.family("etcd_cluster_feature_enabled");
        let proposed = page.family("etcd_cluster_feature_proposed");
        as_wanted(&on, &proposed, stage.size()).map_err(|why| format!("{}: {why}", member.name))?;
        match &first {
            None => first = Some(on),
            Some(first) if *first != on => return Err(format!("{} has {on:?}, and another {first:?}", member.name)),
            Some(_) => {}
        }
    }
    Ok(())
}

/// On where all of so many members want it, and only there. Labels are `name="X"` and `member="…",name="X"`.
fn as_wanted(on: &BTreeMap<String, f64>, proposed: &BTreeMap<String, f64>, members: usize) -> Result<(), String> {
    for (name, is_on) in on {
        let wishes: Vec<_> = proposed.iter().filter(|(labels, _)| labels.ends_with(name.as_str())).collect();
        let is_wanted = wishes.len() == members && wishes.iter().all(|(_, wish)| **wish > 0.0);
        if is_wanted != (*is_on > 0.0) {
            return Err(format!("{name} is {is_on}, while members want {wishes:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_on_where_all_want_it_and_only_there() {
        let table = |rows: &[(&str, f64)]| rows.iter().map(|(label, value)| ((*label).to_owned(), *value)).collect();
        let (a, b) = ("member=\"1\",name=\"X\"", "member=\"2\",name=\"X\"");
        for (on, wishes, is_right) in [
            (1.0, vec![(a, 1.0), (b, 1.0)], true),
            (0.0, vec![(a, 1.0), (b, 1.0)], false),
            (1.0, vec![(a, 1.0), (b, 0.0)], false),
            (0.0, vec![(a, 1.0), (b, 0.0)], true),
            (1.0, vec![(a, 1.0)], false), // who says nothing does not want it
            (0.0, vec![(a, 1.0)], true),
        ] {
            let said = as_wanted(&table(&[("name=\"X\"", on)]), &table(&wishes), 2);
            assert_eq!(said.is_ok(), is_right, "{on} {wishes:?}");
        }
    }

    #[test]
    fn gates_are_decided_once_everybody_has_a_wish_at_this_version() {
        for (undecided, members, is_too_soon) in [
            ("0", &["1", "2", "3"][..], false),
            ("0", &["1", "2"], false), // the third has just started, and it is its own page
            ("0", &["1"], true),
            ("0", &[], true),
            ("1", &["1"], false),
        ] {
            let mut page = format!(
                "etcd_cluster_feature_undecided {undecided}\netcd_cluster_version{{cluster_version=\"3.7\"}} 1\n"
            );
            for member in members {
                page += &format!("etcd_cluster_feature_proposed{{member=\"{member}\",name=\"X\"}} 1\n");
            }
            assert_eq!(decided_too_soon(&Metrics(page), 3).is_some(), is_too_soon, "{undecided} {members:?}");
        }
        assert_eq!(decided_too_soon(&Metrics("etcd_server_version 1\n".into()), 3), None, "a release without gates");
    }
}
