//! The cluster's gates, where members have any (KEP-4647): equal on all, and on only where every member wants them on.

use std::collections::BTreeMap;

use lab::{
    Error,
    wait::{self, GENEROUS},
};
use proto::ClusterVersion;

use super::stage::Stage;

/// The first cluster version with gates (KEP-4647, "Upgrade / Downgrade Strategy").
const FIRST: ClusterVersion = ClusterVersion { major: 3, minor: 6 };

/// Waits until every member has decided its gates, and all alike.
pub(super) async fn agree(stage: &Stage) -> Result<(), Error> {
    let has_gates = stage.layout().system == lab::system::System::Node && stage.cluster_version() >= FIRST;
    if !has_gates {
        return none(stage).await;
    }
    Ok(wait::until("gates that are decided, equal, and wanted by all", GENEROUS, || alike(stage)).await?)
}

/// Below the first version with gates nothing is on, on any member.
async fn none(stage: &Stage) -> Result<(), Error> {
    for client in stage.clients()? {
        let on = client.family("etcd_cluster_feature_enabled").await?;
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
        if client.metric("etcd_cluster_feature_undecided").await.map_err(words)? != 0.0 {
            return Err(format!("{} has them undecided", member.name));
        }
        let on = client.family("etcd_cluster_feature_enabled").await.map_err(words)?;
        let proposed = client.family("etcd_cluster_feature_proposed").await.map_err(words)?;
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
}
