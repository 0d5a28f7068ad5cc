//! Files that are none, and what of a file is not to be seen.

use std::{
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Folder, agent, exit, object, text};

/// Nothing that is refused here may be waited for.
const AT_ONCE: Duration = Duration::from_secs(8);

fn shell(line: &str, playbook: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", line, env!("CARGO_BIN_EXE_agent"), playbook]).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    symlink("/dev/zero", folder.path("zero")).unwrap();
    for (name, expected) in [("fifo", "this is a FIFO"), ("zero", "this is a device"), (".", "this is a folder")] {
        let path = folder.path(name);
        for verb in ["validate", "plan", "run", "status"] {
            let began = Instant::now();
            let told = agent(&[verb, path.to_str().unwrap()]);
            assert_eq!(exit(&told), 2, "{verb} {name}: {}", text(&told.stderr));
            assert!(text(&told.stderr).contains(expected), "{verb} {name}: {}", text(&told.stderr));
            assert!(began.elapsed() < AT_ONCE, "{verb} {name}");
            for words in ["expected: a playbook", "next:  agent validate "] {
                assert!(text(&told.stderr).contains(words), "{}", text(&told.stderr));
            }
        }
    }
    // A password, too.
    let playbook = folder.playbook("http://127.0.0.1:1");
    let source = fs::read_to_string(&playbook).unwrap();
    let auth = format!("cluster: {{ auth: {{ user: root, password_file: {} }}, name", fifo.display());
    fs::write(&playbook, source.replace("cluster: { name", &auth)).unwrap();
    let told = agent(&["status", &playbook]);
    assert_eq!(exit(&told), 3, "{}", text(&told.stderr));
    assert!(text(&told.stderr).contains("this is a FIFO"), "{}", text(&told.stderr));
}

#[test]
fn a_pipe_of_the_shell_is_read_to_its_end_within_a_time() {
    let folder = Folder::new();
    let playbook = folder.playbook("http://127.0.0.1:1");
    for line in [
        r#""$0" validate <(cat "$1")"#,
        r#"cat "$1" | "$0" validate /dev/stdin"#,
        r#"(sleep 1; cat "$1") | "$0" validate /dev/stdin"#,
        r#""$0" validate /dev/stdin < "$1""#,
    ] {
        let told = shell(line, &playbook);
        assert_eq!(exit(&told), 0, "{line}: {}", text(&told.stderr));
        assert!(text(&told.stdout).contains("to: 3.5.30"), "{line}: {}", text(&told.stdout));
    }
    for (line, expected) in [
        (r#""$0" validate <(sleep 30)"#, "nobody wrote all of it within 10 s"),
        (r#""$0" validate <(cat /dev/zero)"#, "the file is larger than 1 MiB"),
        (r#""$0" validate <(true)"#, "the file is empty"),
    ] {
        let told = shell(line, &playbook);
        assert_eq!(exit(&told), 2, "{line}: {}", text(&told.stderr));
        assert!(text(&told.stderr).contains(expected), "{line}: {}", text(&told.stderr));
    }
}

#[test]
fn secrets_are_not_printed() {
    let folder = Folder::new();
    let playbook = folder.playbook("http://127.0.0.1:1");
    let source = fs::read_to_string(&playbook).unwrap();
    let digest = "0".repeat(64);
    let artifact =
        format!("artifact: {{ source: \"https://h.test/etcd.tar.gz?X-Signature=s3cret\", sha256: {digest} }}");
    let source = source
        .replace("artifact: { source: /srv/etcd }", &artifact)
        .replace("kind: process,", "kind: process, env: { TOKEN: s3cret, OTHER: s3cret },");
    fs::write(&playbook, &source).unwrap();
    for line in [&["validate", &playbook][..], &["validate", &playbook, "--output", "json"], &["plan", &playbook]] {
        let told = agent(line);
        let all = [text(&told.stdout), text(&told.stderr)].concat();
        assert!(!all.contains("s3cret"), "{line:?}: {all}");
        assert!(line[0] == "plan" || (all.contains("TOKEN") && all.contains("https://h.test/etcd.tar.gz")), "{all}");
    }
    let json = object(&agent(&["validate", &playbook, "--output", "json"]));
    assert_eq!(json["playbook"]["nodes"][0]["runtime"]["env"], serde_json::json!(["OTHER", "TOKEN"]));
    // What is printed cannot be taken for the playbook.
    let printed = folder.path("printed.yaml");
    fs::write(&printed, agent(&["validate", &playbook]).stdout).unwrap();
    let told = agent(&["validate", printed.to_str().unwrap()]);
    assert!(exit(&told) == 2 && text(&told.stderr).contains("no mapping stands here"), "{}", text(&told.stderr));

    // Nor is what is refused.
    for (old, new) in [
        ("https://h.test", "https://user:s3cret@h.test"),
        ("https://h.test", "ftp://user:s3cret@h.test"),
        ("https://h.test", "https://user:s3cret@"),
        ("TOKEN: s3cret,", "TOKEN: s3cret, TOKEN: s3cret,"),
        ("TOKEN: s3cret,", "TOKEN: [s3cret],"),
        ("TOKEN: s3cret,", "TOKEN: \"{{s3cret}}\","),
        ("TOKEN: s3cret,", "TOKEN: \"{{s3cret\","),
        ("env: { TOKEN: s3cret, OTHER: s3cret }", "env: s3cret"),
        ("env: { TOKEN: s3cret, OTHER: s3cret }", "env: { TOKEN: s3cret, OTHER: s3cret"),
        ("http://127.0.0.1:1", "http://user:s3cret@127.0.0.1:1"),
        ("http://127.0.0.1:1", "user:s3cret@127.0.0.1:1"),
        ("cluster: { name: c", "cluster: { name: c, auth: { user: root, password: s3cret }"),
    ] {
        assert!(source.contains(old), "{old}");
        fs::File::create(&playbook).unwrap().write_all(source.replacen(old, new, 1).as_bytes()).unwrap();
        for format in ["text", "json"] {
            let told = agent(&["validate", &playbook, "--output", format]);
            let all = [text(&told.stdout), text(&told.stderr)].concat();
            assert_eq!(exit(&told), 2, "{new}: {all}");
            assert!(!all.contains("s3cret"), "{new}: {all}");
        }
    }
}

#[test]
fn a_matrix_is_told_from_a_playbook() {
    let folder = Folder::new();
    let path = folder.path("matrix.yaml");
    fs::write(&path, "apiVersion: baton/v1\nkind: Matrix\nname: ci\n").unwrap();
    let told = agent(&["validate", path.to_str().unwrap()]);
    assert_eq!(exit(&told), 2);
    assert!(text(&told.stderr).contains("`agent matrix FILE --list` reads a matrix"), "{}", text(&told.stderr));
}

/// By a process of its own: none that a test starts meanwhile holds the file open for writing (execve(2), ETXTBSY).
fn installed(folder: &Folder, name: &str, from: &Path) -> PathBuf {
    let to = folder.path(name);
    let done = Command::new("install").args(["-m", "755"]).arg(from).arg(&to).status().unwrap();
    assert!(done.success());
    to
}

/// The agent alone, as it is installed on a host; one of the same folder, or of a PATH that leads nowhere, is not run.
#[test]
fn where_agent_matrix_is_not_installed_the_agent_says_how_to_get_it() {
    let folder = Folder::new();
    let alone = installed(&folder, "agent", Path::new(env!("CARGO_BIN_EXE_agent")));
    let here = folder.path("here");
    fs::create_dir(&here).unwrap();
    fs::write(folder.path("script"), "#!/bin/sh\necho run from where one happens to be\n").unwrap();
    installed(&folder, "here/agent-matrix", &folder.path("script"));
    for path in ["", ".", "/nowhere:."] {
        let told =
            Command::new(&alone).args(["matrix", "m.yaml"]).env("PATH", path).current_dir(&here).output().unwrap();
        assert_eq!(exit(&told), 3, "{}", text(&told.stdout));
        for words in ["agent-matrix is neither beside", "cargo build --release --bin agent-matrix"] {
            assert!(text(&told.stderr).contains(words), "{}", text(&told.stderr));
        }
    }
}

/// What stands beside the agent is given all that was typed, and its exit code is the command's.
#[test]
fn what_was_typed_reaches_agent_matrix() {
    let folder = Folder::new();
    let alone = installed(&folder, "agent", Path::new(env!("CARGO_BIN_EXE_agent")));
    fs::write(folder.path("script"), "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").unwrap();
    installed(&folder, "agent-matrix", &folder.path("script"));
    for (typed, given) in [
        (vec!["matrix", "m.yaml", "--jobs", "3"], "<m.yaml><--jobs><3>"),
        (vec!["matrix", "--help"], "<--help>"),
        (vec!["--output", "json", "matrix", "--list", "a b.yaml"], "<--list><a b.yaml>"),
    ] {
        let told = Command::new(&alone).args(&typed).output().unwrap();
        assert_eq!(exit(&told), 7, "{}", text(&told.stderr));
        assert!(text(&told.stdout).ends_with(given), "{}", text(&told.stdout));
        assert!(text(&told.stdout).contains(&format!("<--agent><{}>", alone.display())), "{}", text(&told.stdout));
        assert_eq!(text(&told.stdout).contains("<--output><json>"), typed[0] == "--output");
    }
}
