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
