//! A plan as it is printed: a tree with the names of its steps and faults.

use std::{fmt, time::Duration};

use lab::fault::Moment;

use super::{Action, Host, Pace, Plan, Trouble};

/// The name of a member by its number, as clusters of the lab have it.
pub fn member(host: Host) -> String {
    format!("m{}", host + 1)
}

/// The number of the member of this name.
pub fn host(name: &str) -> Option<Host> {
    name.strip_prefix('m')?.parse::<Host>().ok()?.checked_sub(1)
}

fn members(hosts: &[Host]) -> String {
    hosts.iter().map(|host| member(*host)).collect::<Vec<_>>().join(", ")
}

fn ms(duration: &Duration) -> String {
    format!("{} ms", duration.as_millis())
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.cell)?;
        for step in &self.steps {
            let action = match &step.action {
                Action::Start { leader } => {
                    let of = &self.cell.path.from;
                    format!("start every member at {of}; {} leads; write the data set", member(*leader))
                }
                other => other.to_string(),
            };
            writeln!(f, "{:<5}{action}", step.id)?;
            for fault in &step.faults {
                writeln!(f, "{:<5}  but {}", fault.name(step), fault.trouble)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { leader } => write!(f, "start every member; {} leads", member(*leader)),
            Self::Forward { hosts, .. } if hosts.len() == 1 => write!(f, "forward: {}", members(hosts)),
            Self::Forward { hosts, pace: Pace::Together } => write!(f, "forward, at once: {}", members(hosts)),
            Self::Forward { hosts, pace: Pace::InTurn } => write!(f, "forward, in turn: {}", members(hosts)),
            Self::Back => write!(f, "back: whoever is forward, agents of all hosts at once"),
            Self::Rest { lasts } => write!(f, "rest for {}", ms(lasts)),
            Self::Scale { to } => write!(f, "scale to {}, agents of all hosts at once", members(to)),
            Self::Replace { member: who, by } if who == by => {
                write!(f, "{} loses its disk, and comes back as a new member of its name", member(*who))
            }
            Self::Replace { member: who, by } => write!(f, "replace {} by {}", member(*who), member(*by)),
            Self::TooLate { last } => {
                write!(f, "forward: {}, whose agent dies then; back, which is refused: no way back", member(*last))
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentKilled { host, sync, moment } => {
                let side = match moment {
                    Moment::Before => "before",
                    Moment::After => "after",
                };
                write!(f, "the agent of {} is killed just {side} sync {sync} of its journal", member(*host))
            }
            Self::AgentCutShort { host, after } => {
                write!(f, "the agent of {} is killed after {after} events", member(*host))
            }
            Self::AgentLate { host, by } => write!(f, "the agent of {} comes {} late", member(*host), ms(by)),
            Self::LeaderMoved { to, after } => {
                write!(f, "leadership is moved to {} after {after} events", member(*to))
            }
            Self::MemberKilled { member: who, back_after } => {
                write!(f, "{} is killed, and back after {}", member(*who), ms(back_after))
            }
            Self::MemberPaused { member: who, lasts } => write!(f, "{} stands still for {}", member(*who), ms(lasts)),
            Self::HostsGuarded => write!(f, "every host restarts its member by way of `agent guard`, all at once"),
            Self::MemberRestarted { member: who } => write!(f, "{} is restarted by hand", member(*who)),
            Self::MemberKilledAtSync { member: who, sync, back_after } => {
                write!(f, "{} is killed at sync {sync} of a thread, and back after {}", member(*who), ms(back_after))
            }
            Self::DiskSlow { member: who, by, lasts } => {
                write!(f, "each sync of {} takes {} more, for {}", member(*who), ms(by), ms(lasts))
            }
            Self::MemberCutOff { member: who, lasts } => {
                write!(f, "{} is cut off from the others for {}", member(*who), ms(lasts))
            }
            Self::LinkSlow { member: who, by, lasts } => {
                write!(f, "what {} sends and is sent comes {} late, for {}", member(*who), ms(by), ms(lasts))
            }
            Self::Maintained { every } => {
                write!(f, "history is compacted and a member defragmented every {}", ms(every))
            }
            Self::AlarmRaised { of, lasts } => {
                write!(f, "{} raises the alarm that its space is used up, for {}", member(*of), ms(lasts))
            }
            Self::PowerCut { member: who } => write!(f, "the host of {} loses power, and has it back", member(*who)),
        }
    }
}
