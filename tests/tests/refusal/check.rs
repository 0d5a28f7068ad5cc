//! `agent check`, a gate before an upgrade: what it must not let through, and what it must.

use tests::{
    case::Case,
    etcdctl::Etcdctl,
    ports::Ports,
    system::System,
    wait::{self, GENEROUS},
};

use crate::past::{checked, clear};

async fn case(from: &str) -> Option<Case> {
    Case::path(System::Etcd, (from, "3.6"), |_| {}).await
}

/// Who does not say on its page of metrics that it is no etcd is taken for one.
#[tokio::test(flavor = "multi_thread")]
async fn members_whose_metrics_are_elsewhere_are_no_other_program() {
    let Some(mut case) = case("3.5").await else { return };
    let ports = Ports::lease(1).expect("a port");
    let member = &mut case.cluster.layout.members[0];
    let elsewhere = format!("--listen-client-http-urls=http://127.0.0.1:{}", ports.numbers[0]);
    member.start_anew(member.flags.iter().cloned().chain([elsewhere]).collect()).expect("started again");
    for (to, exit, expected) in [("3.6.3", 3, &["target-36-floor"][..]), (&case.to.release.to_string(), 0, &[])] {
        let judged = wait::until("all to be ready", GENEROUS, || async {
            let (found, refused, message) = checked(&case, to, &[]).await;
            (found == exit && refused == expected).then_some(()).ok_or(format!("{refused:?} {message}"))
        });
        judged.await.expect("it is taken for etcd");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_stands_in_nobodys_way() {
    let Some(case) = case("3.5").await else { return };
    let newcomers = case.newcomers(1);
    case.added_by_hand(&newcomers.members[0], true).await;
    clear(&case, &case.to.release.to_string(), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_that_no_run_goes_and_a_downgrade_under_way_are_told() {
    let Some(case) = case("3.6").await else { return };
    clear(&case, "3.6.14", &[]).await;
    for to in ["3.4.23", "2.3.0", "9.9.9"] {
        let (exit, _, message) = checked(&case, to, &[]).await;
        assert_eq!(exit, 3, "{to}: {message}");
        assert!(message.contains("one minor at a time"), "{to}: {message}");
    }
    let tool = Etcdctl::new(&case.from, None);
    let endpoint = [case.layout().leader().await.expect("a leader").client_url.clone()];
    tool.run(&endpoint, &["downgrade", "enable", "3.5.0"]).await;
    let (exit, _, message) = checked(&case, "3.7.1", &[]).await;
    assert_eq!(exit, 3, "{message}");
    assert!(message.contains("a downgrade to 3.5 is enabled"), "{message}");
}

/// What a database may show matters on this way, and nobody could look: then a run does not begin either.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_has_no_room_to_be_read_is_not_taken_for_a_sound_one() {
    let Some(case) = case("3.5").await else { return };
    let folder = case.layout().dir.join("nowhere");
    let to = case.to.release.to_string();
    let (exit, _, message) = checked(&case, &to, &["--dir", folder.to_str().expect("text")]).await;
    assert_eq!(exit, 2, "{message}");
    assert!(message.contains("expected a folder"), "{message}");
}
