# Apache-2.0: see LICENSE, or https://www.apache.org/licenses/LICENSE-2.0
"""What the documentation of every module says about the agent."""

from __future__ import annotations


class ModuleDocFragment:
    """The options that modules have in common, and what they need."""

    DOCUMENTATION = r"""
options:
  playbook:
    description:
      - The path of Baton's playbook on the host.
      - Every host has one of its own, which names the members that run there.
    type: path
    required: true
  agent:
    description:
      - The agent on the host, by its path, or by its name where it is in the C(PATH).
    type: path
    default: agent
requirements:
  - The agent of Baton on the host, as the role P(baton.rollout.baton#role) puts it there.
  - Rights to start and stop the host's members, such as root's.
notes:
  - A failure carries the agent's own RV(ignore:reason), RV(ignore:exit) code, sentence and RV(ignore:next) command.
"""
