//! A task for every other member, for as long as it is one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use consensus::Peer;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::Shared;

/// Between two looks at who is a member, where nothing was heard of a change: who was added is in raft's list before it is in the
/// state.
const LOOK: Duration = Duration::from_secs(1);

/// Has one run for each member that this one knows of, until it is a member no more or this is dropped. One that knows of no
/// membership yet takes those of `first`. What is there is told at each `look`.
pub(super) async fn with_each<F: Future<Output = ()> + Send + 'static>(
    shared: &Arc<Shared>,
    first: &BTreeMap<u64, String>,
    mut look: impl FnMut(&BTreeMap<u64, String>),
    run: impl Fn(Peer) -> F,
) {
    let (mut cluster, mut tasks) = (shared.machine.cluster_changed(), BTreeMap::new());
    loop {
        cluster.borrow_and_update();
        let mut members = shared.group.members();
        if members.is_empty() {
            members.clone_from(first);
        }
        tasks.retain(|id, _| members.contains_key(id));
        look(&members);
        members.remove(&shared.identity.member.0);
        for (id, address) in members {
            let spawn = || AbortOnDropHandle::new(tokio::spawn(run(Peer { id, address })));
            tasks.entry(id).or_insert_with(spawn);
        }
        let _ = timeout(LOOK, cluster.changed()).await;
    }
}
