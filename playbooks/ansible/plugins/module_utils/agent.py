# Apache-2.0: see LICENSE, or https://www.apache.org/licenses/LICENSE-2.0
"""Baton's agent on this host: how modules start it, and what they make of the one object that it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time

# What Ansible itself says about a task; a field of the agent's with such a name is not passed on.
ANSIBLE_OWN = {"ansible_facts", "changed", "deprecations", "diff", "exception", "failed", "invocation", "msg", "skipped", "warnings"}
# Said by Ansible in another way, or of no use there.
SAID_OTHERWISE = {"format", "message"}
LOOK_AGAIN_S = 1


class Answer:
    """How a call of the agent ended: its object, or why there is none."""

    def __init__(self, code, stdout, stderr):
        self.code = code
        self.stderr = stderr.strip()
        lines = [line for line in stdout.splitlines() if line.strip()]
        try:
            said = json.loads(lines[-1]) if lines else None
        except ValueError:
            said = None
        self.said = said if isinstance(said, dict) else None

    @property
    def is_locked(self):
        """Whether another agent works with this state directory."""
        return self.said is not None and self.said.get("reason") == "state_dir_locked"

    @property
    def is_well(self):
        """Whether it did what was asked for, which may be a part, or a hold."""
        return self.code == 0 and self.said is not None

    @property
    def own_members(self):
        """The names of this host's members."""
        members = (self.said or {}).get("members") or []
        return [member.get("name") for member in members if member.get("mine")]

    def fields(self):
        """What is passed on as it is."""
        if self.said is None:
            return {"exit": self.code, "reason": None, "next": None}
        return {key: value for key, value in self.said.items() if key not in ANSIBLE_OWN | SAID_OTHERWISE}

    def sentence(self):
        """What happened, in one text for a person."""
        if self.said is None:
            return self.silence()
        told = self.said.get("message") or "the agent gave no reason"
        if self.is_well:
            return told
        told += f" (exit {self.said.get('exit')}, reason {self.said.get('reason')})"
        if self.said.get("left"):
            told += f"; left: {self.said['left']}"
        if self.said.get("next"):
            told += f"; next: {self.said['next']}"
        return told

    def silence(self):
        """What is to be said where the agent said nothing."""
        if self.code < 0:
            return f"the agent was ended by signal {-self.code}; the same play again goes on where it was"
        last = self.stderr.splitlines()[-1] if self.stderr else "it said nothing"
        return f"the agent ended with exit code {self.code} and without a result: {last}"

    def steps(self):
        """The steps as lines, those of this host marked."""
        own = self.own_members
        lines = []
        for step in (self.said or {}).get("steps") or []:
            mark = "*" if step.get("member") in own else " "
            took = f"  {step['ms']} ms" if step.get("ms") is not None else ""
            words = (step.get("member") or "all", step.get("action"), step.get("state"))
            lines.append(f"{mark} {step.get('id', ''):<6}" + "  ".join(str(word) for word in words) + took)
        return "".join(line + "\n" for line in lines)


class Agent:
    """The agent, as one task of a play uses it."""

    def __init__(self, module):
        self.module = module
        self.path = self.find(module.params["agent"])

    def find(self, wanted):
        """Its path; without one the task fails, as there is nothing it could do."""
        if os.sep in wanted:
            found = wanted if os.access(wanted, os.X_OK) and os.path.isfile(wanted) else None
        else:
            found = self.module.get_bin_path(wanted)
        if found is None:
            self.module.fail_json(
                msg=f"there is no agent at {wanted} on this host; the role baton.rollout.baton puts it there, or name its path in `agent`",
                reason=None, exit=None, next=None)
        return found

    def look(self, verb, *arguments):
        """A call that changes nothing, to its end."""
        argv = [self.path, verb, *arguments, "--output", "json"]
        return Answer(*self.module.run_command(argv))

    def plan(self):
        """What a run of the same task would do."""
        params = self.module.params
        return self.look("plan", params["playbook"], *(["--replace"] if params["replace"] else []))

    def work(self, verb, *arguments, timeout=None, lock_timeout=0):
        """A call that changes the cluster, to its end, after that of another agent on this host."""
        deadline = time.monotonic() + lock_timeout
        answer = self.work_once(verb, arguments, timeout)
        while answer.is_locked and time.monotonic() < deadline:
            time.sleep(LOOK_AGAIN_S)
            answer = self.work_once(verb, arguments, timeout)
        return answer

    def work_once(self, verb, arguments, timeout):
        """It lives in a session of its own and writes to files, so that the end of this process or of its connection is
        not the agent's: it finishes what it does, and the same task again goes on."""
        argv = [self.path, verb, *arguments, "--output", "json"]
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            with open(os.devnull, "rb") as stdin:
                process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                # It finishes the step in hand or undoes it, by deadlines of its own.
                process.send_signal(signal.SIGTERM)
                code = process.wait()
            return Answer(code, read(stdout), read(stderr))


def read(file):
    """All that was written to a file."""
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def finish(module, answer, **result):
    """Ends the task with what the agent said."""
    for warning in (answer.said or {}).get("warnings") or []:
        module.warn(warning)
    result = {**answer.fields(), "msg": answer.sentence(), **result}
    if answer.is_well:
        module.exit_json(**result)
    module.fail_json(**result)
