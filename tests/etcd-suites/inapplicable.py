"""The list of tests that are about what the node does not have, with the reason of each (inapplicable.txt)."""

import re
from fnmatch import fnmatch


class Inapplicable:
    """A line is `SUITES REGEX REASON`; the regex is of a whole name, of a test or a subtest."""

    def __init__(self, path, suite):
        self.rules = []
        for line in path.read_text().splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            suites, regex, reason = line.split(None, 2)
            if any(fnmatch(suite, pattern) for pattern in suites.split(",")):
                self.rules.append((re.compile(regex), reason.strip()))

    def reason(self, name):
        """Why this does not apply, or None. What is said of a test holds for all below it."""
        parts = name.split("/")
        for above in ("/".join(parts[:n]) for n in range(1, len(parts) + 1)):
            for regex, reason in self.rules:
                if regex.fullmatch(above):
                    return reason
        return None
