"""A callback of Ansible's: every task's result on every host, one JSON object a line, in the file $BATON_RECORD."""

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: notification
short_description: Record results for a test
description: Appends every result to a file.
"""


class CallbackModule(CallbackBase):
    """What Ansible looks for."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def record(self, status, result):
        """One line; this process alone writes them."""
        line = {"status": status, "host": result._host.get_name(), "action": result._task.action, "result": result._result}
        with open(os.environ["BATON_RECORD"], "a") as file:
            file.write(json.dumps(line, default=str) + "\n")

    def v2_runner_on_ok(self, result):
        self.record("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.record("failed", result)

    def v2_runner_on_unreachable(self, result):
        self.record("unreachable", result)
