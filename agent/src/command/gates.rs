//! `agent gates`: whether a feature is on for the whole cluster, or all of them with why. Touches nothing.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde_json::json;

use super::{Outcome, coloured, init, reach, shown_text};
use crate::{
    calendar::rfc3339,
    cli::{self, Output},
    event::trouble::Trouble,
    keys::seat::Seats,
    observe::{Observer, feature::FeatureAnswer, secret_file},
    playbook::Playbook,
    report::{
        file::json::{self, Facts, members},
        live::text,
        names::Names,
        shown::{
            features::{self, features},
            gates::gates as line,
        },
        stop::{Reason, Stop},
    },
};

/// How often it asks, with `--watch`.
const PERIOD: Duration = Duration::from_secs(1);

/// In bytes: no feature has a longer name.
const LONGEST_NAME: usize = 255;

/// What is asked, and of whom.
struct Question {
    observer: Observer,
    feature: Option<String>,
    playbook: Option<PathBuf>,
    /// What is to be known of the files that the cluster is reached with.
    exposed: Vec<String>,
}

/// An answer, and the lines that a change is told by: each under the feature's name.
struct Answer {
    outcome: Outcome,
    lines: BTreeMap<String, String>,
}

/// Asks once, or until nobody reads any more.
///
/// # Errors
/// Nobody could say.
pub(super) async fn gates(typed: &cli::Gates, output: Output) -> Result<Outcome, Trouble> {
    let question = Question::of(typed)?;
    match typed.watch {
        true => Ok(question.watch(output).await),
        false => Ok(question.ask().await?.outcome),
    }
}

impl Question {
    fn of(typed: &cli::Gates) -> Result<Self, Trouble> {
        if let Some(name) = typed.feature.as_ref().filter(|name| name.len() > LONGEST_NAME) {
            let (length, start) = (name.len(), name.chars().take(20).collect::<String>());
            return Err(Trouble::Usage(format!("{start}…: expected the name of a feature, not {length} bytes")));
        }
        let (feature, playbook) = (typed.feature.clone(), typed.playbook.clone());
        let (observer, cluster) = match &playbook {
            Some(path) => {
                let cluster = Playbook::load(path)?.cluster;
                (Observer::connect(&cluster)?, cluster)
            }
            None => {
                let cluster = reach::cluster(&typed.endpoints, &typed.reach)?;
                (init::observer(&cluster)?, cluster)
            }
        };
        Ok(Self { observer, feature, playbook, exposed: secret_file::warnings(&cluster) })
    }

    async fn ask(&self) -> Result<Answer, Trouble> {
        match &self.feature {
            Some(name) => self.one(name).await,
            None => self.all().await,
        }
    }

    async fn one(&self, name: &str) -> Result<Answer, Trouble> {
        let mut facts = Facts { warnings: self.exposed.clone(), ..Facts::default() };
        let (is_on, is_known) = match self.observer.feature(name).await? {
            FeatureAnswer::On => (true, true),
            FeatureAnswer::Off => (false, true),
            FeatureAnswer::Unknown { there_are } => {
                let there_are = if there_are.is_empty() { "none".to_owned() } else { there_are.join(", ") };
                facts.warnings.push(format!(
                    "the cluster version has no feature {name}, so it is off; there are: {there_are}. What is a single server's own is not \
                     asked here: etcd_server_feature_enabled in its metrics says it"
                ));
                (false, false)
            }
            FeatureAnswer::NoGates => return Err(Trouble::NoGates),
            FeatureAnswer::NotSaid { reasons } => return Err(Trouble::NoAnswer(reasons.join("; "))),
        };
        let (reason, state) = if is_on { (Reason::Looked, "on") } else { (Reason::FeatureOff, "off") };
        facts.more.insert("feature".into(), json!({ "name": name, "enabled": is_on, "known": is_known }));
        facts.seen_at = Some(rfc3339(SystemTime::now()));
        let message = format!("{name} is {state} for the whole cluster");
        let exit = reason.exit().code(false);
        let stop = Stop { exit, reason, message, left: String::new(), next: None, cluster: None };
        let lines = [(name.to_owned(), is_on.to_string())].into();
        Ok(Answer { outcome: Outcome { stop, facts, text: format!("{is_on}\n") }, lines })
    }

    async fn all(&self) -> Result<Answer, Trouble> {
        self.observer.meet().await?;
        let view = self.observer.look().await?;
        let names = Names::of(&view);
        let rows = features(&view, &names);
        if rows.is_none() && view.reports().any(|report| report.gates.is_some()) {
            let reasons = view.reports().filter_map(|report| report.gates.as_ref()?.unknown());
            return Err(Trouble::NoAnswer(reasons.collect::<Vec<_>>().join("; ")));
        }
        let text = features::text(&view, rows.as_deref());
        let lines = match &rows {
            Some(rows) => rows.iter().map(|row| (row.name.clone(), row.line())).collect(),
            None => [(String::new(), features::no_gates(&view))].into(),
        };
        let mut facts = Facts {
            members: members(&view, &names, &Seats::default()),
            gates: line(&view, &names),
            seen_at: Some(rfc3339(SystemTime::now())),
            warnings: self.exposed.iter().chain(&view.warnings).cloned().collect(),
            ..Facts::default()
        };
        facts.more.insert("features".into(), json!(rows));
        let message = match &rows {
            Some(rows) => {
                let on = rows.iter().filter(|row| row.enabled == Some(true)).count();
                format!("{on} of {} features are on for the whole cluster", rows.len())
            }
            None => features::no_gates(&view),
        };
        let (exit, reason) = (Reason::Looked.exit().code(false), Reason::Looked);
        let stop = Stop { exit, reason, message, left: String::new(), next: None, cluster: None };
        Ok(Answer { outcome: Outcome { stop, facts, text }, lines })
    }

    /// Asks again and again, and prints what has changed.
    async fn watch(&self, output: Output) -> Outcome {
        let (mut last, mut trouble) = (None, None);
        loop {
            let (stop, shown) = match self.ask().await {
                Ok(Answer { outcome, lines }) => {
                    trouble = None;
                    let shown = match last.as_ref() == Some(&lines) {
                        true => Ok(()),
                        false => self.show(&outcome, last.as_ref(), &lines, output),
                    };
                    last = Some(lines);
                    (outcome.stop, shown)
                }
                Err(error) => {
                    let path = self.playbook.as_ref().map(|path| path.to_string_lossy());
                    let stop = error.stop("gates", path.as_deref(), false);
                    let shown = match trouble.replace(stop.message.clone()) == trouble {
                        true => Ok(()),
                        false => show_trouble(&stop, output),
                    };
                    // What is said next is said whole, as time has passed.
                    last = None;
                    (stop, shown)
                }
            };
            if shown.is_err() {
                // Whoever watched has gone.
                return Outcome { stop, facts: Facts::default(), text: String::new() };
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    fn show(
        &self,
        outcome: &Outcome,
        last: Option<&BTreeMap<String, String>>,
        lines: &BTreeMap<String, String>,
        output: Output,
    ) -> io::Result<()> {
        let is_page = self.feature.is_none() && io::stdout().is_terminal();
        match output {
            Output::Json => write(&(json::object(&outcome.stop, &outcome.facts) + "\n")),
            Output::Text if is_page => write(&format!("\x1b[H\x1b[2J{} UTC\n{}", clock(), coloured(&outcome.text))),
            Output::Text if self.feature.is_some() => write(&outcome.text),
            Output::Text => {
                let before = |name: &String| last.and_then(|last| last.get(name));
                let changed =
                    lines.iter().filter(|(name, line)| before(name) != Some(line)).map(|(_, line)| line.clone());
                let gone = last.into_iter().flatten().filter(|(name, _)| !lines.contains_key(*name));
                let gone = gone.map(|(name, _)| format!("{name} gone: the cluster version has no such feature"));
                let text: String = changed.chain(gone).map(|line| format!("{}  {line}\n", clock())).collect();
                write(&shown_text(&text))
            }
        }
    }
}

fn show_trouble(stop: &Stop, output: Output) -> io::Result<()> {
    match output {
        Output::Json => write(&(json::object(stop, &Facts::default()) + "\n")),
        Output::Text => io::stderr().write_all(text::end(stop).as_bytes()),
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn clock() -> String {
    rfc3339(SystemTime::now())[11..19].to_owned()
}
