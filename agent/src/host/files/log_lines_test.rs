//! Which lines are taken, of what real members and others wrote.

use super::*;

#[test]
fn the_last_lines_that_say_something_are_taken_and_cut() {
    let long = "x".repeat(MAX_SAID - 10);
    for (end, expected) in [
        ("", None),
        ("\n \n\n", None),
        ("one", Some("one")),
        ("one\ntwo\n", Some("one | two")),
        ("one\n\ntwo\n\n  \r\n", Some("one | two")),
        ("one\ntwo\nthree\nfour\n", Some("two | three | four")),
        ("one\na line that is too long beside it\n", Some("one | a line that is too long beside it")),
        ("one\nsame\nsame\nsame\n", Some("one | same")),
        (&format!("one\ntwo is a line\n{long}"), Some(&long)),
        (&format!("{long}\ntwo is a line\nthree"), Some("two is a line | three")),
    ] {
        assert_eq!(last_lines(end).as_deref(), expected, "{end:?}");
    }
    assert_eq!(last_lines(&"x".repeat(4096)).unwrap().len(), MAX_SAID);
}

const INFO: &str = r#"{"level":"info","ts":"2026-11-29T17:03:28.19Z","caller":"etcdmain/etcd.go:64","msg":"Running: ","args":["etcd","--name","m1"]}"#;
const WARN: &str = r#"{"level":"warn","ts":"2026-11-29T17:03:28.20Z","caller":"fileutil/fileutil.go:56","msg":"check file permission","error":"directory \"d\" exist"}"#;
const ERROR: &str = r#"{"level":"error","ts":"2026-11-29T17:03:28.22Z","logger":"bbolt","msg":"failed to map db file (d/member/snap/db): invalid database","stacktrace":"go.etcd.io/etcd/server/v3/storage/backend.newBackend\n\tx.go:203"}"#;
const PANIC: &str = r#"{"level":"panic","ts":"2026-11-29T17:03:28.23Z","caller":"backend/backend.go:205","msg":"failed to open database","path":"d/member/snap/db","error":"invalid database","stacktrace":"go.etcd.io/etcd"}"#;
const STACK: &str = "panic: failed to open database\n\ngoroutine 130 [running]:\n\
                     go.uber.org/zap/zapcore.CheckWriteAction.OnWrite(0x2?)\n\tgo.uber.org/zap@v1.27.0/entry.go:196 +0x54\n\
                     created by go.etcd.io/etcd/server/v3/storage.OpenBackend in goroutine 1\n\tbackend.go:75 +0x1a5\n";
const FATAL: &str = r#"{"level":"fatal","ts":"t","msg":"discovery failed","error":"member count is unequal"}"#;
const CAPNSLOG: &str = "2026-11-29 17:03:25.108125 I | embed: initial cluster = \n\
                        2026-11-29 17:03:25.108558 C | mvcc/backend: cannot open database at d/member/snap/db (invalid database)\n\
                        panic: cannot open database at d/member/snap/db (invalid database)\n\n\
                        goroutine 135 [running]:\ngithub.com/coreos/pkg/capnslog.(*PackageLogger).Panicf(0xc0001ef280?)\n";
const HELP: &str = "flag provided but not defined: -no-such-flag\nUsage:\n\n  etcd [flags]\n    Start an etcd server.\n\n  \
                    etcd grpc-proxy\n    Run the stateless etcd v3 gRPC L7 reverse proxy.\n";
const MAPPED: &str = "failed to map db file (d/member/snap/db): invalid database";

#[test]
fn of_a_members_log_message_and_error_are_shown() {
    let opened = format!("{MAPPED} | failed to open database: invalid database");
    for (end, expected) in [
        (format!("{INFO}\n"), "Running:"),
        (format!("{INFO}\n{WARN}\n"), r#"check file permission: directory "d" exist"#),
        (format!("{WARN}\n{ERROR}\n{INFO}\n"), MAPPED),
        (format!("{INFO}\n{WARN}\n{ERROR}\n{PANIC}\n{STACK}"), &opened),
        (format!("{INFO}\n{WARN}\n{STACK}"), "panic: failed to open database"),
        (format!("{WARN}\n{FATAL}\n"), "discovery failed: member count is unequal"),
        (CAPNSLOG.into(), "mvcc/backend: cannot open database at d/member/snap/db (invalid database)"),
        (HELP.into(), "flag provided but not defined: -no-such-flag"),
        (
            format!("{HELP}{INFO}\n{WARN}\n"),
            "flag provided but not defined: -no-such-flag | check file permission: directory \"d\" exist",
        ),
        // Whoever started it has the last word.
        (format!("{ERROR}\nsh: etcd: not found\n"), &format!("{MAPPED} | sh: etcd: not found")),
        (format!("sh: 1\n{ERROR}\n"), MAPPED),
        (
            "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\n".into(),
            "fatal error: all goroutines are asleep - deadlock!",
        ),
        (
            "panic: one [recovered]\n\tpanic: two\n\ngoroutine 1 [running]:\n".into(),
            "panic: one [recovered] | panic: two",
        ),
        // JSON that is none of etcd's is what it is.
        (r#"{"level":1}"#.into(), r#"{"level":1}"#),
        (r#"{"level":"error","msg":"m","error":{"code":1}}"#.into(), r#"m: {"code":1}"#),
    ] {
        assert_eq!(last_lines(&end).as_deref(), Some(expected), "{end}");
    }
}
