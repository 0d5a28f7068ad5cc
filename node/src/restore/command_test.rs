use super::*;

#[test]
fn what_is_typed_wrong_is_named_with_what_was_expected() {
    for (typed, words) in [
        ("", "expected `status FILE` or `restore FILE --data-dir DIR`"),
        ("save f", "expected `status FILE`"),
        ("status", "node snapshot status: expected one file, found 0"),
        ("status a b", "expected one file, found 2"),
        ("status f -w protobuf", "--write-out: `protobuf` is wrong: expected simple, table, json or fields"),
        ("status f --write-out", "--write-out: expected a value"),
        ("status f --skip-hash-check", "node snapshot status: --skip-hash-check: there is no such flag"),
        ("restore --data-dir d", "node snapshot restore: expected one file, found 0"),
        ("restore f --dat-dir=d", "--dat-dir=d: there is no such flag; is it --data-dir?"),
        ("restore f --wal-dir=w", "--wal-dir: not here: a node keeps its log in the data directory"),
        ("restore f --bump-revision 5", "--bump-revision and --mark-compacted: expected both or neither"),
        ("restore f --bump-revision 0 --mark-compacted", "expected both or neither"),
        ("restore f --mark-compacted", "expected both or neither"),
        ("restore f --bump-revision=-1 --mark-compacted", "--bump-revision: `-1` is wrong: expected a whole number"),
        ("restore f --mark-compacted=perhaps", "--mark-compacted: `perhaps` is wrong: expected true or false"),
        ("restore f --initial-memory-map-size=large", "--initial-memory-map-size: `large` is wrong"),
        ("restore f --name=m1", "--name: `m1` is wrong: expected one of --initial-cluster: default"),
        (
            "restore f --initial-cluster=default=http://10.0.0.1:2380",
            "--initial-advertise-peer-urls: `http://localhost:2380` is wrong: expected what --initial-cluster has for default",
        ),
        ("restore f --initial-cluster=default", "--initial-cluster: `default` is wrong"),
    ] {
        let error = Command::read(typed.split_whitespace().map(str::to_owned)).unwrap_err().to_string();
        assert!(error.contains(words), "{typed}: {error}");
    }
}

#[test]
fn defaults_are_those_of_etcdutl() {
    let typed = ["restore", "f", "--initial-memory-map-size", "10737418240", "-w", "json"].map(str::to_owned);
    let Command::Restore(asked) = Command::read(typed).unwrap() else { panic!("restore") };
    assert_eq!((&asked.config.name[..], &asked.config.data_dir), ("default", &PathBuf::from("default.etcd")));
    assert_eq!((asked.hash_check, asked.bump), (HashCheck::Done, 0));
    assert_eq!(asked.config.initial_cluster_token, "etcd-cluster");
    assert_eq!(asked.config.initial_cluster["default"][0].to_string(), "http://localhost:2380");
    let typed = ["status", "--write-out=table", "f"].map(str::to_owned);
    let Command::Status { file, format } = Command::read(typed).unwrap() else { panic!("status") };
    assert_eq!((file, format), (PathBuf::from("f"), Format::Table));
    assert!(matches!(Command::read(["restore".to_owned(), "-h".to_owned()]).unwrap(), Command::Help));
}
