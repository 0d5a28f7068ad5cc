//! Events for tests, as short as they can be typed.

use super::{
    read::{Events, Source, events},
    record::{Record, Said, SaidMember},
};

/// One event of a member: `ms host event member`, or `ms host seen m1+* m2-`: + ready, - silent, ~ catching up, ! sick, * leads,
/// and after an @ the release.
pub(super) fn told(lines: &str) -> Vec<Record> {
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| one(line, &mut counts)).collect()
}

fn one(line: &str, counts: &mut std::collections::BTreeMap<String, u64>) -> Record {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [at, host, event, rest @ ..] = &words[..] else { panic!("{line}") };
    let count = counts.entry((*host).to_owned()).or_default();
    let mut said = Said { host: (*host).into(), event: (*event).into(), seq: *count, ..Said::default() };
    *count += 1;
    match *event {
        "seen" => said.members = rest.iter().map(|word| member(word)).collect(),
        _ => {
            said.member = rest.first().map(|name| (*name).into());
            said.member_id = rest.first().map(|name| format!("id-{name}"));
            said.to = rest.get(1).map(|to| (*to).into());
        }
    }
    Record { at: at.parse().unwrap(), file: 0, said }
}

fn member(word: &str) -> SaidMember {
    let (word, release) = word.split_once('@').unwrap_or((word, "3.5.0"));
    let name: String = word.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    let has = |mark: char| word.contains(mark);
    let state = match () {
        () if has('-') => "silent",
        () if has('~') => "catching_up",
        () if has('!') => "sick",
        () => "ready",
    };
    let role = if has('*') { "leader" } else { "follower" };
    let (release, cluster_version) = match state {
        "silent" => (None, None),
        _ => (Some(release.to_owned()), Some("3.5".to_owned())),
    };
    SaidMember {
        id: format!("id-{name}"),
        name,
        role: role.into(),
        state: state.into(),
        release,
        cluster_version,
        ..SaidMember::default()
    }
}

/// Files of these lines.
pub(super) fn read(files: &[&str]) -> Events {
    events(&sources(files)).unwrap()
}

pub(super) fn sources<'a>(files: &[&'a str]) -> Vec<Source<'a>> {
    let source = |(at, text): (usize, &&'a str)| Source { name: format!("f{}", at + 1), bytes: text.as_bytes() };
    files.iter().enumerate().map(source).collect()
}
