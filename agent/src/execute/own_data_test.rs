use std::fs;

use super::*;
use crate::{
    observe::view::Role,
    playbook::{ConditionalArgs, Process},
};

/// A process of the agent's own with these arguments and variables, in this folder.
fn process(arguments: &str, env: &[(&str, &str)], cwd: Option<&Path>) -> Runtime {
    Runtime::Process(Process {
        argv: arguments.split_whitespace().map(str::to_owned).collect(),
        args: Vec::new(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        cwd: cwd.map(Path::to_path_buf),
        user: None,
        log: "/log".into(),
    })
}

#[test]
fn a_flag_is_as_etcd_would_take_it() {
    use Told::{As, Nothing, Unknown};
    for (arguments, env, expected) in [
        ("etcd", &[][..], Nothing),
        ("etcd --wal-dir /w", &[], As("/w".into())),
        ("etcd -wal-dir=/w", &[], As("/w".into())),
        ("etcd --wal-dir /v --wal-dir /w/", &[], As("/w".into())), // the last one counts
        ("etcd", &[("ETCD_WAL_DIR", "/w")], As("/w".into())),
        ("etcd --wal-dir /w", &[("ETCD_WAL_DIR", "/v")], As("/w".into())),
        ("etcd --wal-dir=", &[("ETCD_WAL_DIR", "")], Nothing),
        ("etcd --wal-dir /w/{{node}}", &[], Unknown),
        ("etcd --config-file /c", &[], Unknown),
        ("etcd --wal-dir /w --config-file /c", &[], Unknown), // the file alone counts
        ("etcd --wal-dir /w", &[("ETCD_CONFIG_FILE", "/c")], Unknown),
        ("etcd --wal-directory /w", &[], Nothing),
    ] {
        assert_eq!(told(&process(arguments, env, None), "wal-dir"), expected, "{arguments} {env:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("wal-dir: /w\nname: m1\n", As("/w".into())),
        ("{\"wal-dir\": \"/w\"}", As("/w".into())),
        ("name: m1\n", Nothing),
        ("wal-dir: \"\"\n", Nothing),
    ] {
        fs::write(folder.path().join("etcd.yaml"), text).unwrap();
        let runtime = process("etcd --wal-dir /v --config-file etcd.yaml", &[], Some(folder.path()));
        assert_eq!(told(&runtime, "wal-dir"), expected, "{text}");
    }
    let Runtime::Process(mut some) = process("etcd", &[], None) else { unreachable!() };
    some.args = vec![ConditionalArgs { add: vec!["--wal-dir=/w".into()], only_for: None }];
    assert_eq!(told(&Runtime::Process(some), "wal-dir"), Unknown, "for some releases only");
}

#[test]
fn a_log_lies_within_the_data_unless_it_is_told_elsewhere() {
    let data = Path::new("/d");
    for (arguments, cwd, expected) in [
        ("etcd", None, Some("/d/member/wal")),
        ("etcd --wal-dir /w", None, Some("/w")),
        ("etcd --wal-dir w", Some("/c"), Some("/c/w")),
        ("etcd --wal-dir w", None, None), // in whichever folder the agent is started
        ("etcd --config-file /c", None, None),
    ] {
        let runtime = process(arguments, &[], cwd.map(Path::new));
        assert_eq!(log_folder(&runtime, data).as_deref(), expected.map(Path::new), "{arguments} in {cwd:?}");
    }
}

/// Of a playbook in this folder, with its data beside it.
fn node(folder: &Path) -> playbook::Node {
    let head =
        "apiVersion: baton/v1\nkind: Restart\nrestart: { id: x }\ncluster: { name: c, endpoints: [\"http://h:1\"] }\n";
    let node = "nodes:\n  - { name: m1, data_dir: data, runtime: { kind: process, argv: [etcd], log: log.txt } }\n";
    let path = folder.join("restart.yaml");
    fs::write(&path, format!("{head}{node}")).unwrap();
    playbook::Playbook::load(&path).unwrap().nodes.remove(0)
}

/// etcd's folder of a database, with or without what is told of its log.
#[tokio::test]
async fn a_database_without_its_log_is_no_member() {
    let folder = tempfile::tempdir().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let mut node = node(folder.path());
    assert_eq!(super::data(&node).await, Data::None);
    fs::create_dir_all(data.join("member/snap")).unwrap();
    fs::write(data.join("member/snap/db"), "").unwrap();
    assert_eq!(super::data(&node).await, Data::NoLog);
    node.runtime = process("etcd --config-file /c", &[], None);
    assert!(matches!(super::data(&node).await, Data::Unknown(_)), "its log may lie elsewhere");
    node.runtime = process(&format!("etcd --wal-dir {}", log.display()), &[], None);
    assert_eq!(super::data(&node).await, Data::NoLog);
    fs::create_dir(&log).unwrap();
    fs::write(log.join("0000000000000000-0000000000000000.wal"), "what etcd does not write").unwrap();
    assert!(matches!(super::data(&node).await, Data::Unknown(_)), "there is a log, and it is not understood");
    // With its log told elsewhere, where none is: the one within is somebody's all the same.
    let within = data.join("member/wal");
    fs::create_dir(&within).unwrap();
    fs::write(within.join("0000000000000000-0000000000000000.wal"), "what etcd does not write").unwrap();
    node.runtime = process(&format!("etcd --wal-dir {}", folder.path().join("elsewhere").display()), &[], None);
    assert!(matches!(super::data(&node).await, Data::Unknown(_)), "it is not taken for data whose log is lost");
}

/// A member that the bundled node has begun.
#[tokio::test]
async fn a_newcomer_without_a_name_yet_is_known_by_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/tests/golden/disks/3.7.0/data");
    let mut node = node(folder.path());
    node.data_dir = Some(begun);
    let Data::Of { cluster, member } = super::data(&node).await else { unreachable!() };
    let listed = |id, name: &str| Listed {
        id,
        name: name.to_owned(),
        role: Role::Learner,
        client_urls: Vec::new(),
        unused: Vec::new(),
        serves_at_a_peer_url: false,
    };
    let other = MemberId(member.0 ^ 1);
    for (may_join, data, list, is_known) in [
        (true, true, vec![listed(other, "m2"), listed(member, "")], true),
        (true, true, vec![listed(member, "m1")], true),
        (true, true, vec![listed(other, "")], false),    // it left
        (true, true, vec![listed(member, "m2")], false), // by its name it is another one
        (true, false, vec![listed(member, "")], false),
        (false, true, vec![listed(member, "")], false),
    ] {
        let mut node = node.clone();
        node.may_join = may_join;
        node.data_dir = node.data_dir.filter(|_| data).or_else(|| Some(folder.path().join("nothing")));
        assert_eq!(begun_here(&node, cluster, &list).await, is_known.then_some(member), "{list:?}");
        assert_eq!(begun_here(&node, ClusterId(!cluster.0), &list).await, None, "another cluster's");
    }
}
