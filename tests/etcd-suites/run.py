#!/usr/bin/env python3
"""Runs the tests of one compiled Go test binary, each as a process of its own that nothing of another reaches.

A test has its own network, processes and temporary folder (namespaces of Linux), and a folder to run in that looks like that of its
package. One that fails runs once more, alone, as others work on this machine, too; its result says so. Writes one JSON object a
line to OUT/SUITE.jsonl, one for each test or, where it has subtests, each of those that have none themselves. OUT/SUITE/TEST.log
has what the test said.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from inapplicable import Inapplicable

# With -test.v=test2json each line of the framework's own starts with this byte, so that no log passes for one.
RESULT = re.compile(r"\x16\s*--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)")
STARTED = re.compile(r"\x16=== RUN\s+(\S+)")
VERDICTS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
# A test ends itself at its limit, and says where it was; this long later it is ended.
GRACE_S = 30
# A few of etcd's tests bind ports or count connections, so even loopback is a test's own.
ISOLATED = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def options():
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--suite", required=True, help="the name that results and the list of what is not applicable have")
    cli.add_argument("--binary", required=True, type=Path, help="what go test -c made")
    cli.add_argument("--module", required=True, type=Path, help="the folder of the Go module")
    cli.add_argument("--package", required=True, type=Path, help="the package's folder, from there")
    cli.add_argument("--out", required=True, type=Path, help="where results and logs go")
    cli.add_argument("--only", default="", metavar="REGEX", help="tests whose name has this in it")
    cli.add_argument("--of", default="", metavar="REGEX", help="what else it must have: a part of the binary's tests as a suite of its own")
    cli.add_argument("--but", default="^$", metavar="REGEX", help="and not this")
    cli.add_argument("--tests", nargs="*", help="these, by name or SUITE/SUBTEST, instead of all that the binary lists")
    cli.add_argument("--at-once", type=int, default=2, metavar="N")
    cli.add_argument("--again", default="", metavar="REGEX", help="only where its output has this, as it does another thing each time")
    cli.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="for one test")
    cli.add_argument("--inapplicable", type=Path, default=Path(__file__).with_name("inapplicable.txt"))
    cli.add_argument("--all", action="store_true", help="what is not applicable runs as well; it is not judged")
    cli.add_argument("flags", nargs="*", help="the binary's own, after --")
    return cli.parse_args()


def stage(module, package, home):
    """A folder that looks like the package's to a test, with all above it, so that what a test writes beside itself is its own."""
    above, below = module, home
    for part in package.parts:
        below.mkdir(parents=True)
        for entry in above.iterdir():
            if entry.name != part and entry.suffix != ".go":
                (below / entry.name).symlink_to(entry)
        above, below = above / part, below / part
    below.mkdir(parents=True)
    for entry in above.iterdir():
        if entry.suffix != ".go":
            (below / entry.name).symlink_to(entry)
    return below


def log_of(o, test):
    return o.out / o.suite / (re.sub(r"[^\w.-]+", "_", test) + ".log")


def perform(o, test):
    """Runs one test; its leaves, each with a verdict and seconds."""
    log = log_of(o, test)
    home = o.out / f"{o.suite}.run" / log.stem
    shutil.rmtree(home, ignore_errors=True)
    (home / "t").mkdir(parents=True)
    pattern = "/".join(f"^{re.escape(part)}$" for part in test.split("/"))
    argv = [*ISOLATED, o.binary, "-test.v=test2json", f"-test.run={pattern}", f"-test.timeout={o.limit}s", *o.flags]
    began = time.monotonic()
    with open(log, "wb") as file:
        child = subprocess.Popen(argv, cwd=stage(o.module, o.package, home / "module"), stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                                 env=dict(os.environ, TMPDIR=str(home / "t")), start_new_session=True)
        try:
            code = child.wait(o.limit + GRACE_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
    seconds = round(time.monotonic() - began, 1)
    shutil.rmtree(home, ignore_errors=True)
    return leaves(test, log.read_text(errors="replace"), code, seconds)


def leaves(test, said, code, seconds):
    """What a test's output says of each test that has none below it."""
    found = {name: [VERDICTS[verdict], float(s)] for verdict, name, s in RESULT.findall(said)}
    for name in STARTED.findall(said):
        # A panic or the limit took its result.
        found.setdefault(name, ["failed" if code else "passed", seconds])
    if code and all(verdict != "failed" for verdict, _ in found.values()):
        # The process failed after its tests: a goroutine left behind, or no such test.
        found = {test: ["failed", seconds]}
    parents = {name.rsplit("/", n)[0] for name in found for n in range(1, name.count("/") + 1)}
    failed_below = {p for p in parents for name, (verdict, _) in found.items() if name.startswith(p + "/") and verdict == "failed"}
    return {name: result for name, result in found.items()
            if name not in parents or (result[0] == "failed" and name not in failed_below)}


def main():
    o = options()
    for path in ("binary", "module", "out"):
        setattr(o, path, getattr(o, path).absolute())
    shutil.rmtree(o.out / o.suite, ignore_errors=True) if not o.only else None
    (o.out / o.suite).mkdir(parents=True, exist_ok=True)
    foreign = Inapplicable(o.inapplicable, o.suite)
    tests = o.tests
    if tests is None:
        listed = subprocess.run([o.binary, "-test.list", "^Test"], cwd=o.module / o.package, capture_output=True, text=True, check=True)
        tests = [line for line in listed.stdout.split() if line.startswith("Test")]
    tests = [test for test in tests if re.search(o.only, test) and re.search(o.of, test) and not re.search(o.but, test)]
    results, lock = [], threading.Lock()

    def note(test, name, verdict, seconds, **more):
        row = {"suite": o.suite, "test": name, "of": test, "verdict": verdict, "seconds": seconds, **more}
        if reason := foreign.reason(name):
            row.update(verdict="not applicable", reason=reason, was=verdict)
        with lock:
            results.append(row)
            print(f"{o.suite}: {row['verdict']:14} {seconds:6.1f} s  {name}", flush=True)

    def first(test):
        if foreign.reason(test) and not o.all:
            note(test, test, "not run", 0.0)
            return None
        found = perform(o, test)
        failed = {name for name, (verdict, _) in found.items() if verdict == "failed" and not foreign.reason(name)}
        if failed and re.search(o.again, log_of(o, test).read_text(errors="replace")):
            print(f"{o.suite}: failed, runs once more when the others are done: {test}", flush=True)
            return test, failed
        for name, (verdict, seconds) in found.items():
            note(test, name, verdict, seconds)
        return None

    with concurrent.futures.ThreadPoolExecutor(o.at_once) as pool:
        again = [some for some in pool.map(first, tests) if some]
    for test, failed in again:
        log = log_of(o, test)
        log.replace(log.with_suffix(".first.log"))
        for name, (verdict, seconds) in perform(o, test).items():
            note(test, name, verdict, seconds, **({"failed_first": True} if name in failed or test in failed else {}))
    shutil.rmtree(o.out / f"{o.suite}.run", ignore_errors=True)

    path = o.out / f"{o.suite}.jsonl"
    if o.only and path.exists():
        # The rest is as it was.
        ran = {row["of"] for row in results}
        results += [row for row in map(json.loads, path.read_text().splitlines()) if row["of"] not in ran]
    path.write_text("".join(json.dumps(row) + "\n" for row in sorted(results, key=lambda row: row["test"])))
    sys.exit(any(row["verdict"] == "failed" for row in results))


if __name__ == "__main__":
    main()
