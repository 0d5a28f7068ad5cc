//! Every path of releases, with every size of cluster.

use std::time::Instant;

use tests::{case::Case, ended::all_must_be, on_both, rollout::all_end, system::System};

on_both! {
    three_members_go_up_by_a_minor;
    a_report_names_every_member_and_the_result;
    #[ignore = "slow: a minute and a half; three go up by default"]
    five_members_go_up_by_a_minor;
    #[ignore = "slow: five members show the same"]
    seven_members_go_up_by_a_minor;
}

async fn upgrades(system: System, path: (&str, &str), size: usize, tls: bool) {
    let Some(case) = Case::path(system, path, |spec| (spec.size, spec.tls) = (size, tls)).await else { return };
    let rollout = case.begin().await;
    let began = Instant::now();
    let agents = rollout.all("run").await;
    let took = began.elapsed();
    all_must_be(&agents, 0, "done");
    let seen = rollout.done().await;
    assert_eq!(seen.observed.outages.len(), size, "each member went down once: {:?}", seen.observed);
    eprintln!("{size} members in {took:.1?}, longest write gap {:.0?}", seen.longest_write_gap);
}

async fn three_members_go_up_by_a_minor(system: System) {
    upgrades(system, system.main_job(), 3, false).await;
}

/// The page is made from what the agents see, so it is held against what the clients saw.
async fn a_report_names_every_member_and_the_result(system: System) {
    let Some(case) = Case::path(system, system.main_job(), |_| {}).await else { return };
    let mut rollout = case.begin().await;
    rollout.upgrade.everybody_comes();
    rollout.write();
    let page = |host: usize| rollout.playbooks[host].with_file_name("report.html");
    let reports: Vec<_> = (0..3).map(|host| page(host).to_string_lossy().into_owned()).collect();
    let agents = reports.iter().enumerate().map(|(host, page)| rollout.start_with("run", host, &["--report", page]));
    let agents = all_end(agents).await;
    all_must_be(&agents, 0, "done");
    let target = rollout.to.release.to_string();
    for (agent, report) in agents.iter().zip(&reports) {
        let html = std::fs::read_to_string(report).expect("there is a report");
        assert!(html.contains(agent.message()) && html.contains("<dt>Exit</dt><dd>0, done</dd>"), "{html}");
        assert!(html.contains("<dt>Most down at a time</dt><dd>1</dd>"), "{html}");
        for member in &rollout.layout().members {
            let bar = format!("<strong>{}</strong>", member.name);
            assert!(html.contains(&bar), "{report} has no {}", member.name);
        }
        assert!(html.contains(&format!("→ {target}")), "{html}");
    }
    rollout.done().await;
}

async fn five_members_go_up_by_a_minor(system: System) {
    upgrades(system, system.main_job(), 5, false).await;
}

async fn seven_members_go_up_by_a_minor(system: System) {
    upgrades(system, system.main_job(), 7, false).await;
}

/// The paths that follow on the main job.
mod further {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn three_nodes_go_from_3_6_to_3_7() {
        upgrades(System::Node, ("3.6", "3.7"), 3, false).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn three_members_of_etcd_go_from_3_5_to_3_6() {
        upgrades(System::Etcd, ("3.5", "3.6"), 3, false).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "slow: more members on a path that three of them show"]
    async fn five_members_of_etcd_go_from_3_5_to_3_6() {
        upgrades(System::Etcd, ("3.5", "3.6"), 5, false).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "slow: more members on a path that three of them show"]
    async fn seven_members_of_etcd_go_from_3_5_to_3_6() {
        upgrades(System::Etcd, ("3.5", "3.6"), 7, false).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "slow: 3.7 is built from source"]
    async fn three_members_of_etcd_go_from_3_6_to_3_7() {
        upgrades(System::Etcd, ("3.6", "3.7"), 3, false).await;
    }
}

mod tls {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn three_members_of_the_node_go_from_3_5_to_3_6() {
        upgrades(System::Node, ("3.5", "3.6"), 3, true).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "slow: more than a minute; etcd goes from 3.5 to 3.6 behind TLS by default"]
    async fn three_members_go_from_3_4_to_3_5() {
        upgrades(System::Etcd, ("3.4", "3.5"), 3, true).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn three_members_go_from_3_5_to_3_6() {
        upgrades(System::Etcd, ("3.5", "3.6"), 3, true).await;
    }
}
