//! What a unit said last in the journal.
//!
//! Of its last run alone, where systemd numbers them: what an earlier one said is no cause. First the lines of its own
//! processes; where there are none, as of a program that could not be run, those of systemd about it.

use std::time::Duration;

use super::{SystemdRuntime, bus::Bus};
use crate::host::{
    files::{log_end::whole_lines, log_lines::last_lines},
    program::exec::{self, OUTPUT_KEPT, Output},
};

/// How long journalctl may take: its member waits meanwhile to be put back.
const LIMIT: Duration = Duration::from_secs(3);
/// Its place on hosts with systemd. What is on the `PATH` is not run: it may be another's.
const JOURNALCTL: &str = "/usr/bin/journalctl";
/// How many lines are asked for: more than the stack that a Go program ends with.
const ASKED: &str = "--lines=100";

impl SystemdRuntime {
    /// What it said last, if anything can be read of it, and how to read more.
    pub(crate) async fn last_words(&self) -> String {
        let read = async {
            let invocation = match Bus::open(&self.unit).await {
                Ok(bus) => self.look(&bus).await.ok().and_then(|unit| unit.invocation),
                Err(_) => None,
            };
            for wanted in wanted(&self.unit, invocation.as_deref()) {
                if let Some(words) = said(wanted).await {
                    return Some(words);
                }
            }
            None
        };
        match tokio::time::timeout(LIMIT, read).await.ok().flatten() {
            Some(words) => format!("the journal of {} says last: {words}", self.unit),
            None => format!("its journal is read by `journalctl -u {}`", self.unit),
        }
    }
}

/// What to ask for, one after the other until there is something (journalctl(1), systemd.journal-fields(7)).
fn wanted(unit: &str, invocation: Option<&str>) -> Vec<Vec<String>> {
    match invocation {
        Some(id) => vec![vec![format!("_SYSTEMD_INVOCATION_ID={id}")], vec![format!("INVOCATION_ID={id}")]],
        None => vec![vec!["-u".into(), unit.into()]],
    }
}

async fn said(wanted: Vec<String>) -> Option<String> {
    let fixed = [JOURNALCTL, "--quiet", "--no-pager", "--output=cat", ASKED].map(str::to_owned);
    let argv: Vec<_> = fixed.into_iter().chain(wanted).collect();
    let ended = exec::run(&argv, LIMIT, &Output::Kept).await.ok()?;
    let text = ended.stdout.as_bytes();
    let whole = if text.len() < OUTPUT_KEPT { text } else { whole_lines(text) };
    last_lines(&String::from_utf8_lossy(whole)).filter(|_| ended.is_success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_run_is_asked_for_where_it_is_known() {
        for (invocation, expected) in [
            (Some("0123"), vec![vec!["_SYSTEMD_INVOCATION_ID=0123"], vec!["INVOCATION_ID=0123"]]),
            (None, vec![vec!["-u", "etcd.service"]]),
        ] {
            assert_eq!(wanted("etcd.service", invocation), expected);
        }
    }
}
