//! What a unit gives its member at the next start, held against what systemd gives it: units that are fine are taken, and their member
//! has its data afterwards; those by which it would be somebody else are refused, and it does not notice.

use tests::{ended::Ended, machine::Host, system::System};

use crate::{
    fleet::{Fleet, PLAYBOOK, UNIT, Words},
    run::Run,
};

/// The file of variables that units here name.
const FILE: &str = "/etc/default/member";
/// What a unit begins with.
const TOLD: &str = "--data-dir=/var/lib/member";

/// One host with real etcd, whose only member may go.
async fn sole() -> Option<Fleet> {
    let fleet = Fleet::with(System::Etcd, 1, "Restart=always\nRestartSec=2").await?;
    let strategy = vec!["allow_downtime: true".into(), "join_window: 0s".into()];
    fleet.write(0, &Words { strategy, ..Words::default() });
    Some(fleet)
}

/// The unit with these words in place of its data directory, and these settings; and what is in the file.
fn write(fleet: &Fleet, words: &str, settings: &str, file: &str) {
    let host = &fleet.hosts[0];
    host.write(FILE, file).expect("written");
    let unit = fleet.unit(0, &format!("Restart=always\nRestartSec=2\n{settings}")).replace(TOLD, words);
    host.write_unit(UNIT, &unit).expect("a unit");
}

async fn restarts(fleet: &Fleet) {
    let host = &fleet.hosts[0];
    host.must(&["systemctl", "reset-failed", UNIT]).expect("forgotten");
    host.must(&["systemctl", "restart", UNIT]).expect("restarted");
    fleet.serves().await;
}

async fn guard(host: &Host) -> Ended {
    Run::start(host, &["agent", "guard", "--check", PLAYBOOK]).ended().await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: two restarts for each of a dozen units"]
async fn units_that_are_fine_are_taken() {
    let Some(fleet) = sole().await else { return };
    fleet.client(0).put("kept", "yes").await.expect("put");
    for (words, settings, file) in [
        ("", format!("EnvironmentFile=-{FILE}"), "# Its data.\n; it is here\nETCD_DATA_DIR='/var/lib/member'\n"),
        ("$OPTS", format!("EnvironmentFile={FILE}"), "OPTS=--data-dir='/var/lib/member' \\\n --snapshot-count=5000\n"),
        ("$OPTS", format!("EnvironmentFile={FILE}"), "OPTS=\"'--data-dir' \\\"/var/lib/member\\\"\"\r\n"),
        ("--data-dir=${STATE_DIRECTORY}", "StateDirectory=member".into(), ""),
        ("--data-dir=member", "WorkingDirectory=/var/lib".into(), ""),
        ("--data-dir=var/lib/member", String::new(), ""),
        ("--data-dir=/data", "BindPaths=/var/lib/member:/data".into(), ""),
        ("--data-dir=/data/member", "TemporaryFileSystem=/data\nBindPaths=/var/lib/member:/data/member".into(), ""),
        (
            "--data-dir=${DIR}",
            "Environment=DIR=/var/lib/member ETCD_FORCE_NEW_CLUSTER=true\nUnsetEnvironment=ETCD_FORCE_NEW_CLUSTER"
                .into(),
            "",
        ),
        (
            "--data-dir=/var/lib/../lib/member/",
            "EnvironmentFile=-/etc/default/none\nEnvironmentFile=-/etc/default".into(),
            "",
        ),
        (TOLD, "ProtectSystem=strict\nReadWritePaths=/var/lib/member\nPrivateTmp=yes\nLimitNOFILE=65536".into(), ""),
    ] {
        write(&fleet, words, &settings, file);
        restarts(&fleet).await;
        fleet.one("plan", 0).await.must_be(0, "planned");
        guard(&fleet.hosts[0]).await.must_be(0, "may_go");
        restarts(&fleet).await;
        let kept = fleet.client(0).get("kept").await.expect("an answer");
        assert!(kept.is_some(), "{words} {settings} {file}: it is somebody else");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn units_by_which_a_member_would_be_somebody_else_are_refused() {
    let Some(fleet) = sole().await else { return };
    let host = &fleet.hosts[0];
    let by_file = format!("EnvironmentFile={FILE}");
    write(&fleet, "$OPTS", &by_file, "OPTS=--data-dir=/var/lib/member\n");
    restarts(&fleet).await;
    let before = fleet.property(host, "ExecMainPID");
    let same = "OPTS=--data-dir=/var/lib/member\n";
    for (settings, file, fault) in [
        (by_file.clone(), "OPTS=\"--data-dir=/var/lib/member '--force-new-cluster'\"\n", "`--force-new-cluster`"),
        (
            by_file.clone(),
            "OPTS=--data-dir=/var/lib/member\nETCD_FORCE_NEW_CLUSTER=\"tr\\\nue\"\n",
            "`ETCD_FORCE_NEW_CLUSTER`",
        ),
        (by_file.clone(), "OPTS=--data-dir='/srv/other'\n", "/srv/other"),
        (by_file.clone(), "OPTS=\n", ".etcd"),
        (by_file.clone(), "OPTS=--data-dir=var/lib/other\n", "/var/lib/other"),
        (format!("{by_file}\nWorkingDirectory=/srv"), "OPTS=--data-dir=var/lib/member\n", "/srv/var/lib/member"),
        (format!("{by_file}\nBindPaths=/srv:/var/lib/member"), same, "/srv"),
        (format!("{by_file}\nTemporaryFileSystem=/var/lib"), same, "TemporaryFileSystem="),
        ("StateDirectory=other".into(), "", ".etcd"),
    ] {
        write(&fleet, "$OPTS", &settings, file);
        for ended in [fleet.one("plan", 0).await, fleet.one("run", 0).await, guard(host).await] {
            ended.must_be(3, "unprepared");
            assert!(ended.message().contains(fault), "{settings} {file}: {ended}");
        }
        assert_eq!(fleet.property(host, "ExecMainPID"), before, "{settings} {file}");
    }
}
