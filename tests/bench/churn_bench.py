# tests/bench/churn_bench.py -- what unrelated joins, leaves and submissions
# cost a run.
#
# Two peers train on one processor; on another one nodes come and go and jobs
# that have no room are submitted and cancelled, until there were --events of
# these. Windows with and without them alternate, so that what else the
# machine does falls on both. Prints the median step times, their ratio, and
# how often the run's own plan changed (never, if its sub-plan's digest is
# what it follows). With --bar R it fails over the ratio R.
#
# Usage: churn_bench.py SHOAL [--events 100] [--window 40] [--bar 1.05]
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cluster"))
from cluster import Cluster  # noqa: E402
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
        self.out = folder / "unrelated"
        self.next = self.join

    def members(self):
        return len(self.cluster.peers[0].status()["peers"])

    def join(self):
        self.guest.start(["--memory", "1M"])
        self.guest.wait_ready(60)
        wait_for(lambda: self.members() == 3, 60)
        self.next = self.submit

    def submit(self):
        client = [self.cluster.shoal, "train", str(self.file), "--data",
                  "/etc/services", "--data.validation_permille", "0",
                  "--out", str(self.out), "--data-dir",
                  str(self.cluster.mine), "--json"]
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


def gaps(times, first, last):
    inside = times[first:last]
    return [b - a for a, b in zip(inside, inside[1:])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--window", type=int, default=40, help="steps, at least")
    parser.add_argument("--bar", type=float, default=0)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-churn-"))
    cluster = Cluster(options.shoal, 3, ["--threads", "1"], options.keep)
    try:
        on(0)
        for peer in cluster.peers[:2]:
            peer.start(["--memory", "64M"])
        for peer in cluster.peers[:2]:
            peer.wait_ready()
        cluster.wait_view(2)
        run = Timed(cluster, folder, replicas=1, stages=2, width=320)
        run.advance(10)
        on(1)
        plans = len([e for e in run.events if e["event"] == "view"])
        churn = Churn(cluster, folder)
        quiet, busy = [], []
        began = time.monotonic()
        while churn.count < options.events:
            first = len(run.times)
            run.advance(options.window, 300)
            quiet += gaps(run.times, first, len(run.times))
            first = len(run.times)
            while (len(run.times) < first + options.window
                   and churn.count < options.events):
                churn.one()
                run.now()
            busy += gaps(run.times, first, len(run.times))
        changed = len([e for e in run.events if e["event"] == "view"]) - plans
        run.once_each()
        calm, churned = statistics.median(quiet), statistics.median(busy)
        print(f"{churn.count} joins, submissions and leaves in "
              f"{time.monotonic() - began:.0f} s; step {1e3 * calm:.2f} ms "
              f"without ({len(quiet)}), {1e3 * churned:.2f} ms with them "
              f"({len(busy)}): ratio of medians {churned / calm:.3f}, of means "
              f"{statistics.mean(busy) / statistics.mean(quiet):.3f}; the "
              f"run's plan changed {changed} times")
        ok = not options.bar or churned <= options.bar * calm
        return 0 if ok and changed == 0 else 1
    finally:
        os.sched_setaffinity(0, ALL)
        cluster.close()


if __name__ == "__main__":
    sys.exit(main())
