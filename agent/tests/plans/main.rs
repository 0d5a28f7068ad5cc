//! Golden plans: what a rollout would be, from a playbook, a view and the keys, printed.
//!
//! Each folder is a case: `playbook.yaml`, `view.json`, and `keys.json` where the hosts share something
//! already, `down.json` where members of this host do not run, `evidence.json` what is asked once; `plan.snap` is what is printed. `INSTA_UPDATE=always cargo test --test plans` rewrites them all.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use agent::{
    execute::intent::intent,
    keys::{Keys, host_id::HostId, rules::Rules, seat::Seats},
    machine::act::Ending,
    observe::{evidence::Evidence, view::ClusterView},
    plan::{
        self, Case, Me, OnFailure, Verb,
        forecast::{End, forecast},
    },
    playbook::Playbook,
    report::{
        names::Names,
        shown::forecast::text,
        stop::{self, Context, warned::warned},
    },
    store::{RawKey, Snapshot, stored},
};
use proto::{LeaseId, Revision};

fn keys(folder: &Path) -> Keys {
    let Ok(text) = fs::read_to_string(folder.join("keys.json")) else { return Keys::default() };
    let stored: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let is_leased = |key: &str| key == "baton" || key.starts_with("agents/");
    let raw = |(key, value): (String, serde_json::Value)| RawKey {
        lease: is_leased(&key).then_some(LeaseId(7)),
        key,
        value: serde_json::to_vec(&value).unwrap(),
        created: Revision(10),
        modified: Revision(11),
    };
    stored::keys(&Snapshot { revision: Revision(12), keys: stored.into_iter().map(raw).collect() }).unwrap()
}

/// The names of this host's members that do not run.
fn down(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("down.json"))
        .map_or_else(|_| Vec::new(), |text| serde_json::from_str(&text).unwrap())
}

fn evidence(folder: &Path) -> Evidence {
    fs::read_to_string(folder.join("evidence.json"))
        .map_or_else(|_| Evidence::default(), |text| serde_json::from_str(&text).unwrap())
}

/// The verb is the playbook's first comment where it is not `run`.
fn verb(folder: &Path) -> Verb {
    let text = fs::read_to_string(folder.join("playbook.yaml")).unwrap();
    if text.starts_with("# agent rollback") { Verb::Rollback } else { Verb::Run }
}

fn plan(folder: &Path) -> String {
    let playbook = Playbook::load(&folder.join("playbook.yaml")).unwrap();
    let view: ClusterView = serde_json::from_str(&fs::read_to_string(folder.join("view.json")).unwrap()).unwrap();
    let keys = keys(folder);
    let owned = view.members.iter().filter(|member| playbook.node(&member.name).is_some());
    let host = HostId { machine: Some(1), instance: 1 };
    let me = Me {
        host,
        host_name: "h1".into(),
        seats: Seats::on(host, owned.map(|member| (member.name.clone(), member.id))),
        intent: intent(&playbook, view.cluster),
        verb: verb(folder),
        allow_degraded: playbook.strategy.allow_degraded,
        allow_downtime: playbook.strategy.allow_downtime,
        on_failure: OnFailure::PutBack,
        command: "".into(),
        expect_agents: None,
    };
    let down: Vec<_> =
        view.members.iter().filter(|member| down(folder).contains(&member.name.to_string())).map(|m| m.id).collect();
    let mut names = Names::of(&view);
    names.learn_hosts(&keys);
    let evidence = evidence(folder);
    let forecast = forecast(&me, &keys, (&view, &evidence), &down);
    assert_eq!(forecast, plan::forecast::forecast(&me, &keys, (&view, &evidence), &down), "planning twice is equal");
    let end = match &forecast.end {
        End::Refused(refusal) => {
            let context = Context {
                names: &names,
                view: Some(&view),
                stale: None,
                down: &[],
                playbook: "upgrade.yaml",
                verb: me.verb,
                change: Some(&me.intent.change),
                touched: false,
                require_complete: false,
            };
            let stop = stop::of(&Ending::Refused(refusal.clone()), &context);
            format!("refused: {} (exit {}, reason {})", stop.message, stop.exit, stop.reason.name())
        }
        other => format!("{other:?}"),
    };
    let rules = Rules::default();
    let (process, evidence, gone) = (Default::default(), Some(&evidence), &[][..]);
    let (me, keys, view, joined, in_hand) = (&me, &keys, &view, None, None);
    let case = Case {
        me,
        rules: &rules,
        keys,
        view,
        evidence,
        is_window_over: false,
        joined,
        in_hand,
        gone,
        process,
        survey: None,
        join_failure: None,
        may_begin: None,
        fresh: 0,
    };
    let warnings: String =
        plan::warnings(&case).iter().map(|warning| format!("warning: {}\n", warned(warning, &names))).collect();
    format!("{}{warnings}{end}\n", text(&forecast, &names))
}

fn cases() -> Vec<PathBuf> {
    let all = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans")).unwrap();
    let mut cases: Vec<_> = all.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

#[test]
fn every_case_is_planned_as_before() {
    assert!(cases().len() >= 12, "{} cases", cases().len());
    for case in cases() {
        let settings = insta::Settings::clone_current();
        let mut settings = settings;
        settings.set_snapshot_path(&case);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_description(case.file_name().unwrap().to_string_lossy());
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("plan", plan(&case)));
    }
}
