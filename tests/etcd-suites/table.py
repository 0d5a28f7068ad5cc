#!/usr/bin/env python3
"""The table of what run.py has written: table.py FOLDER [SUITE...]. Exit code 1 when a test that applies has failed."""

import json
import sys
from collections import Counter
from pathlib import Path


def main():
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    rows = {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.glob("*.jsonl"))}
    rows = {suite: tests for suite, tests in rows.items() if not wanted or suite in wanted}
    print("| suite | passed | failed | skipped by the suite | not applicable | because of |")
    print("|---|---|---|---|---|---|")
    for suite, tests in rows.items():
        count = Counter(test["verdict"] for test in tests)
        why = Counter(test["reason"] for test in tests if test["verdict"] == "not applicable")
        reasons = "; ".join(f"{reason} ({n})" for reason, n in why.most_common())
        print(f"| {suite} | {count['passed']} | {count['failed']} | {count['skipped']} | {count['not applicable']} | {reasons} |")
    tests = [test for some in rows.values() for test in some]
    for title, chosen in {
        "failed": [test for test in tests if test["verdict"] == "failed"],
        "passed only when run once more, alone": [test for test in tests if test["verdict"] == "passed" and test.get("failed_first")],
        "not applicable by the list, and passes": [test for test in tests if test.get("was") == "passed"],
    }.items():
        if chosen:
            print(f"\n{title}:")
            print("".join(f"  {test['suite']} {test['test']}\n" for test in chosen), end="")
    sys.exit(any(test["verdict"] == "failed" for test in tests))


if __name__ == "__main__":
    main()
