//! A plan as it is printed.

use std::fmt;

use super::{Absence, Action, Ground, Habits, Kill, Mix, Moment, Plan};
use crate::plan::{Host, tree::member};

fn members(hosts: &[Host]) -> String {
    hosts.iter().map(|host| member(*host)).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way: Vec<_> = self.way.iter().map(ToString::to_string).collect();
        write!(f, "etcd {}, {} members", way.join(" -> "), self.size)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, seed {}", self.ground, self.seed)?;
        writeln!(f, "     {}", self.habits)?;
        for step in &self.steps {
            writeln!(f, "{:<5}{}", step.id, step.action)?;
            if let Some(kill) = &step.kill {
                writeln!(f, "       but {kill}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Habits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |value: Option<u64>| value.map_or("as etcd has it".into(), |value| value.to_string());
        write!(f, "{} keys, snapshot count {}", self.keys, figure(self.snapshot_count))?;
        write!(f, ", kept entries {}", figure(self.kept_entries))?;
        write!(f, ", compaction batch {}", figure(self.compaction_batch))?;
        if let Some(period) = self.defragments_every {
            write!(f, ", defragments every {} ms", period.as_millis())?;
        }
        if let Some(period) = self.compacts_every {
            write!(f, ", compacts every {} ms", period.as_millis())?;
        }
        f.write_str(if self.reads_in_transactions { ", reads by revision in transactions" } else { "" })
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.members.len() == 1 { "is" } else { "are" };
        let moment = match self.since {
            Moment::Beginning => "after",
            Moment::Answer => "once it is answered, after",
        };
        write!(f, "{} {verb} killed {moment} {} ms", members(&self.members), self.after.as_millis())?;
        if self.times > 1 { write!(f, ", {} times", self.times) } else { Ok(()) }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => write!(f, "start every member"),
            Self::Write { mix, count } => write!(f, "{count} writes: {}", mix.words()),
            Self::Compact { behind: 0 } => write!(f, "compact at the newest revision"),
            Self::Compact { behind } => write!(f, "compact {behind} revisions behind the newest"),
            Self::Defragment { member: who } => write!(f, "defragment {}", member(*who)),
            Self::Auth { on: true } => write!(f, "turn authentication on"),
            Self::Auth { on: false } => write!(f, "turn authentication off"),
            Self::AddUser => write!(f, "add a user"),
            Self::Grant => write!(f, "grant a user more"),
            Self::OldApi { kept: true } => write!(f, "write by the v2 API"),
            Self::OldApi { kept: false } => write!(f, "write by the v2 API, and delete all that again"),
            Self::Restart { member: who } => write!(f, "restart {}", member(*who)),
            Self::Change { leaves, joins, as_learner } => {
                let leaves = leaves.map(|who| format!("{} leaves for good", member(who)));
                let how = if *as_learner { " as a learner, and is promoted" } else { "" };
                let joins = joins.iter().map(|who| format!("{} joins{how}", member(*who)));
                write!(f, "{}", leaves.into_iter().chain(joins).collect::<Vec<_>>().join("; "))
            }
            Self::Rejoin { member: who, as_learner } => {
                let how = if *as_learner { "a learner, and is promoted" } else { "a new member" };
                write!(f, "{} loses its place and its disk, and comes back as {how}", member(*who))
            }
            Self::Restore => write!(f, "save a snapshot, and restore every member from it"),
            Self::Away { member: who, how, meanwhile } => {
                let meanwhile: Vec<_> = meanwhile.iter().map(ToString::to_string).collect();
                write!(f, "{} {}; meanwhile: {}; it is back", member(*who), how.words(), meanwhile.join("; "))
            }
            Self::Hop { to, order, writes } => {
                write!(f, "restart at {to}, in turn: {}; {writes} writes in between", members(order))
            }
        }
    }
}

impl Mix {
    fn words(self) -> &'static str {
        match self {
            Self::Puts => "puts",
            Self::Churn => "puts and deletions, a deletion at the end",
            Self::Large => "large values",
            Self::Transactions => "transactions",
            Self::Leases => "keys with leases",
        }
    }
}

impl Absence {
    fn words(self) -> &'static str {
        match self {
            Self::Stopped => "is stopped",
            Self::Killed => "is killed",
            Self::Paused => "stands still",
        }
    }
}
