"""Makes hazards real: see scripts/hazards --help."""

import argparse
import json
import pathlib
import subprocess
import sys
import time

import on_the_way
import others
from members import NotSeen

REPRODUCTIONS = {**on_the_way.REPRODUCTIONS, **others.REPRODUCTIONS}
RELEASES = ["3.4.23", "3.5.1", "3.5.30", "3.6.14", "3.7.1"]


def main():
    asked = argparse.ArgumentParser(
        prog="scripts/hazards",
        description="Brings hazards of the catalogue about on real etcd, and says of each entry whether it was seen just now, only its "
        "text is tested (saved), or it was tried and not seen. Exit 1 where one that is tried is not seen.",
    )
    asked.add_argument("ids", nargs="*", metavar="ID", help="only these; without them all that can be had")
    asked.add_argument("--agent", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    asked.add_argument("--fetch", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    asked = asked.parse_args()
    wrong = [one for one in asked.ids if one not in REPRODUCTIONS]
    if wrong:
        sys.exit(f"error: nothing makes {', '.join(wrong)} real; there are {', '.join(sorted(REPRODUCTIONS))}")
    found = subprocess.run([asked.fetch, *RELEASES], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    bins = dict(zip(RELEASES, map(pathlib.Path, found), strict=True))
    shown = subprocess.run([asked.agent, "hazards", "--output", "json"], stdout=subprocess.PIPE, text=True, check=True)
    catalogue = [one["id"] for one in json.loads(shown.stdout)["hazards"]]
    unknown = sorted(set(REPRODUCTIONS) - set(catalogue))
    if unknown:
        sys.exit(f"error: the catalogue has no {', '.join(unknown)}")
    seen, missed = [], []
    for one in asked.ids or catalogue:
        if one not in REPRODUCTIONS:
            print(f"saved     {one}")
            continue
        began = time.monotonic()
        try:
            REPRODUCTIONS[one](bins)
            seen.append(one)
            print(f"seen      {one}  ({time.monotonic() - began:.1f} s)", flush=True)
        except NotSeen as why:
            missed.append(one)
            print(f"not seen  {one}: {why}", flush=True)
    print(f"{len(seen)} seen, {len(missed)} not, of {len(catalogue)} in the catalogue")
    sys.exit(1 if missed else 0)


main()
