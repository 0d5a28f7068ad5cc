#!/usr/bin/python
# Apache-2.0: see LICENSE, or https://www.apache.org/licenses/LICENSE-2.0
"""`agent status` as a task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: baton_status
short_description: Show a raft cluster, its run, and who waits for what
version_added: 0.1.0
description:
  - Asks C(agent status) for the members with their releases, the run, who holds the baton, and what each agent waits for.
  - Touches nothing, and succeeds where it could look.
options:
  playbook:
    description:
      - The path of Baton's playbook on the host.
    type: path
    required: false
  endpoints:
    description:
      - Client URLs to ask, where there is no playbook.
    type: list
    elements: str
author:
  - The authors of Baton (@baton)
extends_documentation_fragment:
  - baton.rollout.agent
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: There is no difference to show.
    support: none
seealso:
  - module: baton.rollout.baton_run
"""

EXAMPLES = r"""
- name: Look at the cluster
  baton.rollout.baton_status:
    playbook: /etc/baton/upgrade.yaml
  register: seen
  run_once: true

- name: Go on only where every member is ready
  ansible.builtin.assert:
    that: seen.members | rejectattr('state', 'eq', 'ready') | length == 0
    fail_msg: "{{ seen.msg }}"
  run_once: true
"""

RETURN = r"""
msg:
  description: The cluster in one sentence; where it cannot be looked at why, and what to type next.
  returned: always
  type: str
  sample: orders-1, orders-2, orders-3 at 3.5.32; 3 of 3 ready; cluster version 3.5
reason:
  description: V(looked), or why not.
  returned: always
  type: str
  sample: looked
exit:
  description: The agent's exit code.
  returned: always
  type: int
  sample: 0
next:
  description: The command to type next on the host, if any.
  returned: always
  type: str
members:
  description: The members as they are, as with M(baton.rollout.baton_run).
  returned: when the agent could look
  type: list
  elements: dict
run_state:
  description: The run that stands, if any.
  returned: when the agent could look
  type: raw
agents:
  description: The agents at work, and what each waits for.
  returned: when the agent could look
  type: list
  elements: dict
baton:
  description: Who holds the baton, if anybody does.
  returned: when the agent could look
  type: raw
step_lock:
  description: The member that is being taken down, if any is.
  returned: when the agent could look
  type: raw
abandoned:
  description: Members whose step was given up.
  returned: when the agent could look
  type: list
  elements: raw
status:
  description: The cluster's id, version and leader.
  returned: when the agent could look
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.baton.rollout.plugins.module_utils.agent import Agent, finish


def main():
    """The task."""
    module = AnsibleModule(
        argument_spec={
            "playbook": {"type": "path"},
            "endpoints": {"type": "list", "elements": "str"},
            "agent": {"type": "path", "default": "agent"},
        },
        mutually_exclusive=[("playbook", "endpoints")],
        required_one_of=[("playbook", "endpoints")],
        supports_check_mode=True,
    )
    params = module.params
    where = [params["playbook"]] if params["playbook"] else ["--endpoints", ",".join(params["endpoints"])]
    finish(module, Agent(module).look("status", *where), changed=False)


if __name__ == "__main__":
    main()
