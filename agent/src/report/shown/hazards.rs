//! The catalogue of hazards for people, and for programs that read OSV (ossf.github.io/osv-schema).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::hazards::{Act, Hazard, Place, Proof, Releases};

/// Two lines each, the act first: what stops a run is to be seen at once.
pub fn lines(hazards: &[&Hazard]) -> String {
    let mut sorted = hazards.to_vec();
    sorted.sort_by_key(|hazard| (hazard.act, hazard.found_in));
    let width = sorted.iter().map(|hazard| hazard.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for hazard in sorted {
        let when = if hazard.when.is_empty() { String::new() } else { format!("; where {}", hazard.when) };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<6}  {:<width$}  {}{when}", act(hazard.act), hazard.id, releases(hazard.releases));
        let _ = writeln!(text, "        {}", hazard.symptom);
    }
    match text.is_empty() {
        true => "nothing is known to hurt on this way\n".to_owned(),
        false => text + "`agent hazards --explain ID` says what to do, how it is known, and where it was read\n",
    }
}

/// All there is to say.
pub fn whole(hazard: &Hazard) -> String {
    let mut text = format!("{}\n  {}\n\n", hazard.id, hazard.symptom);
    let certain = if hazard.is_certain { "; it cannot be accepted" } else { "" };
    let rows = [
        ("releases", releases(hazard.releases)),
        ("where", hazard.when.to_owned()),
        ("act", format!("{}{certain}", act(hazard.act))),
        ("remedy", hazard.remedy.to_owned()),
        ("agent", if hazard.is_seen_to() { "sees to it" } else { "does not look for it: look yourself" }.to_owned()),
        ("found in", place(hazard.found_in).to_owned()),
        ("known", hazard.proof.iter().map(|proof| self::proof(*proof)).collect::<Vec<_>>().join(", ")),
        ("read in", hazard.sources.iter().map(|source| address(source)).collect::<Vec<_>>().join("\n            ")),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "  {name:<8}  {value}");
    }
    text
}

/// What the lines say, for scripts.
pub fn objects(hazards: &[&Hazard]) -> Value {
    let object = |hazard: &&Hazard| {
        let mut object = json!(hazard);
        object["seen_to"] = hazard.is_seen_to().into();
        object
    };
    hazards.iter().map(object).collect()
}

pub fn osv(hazards: &[&Hazard]) -> Value {
    hazards.iter().map(|hazard| entry(hazard)).collect()
}

/// OSV knows releases that are affected, and no ways between two: of a way those it begins at, or, where it may begin anywhere, those
/// it leads to. The whole stands beside them.
fn entry(hazard: &Hazard) -> Value {
    let affected = match hazard.releases {
        Releases::Way { from, to } | Releases::Back { from, to } => {
            if from == "*" {
                to
            } else {
                from
            }
        }
        Releases::Run { any_of } => any_of,
    };
    let references =
        hazard.sources.iter().map(|source| address(source)).filter(|source| source.starts_with("https://"));
    json!({
        "schema_version": "1.6.0",
        "id": format!("BATON-{}", hazard.id),
        "modified": MODIFIED,
        "summary": hazard.symptom,
        "details": hazard.remedy,
        "affected": [{
            "package": { "ecosystem": "Go", "name": "go.etcd.io/etcd" },
            "ranges": affected.split("||").map(range).collect::<Value>(),
        }],
        "references": references.map(|url| json!({ "type": "WEB", "url": url })).collect::<Value>(),
        "database_specific": hazard,
    })
}

/// When the catalogue was last read off its sources.
const MODIFIED: &str = "2026-08-31T00:00:00Z";

/// `>=3.5.0, <3.5.26` as events.
fn range(span: &str) -> Value {
    let (mut introduced, mut ends) = ("0", Vec::new());
    for part in span.split(',').map(str::trim) {
        match (part.strip_prefix(">="), part.strip_prefix('<'), part.strip_prefix('=')) {
            (Some(first), ..) => introduced = first,
            (_, Some(fixed), _) => ends.push(json!({ "fixed": fixed })),
            (.., Some(only)) => {
                introduced = only;
                ends.push(json!({ "last_affected": only }));
            }
            _ => {}
        }
    }
    let events: Vec<_> = [json!({ "introduced": introduced })].into_iter().chain(ends).collect();
    json!({ "type": "SEMVER", "events": events })
}

fn releases(releases: Releases) -> String {
    let or = |spans: &str| spans.replace(" || ", ", or ");
    match releases {
        Releases::Way { from: "*", to: "*" } => "on any way".to_owned(),
        Releases::Back { from: "*", to: "*" } => "on any way down".to_owned(),
        Releases::Way { from: "*", to } => format!("to {}", or(to)),
        Releases::Way { from, to } | Releases::Back { from, to } => format!("{} to {}", or(from), or(to)),
        Releases::Run { any_of: "*" } => "any release".to_owned(),
        Releases::Run { any_of } => or(any_of),
    }
}

pub(super) fn act(act: Act) -> &'static str {
    match act {
        Act::Refuse => "refuse",
        Act::Warn => "warn",
        Act::Wait => "wait",
        Act::Never => "never",
        Act::Tell => "tell",
    }
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Releases => "the releases",
        Place::Store => "the database of each member, against its list of members",
        Place::Settings => "flags, environment and configuration file of each member",
        Place::Log => "snapshots and log of each member",
        Place::Revisions => "revisions and hashes of all members",
        Place::Activity => "what members are in the middle of",
        Place::Certificates => "certificates, on the disk and as they are served",
        Place::Members => "what the members say of themselves",
        Place::Nowhere => "nothing that etcd could be asked: look at what uses it",
    }
}

fn proof(proof: Proof) -> &'static str {
    match proof {
        Proof::Seen => "seen on real binaries",
        Proof::Source => "read in the source or the change log",
        Proof::Guide => "by etcd's own guide",
        Proof::Reported => "reported in an issue",
        Proof::Deduced => "follows from the source, not seen",
        Proof::Heard => "general knowledge, not looked up",
    }
}

/// `etcd#20967` as a URL; a document as it is.
fn address(source: &str) -> String {
    match source.split_once('#') {
        Some(("etcd", number)) => format!("https://github.com/etcd-io/etcd/issues/{number}"),
        Some(("website", number)) => format!("https://github.com/etcd-io/website/issues/{number}"),
        Some((repository, number)) => format!("https://github.com/{repository}/issues/{number}"),
        None => source.to_owned(),
    }
}
