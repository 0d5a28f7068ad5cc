"""Real etcd members on free ports of loopback, as the reproductions of hazards want them."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

# How long anything may take on a busy machine, in seconds.
GENEROUS = 60


class NotSeen(Exception):
    """The symptom did not show."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, condition, limit=GENEROUS):
    """What the condition gives once it is something."""
    end = time.monotonic() + limit
    while True:
        try:
            if found := condition():
                return found
        except (OSError, ValueError, KeyError, IndexError):
            pass
        if time.monotonic() > end:
            raise NotSeen(f"waited {limit} s for {what}")
        time.sleep(0.1)


def must(is_so, what):
    if not is_so:
        raise NotSeen(what)


class Member:
    def __init__(self, folder, name):
        self.name, self.folder, self.process = name, folder, None
        self.data = folder / name
        self.client, self.peer = (f"http://127.0.0.1:{free_port()}" for _ in "ab")

    @property
    def log(self):
        return (self.folder / f"{self.name}.log").read_text(errors="replace")

    def has_ended(self):
        return self.process.poll() is not None


class Cluster:
    """Members of several releases; ended and removed with the `with` that it was made in."""

    def __init__(self, bins, size=1):
        self.bins = bins
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-hazard-"))
        self.members = [Member(self.folder, f"m{at + 1}") for at in range(size)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            self.stop(member, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def initial(self, members=None):
        return ",".join(f"{one.name}={one.peer}" for one in members or self.members)

    def start(self, member, release, *flags, env=None, initial=None, state="new"):
        argv = [
            self.bins[release] / "etcd",
            f"--name={member.name}",
            f"--data-dir={member.data}",
            f"--listen-client-urls={member.client}",
            f"--advertise-client-urls={member.client}",
            f"--listen-peer-urls={member.peer}",
            f"--initial-advertise-peer-urls={member.peer}",
            f"--initial-cluster={initial or self.initial()}",
            f"--initial-cluster-state={state}",
            *flags,
        ]
        with open(self.folder / f"{member.name}.log", "wb") as log:
            member.process = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, **(env or {})})
        return member

    def stop(self, member, with_signal=signal.SIGTERM):
        if member.process and member.process.poll() is None:
            member.process.send_signal(with_signal)
            try:
                member.process.wait(GENEROUS)
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()

    def up(self, release, *flags, env=None):
        for member in self.members:
            self.start(member, release, *flags, env=env)
        self.serves(release)
        return self

    def serves(self, release, member=None):
        """Until a write is taken; the release is etcdctl's."""
        member = member or self.members[0]
        until(f"{member.name} to serve", lambda: self.ctl(member, release, "put", "served", "yes").returncode == 0)

    def again(self, member, release, *flags, env=None):
        self.stop(member)
        return self.start(member, release, *flags, env=env)

    def ctl(self, member, release, *arguments, user=None):
        argv = [self.bins[release] / "etcdctl", f"--endpoints={member.client}", "--command-timeout=5s"]
        argv += [f"--user={user}"] if user else []
        return subprocess.run([*argv, *arguments], capture_output=True, text=True, timeout=GENEROUS, check=False)

    def told(self, member, release, *arguments, user=None):
        """What etcdctl prints, as an object."""
        answer = self.ctl(member, release, *arguments, "--write-out=json", user=user)
        must(answer.returncode == 0, f"etcdctl {' '.join(arguments)}: {answer.stderr[-300:]}")
        return json.loads(answer.stdout)

    def ids(self, member, release):
        """The members as this one lists them: id by name, and who is a learner."""
        listed = self.told(member, release, "member", "list")["members"]
        return {one.get("name", ""): (one["ID"], one.get("isLearner", False)) for one in listed}

    def added(self, release, learner=False, start=True):
        """One more member. etcd adds nobody until all members have known each other for a while."""
        member = Member(self.folder, f"m{len(self.members) + 1}")
        more = ["--learner"] if learner else []
        add = lambda: self.ctl(self.members[0], release, "member", "add", member.name, f"--peer-urls={member.peer}", *more)
        until("a member to be added", lambda: add().returncode == 0)
        self.members.append(member)
        if start:
            self.start(member, release, state="existing")
        return member

    def promoted(self, release, member):
        def promote():
            identity, _ = self.ids(self.members[0], release)[member.name]
            return self.ctl(self.members[0], release, "member", "promote", f"{identity:x}").returncode == 0

        until("a learner to be promoted", promote)


def get(url, method="GET", body=None):
    """Status and text of an HTTP answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method=method), timeout=10) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def fails(cluster, member, *words):
    """The member must end, with these words in its log."""
    until(f"{member.name} to end", member.has_ended, 30)
    log = member.log
    must(any(word in log for word in words), f"{member.name} ended without {words}: {log[-400:]}")
