//! `agent init` for members that come and go: who they are, and where this host's have their data and address.

use std::path::PathBuf;

use proto::MemberId;

use crate::{
    cli::{self, Kind},
    event::trouble::Trouble,
    host::{process::snapshot::Snapshot, runtime::same_node},
    observe::{
        Observer,
        peers::PeerUrls,
        view::{ClusterView, Member},
    },
    playbook::draft::{DraftNode, DraftPlace, DraftRuntime, Work},
};

pub(super) fn changes_members(typed: &cli::Init) -> bool {
    matches!(typed.kind, Some(Kind::Scale | Kind::Replace))
}

/// Who comes and who goes, as it was typed; nothing for another kind.
///
/// # Errors
/// What was typed does not go together.
pub(super) fn work(typed: &cli::Init, view: &ClusterView) -> Result<Option<Work>, Trouble> {
    let names: Vec<String> = view.voters().map(|member| member.name.to_string()).collect();
    let only = |flag: &str, kind: &str| Trouble::Usage(format!("{flag}: it belongs to --kind {kind}"));
    if typed.kind != Some(Kind::Scale) && !typed.voters.is_empty() {
        return Err(only("--voters", "scale"));
    }
    if typed.kind != Some(Kind::Replace) && typed.replace.is_some() {
        return Err(only("--replace", "replace"));
    }
    if changes_members(typed) && typed.to.is_some() {
        return Err(Trouble::Usage("--to: a change of members leaves the release as it is".into()));
    }
    match (typed.kind, &typed.replace, &typed.by) {
        (Some(Kind::Scale), ..) => scale(typed, names).map(Some),
        (Some(Kind::Replace), Some(member), Some(by)) => {
            Ok(Some(Work::Replace { member: member.clone(), by: by.clone() }))
        }
        (Some(Kind::Replace), ..) => {
            let names = names.join(", ");
            Err(Trouble::Usage(format!(
                "--replace NAME --by NAME is missing: who goes, and who comes; there are {names}"
            )))
        }
        _ => Ok(None),
    }
}

fn scale(typed: &cli::Init, voters: Vec<String>) -> Result<Work, Trouble> {
    let members = if typed.voters.is_empty() { voters.clone() } else { typed.voters.clone() };
    match members.len() % 2 {
        1 => Ok(Work::Scale { members }),
        _ => Err(Trouble::Usage(format!(
            "--voters NAME,…: {} would vote, and an odd number is wanted; now there are {}",
            members.len(),
            voters.join(", ")
        ))),
    }
}

/// Where each member is reached by the others; asked only where members come and go.
pub(super) struct Places(Option<PeerUrls>);

pub(super) async fn places(typed: &cli::Init, observer: &Observer) -> Result<Places, Trouble> {
    Ok(Places(if changes_members(typed) { Some(observer.peer_urls().await?) } else { None }))
}

impl Places {
    pub(super) fn of(&self, member: MemberId, seen: &Snapshot) -> Option<DraftPlace> {
        Some(DraftPlace { data_dir: data_dir(seen), ..self.listed(member)? })
    }

    fn listed(&self, member: MemberId) -> Option<DraftPlace> {
        let urls = self.0.as_ref()?.get(&member).into_iter().flatten();
        Some(DraftPlace { peer_urls: urls.cloned().collect(), data_dir: None })
    }
}

/// As its arguments or variables say; what its configuration file says is not read.
fn data_dir(seen: &Snapshot) -> Option<PathBuf> {
    let flag = same_node::value(&seen.arguments, "data-dir");
    let text = flag.or_else(|| seen.env.get("ETCD_DATA_DIR").map(String::as_str))?;
    Some(seen.cwd.join(text))
}

/// None of the members runs on this host: so it is the host of one that comes.
///
/// # Errors
/// All who are named run already.
pub(super) fn newcomer(work: &Work, view: &ClusterView, places: &Places) -> Result<DraftNode, Trouble> {
    let listed = |name: &str| view.members.iter().find(|member| *member.name == *name);
    let answers = |name: &str| listed(name).is_some_and(|member: &Member| member.report().is_some());
    let name = match work {
        Work::Scale { members } => members.iter().find(|name| listed(name).is_none()).cloned(),
        Work::Replace { by, .. } => Some(by.clone()).filter(|by| !answers(by)),
        Work::Release { .. } | Work::Restart { .. } => None,
    };
    let Some(name) = name else {
        let why = "no member runs on this host, and none is to come; name who comes, or run it where a member is";
        return Err(Trouble::Unprepared(why.into()));
    };
    // One that comes back by its name keeps its address.
    let place = listed(&name).and_then(|member| places.listed(member.id)).unwrap_or_default();
    Ok(DraftNode { name, binary: None, to_link: None, runtime: DraftRuntime::Newcomer, place: Some(place) })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{
        cli::{Cli, Verb},
        plan::samples::view,
    };

    fn typed(words: &str) -> cli::Init {
        let words = format!("agent init --endpoints http://h:1 {words}");
        let cli = Cli::try_parse_from(words.split_whitespace()).unwrap_or_else(|error| panic!("{error}"));
        match cli.verb {
            Verb::Init(init) => *init,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_typed_says_who_comes_and_who_goes() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let replace = Work::Replace { member: "2".into(), by: "4".into() };
        for (words, members, expected) in [
            ("--kind restart", "1+ 2+ 3+", Ok(None)),
            ("--kind scale", "1+ 2+ 3+ 4l", Ok(Some(Work::Scale { members: names(&["1", "2", "3"]) }))),
            ("--kind scale --voters 1,5,6", "1+", Ok(Some(Work::Scale { members: names(&["1", "5", "6"]) }))),
            ("--kind scale", "1+ 2+", Err("--voters NAME,…: 2 would vote")),
            ("--kind scale --voters 1,2", "1+", Err("an odd number is wanted; now there are 1")),
            ("--kind scale --to 3.6.14", "1+", Err("--to: a change of members")),
            ("--kind replace --replace 2 --by 4", "1+ 2+ 3+", Ok(Some(replace))),
            ("--kind replace", "1+ 2+ 3+", Err("who goes, and who comes; there are 1, 2, 3")),
            ("--kind restart --voters 1", "1+", Err("--voters: it belongs to --kind scale")),
            ("--to 3.6.14 --replace 1 --by 2", "1+", Err("--replace: it belongs to --kind replace")),
        ] {
            match (work(&typed(words), &view(members)), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{words}"),
                (Err(Trouble::Usage(said)), Err(expected)) => assert!(said.contains(expected), "{words}: {said}"),
                (found, _) => panic!("{words}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_host_without_a_member_is_that_of_one_that_comes() {
        let places = Places(Some([(MemberId(2), ["http://h:2380".to_owned()].into())].into()));
        let scale = |names: &[&str]| Work::Scale { members: names.iter().map(|name| (*name).to_owned()).collect() };
        let replace = |by: &str| Work::Replace { member: "2".into(), by: by.into() };
        for (work, members, expected) in [
            (scale(&["1", "4", "5"]), "1+", Some(("4", 0))),
            (scale(&["1", "2", "3"]), "1+ 2+ 3+", None),
            (replace("4"), "1+ 2+ 3+", Some(("4", 0))),
            (replace("2"), "1+ 2. 3+", Some(("2", 1))), // its host lost its disk, and has its address yet
            (replace("2"), "1+ 2+ 3+", None),
        ] {
            let found = newcomer(&work, &view(members), &places).ok();
            let found = found.as_ref().map(|node| (&*node.name, node.place.as_ref().unwrap().peer_urls.len()));
            assert_eq!(found, expected, "{work:?} {members}");
        }
    }
}
