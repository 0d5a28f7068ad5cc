#!/usr/bin/python
# Apache-2.0: see LICENSE, or https://www.apache.org/licenses/LICENSE-2.0
"""`agent plan` as a task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: baton_plan
short_description: Show what a rollout would do, and what would be refused
version_added: 0.1.0
description:
  - Reads the host's playbook by C(agent validate) and asks C(agent plan) for the steps. Touches nothing.
  - Fails where C(agent run) would be refused, with the same reason. Of a user without the role root in etcd it only warns.
options:
  replace:
    description:
      - Show what a run that replaces one with another intent would do, as M(baton.rollout.baton_run) with O(ignore:replace).
    type: bool
    default: false
author:
  - The authors of Baton (@baton)
extends_documentation_fragment:
  - baton.rollout.agent
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: The steps. Those of this host have a C(*).
    support: full
seealso:
  - module: baton.rollout.baton_run
"""

EXAMPLES = r"""
- name: Look at what would be done
  baton.rollout.baton_plan:
    playbook: /etc/baton/upgrade.yaml
  register: plan

- name: Show which members would be restarted
  ansible.builtin.debug:
    msg: "{{ plan.steps | map(attribute='member') | unique }}"
  run_once: true
"""

RETURN = r"""
msg:
  description: What would be done, in one sentence; where it would be refused with reason, exit code, and what to type next.
  returned: always
  type: str
  sample: 3 members would be restarted, one at a time; nothing was touched
reason:
  description: V(planned), or the reason of the refusal.
  returned: always
  type: str
  sample: planned
exit:
  description: The agent's exit code.
  returned: always
  type: int
  sample: 0
next:
  description: The command to type next on the host, if any.
  returned: always
  type: str
  sample: agent run /etc/baton/upgrade.yaml
cluster:
  description: V(done) where there is nothing to do, else V(partial).
  returned: when the agent could look
  type: str
steps:
  description: What would be done, in order, by whichever host.
  returned: when the agent could look
  type: list
  elements: dict
now:
  description: What this host would do first.
  returned: when the agent could look
  type: str
members:
  description: The members as they are, as with M(baton.rollout.baton_run).
  returned: when the agent could look
  type: list
  elements: dict
playbook:
  description: The playbook with every default, as C(agent validate) prints it, without values of C(env) and queries of URLs.
  returned: when it is right
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baton.rollout.plugins.module_utils.agent import Agent, finish


def main():
    """The task."""
    module = AnsibleModule(
        argument_spec={
            "playbook": {"type": "path", "required": True},
            "agent": {"type": "path", "default": "agent"},
            "replace": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    agent = Agent(module)
    read = agent.look("validate", module.params["playbook"])
    if not read.is_well:
        finish(module, read, changed=False)
    answer = agent.plan()
    result = {"diff": {"prepared": answer.steps()}} if module._diff and answer.steps() else {}
    finish(module, answer, changed=False, playbook=read.said.get("playbook"), **result)


if __name__ == "__main__":
    main()
