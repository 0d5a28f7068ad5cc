//! A switched file that changes once preflight is over, as its owner may let it, who is often its member's user: no member
//! stays down for that.

use std::{fs, path::PathBuf, thread, time::Duration};

use tests::{
    agent::Agent, case::Case, cluster::Member, ended::Ended, playbook::quoted, rollout::Ends, sick::Illness,
    system::System,
};

use crate::SICK;

/// More than is read of any file, in bytes.
const HUGE: u64 = 65 << 20;

fn conf(member: &Member) -> PathBuf {
    member.dir.join("conf")
}

fn next(member: &Member) -> PathBuf {
    member.dir.join("next")
}

/// Three members; the first one's file holds `old`, and with the new release it is to hold `new`. `None` is a skip.
async fn begin(strategy: &[&str]) -> Option<Case> {
    let mut case = Case::of(System::Node).await?.strategy(strategy);
    fs::write(conf(case.member(0)), "old").expect("written");
    fs::write(next(case.member(0)), "new").expect("written");
    case.upgrade.node = |member| {
        let [path, source] = [conf(member), next(member)].map(|path| quoted(&path.to_string_lossy()));
        vec![format!("files: [{{ path: {path}, source: {source}, for: \">=3.6\" }}]")]
    };
    Some(case)
}

async fn run(case: &Case) -> Ended {
    Agent::start("run", &case.write()[0], &[]).expect("an agent").ends().await
}

async fn all_run_the_old_release(case: &Case) {
    assert_eq!(case.releases().await, vec![case.from.release.to_string(); 3]);
}

/// It cannot be saved any more, so it is not switched.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_read_after_preflight_leaves_no_member_down() {
    let Some(mut case) = begin(&["join_window: 0s"]).await else { return };
    let file = quoted(&conf(case.member(0)).to_string_lossy());
    case.upgrade.extra = vec![format!("hooks: {{ before_node: [[truncate, -s, \"{HUGE}\", {file}]] }}")];
    let before = case.pids();
    let ended = run(&case).await;
    ended.must_be(1, "step_failed");
    assert!(ended.message().contains("conf: file too large"), "{ended}");
    assert_ne!(case.pids()[0], before[0], "it was stopped: {ended}");
    all_run_the_old_release(&case).await;
}

/// Has it changed as soon as it is switched, and the new binary hang: so the member goes back.
async fn goes_back(change: fn(PathBuf)) -> Option<(Case, Ended)> {
    let mut case = begin(&["join_window: 0s", "health: { timeout: 5s }"]).await?;
    case.upgrade = case.sick(SICK, Illness::Hangs);
    let file = conf(case.member(0));
    let changer = thread::spawn(move || {
        while fs::read(&file).expect("readable") != b"new" {
            thread::sleep(Duration::from_millis(1));
        }
        change(file);
    });
    let ended = run(&case).await;
    // Not joined before: where nothing is switched that would be for ever.
    ended.must_be(1, "put_back");
    changer.join().expect("changed");
    all_run_the_old_release(&case).await;
    Some((case, ended))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: others that are switched are put back by default"]
async fn one_that_grows_once_it_is_switched_is_put_back() {
    let grow = |file: PathBuf| fs::File::options().write(true).open(file).unwrap().set_len(HUGE).unwrap();
    let Some((case, ended)) = goes_back(grow).await else { return };
    assert_eq!(fs::read_to_string(conf(case.member(0))).expect("readable"), "old", "{ended}");
    assert!(ended.unadvised_warnings().is_empty(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_put_back_is_named_and_the_old_binary_runs() {
    let replace = |file: PathBuf| {
        fs::remove_file(&file).unwrap();
        fs::create_dir(file).unwrap();
    };
    let Some((case, ended)) = goes_back(replace).await else { return };
    let said = format!("{} was not put back", conf(case.member(0)).display());
    assert!(ended.warnings().contains(&said), "{ended}");
}
