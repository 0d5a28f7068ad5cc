"""What members of a release do as they come and go, and what stops a downgrade: an id of the catalogue each."""

import signal
import time

from members import Cluster, fails, get, must, until
from on_the_way import refuses


def add_while_one_down(bins):
    with Cluster(bins, 3).up("3.6.14") as cluster:
        first, down = cluster.members[0], cluster.members[2]
        until("all to know each other", lambda: cluster.told(first, "3.6.14", "endpoint", "status"))
        time.sleep(6)
        cluster.stop(down, signal.SIGKILL)
        time.sleep(6)
        added = cluster.ctl(first, "3.6.14", "member", "add", "m4", "--learner", "--peer-urls=http://127.0.0.1:1")
        must("unhealthy cluster" in added.stderr, f"it is added: {added.stderr}")


def update_promotes(bins):
    with Cluster(bins).up("3.5.30") as cluster:
        learner = cluster.added("3.5.30", learner=True)
        until("it to be named", lambda: learner.name in cluster.ids(cluster.members[0], "3.5.30"))
        identity, is_learner = cluster.ids(cluster.members[0], "3.5.30")[learner.name]
        must(is_learner, "it is none")
        cluster.ctl(cluster.members[0], "3.5.30", "member", "update", f"{identity:x}", f"--peer-urls={learner.peer}")
        votes = lambda: not cluster.ids(cluster.members[0], "3.5.30")[learner.name][1]
        until("it to vote", votes, 20)


def txn_range_diverges(bins):
    """A write and a read of a revision that is to come: it fails where it is asked, and is applied elsewhere."""
    with Cluster(bins, 3).up("3.5.30") as cluster:
        asked = cluster.members[0]
        body = (
            b'{"success":[{"requestPut":{"key":"YQ==","value":"Yg=="}},'
            b'{"requestRange":{"key":"YQ==","revision":"1000"}}]}'
        )
        status, said = get(asked.client + "/v3/kv/txn", "POST", body)
        must(status != 200, f"it is answered: {said}")
        revisions = lambda: {
            cluster.told(member, "3.5.30", "get", "none", "--consistency=s")["header"]["revision"]
            for member in cluster.members
        }
        until("revisions to differ", lambda: len(revisions()) > 1, 20)


def lease_full_again(bins):
    with Cluster(bins, 3).up("3.6.14") as cluster:
        first = cluster.members[0]
        lease = cluster.told(first, "3.6.14", "lease", "grant", "600")["ID"]
        left = lambda: cluster.told(first, "3.6.14", "lease", "timetolive", f"{lease:x}")["ttl"]
        time.sleep(5)
        before = left()
        status = [cluster.told(one, "3.6.14", "endpoint", "status")[0]["Status"] for one in cluster.members]
        leads = [one["header"]["member_id"] == one["leader"] for one in status].index(True)
        to = status[(leads + 1) % 3]["header"]["member_id"]
        moved = cluster.ctl(cluster.members[leads], "3.6.14", "move-leader", f"{to:x}")
        must(moved.returncode == 0, moved.stderr)
        until("it to have its full time again", lambda: left() > before)


def auth_tightened(bins):
    for release, answers in (("3.5.1", True), ("3.5.30", False)):
        with Cluster(bins).up(release) as cluster:
            member = cluster.members[0]
            for arguments in (["user", "add", "root:pw"], ["user", "grant-role", "root", "root"], ["user", "add", "eve:pw"], ["auth", "enable"]):
                cluster.ctl(member, release, *arguments)
            status = cluster.ctl(member, release, "endpoint", "status", user="eve:pw")
            must((status.returncode == 0) == answers, f"{release}: {status.stderr}")


def catch_up_window(bins):
    """A member that missed more than the leader of 3.6 keeps is sent a whole snapshot."""
    with Cluster(bins, 3).up("3.6.14") as cluster:
        first, away = cluster.members[0], cluster.members[2]
        cluster.stop(away)
        for _ in range(5300):
            get(first.client + "/v3/kv/put", "POST", b'{"key":"YQ==","value":"Yg=="}')
        cluster.start(away, "3.6.14")
        received = lambda: "applied snapshot" in away.log or "applying snapshot" in away.log
        until("it to be sent a snapshot", received)


def old_binary_after_rise(bins):
    with Cluster(bins).up("3.6.14") as cluster:
        fails(cluster, cluster.again(cluster.members[0], "3.5.30"), "invalid downgrade")


def newer_data_dir(bins):
    with Cluster(bins).up("3.7.1") as cluster:
        fails(cluster, cluster.again(cluster.members[0], "3.6.14"), "is not supported")


def down_flags_36_35(bins):
    refuses(bins, "3.5.30", "--feature-gates=CompactHashCheck=true")
    refuses(bins, "3.5.30", "--compact-hash-check-time=1m")


def down_floor_34(bins):
    with Cluster(bins).up("3.5.30") as cluster:
        fails(cluster, cluster.again(cluster.members[0], "3.4.23"), "cluster cannot be downgraded")


def down_cancels_itself(bins):
    with Cluster(bins).up("3.6.14") as cluster:
        member = cluster.members[0]
        enabled = cluster.ctl(member, "3.6.14", "downgrade", "enable", "3.5.0")
        must(enabled.returncode == 0, enabled.stderr)
        storage = lambda: cluster.told(member, "3.6.14", "endpoint", "status")[0]["Status"].get("storageVersion") == "3.5.0"
        until("the storage to be lowered", storage)
        cluster.again(member, "3.5.30")
        cluster.serves("3.5.30")
        until("the job to be over", lambda: "downgrade" in member.log and "cancel" in member.log, 30)


REPRODUCTIONS = {
    name.replace("_", "-"): function
    for name, function in globals().items()
    if callable(function) and getattr(function, "__module__", "") == __name__
}
