//! Who may write a shared key, or answers at a member's address, writes to root's terminal: nothing of it is obeyed there.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use tests::{agent::executable, case::Case, system::System};

/// A title, a cleared screen, C1, a line that is none of ours, a turned direction.
const HOSTILE: &str = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}1m\r\nnext:  rm\u{202e}\u{2066}";
/// As a person is to see it, up to the line break.
const SHOWN: &str = r"\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}1m\r\nnext:  rm\u{202e}\u{2066}";

/// What `agent` with these arguments writes for a person, logs and all.
fn told(arguments: &[&str]) -> String {
    let mut command = Command::new(executable().expect("an agent"));
    let output = command.args(["--log", "debug"]).args(arguments).stdin(Stdio::null()).output().expect("it runs");
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    assert!(!output.status.success(), "{arguments:?}: {text}");
    let obeyed = text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || "\u{202e}\u{2066}".contains(*c));
    assert_eq!(obeyed, None, "{arguments:?}: {text}");
    assert!(!text.contains("\nnext:  rm"), "nobody forges a line: {text}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_and_not_obeyed() {
    let Some(case) = Case::of(System::Node).await else { return };
    let playbook = case.write_one(0, &case.upgrade);
    let value = serde_json::json!({ "format": 1, "state": HOSTILE }).to_string();
    case.client(0).put("/baton/run", &value).await.expect("written");
    let playbook = playbook.to_str().expect("UTF-8");
    for verb in ["plan", "run", "abandon"] {
        let arguments: &[&str] = if verb == "abandon" { &[verb, playbook, "m1"] } else { &[verb, playbook] };
        let text = told(arguments);
        assert!(text.contains(SHOWN), "{verb}: {text}");
        assert!(text.contains("reason keys_damaged"), "{verb}: {text}");
    }
    let json = Command::new(executable().expect("an agent")).args(["plan", playbook, "--output", "json"]).output();
    let json = String::from_utf8(json.expect("it runs").stdout).expect("UTF-8");
    assert!(json.trim_end().chars().all(|c| !c.is_control() && c != '\u{202e}'), "{json}");
    serde_json::from_str::<serde_json::Value>(&json).expect("one object");
}

#[test]
fn a_message_of_grpc_is_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("upgrade.yaml");
    for status in ["7", "13", "16"] {
        std::fs::write(&path, playbook(&liar(status), folder.path())).expect("written");
        for verb in ["status", "plan"] {
            let text = told(&[verb, path.to_str().expect("UTF-8")]);
            assert!(text.contains(r"\u{1b}]0;title\u{7}"), "{verb}, grpc-status {status}: {text}");
        }
    }
}

fn playbook(url: &str, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "apiVersion: baton/v1\nkind: Restart\nrestart: {{ id: x }}\ncluster: {{ name: c, endpoints: [\"{url}\"] }}\n\
         state_dir: {folder}/state\nnodes:\n  - name: m1\n    runtime: {{ kind: process, argv: [/bin/true], log: \
         {folder}/log }}\n"
    )
}

/// Somebody who answers every call of gRPC with this status and a hostile message, which gRPC has percent-encoded.
fn liar(status: &str) -> String {
    let message: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let fields = [("content-type", "application/grpc"), ("grpc-status", status), ("grpc-message", &message)];
    // HPACK (RFC 7541): `:status: 200` from the static table, then literals that are not indexed.
    let mut block = vec![0x88];
    for (name, value) in fields {
        for (at, text) in [name, value].into_iter().enumerate() {
            if at == 0 {
                block.push(0);
            }
            block.extend(length(text.len()));
            block.extend(text.as_bytes());
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let block = block.clone();
            // Whoever hangs up has heard enough.
            thread::spawn(move || drop(lie(client, &block)));
        }
    });
    url
}

/// An integer of HPACK with a prefix of seven bits.
fn length(length: usize) -> Vec<u8> {
    match length {
        short @ 0..127 => vec![short as u8],
        long => {
            let rest = long - 127;
            vec![127, (rest % 128) as u8 | 128, (rest / 128) as u8]
        }
    }
}

/// HTTP/2 (RFC 9113) as far as it takes: settings, and an answer of headers alone to each request.
fn lie(mut client: TcpStream, block: &[u8]) -> std::io::Result<()> {
    let mut preface = [0; 24];
    client.read_exact(&mut preface)?;
    client.write_all(&frame(4, 0, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        client.read_exact(&mut head)?;
        let mut content = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        client.read_exact(&mut content)?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match (head[3], head[4]) {
            (4, 0) => client.write_all(&frame(4, 1, 0, &[]))?,
            (6, 0) => client.write_all(&frame(6, 1, 0, &content))?,
            // END_STREAM and END_HEADERS.
            (1, _) => client.write_all(&frame(1, 5, stream, block))?,
            _ => {}
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
}
