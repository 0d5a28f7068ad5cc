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
use proto::{ClusterVersion, Release};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::stage::Stage;

/// The first cluster version with gates (KEP-4647, "Upgrade / Downgrade Strategy").
const FIRST: ClusterVersion = ClusterVersion { major: 3, minor: 6 };
/// The time between two looks at a member.
const PERIOD: Duration = Duration::from_millis(100);
/// The same while the cluster version may change any moment: what is seen to be wrong may last for one write of the log.
const CLOSE: Duration = Duration::from_millis(1);
/// What a member that is down or stands still may hold a look up for.
const PATIENCE: Duration = Duration::from_millis(100);

/// The first thing that was seen to be wrong.
type Wrong = Arc<Mutex<Option<String>>>;

/// A look at every member's gates, again and again; it ends with the value.
pub(super) struct Gates {
    wrong: Wrong,
    _looks: JoinSet<()>,
}

impl Gates {
    /// `fewest`: so few voters are there at some time of the step.
    pub(super) fn watch(stage: &Stage, fewest: usize) -> Result<Self, Error> {
        let (wrong, mut looks) = (Wrong::default(), JoinSet::new());
        let table = Arc::new(Mutex::new(vec![None; stage.size()]));
        let (old, new) = (stage.from.release.cluster_version(), stage.to.release.cluster_version());
        let goes_down_to = (new < old).then_some(new);
        let members = stage.layout().members.iter().map(|member| member.name.clone()).zip(stage.clients()?);
        for (place, (name, client)) in members.enumerate().filter(|_| stage.layout().system == System::Node) {
            let (wrong, table) = (wrong.clone(), table.clone());
            looks.spawn(async move {
                loop {
                    let page = timeout(PATIENCE, client.metrics()).await.ok().and_then(Result::ok);
                    if let Some(why) = page.as_ref().and_then(|page| decided_too_soon(page, fewest)) {
                        wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(format!("{name}: {why}"));
                    }
                    let may_change = {
                        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
                        table[place] = page.as_ref().and_then(Versions::of);
                        may_change(&table, goes_down_to)
                    };
                    sleep(if may_change { CLOSE } else { PERIOD }).await;
                }
            });
        }
        Ok(Self { wrong, _looks: looks })
    }

    /// What was wrong, if anything.
    pub(super) fn judge(&self) -> Result<(), Error> {
        match self.wrong.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }
}

/// What a member runs, and the version that it holds the cluster to be at.
#[derive(Clone, Copy, Debug)]
struct Versions {
    own: ClusterVersion,
    cluster: ClusterVersion,
}

impl Versions {
    fn of(page: &Metrics) -> Option<Self> {
        let label = |family: &str| Some(page.family(family).into_keys().next()?.split('"').nth(1)?.to_owned());
        let own: Release = label("etcd_server_version")?.parse().ok()?;
        let cluster = label("etcd_cluster_version")?.parse().ok()?;
        Some(Self { own: own.cluster_version(), cluster })
    }
}

/// Whether the cluster version may change any moment: all but one, which may be on its way, run a higher release than it
/// is; or it is to go down, which it does while all run what it is.
fn may_change(members: &[Option<Versions>], goes_down_to: Option<ClusterVersion>) -> bool {
    let seen: Vec<Versions> = members.iter().flatten().copied().collect();
    let may_rise = seen.iter().all(|member| member.own > member.cluster);
    let is_above = |member: &Versions| goes_down_to.is_some_and(|lowest| member.cluster > lowest);
    let may_fall = seen.iter().all(|member| member.own == member.cluster && is_above(member));
    seen.len() + 1 >= members.len() && (may_rise || may_fall)
}

/// Gates that are decided while a member other than the page's own has said nothing at this cluster version: of itself,
/// one that has just started has no wish on its page yet. A change of the version must have opened them.
fn decided_too_soon(page: &Metrics, members: usize) -> Option<String> {
    let is_decided = page.figure("etcd_cluster_feature_undecided").is_ok_and(|undecided| undecided == 0.0);
    let label = |labels: &str| labels.split('"').nth(1).map(ToOwned::to_owned);
    let only = |family: &str| page.family(family).into_keys().find_map(|labels| label(&labels));
    let own = only("etcd_server_id");
    let wishes = page.family("etcd_cluster_feature_proposed");
    let said: BTreeSet<_> = wishes.keys().filter_map(|labels| label(labels)).collect();
    let others = said.iter().filter(|member| Some(*member) != own.as_ref()).count();
    (is_decided && others + 1 < members).then(|| {
        let version = only("etcd_cluster_version").unwrap_or_default();
        format!("the gates are decided, though only {others} of the {} others have a wish at {version}", members - 1)
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

    fn page(undecided: &str, own: &str, said: &[&str]) -> Metrics {
        let mut page = format!(
            "etcd_server_id{{server_id=\"{own}\"}} 1\netcd_server_version{{server_version=\"3.7.0\"}} 1\n\
             etcd_cluster_feature_undecided {undecided}\netcd_cluster_version{{cluster_version=\"3.6\"}} 1\n"
        );
        for member in said {
            page += &format!("etcd_cluster_feature_proposed{{member=\"{member}\",name=\"X\"}} 1\n");
        }
        Metrics(page)
    }

    #[test]
    fn gates_are_decided_once_everybody_has_a_wish_at_this_version() {
        for (undecided, own, said, is_too_soon) in [
            ("0", "1", &["1", "2", "3"][..], false),
            ("0", "3", &["1", "2"], false), // the third has just started, and it is its own page
            ("0", "1", &["1", "2"], true),
            ("0", "1", &["1"], true),
            ("0", "1", &[], true),
            ("1", "1", &["1"], false),
        ] {
            let is_seen = decided_too_soon(&page(undecided, own, said), 3).is_some();
            assert_eq!(is_seen, is_too_soon, "{undecided} {own} {said:?}");
        }
        assert_eq!(decided_too_soon(&Metrics("etcd_server_version 1\n".into()), 3), None, "a release without gates");
    }

    #[test]
    fn one_looks_closely_while_the_version_may_change() {
        let seen = Versions::of(&page("0", "1", &[])).unwrap();
        assert_eq!((seen.own.to_string(), seen.cluster.to_string()), ("3.7".into(), "3.6".into()));
        let at = |own, cluster| {
            let version = |minor| ClusterVersion { major: 3, minor };
            Some(Versions { own: version(own), cluster: version(cluster) })
        };
        for (members, goes_down_to, is_close) in [
            ([at(7, 6), at(7, 6), at(6, 6)], None, false),
            ([at(7, 6), at(7, 6), None], None, true), // the last is on its way
            ([at(7, 6), None, None], None, false),
            ([at(7, 6), at(7, 6), at(7, 6)], Some(6), true), // one that had begun to go down goes back
            ([at(7, 7), at(7, 7), at(7, 7)], None, false),
            ([at(7, 7), at(7, 7), at(7, 7)], Some(6), true),
            ([at(7, 6), at(6, 6), at(6, 6)], Some(6), false),
            ([at(6, 6), at(6, 6), at(6, 6)], Some(6), false),
        ] {
            let lowest = goes_down_to.map(|minor| ClusterVersion { major: 3, minor });
            assert_eq!(may_change(&members, lowest), is_close, "{members:?} {goes_down_to:?}");
        }
    }
}
