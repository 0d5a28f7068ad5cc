# Apache-2.0: see LICENSE, or https://www.apache.org/licenses/LICENSE-2.0
"""Which members two hosts own at once."""

from __future__ import annotations

DOCUMENTATION = r"""
name: shared_members
short_description: Which members two hosts own at once
version_added: 0.1.0
description:
  - Says in one sentence each which members are named by more than one host.
options:
  _input:
    description: >-
      Pairs of a host and the members that it owns, as a list or as a text with commas. A third element names the cluster
      of that host: members of two clusters may have the same name.
    type: list
    elements: list
    required: true
"""

EXAMPLES = r"""
# => ['h1 and h3 both own the member orders-1: name it on its own host alone']
shared: "{{ [['h1', ['orders-1']], ['h2', ['orders-2']], ['h3', ['orders-1']]] | baton.rollout.shared_members }}"
"""

RETURN = r"""
_value:
  description: A sentence for each member that is shared.
  type: list
  elements: str
"""


def shared_members(pairs):
    """A sentence for each member that more than one of the hosts of its cluster names."""
    owners = {}
    for host, members, *cluster in pairs:
        # As Ansible itself reads a list that an INI inventory or a command line has as text.
        named = members.split(",") if isinstance(members, str) else members
        for member in dict.fromkeys(str(member).strip() for member in named):
            owners.setdefault((member, "".join(map(str, cluster))), []).append(str(host))
    shared = [(of, hosts) for of, hosts in owners.items() if len(hosts) > 1]
    return [
        f"{' and '.join(hosts)} both own the member {member}{' in cluster ' + cluster if cluster else ''}: "
        "name it on its own host alone"
        for (member, cluster), hosts in shared
    ]


class FilterModule:
    """What Ansible looks for."""

    def filters(self):
        """The filter by its name."""
        return {"shared_members": shared_members}
