//! What each member runs and demands, as a call and as metrics.

use proto::batonpb::{ListRequest, members_client::MembersClient};

use crate::{
    http::get,
    served::{ID, Served},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_tells_its_release_its_protocols_and_its_policy() {
    let served = Served::start().await;
    let answer = MembersClient::new(served.channel()).list(ListRequest {}).await.unwrap().into_inner();
    assert_eq!(answer.header.unwrap().member_id, ID.0);
    let [own] = &answer.members[..] else { panic!("{:?}", answer.members) };
    assert_eq!((own.id, &*own.release, &*own.join_policy), (ID.0, "3.6.0", "compatible"));
    assert_eq!((own.lowest_protocol, own.highest_protocol, own.waits), (1, 1, false));
    let (_, page) = get(&served, "/metrics").await;
    let terms = format!(
        r#"baton_member_release{{highest_protocol="1",join_policy="compatible",lowest_protocol="1",member="{ID}",release="3.6.0"}} 1"#
    );
    assert!(page.contains(&terms) && page.contains(&format!(r#"baton_member_waits{{member="{ID}"}} 0"#)), "{page}");
}
