//! What has changed between two looks of `agent status --watch`, a line each. Pure.

use crate::{
    keys::Keys,
    observe::view::ClusterView,
    report::{
        file::json::{role, state},
        names::{Names, printable},
        shown::{cluster::cluster_version, status},
    },
};

/// Says what is otherwise than before.
pub fn changes(before: (&ClusterView, &Keys), after: (&ClusterView, &Keys), names: &Names) -> Vec<String> {
    let mut said = Vec::new();
    of_members(before.0, after.0, names, &mut said);
    of_keys(before.1, after.1, names, &mut said);
    said
}

fn of_members(before: &ClusterView, after: &ClusterView, names: &Names, said: &mut Vec<String>) {
    for member in &after.members {
        let name = names.short(member.id);
        let Some(was) = before.member(member.id) else {
            said.push(format!("{name} is a member now"));
            continue;
        };
        if let (Some(release), true) = (member.release(), member.release() != was.release() && was.release().is_some())
        {
            said.push(format!("{name} runs {release}"));
        }
        if state(member) != state(was) {
            said.push(format!("{name} is {}", state(member).replace('_', " ")));
        }
        if role(after, member) == "leader" && role(before, was) != "leader" {
            said.push(format!("{name} leads"));
        }
    }
    let is_gone = |id| after.member(id).is_none();
    said.extend(
        before.members.iter().filter(|was| is_gone(was.id)).map(|was| format!("{} was removed", names.short(was.id))),
    );
    if let (Some(was), Some(version)) = (cluster_version(before), cluster_version(after))
        && was != version
    {
        said.push(format!("cluster version {version}"));
    }
    if let (None, Some(alarm)) = (before.alarm(), after.alarm()) {
        let alone = after.alone_with(alarm).map(|alone| format!(", as {} alone says", names.short(alone)));
        let (kind, of) = (printable(&alarm.kind), names.short(alarm.of));
        said.push(format!("alarm {kind} of {of}{}", alone.unwrap_or_default()));
    }
}

fn of_keys(before: &Keys, after: &Keys, names: &Names, said: &mut Vec<String>) {
    for (host, agent) in &after.agents {
        if !before.agents.contains_key(host) {
            said.push(format!("the agent of {} takes part", printable(&agent.value.host_name)));
        }
    }
    for (host, agent) in &before.agents {
        if !after.agents.contains_key(host) {
            said.push(format!("the agent of {} is gone", printable(&agent.value.host_name)));
        }
    }
    let locks = |keys: &Keys| keys.step.as_ref().map(|step| step.value.clone());
    match (locks(before), locks(after)) {
        (was, Some(lock)) if was.as_ref().map(|was| was.attempt) != Some(lock.attempt) => {
            said.push(format!("step begun: {}", status::step_lock(&lock, names)));
        }
        (Some(was), None) => said.push(format!("step over: {}", names.short(was.member))),
        _ => {}
    }
    let Some(run) = &after.run else { return };
    let was = before.run.as_ref().filter(|was| was.value.id == run.value.id);
    if was.is_none_or(|was| was.value.state != run.value.state) {
        said.push(format!("run: {}", status::state(&run.value.state, names)));
    }
    let is_new = |member| was.is_none_or(|was| !was.value.done.contains(member));
    said.extend(
        run.value.done.iter().filter(|done| is_new(done)).map(|done| format!("{} is done", names.short(*done))),
    );
}

#[cfg(test)]
mod tests {
    use proto::MemberId;

    use super::*;
    use crate::{keys::RunState, plan::samples};

    #[test]
    fn what_changes_is_said_once_and_what_stays_is_not() {
        let (before, keys) = (samples::view("1+ 2+ 3+"), samples::keys(None, true));
        let names = Names::of(&before);
        assert_eq!(changes((&before, &keys), (&before, &keys), &names), Vec::<String>::new());
        let mut after = samples::view("1+ 2. 3+");
        assert_eq!(changes((&before, &keys), (&after, &keys), &names), ["2 is silent"]);
        let alarm = |members| changes((&before, &keys), (&samples::view(members), &keys), &names).pop();
        assert_eq!(alarm("1! 2! 3!").as_deref(), Some("alarm NOSPACE of 1"));
        assert_eq!(alarm("1+ 2! 3+").as_deref(), Some("alarm NOSPACE of 1, as 2 alone says"));
        after = before.clone();
        samples::with_release(&mut after, 1, "3.5.30");
        let mut later = keys.clone();
        later.step = None;
        later.agents.clear();
        later.run.as_mut().unwrap().value.done = vec![MemberId(2)];
        later.run.as_mut().unwrap().value.state = RunState::Held { member: MemberId(1) };
        let said = changes((&before, &keys), (&after, &later), &names);
        let expected = ["2 runs 3.5.30", "the agent of h2 is gone", "step over: 2"];
        assert_eq!(said[..3], expected, "{said:?}");
        assert!(said[3].starts_with("run: held before 1") && said[4] == "2 is done", "{said:?}");
        let said = changes((&before, &Default::default()), (&before, &keys), &names);
        assert!(said.iter().any(|said| said.starts_with("step begun: 2 (2)")), "{said:?}");
    }
}
