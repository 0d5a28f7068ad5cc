//! What is wrong with a file as a whole, and that no file at all makes the reader panic or run away.

use std::{fs, path::PathBuf, time::Instant};

use agent::playbook::{Playbook, PlaybookError};

use super::{RESTART, SOUND, parse};

/// The text for a file of these bytes, its folder's name taken out.
fn text(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    without_folder(Playbook::load(&path), folder.path().to_str().unwrap())
}

fn without_folder(result: Result<Playbook, PlaybookError>, folder: &str) -> String {
    result.unwrap_err().to_string().replace(&format!("{folder}/"), "")
}

#[test]
fn a_file_that_is_no_playbook() {
    let mut texts = vec![
        text("empty.yaml", b""),
        text("comment.yaml", b"# nothing yet\n"),
        text("dashes.yaml", b"---\n"),
        text("list.yaml", b"- apiVersion: baton/v1\n"),
        text("text.yaml", b"baton/v1\n"),
        text("latin1.yaml", b"apiVersion: baton/v1\nkind: Upgr\xe4de\n"),
        text("utf16.yaml", b"\xff\xfea\0p\0i\0"),
        text("binary.yaml", b"\x7fELF\x02\x01\x01\0\0\0"),
        text("large.yaml", "a: b\n".repeat(300_000).as_bytes()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    texts.push(without_folder(Playbook::load(&folder.path().join("missing.yaml")), name));
    let inner = folder.path().join("folder.yaml");
    fs::create_dir(&inner).unwrap();
    texts.push(without_folder(Playbook::load(&inner), name));
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn a_bomb_of_aliases_is_refused_at_once() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..60 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        bomb += &format!("a{level}: &a{level} [{before}]\n");
    }
    let nested = "[".repeat(100_000);
    let started = Instant::now();
    insta::assert_snapshot!([parse(&bomb), parse(&nested)].map(|result| result.unwrap_err().to_string()).join("\n\n"));
    assert!(started.elapsed().as_secs() < 5);
}

/// A text of 33 kB for 9,000 aliases is 300 MB.
#[test]
fn what_a_file_grows_to_is_bounded() {
    let long = "x".repeat(33_000);
    let aliases = "*t, ".repeat(9_000);
    let nested: String = (0..30).map(|level| format!("{}k: &n{level}\n", "  ".repeat(level))).collect();
    let started = Instant::now();
    for (source, expected) in [
        (
            format!("t: &t {long}\na: [{aliases}]\n"),
            "upgrade.yaml:2:505: with this, the texts of the file have more than 4 MiB",
        ),
        (format!("t: &t {{ a: {long} }}\na: [{aliases}]\n"), "have more than 4 MiB, aliases counted"),
        (format!("{nested}{}t: {}\n", "  ".repeat(30), "x".repeat(900_000)), "have more than 4 MiB"),
        (format!("a: {}\n", "x".repeat(1_000_000)), "the playbook lacks `apiVersion`"),
        ("---\na: b\n".repeat(90_000), "upgrade.yaml:3:1: a second document begins here"),
        ("- - ".repeat(200_000), "expected: valid YAML"),
        ("{a: ".repeat(200_000), "expected: valid YAML"),
        ("a:\n".repeat(200_000), "duplicate key"),
        ((0..9_000).map(|key| format!("k{key}:\n  - a\n  - b\n")).collect(), "more than 10000 values"),
    ] {
        let error = parse(&source).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.len() < 2_000, "{error}");
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn aliases_are_read_where_they_are_few() {
    let source = SOUND.replace("10s", "&wait 10s").replace("join_window: 5s", "join_window: *wait");
    let playbook = parse(&source).unwrap();
    assert_eq!(playbook.strategy.join_window, playbook.strategy.soak);
}

#[test]
fn a_playbook_cut_at_any_byte_never_panics() {
    for source in [SOUND, RESTART] {
        for end in 0..source.len() {
            let cut = String::from_utf8_lossy(&source.as_bytes()[..end]);
            if let Err(error) = parse(&cut) {
                assert!(error.to_string().contains("expected: "), "{error}");
            }
        }
    }
}

#[test]
fn a_playbook_with_any_byte_changed_never_panics() {
    let others = b"\0\t\n\r -:{}[]\"'&*!#%@\xff";
    for at in 0..SOUND.len() {
        for turn in 0..4 {
            let mut bytes = SOUND.as_bytes().to_vec();
            bytes[at] = others[(at * 7 + turn * 5) % others.len()];
            let _ = parse(&String::from_utf8_lossy(&bytes)).map_err(|error| error.to_string());
        }
    }
}

#[test]
fn windows_and_marks_of_order_are_read() {
    let playbook = parse(SOUND).unwrap();
    assert_eq!(parse(&SOUND.replace('\n', "\r\n")).unwrap(), playbook);
    assert_eq!(parse(&format!("\u{feff}{SOUND}")).unwrap(), playbook);
    assert_eq!(parse(&format!("---\n{SOUND}...\n")).unwrap(), playbook);
}

#[test]
fn the_place_is_also_data() {
    let Err(PlaybookError::Mistake(mistake)) = parse(&SOUND.replace("to: 3.6.14", "to: 3.6")) else { panic!() };
    let place = mistake.place.unwrap();
    assert_eq!((place.line, place.column, place.width), (11, 5, 3));
    assert_eq!((mistake.line.as_str(), mistake.file), ("to: 3.6", PathBuf::from("upgrade.yaml")));
}
