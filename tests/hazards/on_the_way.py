"""What stops an upgrade, or the one after it: an id of the catalogue each."""

import shutil
import subprocess

from members import Cluster, fails, get, must, until


def refuses(bins, release, flag, words="flag provided but not defined"):
    """The program ends at once for this flag."""
    ended = subprocess.run(
        [bins[release] / "etcd", flag, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    must(ended.returncode == 2 and words in ended.stdout + ended.stderr, f"{release} takes {flag}")


def skip_minor_37(bins):
    with Cluster(bins).up("3.5.30") as cluster:
        fails(cluster, cluster.again(cluster.members[0], "3.7.1"), "unmarshal should never fail")


def hop_too_fast_37(bins):
    """As a loop does it that waits for the cluster version alone."""
    with Cluster(bins).up("3.5.30") as cluster:
        for at in range(10):
            must(cluster.ctl(cluster.members[0], "3.5.30", "put", f"k{at}", "x").returncode == 0, "a put")
        cluster.again(cluster.members[0], "3.6.14")
        cluster.serves("3.6.14")
        version = lambda: '"etcdcluster":"3.6.0"' in get(cluster.members[0].client + "/version")[1]
        until("cluster version 3.6", version)
        fails(cluster, cluster.again(cluster.members[0], "3.7.1"), "unmarshal should never fail")


def zombie_members(bins):
    """A snapshot of two members, restored as one by etcdctl 3.4."""
    with Cluster(bins, 2).up("3.4.23") as cluster:
        one, other = cluster.members
        saved = cluster.folder / "saved"
        must(cluster.ctl(one, "3.4.23", "snapshot", "save", str(saved)).returncode == 0, "a snapshot")
        for member in cluster.members:
            cluster.stop(member)
        shutil.rmtree(one.data)
        restored = cluster.ctl(
            one, "3.4.23", "snapshot", "restore", str(saved), f"--data-dir={one.data}", f"--name={one.name}",
            f"--initial-cluster={cluster.initial([one])}", f"--initial-advertise-peer-urls={one.peer}",
        )
        must(restored.returncode == 0, restored.stderr)
        cluster.start(one, "3.5.1", initial=cluster.initial([one]))
        cluster.serves("3.5.30")
        must(other.name not in cluster.ids(one, "3.5.30"), "3.5 lists it")
        cluster.again(one, "3.6.14")
        until("3.6 to count it", lambda: "added member" in one.log and other.peer in one.log)


def learner_returns(bins):
    """Two learners that 3.5.1 has promoted."""
    with Cluster(bins, 3).up("3.5.1") as cluster:
        for _ in range(2):
            cluster.promoted("3.5.30", cluster.added("3.5.1", learner=True))
        fails(cluster, cluster.again(cluster.members[0], "3.6.14"), "too many learner members in cluster")


def v2_content_snap(bins):
    with Cluster(bins).up("3.5.30", "--enable-v2", "--snapshot-count=5") as cluster:
        member = cluster.members[0]
        get(f"{member.client}/v2/keys/old?value=x", "PUT")
        for number in range(20):
            cluster.ctl(member, "3.5.30", "put", f"key-{number}", "x")
        fails(cluster, cluster.again(member, "3.6.14"), "detected disallowed custom content in v2store")


def v2_content_wal(bins):
    """A write, or a probe: 3.5 answers it by a read of v2."""
    for path, method in (("/v2/keys/old?value=x", "PUT"), ("/health", "GET")):
        with Cluster(bins).up("3.5.30", "--enable-v2") as cluster:
            member = cluster.members[0]
            get(member.client + path, method)
            fails(cluster, cluster.again(member, "3.6.14"), "detected disallowed v2 WAL")


def v2_still_on(bins):
    """A 3.5 that takes a write of the v2 API, and a 3.6 beside it."""
    with Cluster(bins, 3).up("3.5.30", "--enable-v2") as cluster:
        newer, older = cluster.members[0], cluster.members[1]
        cluster.again(newer, "3.6.14")
        cluster.serves("3.6.14", newer)
        get(f"{older.client}/v2/keys/old?value=x", "PUT")
        fails(cluster, newer, "detected disallowed v2 WAL")


def auth_34_35(bins):
    """A user that is made while both run."""
    with Cluster(bins, 3).up("3.4.23") as cluster:
        newer, older = cluster.members[0], cluster.members[1]
        for arguments in (["user", "add", "root:pw"], ["user", "grant-role", "root", "root"], ["auth", "enable"]):
            cluster.ctl(older, "3.4.23", *arguments)
        cluster.again(newer, "3.5.30")
        root = "root:pw"
        until("it to serve", lambda: cluster.ctl(newer, "3.5.30", "get", "x", user=root).returncode == 0)
        made = cluster.ctl(newer, "3.5.30", "user", "add", "late:pw", user=root)
        must(made.returncode == 0, made.stderr)
        logs_in = lambda member: cluster.ctl(member, "3.4.23", "user", "get", "late", user="late:pw").returncode == 0
        until("the new user on 3.5", lambda: logs_in(newer))
        must(not logs_in(older), "the new user is known on 3.4, too")


def flags_gone_35(bins):
    refuses(bins, "3.5.30", "--log-output=default")
    refuses(bins, "3.5.30", "--debug")


def flags_gone_36(bins):
    refuses(bins, "3.6.14", "--enable-v2")
    refuses(bins, "3.6.14", "--proxy=off")


def flags_gone_37(bins):
    refuses(bins, "3.7.1", "--experimental-initial-corrupt-check")


def setting_lost(bins):
    with Cluster(bins).up("3.6.14", env={"ETCD_ENABLE_V2": "true"}) as cluster:
        must("unrecognized environment variable" in cluster.members[0].log, "it is not even logged")


def defaults_move_35(bins):
    with Cluster(bins).up("3.4.23") as cluster:
        member = cluster.members[0]
        must(not member.log.lstrip().startswith("{"), "3.4 logs JSON")
        cluster.again(member, "3.5.30")
        cluster.serves("3.5.30")
        must(member.log.lstrip().startswith("{") and '"pre-vote":true' in member.log, "3.5 does not")


def defaults_move_36(bins):
    with Cluster(bins).up("3.5.30") as cluster:
        member = cluster.members[0]
        must('"snapshot-count":100000' in member.log, "3.5 takes another number")
        cluster.again(member, "3.6.14")
        cluster.serves("3.6.14")
        must('"snapshot-count":10000' in member.log, "3.6 does, too")


def peer_url_clients(bins):
    with Cluster(bins).up("3.5.30") as cluster:
        member = cluster.members[0]

        def is_answered(release):
            argv = [bins[release] / "etcdctl", f"--endpoints={member.peer}", "--command-timeout=5s", "get", "served"]
            return subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode == 0

        must(is_answered("3.5.30"), "3.5 does not answer at its peer port")
        cluster.again(member, "3.6.14")
        cluster.serves("3.6.14")
        must(not is_answered("3.6.14"), "3.6 does")


def tools_moved_36(bins):
    for release, has in (("3.5.30", True), ("3.6.14", False)):
        said = subprocess.run([bins[release] / "etcdctl", "snapshot", "--help"], capture_output=True, text=True, check=False)
        must(("restore" in said.stdout + said.stderr) == has, f"etcdctl {release}")


def metrics_renamed_35(bins):
    with Cluster(bins).up("3.4.23") as cluster:
        member, old = cluster.members[0], "\netcd_debugging_mvcc_txn_total "
        must(old in get(member.client + "/metrics")[1], "3.4 has it not")
        cluster.again(member, "3.5.30")
        cluster.serves("3.5.30")
        page = get(member.client + "/metrics")[1]
        must(old not in page and "\netcd_mvcc_txn_total " in page, "3.5 has it still")


def memberlist_quorum(bins):
    for release, answers in (("3.4.23", True), ("3.5.30", False)):
        with Cluster(bins, 2).up(release) as cluster:
            cluster.stop(cluster.members[1])
            listed = cluster.ctl(cluster.members[0], release, "member", "list").returncode == 0
            must(listed == answers, f"{release} answers: {listed}")


REPRODUCTIONS = {
    name.replace("_", "-"): function
    for name, function in globals().items()
    if callable(function) and getattr(function, "__module__", "") == __name__ and name != "refuses"
}
