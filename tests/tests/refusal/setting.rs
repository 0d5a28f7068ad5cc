//! Settings that a newer etcd passes over without a word: those of variables and of configuration files.

use tests::{case::Case, ended::all_must_be, member::Member, system::System};

use crate::is_refused;

/// As the agent starts it, with a variable that 3.6 does not know, and one that nobody does.
fn with_variables(member: &Member) -> Vec<String> {
    let mut lines = tests::playbook::started_by_the_agent(member);
    lines.push("env: { ETCD_ENABLE_V2: \"true\", ETCD_NO_SETTING: x }".into());
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_the_new_release_passes_over_is_refused_until_it_is_accepted() {
    let Some(mut case) = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await else { return };
    case.upgrade.runtime = with_variables;
    // The last of them is told by its file, and then no variable counts.
    let last = case.layout().members.len() - 1;
    case.cluster.layout.members[last].configure("enable-v2: true\nno-setting: x").expect("configured");
    case.cluster.ready().await.expect("ready again");
    let mut rollout = case.strategy(&["join_window: 2s"]).begin().await;
    rollout.one("plan", 0).await.must_be(3, "hazard");
    let variable = "setting-lost, of m1, which is given `ETCD_ENABLE_V2`: ";
    is_refused(&rollout, [0], (3, "hazard"), &[variable]).await;
    is_refused(&rollout, [last], (3, "hazard"), &["setting-lost, of m3, which is given `enable-v2` in "]).await;
    rollout.upgrade.strategy.push("accept_hazards: [setting-lost]".into());
    rollout.write();
    // It was not passed over where it runs: users may still write what 3.6 does not start on.
    let still_on = "v2-still-on, of m3, which is given `enable-v2` in its configuration file: ";
    is_refused(&rollout, [last], (3, "hazard"), &[still_on]).await;
    rollout.upgrade.strategy.pop();
    rollout.upgrade.strategy.push("accept_hazards: [setting-lost, v2-still-on]".into());
    rollout.write();
    // Somebody started it without the variables that its next start gives it.
    let differs = "environment-differs, of m1, as its process was started with another environment than `env` has: \
                   `ETCD_ENABLE_V2`, which it has not";
    is_refused(&rollout, [0], (3, "hazard"), &[differs]).await;
    rollout.upgrade.strategy.pop();
    rollout.upgrade.strategy.push("accept_hazards: [setting-lost, v2-still-on, environment-differs]".into());
    all_must_be(&rollout.together().await, 0, "done");
    rollout.done().await;
}

/// Found after the stop, it would keep the member down, on the old binary, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_file_that_is_gone_or_no_yaml_is_found_before_the_stop() {
    let Some(case) = Case::path(System::Etcd, ("3.5", "3.6"), |_| {}).await else { return };
    let mut case = case.strategy(&["join_window: 2s"]);
    case.cluster.layout.members[0].configure("no-setting: x").expect("configured");
    case.cluster.ready().await.expect("ready again");
    let rollout = case.begin().await;
    let flags = rollout.member(0).flags.join(" ");
    let file = flags.split("--config-file").nth(1).expect("its file").trim_start_matches(['=', ' ']);
    let file = std::path::PathBuf::from(file.split(' ').next().expect("a path"));
    let sound = std::fs::read_to_string(&file).expect("readable");
    for (text, why) in [(None, "cannot be read"), (Some("name: {{{"), "is not YAML")] {
        match text {
            Some(text) => std::fs::write(&file, text).expect("written"),
            None => std::fs::remove_file(&file).expect("removed"),
        }
        rollout.one("plan", 0).await.must_be(3, "unprepared");
        is_refused(&rollout, [0], (3, "unprepared"), &["m1: its configuration file", why]).await;
    }
    std::fs::write(&file, sound).expect("written");
    rollout.one("run", 0).await.must_be(0, "partial");
    rollout.end(1).await;
}
