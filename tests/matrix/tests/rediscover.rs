//! `scripts/rediscover` as it is typed, and one plan on real members of good releases: the judge raises no false alarm.

#![allow(clippy::panic, reason = "a test that cannot go on fails")]

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

use lab::system::{Build, System};
use matrix::past::{
    Ground,
    generate::plan,
    run::{Bench, run},
};

fn rediscover(words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/rediscover");
    let mut command = Command::new(script);
    command.env("BATON_REDISCOVER", env!("CARGO_BIN_EXE_rediscover")).args(words).output().expect("the script runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn plans_and_releases_are_told_without_anything_being_run() {
    let listed = rediscover(&["--list", "--plans", "2"]);
    let plans = text(&listed.stdout);
    assert!(listed.status.success(), "{listed:?}");
    assert_eq!((plans.matches("# ").count(), plans.matches(" start every member").count()), (10, 20), "{plans}");
    // Of a bug the generator knows nothing: one way and seed is one plan, whatever is hunted there.
    let of = |bug: &str| text(&rediscover(&["--list", bug]).stdout).replace(bug, "");
    assert_eq!(
        of("18667"),
        text(&rediscover(&["--list", "--sound", "3.5.30,3.6.14"]).stdout).replace("no bug known", "")
    );

    let releases = rediscover(&["--releases", "19557", "20809"]);
    assert_eq!(text(&releases.stdout), "3.4.23\n3.5.16\n3.5.30\n3.6.14\n");
    assert!(text(&rediscover(&["--help"]).stdout).contains("--sound <V,V,…>"));
    assert!(text(&rediscover(&["-h"]).stdout).contains("--minutes <N>"));
}

#[test]
fn what_is_not_hunted_is_refused() {
    for (words, reason) in [
        (&["4711"][..], "error: `4711` is not hunted; there are hop-too-fast-37, 20809"),
        (&["--sound", "3.5.x"], "error: "),
        (&["--jobs", "0"], "error: "),
    ] {
        let done = rediscover(words);
        assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(2), ""), "{done:?}");
        assert!(text(&done.stderr).starts_with(reason), "{done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn good_releases_pass_a_plan() {
    let bins = ["BATON_ETCD_3_5", "BATON_ETCD_3_6"].map(env::var_os);
    let [Some(from), Some(to)] = bins else {
        return eprintln!("skipped: etcd 3.5 and 3.6 are not at hand");
    };
    let builds = [from, to].map(|bin| Build::of(System::Etcd, bin.as_ref()).expect("a release"));
    let way = builds.each_ref().map(|build| build.release.clone()).to_vec();
    let builds = builds.into_iter().map(|build| (build.release.clone(), build)).collect();
    let bench = Bench { builds, agent: None };
    // Of the first seeds one that is soon over, with a restore, a member that joins and kills.
    let plan = plan(&Ground { way, size: 3 }, SEED);
    let home = tempfile::tempdir().expect("a folder");
    let outcome = run(&plan, &bench, &home.path().join("cluster")).await;
    assert!(outcome.failure.is_none(), "{plan}{:?}", outcome.failure);
}

const SEED: u64 = 7;
