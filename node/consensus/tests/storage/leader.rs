//! What a leader decides enters the log in the term in which it leads, or never.

use bytes::Bytes;
use consensus::ProposeError;

use crate::alone::Alone;

/// etcd issue 15247: what was decided before another term began is not proposed in it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_in_another_term_does_not_enter_the_log() {
    let Alone { group, notebook, term, .. } = &Alone::begin().await;
    for other in [term - 1, term + 1] {
        let refused = group.propose_as_leader(other, Bytes::from_static(b"late")).await;
        assert_eq!(refused, Err(ProposeError::NotLeader), "term {other}, and it leads in {term}");
    }
    group.propose_as_leader(*term, Bytes::from_static(b"now")).await.unwrap();
    assert_eq!(notebook.lines(), ["now"]);
    group.shutdown().await;
}
