//! Golden plans: what a rollout would be, from a playbook, a view and the keys, printed.
//!
//! Each folder is a case: `playbook.yaml`, `view.json`, and `keys.json` where the hosts share something
//! already, `down.json` where members of this host do not run, `evidence.json` what is asked once; where members come and go, `urls.json`
//! has peer URLs other than `http://10.0.0.<id>:2380`, and `places.json` what lies in this host's directories other than what should.
//! `plan.snap` is what is printed. `INSTA_UPDATE=always cargo test --test plans` rewrites them all.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use agent::{
    execute::{
        hop,
        identity::{known, seats},
        intent::intent,
    },
    keys::{Keys, host_id::HostId, rules::Rules},
    machine::act::Ending,
    observe::{
        evidence::Evidence,
        view::{ClusterView, Member},
    },
    plan::{
        self, Case, Me, OnFailure, Verb,
        forecast::{End, forecast},
        membership::{
            self,
            survey::{Data, Place, Survey},
        },
    },
    playbook::{Node, Playbook},
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

/// Who is listed, and what this host's directories hold: each member's its own data, and a newcomer's nothing.
fn survey(folder: &Path, playbook: &Playbook, view: &ClusterView) -> Survey {
    let read = |file: &str| -> serde_json::Value {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_else(|_| "{}".to_owned());
        serde_json::from_str(&text).unwrap()
    };
    let (urls, places) = (read("urls.json"), read("places.json"));
    let of = |member: &Member| match urls[member.id.to_string()].as_array() {
        Some(urls) => urls.iter().map(|url| url.as_str().unwrap().to_owned()).collect(),
        None => BTreeSet::from([format!("http://10.0.0.{}:2380", member.id)]),
    };
    let place = |node: &Node| {
        let member = view.members.iter().find(|member| *member.name == node.name);
        let of = |member| Data::Of { cluster: view.cluster, member };
        let data = match (&places[&node.name], member) {
            (serde_json::Value::Null, Some(member)) => of(member.id),
            (serde_json::Value::Object(said), _) => of(said["of"].as_str().unwrap().parse().unwrap()),
            (serde_json::Value::Null, None) if node.data_dir.is_none() => Data::Unnamed,
            _ => Data::None,
        };
        let runs = member.is_some_and(|member| member.report().is_some());
        Place { peer_urls: node.peer_urls.clone(), data, runs }
    };
    Survey {
        listed: view.members.iter().map(|member| (member.id, of(member))).collect(),
        places: playbook.nodes.iter().map(place).collect(),
    }
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
    let host = HostId { machine: Some(1), instance: 1 };
    let me = Me {
        host,
        host_name: "h1".into(),
        seats: seats(&playbook, host, &known(&playbook, &view)),
        intent: hop::due(intent(&playbook, view.cluster), keys.run.as_ref().map(|run| &run.value), &view),
        verb: verb(folder),
        allow_degraded: playbook.strategy.allow_degraded,
        allow_downtime: playbook.strategy.allow_downtime,
        max_learners: playbook.strategy.max_learners,
        on_failure: OnFailure::PutBack,
        command: "".into(),
        expect_agents: None,
    };
    let down: Vec<_> =
        view.members.iter().filter(|member| down(folder).contains(&member.name.to_string())).map(|m| m.id).collect();
    let mut names = Names::of(&view);
    names.learn_hosts(&keys);
    let evidence = evidence(folder);
    let survey = Some(survey(folder, &playbook, &view)).filter(|_| me.intent.change.changes_members());
    let plan = || match &survey {
        Some(survey) => membership::forecast::forecast(&me, &keys, (&view, survey), None, &down),
        None => forecast(&me, &keys, (&view, &evidence), &down),
    };
    let forecast = plan();
    assert_eq!(forecast, plan(), "planning twice is equal");
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
        closed_until: None,
        joined,
        in_hand,
        gone,
        process,
        survey: survey.as_ref(),
        join_failure: None,
        may_begin: None,
        may_resume: true,
        fresh: 0,
    };
    let warnings = plan::warnings(&case).into_iter().chain(membership::forecast::warnings(&forecast));
    let warnings: String = warnings.map(|warning| format!("warning: {}\n", warned(&warning, &names))).collect();
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
