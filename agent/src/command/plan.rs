//! `agent plan`: the rollout as it would go, and what this host would do now. Touches nothing.

mod seen;

use std::{borrow::Cow, collections::BTreeSet, fmt::Write as _, path::Path, sync::Arc};

use proto::MemberId;

use super::{Outcome, trusted_playbook};
use crate::{
    cli::Accepting,
    event::trouble::Trouble,
    execute::{
        identity,
        inspect::{self, Inspected},
    },
    keys::{At, AttemptId, Keys, ProcessId, RunId, change::Change, rules::Rules},
    machine::act::Ending,
    observe::{evidence::Evidence, view::ClusterView},
    plan::{
        self, Case, Me, Next, Verb, action,
        forecast::{Action, End, Forecast, Step, forecast},
        membership::{self, forecast::MemberAction, survey::Survey},
        refusal::Refusal,
    },
    playbook::Playbook,
    report::{
        file::json::{Facts, members, versions},
        live::text,
        names::Names,
        shown::{forecast as told, gates::gates, grants, next},
        stop::{self, Context, Progress, Reason, Stop, warned::warned},
    },
    words::typed,
};
use seen::Seen;

/// Looks, and says what would be done; with `replace` by `agent run --replace`.
///
/// # Errors
/// What keeps a plan from being made at all, and a run from being replaced.
pub async fn plan(path: &Path, replace: bool, accepting: &Accepting) -> Result<Outcome, Trouble> {
    let mut playbook = trusted_playbook::load(path)?;
    playbook.strategy.accept_hazards.extend(accepting.ids());
    let mut seen = match Seen::of(&playbook, Verb::Run).await {
        Ok(seen) => seen,
        Err(trouble @ Trouble::Unreachable(_)) => return unforeseen(&playbook, path, trouble).await,
        Err(trouble) => return Err(trouble),
    };
    if replace {
        seen.replace()?;
    }
    Ok(seen.plan(path).outcome(&accepting.words()))
}

/// Nobody answers, and that may be because this host's members are down: a run starts them first.
async fn unforeseen(playbook: &Playbook, path: &Path, trouble: Trouble) -> Result<Outcome, Trouble> {
    let down = inspect::host_state(playbook).await.down;
    if down.is_empty() {
        return Err(trouble);
    }
    let host = identity::host_name();
    let would = format!("start {}", down.join(", "));
    let mut facts = Facts { steps: told::start_lines(&down, &host), ..Facts::default() };
    facts.more.insert("now".into(), would.clone().into());
    let path = path.to_string_lossy();
    let left = format!("not running: {}; agent run starts what is down first", down.join(", "));
    let stop = Stop { left, next: Some(format!("agent run {}", typed(&path))), ..trouble.stop("plan", None, false) };
    let text = format!("{}\n{}", told::starts(&down), told::now(&host, &would));
    Ok(Outcome { stop, facts, text })
}

/// A plan for whoever is to say yes to it.
#[derive(Debug)]
pub struct Foreseen {
    /// The steps, what this host would do now, and why it would be refused if it would.
    pub text: String,
    pub refused: bool,
    /// Whether it begins with the start of members that are down.
    pub starts: bool,
    /// Whether it has this host take a member down, or any host by a decision, or the cluster go down a minor.
    pub takes_down: bool,
}

/// Looks, and says what this verb would do; with `replace` once no other run stands.
///
/// # Errors
/// As for a plan.
pub async fn foresee(playbook: &Playbook, path: &Path, verb: Verb, replace: bool) -> Result<Foreseen, Trouble> {
    let mut seen = Seen::of(playbook, verb).await?;
    if let Some(user) = seen.viewer {
        return Err(Trouble::NotRoot { user });
    }
    if replace {
        seen.replace()?;
    }
    Ok(seen.plan(path).foreseen())
}

impl Seen {
    fn plan<'a>(&'a self, path: &'a Path) -> Plan<'a> {
        let Self { me, keys, view, evidence, survey, begins, names, here, gone, process, replaces, viewer } = self;
        let survey = survey.as_ref();
        let (typed, viewer) = (path.to_string_lossy(), viewer.as_deref());
        Plan {
            path,
            typed,
            me,
            keys,
            view,
            evidence,
            survey,
            begins: *begins,
            names,
            here,
            gone,
            process: *process,
            replaces: *replaces,
            viewer,
        }
    }
}

struct Plan<'a> {
    path: &'a Path,
    typed: Cow<'a, str>,
    me: &'a Me,
    keys: &'a Keys,
    view: &'a ClusterView,
    evidence: &'a Evidence,
    survey: Option<&'a Survey>,
    begins: Option<AttemptId>,
    names: &'a Names,
    here: &'a Inspected,
    gone: &'a [ProcessId],
    process: ProcessId,
    replaces: bool,
    viewer: Option<&'a str>,
}

impl Plan<'_> {
    /// `more` is what was typed behind the playbook.
    fn outcome(&self, more: &str) -> Outcome {
        let forecast = self.forecast();
        let now = self.now();
        let stop = self.refusal(&forecast, &now).unwrap_or_else(|| self.stop(&forecast)).passing(more, self.path);
        let (from, to) = versions(&self.me.intent.change);
        let mut facts = Facts {
            run: self.keys.run.as_ref().map(|run| run.value.id),
            from,
            to,
            members: members(self.view, self.names, &self.me.seats),
            gates: gates(self.view, self.names),
            steps: told::lines(&forecast, self.names),
            warnings: self.warnings(&forecast),
            ..Facts::default()
        };
        let would = self.would(&forecast, &now);
        facts.more.insert("now".into(), would.clone().into());
        let end = if stop.exit == 0 { text::end(&stop) } else { String::new() };
        let text = self.text(&forecast, &would) + &end;
        Outcome { stop, facts, text }
    }

    fn forecast(&self) -> Forecast {
        match self.survey {
            Some(survey) => {
                let seen = (self.view, survey);
                membership::forecast::forecast(self.me, self.keys, seen, self.begins, &self.here.down)
            }
            None => forecast(self.me, self.keys, (self.view, self.evidence), &self.here.down),
        }
    }

    fn foreseen(&self) -> Foreseen {
        let forecast = self.forecast();
        let now = self.now();
        let refusal = self.refusal(&forecast, &now);
        let words = self.would(&forecast, &now);
        let why = refusal.as_ref().map_or_else(String::new, |stop| format!("{}; left: {}\n", stop.message, stop.left));
        let advice = membership::forecast::warnings(&forecast);
        let advice: String =
            advice.iter().map(|warning| format!("warning: {}\n", warned(warning, self.names))).collect();
        let is_down = |step: &Step| match step.action {
            // Whoever finalizes or rolls back decides it for every host.
            Action::Restart { .. } if self.me.verb != Verb::Run => true,
            Action::Restart { .. } => step.member.is_some_and(|member| self.me.seats.has(member)),
            Action::Downgrade(_) | Action::Member(_) => true,
            _ => false,
        };
        Foreseen {
            text: self.text(&forecast, &words) + &advice + &why,
            takes_down: refusal.is_some() || forecast.steps.iter().any(is_down),
            refused: refusal.is_some(),
            starts: !forecast.started().is_empty(),
        }
    }

    fn would(&self, forecast: &Forecast, now: &Next) -> String {
        match &forecast.started()[..] {
            [] => match self.goes_first(forecast, now) {
                Some(first) => format!("wait for its turn ({} goes first)", self.names.short(first)),
                None => next::words(now, self.names, |refusal| self.refused(refusal).message),
            },
            down => format!("start {}", self.names.list(down)),
        }
    }

    /// The member of another host that goes before this host's own, where all hosts take part as a plan has it.
    fn goes_first(&self, forecast: &Forecast, now: &Next) -> Option<MemberId> {
        let Next::Step(action::Action::Restart(_)) = now else { return None };
        let is_restart = |step: &&Step| matches!(step.action, Action::Restart { .. });
        forecast.steps.iter().find(is_restart)?.member.filter(|first| !self.me.seats.has(*first))
    }

    fn refusal(&self, forecast: &Forecast, now: &Next) -> Option<Stop> {
        match (&forecast.end, now) {
            (End::Refused(refusal), _) | (_, Next::Refuse(refusal)) => Some(self.refused(refusal)),
            _ => {
                let is_owed = forecast.steps.iter().any(|step| step.action == Action::BackUp);
                let why = self.here.no_backup.as_deref().filter(|_| is_owed)?;
                Some(stop::of(&Ending::NotBackedUp(why.into()), &self.context()))
            }
        }
    }

    /// What this host would do next. Where it would begin the run, what it would do after that.
    fn now(&self) -> Next {
        match self.next(self.keys) {
            Next::Begin => self.next(&self.begun()),
            next => next,
        }
    }

    fn next(&self, keys: &Keys) -> Next {
        plan::next(&self.case(&Rules::default(), keys))
    }

    fn case<'b>(&'b self, rules: &'b Rules, keys: &'b Keys) -> Case<'b> {
        let (me, view, gone, process) = (self.me, self.view, self.gone, self.process);
        let evidence = Some(self.evidence);
        Case {
            me,
            rules,
            keys,
            view,
            evidence,
            is_window_over: false,
            closed_until: self.here.closed_until.as_ref(),
            joined: None,
            in_hand: None,
            gone,
            process,
            survey: self.survey,
            join_failure: None,
            may_begin: self.begins,
            may_resume: true,
            fresh: 0,
        }
    }

    fn begun(&self) -> Keys {
        let mut value = plan::target::new_run(RunId(0), &self.me.intent, self.view);
        let initial = self.survey.map(|survey| membership::initial(&self.me.intent, self.view, survey));
        value.membership = initial.map(Arc::new);
        let run = At { created: proto::Revision(0), modified: proto::Revision(0), value };
        Keys { run: Some(run), ..self.keys.clone() }
    }

    fn stop(&self, forecast: &Forecast) -> Stop {
        let restarted = would_be_done(forecast, &self.me.intent.change);
        let (message, cluster) = match (&forecast.end, &forecast.started()[..]) {
            (End::NothingToDo, _) => ("nothing to do".to_owned(), Progress::Done),
            (_, []) => (format!("{restarted}; nothing was touched"), Progress::Partial),
            (_, down) => {
                let then = if forecast.changes_anything() { format!(", then {restarted}") } else { String::new() };
                (format!("{} would be started{then}; nothing was touched", self.names.list(down)), Progress::Partial)
            }
        };
        let next = if self.replaces { "run --replace" } else { "run" };
        let stop = Stop::well(Reason::Planned, message, next, self.path);
        let next = stop.next.filter(|_| cluster != Progress::Done);
        let next = if self.viewer.is_some() { next.map(|_| grants::COMMAND.to_owned()) } else { next };
        Stop { cluster: Some(cluster), next, left: self.context().cluster_now(), ..stop }
    }

    /// A plan that would be refused exits 3, whatever the run itself would exit with.
    fn refused(&self, refusal: &Refusal) -> Stop {
        Stop { exit: 3, ..stop::of(&Ending::Refused(refusal.clone()), &self.context()) }
    }

    fn context(&self) -> Context<'_> {
        Context {
            names: self.names,
            view: Some(self.view),
            stale: None,
            down: &self.here.down,
            playbook: &self.typed,
            verb: self.me.verb,
            change: Some(&self.me.intent.change),
            touched: false,
            require_complete: false,
        }
    }

    fn warnings(&self, forecast: &Forecast) -> Vec<String> {
        let rules = Rules::default();
        let mut planned = plan::warnings(&self.case(&rules, self.keys));
        planned.extend(membership::forecast::warnings(forecast));
        let planned = planned.iter().map(|warning| warned(warning, self.names));
        let viewer = self.viewer.map(grants::not_asked);
        self.here.warnings.iter().chain(&self.view.warnings).cloned().chain(viewer).chain(planned).collect()
    }

    fn text(&self, forecast: &Forecast, would: &str) -> String {
        let mut text = String::new();
        if !forecast.steps.is_empty() {
            let _ = writeln!(text, "{}", told::text(forecast, self.names));
        }
        text + &told::now(&self.me.host_name, would)
    }
}

fn would_be_done(forecast: &Forecast, change: &Change) -> String {
    let noun = |count: usize| if count == 1 { "member" } else { "members" };
    if change.changes_members() {
        let come = forecast.members(|action| action == MemberAction::Promote);
        let go = forecast.members(|action| matches!(action, MemberAction::Remove { .. }));
        return format!("{come} {} would come and {go} would go, one at a time", noun(come));
    }
    // On a way over several releases each goes once a hop.
    let restarted = forecast.steps.iter().filter(|step| matches!(step.action, Action::Restart { .. }));
    let count = restarted.filter_map(|step| step.member).collect::<BTreeSet<_>>().len();
    let hops = forecast.steps.iter().filter(|step| matches!(step.action, Action::Hop { .. })).count();
    let each = if hops > 1 { format!(" in {hops} hops") } else { String::new() };
    format!("{count} {} would be restarted{each}, one at a time", noun(count))
}
