//! All hosts at once: the plan first, then the upgrade, then nothing to do.

use tests::{agent, system::System};

use crate::{play::Stage, site::Site};

#[tokio::test(flavor = "multi_thread")]
async fn all_hosts_at_once_are_upgraded_once() {
    let Some(site) = Site::up(System::Etcd, 3).await else { return };
    let Some(stage) = Stage::new(&site) else { return };
    let before = site.pids();
    let agent = format!("baton_agent_src={}", agent::executable().unwrap().display());

    let secret = ["-e", "secret=hunter2"];
    let planned = stage.play(&[&["--check", "--diff", "-e", &agent][..], &secret].concat()).await;
    planned.must_succeed();
    for host in 1..=3 {
        let plan = planned.run_on(host);
        assert_eq!((&plan["changed"], &plan["reason"]), (&true.into(), &"planned".into()), "{plan}");
        let steps = plan["diff"]["prepared"].as_str().expect("its steps");
        assert!(steps.lines().any(|line| line.starts_with('*') && line.contains(&format!("m{host}  stop"))), "{steps}");
    }
    // Nothing was put in place, and nothing is left of the look.
    for host in &site.hosts {
        for path in ["/usr/local/bin/agent", "/etc/baton", "/var/lib/baton"] {
            host.must(&["sh", "-c", "[ ! -e \"$0\" ]", path]).unwrap();
        }
        host.must(&["sh", "-c", "[ -z \"$(ls -d /tmp/baton-check-* 2>/dev/null)\" ]"]).unwrap();
    }
    assert_eq!(site.pids(), before);

    let played = stage
        .play(
            &[
                &["--diff", "-vvv", "-e", "hold=true", "-e", "baton_report=/root/report.html", "-e", &agent][..],
                &secret,
            ]
            .concat(),
        )
        .await;
    played.must_succeed();
    for told in [&planned, &played] {
        assert!(!told.text.contains("hunter2") && !format!("{:?}", told.tasks).contains("hunter2"), "{}", told.text);
    }
    assert_eq!(played.changed(), ["h1", "h2", "h3"]);
    for host in &site.hosts {
        host.must(&["grep", "--quiet", "</html>", "/root/report.html"]).unwrap();
    }
    assert!((1..=3).any(|host| played.run_on(host)["cluster"] == "done"));
    for host in 1..=3 {
        let run = played.run_on(host);
        let own: Vec<_> = run["steps"].as_array().expect("steps").iter().map(|step| &step["member"]).collect();
        assert!(run["changed"] == true && own.iter().all(|member| **member == format!("m{host}")), "{run}");
    }
    site.is_upgraded(&[true; 3]).await;

    let after = site.pids();
    let again = stage.play(&[&["-e", "baton_require_complete=true look=true hold=true"][..], &secret].concat()).await;
    again.must_succeed();
    for host in 1..=3 {
        let seen = again.look_from(host);
        let members = seen["members"].as_array().expect("the members");
        let wanted = site.to.release.to_string();
        assert_eq!((members.len(), &seen["changed"]), (3, &false.into()), "{seen}");
        assert!(members.iter().all(|member| member["state"] == "ready" && member["version"] == *wanted), "{seen}");
    }
    assert!(again.changed().is_empty(), "{}", again.text);
    assert!((1..=3).all(|host| again.run_on(host)["reason"] == "nothing_to_do"));
    assert_eq!(site.pids(), after);

    // It is held, and nothing replaces its member.
    let drain = ["--check", "--limit", "h1", "-e", r#"{"drained": ["h1"]}"#];
    let kept = stage.play(&[&drain[..], &secret].concat()).await;
    assert!(
        kept.code == Some(2) && kept.complaints().iter().any(|said| said.contains("which the cluster counts on")),
        "{}",
        kept.text
    );
    site.nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: the way up shows the same of the role"]
async fn all_hosts_at_once_are_taken_down_by_a_minor() {
    let Some(site) = Site::path(System::Etcd, ("3.6", "3.5"), 3).await else { return };
    let site = site.with_agents();
    let Some(stage) = Stage::new(&site) else { return };
    let played = stage.play(&[]).await;
    played.must_succeed();
    assert_eq!(played.changed(), ["h1", "h2", "h3"]);
    assert!((1..=3).any(|host| played.run_on(host)["cluster"] == "done"), "{}", played.text);
    site.is_upgraded(&[true; 3]).await;
    site.nothing_is_lost().await;
}
