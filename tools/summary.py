#!/usr/bin/env python3
# tools/summary.py -- adds up test results: "N passed, N failed, N skipped".
#
# Arguments: Meson's test logs (one JSON object a line), or "=name:passed".
# Boost.Test executables count by test case, everything else as one. Names
# what failed: each failed case with its first error, or an executable's last
# lines. Exit code 1 if anything failed, or if nothing ran.
import json
import re
import sys

# Boost counts aborted cases among the failed ones, too.
CASES = re.compile(r"(\d+) test cases? out of \d+ (passed|failed|skipped)")
# file(line): [fatal] error: in "suite/case": what
ERRORS = re.compile(r"^(\S+\(\d+\)): (?:fatal )?error: in \"([^\"]+)\": (.*)",
                    re.M)
SHOWN = 12  # failures of one executable, and last lines
WIDTH = 160  # characters of one


def details(entry):
    """Returns lines that say what failed in one executable."""
    text = entry.get("stderr", "") + "\n" + entry.get("stdout", "")
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    first = {}
    for where, case, what in ERRORS.findall(text):
        first.setdefault(case, f"{case}: {where.split('/')[-1]}: {what}")
    lines = list(first.values()) or [l for l in text.splitlines() if l.strip()]
    shown = lines[:SHOWN] if first else lines[-SHOWN:]
    return ["  " + line[:WIDTH] for line in shown]


def count(entry):
    """Returns (passed, failed, skipped) of one executable."""
    result = entry["result"]
    if result == "SKIP":
        return 0, 0, 1
    text = entry.get("stderr", "") + entry.get("stdout", "")
    passed = failed = skipped = 0
    for number, what in CASES.findall(text):
        if what == "passed":
            passed += int(number)
        elif what == "failed":
            failed += int(number)
        else:
            skipped += int(number)
    if any(a.startswith("--run_test") for a in entry.get("command", [])):
        skipped = 0  # what this test did not ask for is another's
    if result != "OK":
        return passed, max(failed, 1), skipped
    return (passed, 0, skipped) if passed or skipped else (1, 0, 0)


def main():
    total = [0, 0, 0]
    for argument in sys.argv[1:]:
        if argument.startswith("="):
            name, result = argument[1:].rsplit(":", 1)
            total[0 if result == "passed" else 1] += 1
            if result != "passed":
                print(f"FAILED {name}")
            continue
        with open(argument, encoding="utf-8") as log:
            for line in log:
                entry = json.loads(line)
                counts = count(entry)
                if counts[1]:
                    print(f"FAILED {entry['name']} ({entry['result']})")
                    print("\n".join(details(entry)))
                total = [a + b for a, b in zip(total, counts)]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
