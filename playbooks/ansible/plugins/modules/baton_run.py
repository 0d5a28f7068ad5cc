#!/usr/bin/python
# Apache-2.0: see LICENSE, or https://www.apache.org/licenses/LICENSE-2.0
"""`agent run` as a task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: baton_run
short_description: Bring this host's members of a raft cluster to the release of a playbook
version_added: 0.1.0
description:
  - Runs C(agent run) on the host. It restarts this host's members of the cluster, one at a time and in turn with the agents
    of all other hosts, and only while the cluster is well.
  - It may run on all hosts at once, on some of them, or on one after the other (C(serial)). The agents agree among
    themselves who may go; a host whose members are done ends with RV(cluster) C(partial) as soon as the members that are
    left have no agent at work, which is no failure.
  - The agent outlives its connection. Where a play was interrupted, or a connection broke, the agent finishes what it
    does, and the same play again goes on.
options:
  expect_agents:
    description:
      - So many hosts of this cluster take part. The agents do not wait for more than these before they begin.
      - Hosts of another cluster in the same play do not count.
    type: int
  require_complete:
    description:
      - Fail with RV(reason) C(incomplete) unless the whole cluster is done.
    type: bool
    default: false
  replace:
    description:
      - Put this playbook's run in the place of one that stands with another intent.
    type: bool
    default: false
  events:
    description:
      - A file on the host to which the agent appends what happens, one JSON object a line.
    type: path
  report:
    description:
      - A file on the host to which the agent writes at its end what happened, as one HTML page that stands alone. One that is
        there is written over.
      - For one page of all hosts, keep their O(events) and give them to C(agent report).
    type: path
  timeout:
    description:
      - After so many seconds the agent is asked to end. It finishes the step in hand or undoes it, and the task fails with
        RV(reason) C(interrupted).
      - Without it only the deadlines of the playbook hold.
    type: int
  lock_timeout:
    description:
      - How many seconds to wait for another agent on this host to end, such as that of a play that was interrupted.
    type: int
    default: 600
author:
  - The authors of Baton (@baton)
extends_documentation_fragment:
  - baton.rollout.agent
attributes:
  check_mode:
    description: The plan of C(agent plan). RV(ignore:changed) says whether members of this host would be restarted.
    support: full
  diff_mode:
    description: The steps that were done, or in check mode those that would be. Those of this host have a C(*).
    support: full
seealso:
  - module: baton.rollout.baton_plan
  - module: baton.rollout.baton_status
"""

EXAMPLES = r"""
- name: Upgrade the cluster, all hosts at once
  hosts: orders
  become: true
  tasks:
    - name: Do this host's part
      baton.rollout.baton_run:
        agent: /usr/local/bin/agent
        playbook: /etc/baton/upgrade.yaml
        expect_agents: "{{ ansible_play_batch | length }}"

- name: Upgrade the cluster, one host after the other
  hosts: orders
  become: true
  serial: 1
  tasks:
    - name: Do this host's part
      baton.rollout.baton_run:
        playbook: /etc/baton/upgrade.yaml
        # Whoever is last knows whether all of it is done.
        require_complete: "{{ inventory_hostname == ansible_play_hosts_all | last }}"
"""

RETURN = r"""
msg:
  description: What happened, in one sentence; where it failed with reason, exit code, what was left, and what to type next.
  returned: always
  type: str
  sample: "this host's part is done; left without an agent: orders-2, orders-3"
reason:
  description: How it ended, in one word of a closed list, which C(agent run --help) prints.
  returned: always
  type: str
  sample: partial
exit:
  description: The agent's exit code.
  returned: always
  type: int
  sample: 0
left:
  description: In what state the cluster was left.
  returned: when the agent gave a result
  type: str
  sample: orders-1 at 3.6.14; orders-2, orders-3 at 3.5.32; 3 of 3 ready; cluster version 3.5
next:
  description: The command to type next on the host, if any.
  returned: always
  type: str
  sample: agent run /etc/baton/upgrade.yaml
cluster:
  description: How far the whole cluster is. V(done), V(partial), or V(held) before the point of no return.
  returned: when it is known
  type: str
  sample: partial
run:
  description: The id of the run that this was part of.
  returned: when the agent gave a result
  type: str
from:
  description: The releases from which members are upgraded, by the playbook.
  returned: when the agent gave a result
  type: str
  sample: ">=3.5.32, <3.6"
to:
  description: The release of the playbook.
  returned: when the agent gave a result
  type: str
  sample: 3.6.14
members:
  description: The members as they were last seen.
  returned: when the agent gave a result
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
    id:
      description: Its id, as etcdctl prints it.
      type: str
    host:
      description: Its host, where an agent there said so.
      type: str
    version:
      description: The release that it runs.
      type: str
    role:
      description: V(leader), V(follower) or V(learner).
      type: str
    state:
      description: V(ready), V(catching_up), V(sick), V(silent) or V(never_started).
      type: str
    mine:
      description: Whether it runs on this host.
      type: bool
steps:
  description: What this agent did; in check mode what would be done, by whichever host.
  returned: when the agent gave a result
  type: list
  elements: dict
  contains:
    id:
      description: Its number in the plan.
      type: str
    member:
      description: Whose step it is.
      type: str
    action:
      description: What is done.
      type: str
    state:
      description: How far it is.
      type: str
    ms:
      description: How long it took.
      type: int
gates:
  description: The cluster's feature gates, where it has any.
  returned: when the agent gave a result
  type: dict
waiting_for:
  description: What was waited for when it ended.
  returned: when the agent gave a result
  type: str
waiting_since:
  description: Since when, by the host's clock.
  returned: when it waited for something when it ended
  type: str
waiting_until:
  description: What ends that.
  returned: when it waited for something when it ended
  type: str
"""

import itertools

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baton.rollout.plugins.module_utils.agent import Agent, finish


def would_change(answer):
    """Whether a plan restarts a member of this host, before it holds for somebody to decide."""
    steps = answer.said.get("steps") or [] if answer.is_well else []
    actions = list(itertools.takewhile(lambda step: step.get("action") != "hold", steps))
    return any(step.get("action") != "wait" and step.get("member") in answer.own_members for step in actions)


def rollout(module, agent):
    """Does this host's part, and returns how that ended and whether anything was changed."""
    params = module.params
    if module.check_mode:
        answer = agent.plan()
        return answer, would_change(answer)
    options = []
    if params["expect_agents"] is not None:
        options += ["--expect-agents", str(params["expect_agents"])]
    if params["events"] is not None:
        options += ["--events", params["events"]]
    if params["report"] is not None:
        options += ["--report", params["report"]]
    options += ["--require-complete"] if params["require_complete"] else []
    options += ["--replace"] if params["replace"] else []
    answer = agent.work("run", params["playbook"], *options, timeout=params["timeout"], lock_timeout=params["lock_timeout"])
    # Without a result it is not known; a play is not to pass over a change.
    return answer, bool(answer.said["changed"]) if answer.said else True


def main():
    """The task."""
    module = AnsibleModule(
        argument_spec={
            "playbook": {"type": "path", "required": True},
            "agent": {"type": "path", "default": "agent"},
            "expect_agents": {"type": "int"},
            "require_complete": {"type": "bool", "default": False},
            "replace": {"type": "bool", "default": False},
            "events": {"type": "path"},
            "report": {"type": "path"},
            "timeout": {"type": "int"},
            "lock_timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    answer, changed = rollout(module, Agent(module))
    result = {"diff": {"prepared": answer.steps()}} if module._diff and answer.steps() else {}
    finish(module, answer, changed=changed, **result)


if __name__ == "__main__":
    main()
