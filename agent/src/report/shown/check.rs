//! `agent check`: what was found on the way to a release, and what was not looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use proto::MemberId;
use serde_json::{Value, json};

use super::{hazards::act, status::table};
use crate::{
    hazards::Act,
    observe::difference::Difference,
    plan::{
        hazard::Hazard,
        way::{Finding, Way},
    },
    report::{
        differing,
        names::{Names, printable},
    },
};

/// Whether a member's database was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// Nothing that it may show matters on this way.
    NotAsked,
    Read,
    NotRead(String),
}

/// All that was found.
#[derive(Debug)]
pub struct Checked<'a> {
    pub way: Way<'a>,
    pub names: Names,
    pub databases: BTreeMap<MemberId, Database>,
    pub findings: Vec<Finding>,
    /// What stands in the way of any release.
    pub obstacles: Vec<String>,
    /// Ids that were accepted.
    pub accepted: BTreeSet<String>,
}

impl Checked<'_> {
    /// The ids that stand in the way.
    pub fn refused(&self) -> Vec<&'static str> {
        self.ids(|finding| finding.act() == Act::Refuse && !self.is_accepted(finding))
    }

    /// The ids that would, and were accepted.
    pub fn passed(&self) -> Vec<&'static str> {
        self.ids(|finding| self.is_accepted(finding))
    }

    /// Of these findings; of one that is met on several hops once.
    fn ids(&self, which: impl Fn(&&Finding) -> bool) -> Vec<&'static str> {
        let mut ids = Vec::new();
        for finding in self.findings.iter().filter(which) {
            if !ids.contains(&finding.hazard.id) {
                ids.push(finding.hazard.id);
            }
        }
        ids
    }

    /// Whose database was to be read, and was not.
    pub fn not_read(&self) -> Vec<String> {
        let is_missing = |(_, database): &(&MemberId, &Database)| matches!(database, Database::NotRead(_));
        self.databases.iter().filter(is_missing).map(|(id, _)| self.names.short(*id).to_string()).collect()
    }

    fn is_accepted(&self, finding: &Finding) -> bool {
        self.accepted.contains(finding.hazard.id)
    }

    /// A table of the members, then the findings, the worst first.
    pub fn text(&self) -> String {
        let mut rows: Vec<_> = self
            .way
            .view
            .members
            .iter()
            .map(|member| {
                let release = member.release().map_or_else(|| "-".to_owned(), ToString::to_string);
                let database = match self.databases.get(&member.id) {
                    Some(Database::Read) => "read".to_owned(),
                    Some(Database::NotRead(why)) => format!("not read: {}", printable(why)),
                    Some(Database::NotAsked) | None => "not asked for".to_owned(),
                };
                [self.names.short(member.id), release, database]
            })
            .collect();
        rows.sort();
        rows.insert(0, ["MEMBER", "RELEASE", "DATABASE"].map(str::to_owned));
        let mut text = table(&rows);
        for obstacle in &self.obstacles {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "refuse  {}", printable(obstacle));
        }
        for finding in &self.findings {
            let hazard = finding.hazard;
            let act = if self.is_accepted(finding) { "passed" } else { act(finding.act()) };
            let _ = writeln!(text, "{act:<6}  {}: {}{}", hazard.id, self.whom(finding), self.hop(finding));
            for difference in self.differences(finding) {
                let _ = writeln!(text, "        {difference}");
            }
            let _ = writeln!(text, "        {}", hazard.symptom);
            let _ = writeln!(text, "        {}", hazard.remedy);
        }
        if self.way.view.members.iter().all(|member| self.way.others.contains(&member.id)) {
            text += "the members are no etcd, as their /metrics say: the catalogue is not about them\n";
        }
        text + "not looked at: settings, log, certificates and disk of each host; agent plan looks at them, there\n"
    }

    /// What members hold differently, of such a finding.
    fn differences(&self, finding: &Finding) -> Vec<String> {
        let is_it = |difference: &&Difference| Hazard::of_difference(difference) == finding.hazard.id;
        self.way.differences.iter().filter(is_it).map(|found| differing::words(found, &self.names)).collect()
    }

    /// On which hop it is met, where there are several.
    fn hop(&self, finding: &Finding) -> String {
        let is_one_of_several = self.way.path.releases().nth(1).is_some();
        match finding.hop.as_ref().filter(|_| is_one_of_several) {
            Some(to) if finding.is_to_be_seen_again => {
                format!("; the hop before may mend it: look again before the hop to {to}")
            }
            Some(to) => format!(", on the hop to {to}"),
            None => String::new(),
        }
    }

    /// By name. Mostly their databases show the same.
    fn whom(&self, finding: &Finding) -> String {
        let mut alike: BTreeMap<&[MemberId], Vec<String>> = BTreeMap::new();
        finding.members.iter().for_each(|(id, by)| alike.entry(by).or_default().push(self.names.short(*id)));
        let one = |(by, mut names): (&[MemberId], Vec<String>)| {
            names.sort();
            match by.is_empty() {
                true => names.join(", "),
                false => format!("{}, which shows it by {}", names.join(", "), list(by)),
            }
        };
        alike.into_iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// The same for scripts.
    pub fn object(&self) -> Value {
        let member = |member: &crate::observe::view::Member| {
            let (read, why) = match self.databases.get(&member.id) {
                Some(Database::Read) => (json!(true), Value::Null),
                Some(Database::NotRead(why)) => (json!(false), json!(printable(why))),
                Some(Database::NotAsked) | None => (Value::Null, Value::Null),
            };
            json!({
                "id": member.id.to_string(),
                "name": member.name,
                "release": member.release().map(ToString::to_string),
                "other_program": self.way.others.contains(&member.id),
                "database_read": read,
                "not_read": why,
            })
        };
        let finding = |finding: &Finding| {
            let members = finding.members.iter().map(
                |(id, by)| json!({ "id": id.to_string(), "by": by.iter().map(ToString::to_string).collect::<Value>() }),
            );
            json!({
                "id": finding.hazard.id,
                "act": finding.act(),
                "accepted": self.is_accepted(finding),
                "hop_to": finding.hop.as_ref().map(ToString::to_string),
                "look_again": finding.is_to_be_seen_again,
                "members": members.collect::<Value>(),
                "differences": self.differences(finding),
                "symptom": finding.hazard.symptom,
                "remedy": finding.hazard.remedy,
            })
        };
        json!({
            "to": self.way.path.to.to_string(),
            "hops_to": self.way.path.releases().map(ToString::to_string).collect::<Value>(),
            "members": self.way.view.members.iter().map(member).collect::<Value>(),
            "obstacles": self.obstacles,
            "not_looked_at": ["settings", "log", "certificates", "disk"],
            "hazards": self.findings.iter().map(finding).collect::<Value>(),
        })
    }
}

fn list(ids: &[MemberId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
