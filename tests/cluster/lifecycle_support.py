# tests/cluster/lifecycle_support.py -- what scenarios on real processes share.
#
# Running them by name; following a run line by line; waiting with a deadline;
# looking at what a peer has logged.
import argparse
import contextlib
import json
import os
import signal
import subprocess
import time

from cluster import Cluster, print_log_ends


SCENARIOS = {}

MODEL = """\
[model]
hidden_size = {width}
intermediate_size = 176
num_hidden_layers = {blocks}
num_attention_heads = 4
max_position_embeddings = 64
[training]
seq_len = 64
local_batch_size = 4
global_batch_size = 16
steps = {steps}
seed = 7
[optimizer]
lr = 1e-3
[parallelism]
data_parallel_replicate_degree = {replicas}
pipeline_parallel_degree = {stages}
[validation]
enable = false
[checkpoint]
enable = {enable}
interval = {interval}
"""
DATA = ["/usr/include/c++"]


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Run:
    """A `shoal train --json` and what it has said so far."""

    def __init__(self, cluster, folder, steps=100000, replicas=2, stages=2,
                 interval=0, number=1, width=64, flags=(), own=False,
                 data=DATA, blocks=4):
        self.cluster = cluster
        self.out = folder / "out"
        file = folder / "run.toml"
        file.write_text(MODEL.format(
            steps=steps, replicas=replicas, stages=stages, width=width, blocks=blocks,
            enable="true" if interval else "false", interval=interval or 500),
            encoding="utf-8")
        out = [] if "--detach" in flags else ["--out", str(self.out)]
        arguments = [str(file), "--data", *data, *out, *flags]
        self.events, self.losses = [], {}
        if own:
            self.process, self.lines = cluster.train_alone(arguments)
        else:
            self.process, self.lines = cluster.train(arguments, number)

    def take(self, deadline):
        _, line = self.lines.next(deadline)
        if line is None:
            return None
        event = json.loads(line)
        self.events.append(event)
        if event["event"] == "step":
            self.losses[event["step"]] = event["loss"]
        return event

    def until(self, wanted, seconds=60):
        """The next event for which wanted(event) holds."""
        deadline = time.monotonic() + seconds
        while True:
            event = self.take(deadline)
            if event is None:
                raise AssertionError("the command ended too early")
            if wanted(event):
                return event

    def now(self):
        """Takes in what has come so far."""
        with contextlib.suppress(TimeoutError):
            while self.take(time.monotonic()) is not None:
                pass

    def advance(self, count=3, seconds=60):
        """Waits for `count` steps from now on."""
        self.now()
        for _ in range(count):
            event = self.until(lambda e: e["event"] == "step", seconds)
        return event["step"]

    def finish(self, seconds=60):
        deadline = time.monotonic() + seconds
        while self.take(deadline) is not None:
            pass
        return self.process.wait(timeout=max(1, deadline - time.monotonic()))

    def once_each(self):
        """No step is lost or said twice."""
        steps = [e["step"] for e in self.events if e["event"] == "step"]
        assert steps == list(range(steps[0], steps[0] + len(steps))), steps

    def audit(self):
        return self.cluster.audit(self.out)

    def said(self, text):
        return [e for e in self.events if text in e.get("text", "")]


def ends(peers, seconds):
    """Waits until they have ended; their exit codes."""
    deadline = time.monotonic() + seconds
    for p in peers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            p.process.wait(timeout=max(0.0, deadline - time.monotonic()))
    codes = [p.process.poll() for p in peers]
    assert None not in codes, f"still there after {seconds} s: {codes}"
    return codes


def kill_together(peers):
    for p in peers:
        os.kill(p.pid(), signal.SIGKILL)
    for p in peers:
        p.process.wait()


def log_of(peer):
    path = peer.cluster.root / f"{peer.name}.{peer.starts}.log"
    return path.read_text(encoding="utf-8").splitlines()


def wait_for(what, seconds=30):
    deadline = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError("what was waited for did not come")


def places(cluster, peer):
    """Names of the members of every stage of the only job that runs."""
    replicas = next(j["places"] for j in peer.status()["jobs"]
                    if j["state"] == "running")
    stages = {}
    for replica in replicas:
        for index, stage in enumerate(replica):
            stages.setdefault(index, []).append(stage["peer"])
    return stages


def run_scenarios():
    """Runs those that the command line names, each on a cluster of its own
    with the scenario's `peers` and `flags`; the exit code. `two_histories`:
    two shoals run its job, as a user has forced."""
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("names", nargs="*", help="of scenarios; default: all")
    parser.add_argument("--except", dest="other", choices=list(SCENARIOS),
                        metavar="NAME", help="all but this one")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    bad = []
    for name in options.names or [n for n in SCENARIOS if n != options.other]:
        function = SCENARIOS[name]
        cluster = Cluster(options.shoal, getattr(function, "peers", 4),
                          ["--threads", "1", *getattr(function, "flags", [])],
                          options.keep)
        began = time.monotonic()
        wrong = None
        try:
            function(cluster, cluster.work)
            if not getattr(function, "two_histories", False):
                cluster.one_history()
        except Exception as e:  # whatever it is: what was started must end
            wrong = f"{type(e).__name__}: {e}"
        cluster.keep = cluster.keep or wrong is not None
        left = cluster.close()
        if left and not wrong:
            wrong = f"left behind: {left}"
        print(f"{name}: {wrong or 'ok'} ({time.monotonic() - began:.1f} s)",
              flush=True)
        if wrong:
            bad.append(name)
            print_log_ends(cluster.root)
    return 1 if bad else 0
