//! A second agent on one state directory.

use std::collections::BTreeMap;

use tests::{
    brake::Brake,
    rollout::LIMIT,
    standing::{is_of, until_keys},
};

use crate::{Case, done, is_refused};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_agent_on_one_state_directory() {
    let Some(mut case) = Case::set("3.4", "3.5", |_| {}).await else { return };
    let brake = Brake::new(case.layout());
    case.upgrade.extra.push(brake.hook());
    let rollout = case.begin().await;
    let first = rollout.start(0).expect("started");
    let holds = |keys: &BTreeMap<_, _>| is_of(keys.get("baton"), &first).then_some(());
    until_keys("the first one to hold the baton", case.layout(), holds).await.expect("it holds it");
    is_refused(&rollout, [0], (6, "state_dir_locked"), &["m1/baton"]).await;

    brake.release().expect("released");
    let first = first.ended(LIMIT).await.expect("ended");
    first.must_be(0, "partial");
    done(&rollout.run([1, 2]).await.expect("ended"));
    rollout.done().await.expect("sound");
}
