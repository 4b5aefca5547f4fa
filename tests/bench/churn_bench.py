# tests/bench/churn_bench.py -- what unrelated joins, leaves and submissions
# cost a run.
#
# Two peers train on one processor; on another one nodes come and go and jobs
# that have no room are submitted and cancelled, until there were --events of
# these. Windows take turns: quiet, with them, and with the same in another
# shoal beside (what the machine itself makes of busy neighbours). Prints the
# median step times, their ratios, and how often the run's own plan changed
# (never, if its sub-plan's digest is what it follows). With --target R it
# fails over the ratio R of those with them to those with them elsewhere.
#
# Usage: churn_bench.py SHOAL [--events 100] [--window 40] [--target 1.05]
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cluster"))
from cluster import Cluster, train_command  # noqa: E402
from lifecycle_support import MODEL, Run, wait_for  # noqa: E402


class Timed(Run):
    """A run whose steps have times of arrival."""

    times = None

    def take(self, deadline):
        when, line = self.lines.next(deadline)
        if line is None:
            return None
        event = json.loads(line)
        self.events.append(event)
        if event["event"] == "step":
            self.losses[event["step"]] = event["loss"]
            self.times = [*(self.times or []), when]
        return event


def on(processor):
    """Processes started from now on run there."""
    mine = sorted(ALL)
    os.sched_setaffinity(0, {mine[processor % len(mine)]})


ALL = os.sched_getaffinity(0)


class Churn:
    """Joins, submissions and leaves, one after the other."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.count = 0
        self.guest = cluster.peers[2]
        self.file = folder / "unrelated.toml"
        self.file.write_text(MODEL.format(
            steps=5, replicas=1, stages=2, width=400, enable="false",
            interval=500), encoding="utf-8")
        self.out = folder / f"unrelated-{cluster.cluster}"
        self.next = self.join

    def members(self):
        return len(self.cluster.peers[0].status()["peers"])

    def join(self):
        self.guest.start(["--memory", "1M"])
        self.guest.wait_ready(60)
        wait_for(lambda: self.members() == 3, 60)
        self.next = self.submit

    def submit(self):
        client = [self.cluster.shoal, *train_command(
            [str(self.file), "--data", "/etc/services",
             "--data.validation_permille", "0", "--out", str(self.out),
             "--data-dir", str(self.cluster.mine)])]
        log = open(self.cluster.root / "unrelated.log", "a", encoding="utf-8")
        process = self.cluster.spawn(client, 1, stdout=log, stderr=log)
        wait_for(lambda: any(j["name"] == "unrelated"
                             and j["state"] == "running"
                             for j in self.cluster.peers[0].status()["jobs"]),
                 60)
        self.cluster.run(["cancel", "unrelated", "--now", "--data-dir",
                          str(self.cluster.mine)], 1)
        process.wait(60)
        self.next = self.leave

    def leave(self):
        assert self.guest.stop(60) == 0
        wait_for(lambda: self.members() == 2, 60)
        self.next = self.join

    def one(self):
        self.next()
        self.count += 1


def start_two(cluster):
    for peer in cluster.peers[:2]:
        peer.start(["--memory", "64M"])
    for peer in cluster.peers[:2]:
        peer.wait_ready()
    cluster.wait_view(2)


def gaps(times, first, last):
    inside = times[first:last]
    return [b - a for a, b in zip(inside, inside[1:])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--window", type=int, default=40, help="steps, at least")
    parser.add_argument("--target", type=float, default=0)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    cluster = Cluster(options.shoal, 3, ["--threads", "1"], options.keep)
    beside = Cluster(options.shoal, 3, ["--threads", "1"], options.keep)
    try:
        on(0)
        start_two(cluster)
        run = Timed(cluster, cluster.work, replicas=1, stages=2, width=320)
        run.advance(10)
        on(1)
        start_two(beside)
        plans = len([e for e in run.events if e["event"] == "view"])
        churns = {"with them": Churn(cluster, cluster.work),
                  "with them elsewhere": Churn(beside, beside.work)}
        found = {"quiet": [], **{name: [] for name in churns}}
        began = time.monotonic()
        while any(c.count < options.events for c in churns.values()):
            first = len(run.times)
            run.advance(options.window, 300)
            found["quiet"] += gaps(run.times, first, len(run.times))
            for name, churn in churns.items():
                first = len(run.times)
                while (len(run.times) < first + options.window
                       and churn.count < options.events):
                    churn.one()
                    run.now()
                found[name] += gaps(run.times, first, len(run.times))
        changed = len([e for e in run.events if e["event"] == "view"]) - plans
        run.once_each()
        step = {name: statistics.median(t) for name, t in found.items()}
        said = ", ".join(f"{name} {1e3 * t:.1f} ms ({len(found[name])})"
                         for name, t in step.items())
        ratio = step["with them"] / step["with them elsewhere"]
        print(f"{options.events} joins, submissions and leaves, "
              f"{time.monotonic() - began:.0f} s: a step takes {said}; with "
              f"them {step['with them'] / step['quiet']:.3f}x quiet, "
              f"{ratio:.3f}x elsewhere; the run's plan changed {changed} times")
        ok = not options.target or ratio <= options.target
        return 0 if ok and changed == 0 else 1
    finally:
        os.sched_setaffinity(0, ALL)
        cluster.close()
        beside.close()


if __name__ == "__main__":
    sys.exit(main())
