# tests/cluster/targets.py -- what scripts that measure against targets share.
#
# A script prints one line for each figure: what, measured, target, ok or short.
# Without --targets it is a short run that judges outcomes (no step lost,
# nothing left behind), and times only ten times as generously, since a loaded
# machine is slow. With --targets it runs in full and each figure counts; what
# is done is kept in a file (--state), so that a run that was cut goes on: it
# ends by itself after LIMIT_S and says how. --results takes the figures as one
# line of JSON; with both, what it has of the same program is not measured
# again. `python3 targets.py FILE` prints the newest row of each script as a
# Markdown table. Exit codes: 0; 1: a target was missed; 75: not finished, the
# same command goes on; 77: cannot be run here, and why.
import argparse
import contextlib
import datetime
import hashlib
import json
import math
import os
import pathlib
import shlex
import signal
import sys

SLACK = 10  # of times, without --targets
#: Each script under 40 minutes, with what it takes to end its processes.
LIMIT_S = 38 * 60
UNFINISHED = 75  # exit code


class OutOfTime(SystemExit):
    """The limit is reached: everything is ended in order, what is done stays
    in the state."""


def limit(state):
    """From now on there is one."""

    def over(*_):
        print(f"not finished after {LIMIT_S // 60} minutes; what is done is in "
              f"{state}, the same command goes on from there:\n"
              f"  {shlex.join([sys.executable, *sys.argv])}", flush=True)
        raise OutOfTime(UNFINISHED)

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)


@contextlib.contextmanager
def without_limit():
    """What must not end in the middle; the limit waits."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


def machine():
    """Such as "2 cores, 24 GiB, Debian 12"."""
    name = "Linux"
    for line in pathlib.Path("/etc/os-release").read_text(
            encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            name = value.strip('"').replace("GNU/Linux ", "").split(" (")[0]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{os.cpu_count()} cores, {math.ceil(pages / 2**30)} GiB, {name}"


RUN = """[model]
hidden_size = {width}
intermediate_size = {mlp}
num_hidden_layers = {blocks}
num_attention_heads = {heads}
max_position_embeddings = {positions}
[training]
steps = 100000
seq_len = {seq}
local_batch_size = 1
global_batch_size = {batch}
seed = 7
[optimizer]
lr = {rate}
[parallelism]
data_parallel_replicate_degree = {replicas}
pipeline_parallel_degree = {stages}
[validation]
{validation}
[checkpoint]
{checkpoint}
"""


def run_text(shape, replicas, stages, validation="enable = false",
             checkpoint="enable = false", rate=1e-3):
    """A run file without an end; `shape`: width, mlp, blocks, ... of RUN."""
    return RUN.format(**{"positions": max(64, shape["seq"]), **shape,
                         "replicas": replicas, "stages": stages,
                         "validation": validation, "checkpoint": checkpoint,
                         "rate": rate})


def percentile(values, share):
    """The smallest of them that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def options_of(script, more=None):
    """The command line that all scripts have; `more(parser)` adds to it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--targets", action="store_true",
                        help="in full, and each figure counts")
    parser.add_argument("--state", type=pathlib.Path,
                        help="file with what is done; a cut run goes on")
    parser.add_argument("--results", type=pathlib.Path,
                        help="file that takes a line of JSON")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    parser.add_argument("--keep", action="store_true")
    if more:
        more(parser)
    options = parser.parse_args()
    options.script = script
    for path in filter(None, (options.state, options.results)):
        path.parent.mkdir(parents=True, exist_ok=True)
    State.of = measured(options)
    if options.targets and options.state:
        known(options)
        limit(options.state)
    return options


def known(options):
    """Ends with the row that the results have of just this, if they do."""
    for row in rows(options.results):
        if row.get("of") == State.of and row["script"] == options.script:
            print(f"measured before: {json.dumps(row)}\n"
                  f"To measure again, remove {options.results}", flush=True)
            sys.exit(1 if row["missed"] else 0)


def measured(options):
    """What a state is of: the program, and how it is measured."""
    how = {k: v for k, v in vars(options).items()
           if k not in ("state", "results", "keep", "shoal")}
    out = hashlib.sha256(pathlib.Path(options.shoal).read_bytes())
    out.update(repr(sorted(how.items())).encode())
    return out.hexdigest()


class State:
    """What a long run has done so far, by name; kept in a file if asked.
    That of another program, or other options, is not gone on with."""

    of = None

    def __init__(self, path):
        self.path = path
        self.done = {}
        if path and path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept.get("of") == self.of:
                self.done = kept["done"]
                print(f"goes on: {len(self.done)} parts are done", flush=True)
            else:
                print(f"{path} is of another program or other options: from "
                      "the start", flush=True)

    def keep(self, name, what):
        self.done[name] = what
        if self.path:
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps({"of": self.of, "done": self.done}),
                           encoding="utf-8")
            new.replace(self.path)

    def forget(self):
        if self.path:
            self.path.unlink(missing_ok=True)


class Targets:
    def __init__(self, options):
        self.options = options
        self.rows, self.missed = [], []
        self.loads = [os.getloadavg()[0]]

    def at_most(self, what, measured, target, unit="s", exact=False,
                judged=True):
        """`exact`: a count, say, for which no slack is given. `judged`: also
        without --targets."""
        limit = target if exact or self.options.targets else target * SLACK
        self._row(what, measured, target, unit, measured <= target,
                  measured <= limit or not (judged or self.options.targets))

    def at_least(self, what, measured, target, unit="", judged=True):
        """`judged`: also without --targets."""
        self._row(what, measured, target, unit, measured >= target,
                  measured >= target or not (judged or self.options.targets))

    def show(self, what, measured, unit=""):
        """A figure without a target."""
        self._row(what, measured, None, unit, True, True)

    def _row(self, what, measured, target, unit, met, passes):
        self.rows.append({"what": what, "measured": measured, "target": target,
                          "unit": unit, "ok": met})
        word = "ok" if met else "short"
        if met != passes:
            word += ", not judged in a short run"
        print(f"{what}: {text_of(measured, unit)}"
              + (f" (target {text_of(target, unit)}): {word}"
                 if target is not None else ""), flush=True)
        if not passes:
            self.missed.append(what)

    def finish(self, variant=""):
        """Appends the row to the results; the exit code."""
        self.loads.append(os.getloadavg()[0])
        row = {"script": self.options.script, "variant": variant,
               "targets": self.options.targets,
               "date": datetime.datetime.now(datetime.timezone.utc)
               .strftime("%Y-%m-%d"),
               "machine": machine(), "load": max(self.loads),
               "of": State.of, "missed": self.missed, "figures": self.rows}
        if self.options.results:
            with open(self.options.results, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
        if self.missed:
            print("short of: " + "; ".join(self.missed), flush=True)
        return 1 if self.missed else 0


def text_of(value, unit):
    if unit == "%":
        return f"{value * 100:.1f} %"
    if isinstance(value, float):
        number = f"{value:.1e}" if 0 < abs(value) < 0.01 else f"{value:.2f}"
    else:
        number = f"{value}"
    return f"{number} {unit}".strip()


def rows(path):
    if not path or not path.exists():
        return []
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


def table(path):
    """The newest full row of each script and variant, as Markdown."""
    newest = {}
    for row in rows(path):
        if row["targets"]:
            newest[row["script"], row["variant"]] = row
    out = ["| script | figure: measured (target) | date, machine, load |",
           "|---|---|---|"]
    for (script, variant), row in sorted(newest.items()):
        figures = "; ".join(
            f"{f['what']} {text_of(f['measured'], f['unit'])}"
            + (f" ({text_of(f['target'], f['unit'])})"
               + ("" if f["ok"] else " **short**")
               if f["target"] is not None else "")
            for f in row["figures"])
        out.append(f"| `{script}`{' ' + variant if variant else ''} "
                   f"| {figures} | {row['date']}, {row['machine']}, "
                   f"{row['load']:.0f} |")
    return "\n".join(out)


if __name__ == "__main__":
    print(table(pathlib.Path(sys.argv[1])))
