# tests/cluster/clean_test.py -- nobody is expelled because the machine is busy.
#
# A run of a tiny model while processes of no concern to it spin on every
# processor: nothing dies, stops or loses a link, so the members of the view
# must stay who they are, and every step comes once. What has been seen is kept
# every STRETCH steps; a run that was cut goes on with as many as are missing.
import json
import os
import pathlib
import statistics
import subprocess
import sys

from cluster import Cluster
from quotas import share_of
from targets import State, Targets, options_of
from watch import train

PEERS = 4
PROCESSORS = 0.42  # of each, with --targets
STEPS = 10_000
STEPS_SHORT = 200
STRETCH = 500
DEADLINE_S = 120
RUN = """[model]
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 2
num_attention_heads = 2
max_position_embeddings = 32
[training]
steps = {steps}
seq_len = 16
local_batch_size = 1
global_batch_size = 4
seed = 7
[parallelism]
data_parallel_replicate_degree = 2
pipeline_parallel_degree = 2
[validation]
enable = false
[checkpoint]
enable = false
"""


class Spinning:
    """A process that never waits on each processor, while this lasts."""

    def __enter__(self):
        self.all = [subprocess.Popen(
            [sys.executable, "-c",
             f"import os; os.sched_setaffinity(0, {{{cpu}}})\n"
             "while os.getppid() != 1: [None for _ in range(10 ** 6)]"])
            for cpu in sorted(os.sched_getaffinity(0))]
        return self

    def ticks(self):
        """Processor time that they had so far."""
        total = 0
        for process in self.all:
            fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(
                encoding="ascii").split(")")[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_):
        for process in self.all:
            process.kill()
            process.wait()


def said(peer):
    """All events of a node so far."""
    events = []
    for _, line in peer.lines.come():
        assert line is not None, f"{peer.name} ended"
        events.append(json.loads(line))
    return events


def members(event):
    return sorted(event["names"]) if event["member"] else None


def identities(view):
    return [(p["id"], p["incarnation"]) for p in view["peers"]]


def wrong(cluster):
    """Of what the nodes have said: what nobody should have seen."""
    names = sorted(p.name for p in cluster.peers)
    return [e["text"] for peer in cluster.peers for e in said(peer)
            if (e["event"] == "view" and members(e) != names)
            or e["event"] == "waiting" or "expelled" in e["text"]]


def run(options, steps, state):
    """So many steps; keeps what was seen of each stretch of them."""
    with Cluster(options.shoal, PEERS, ["--threads", "1"], options.keep,
                 processors=share_of(options, PROCESSORS)) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        run_file.write_text(RUN.format(steps=steps), encoding="utf-8")
        cluster.start_all()
        together = identities(cluster.wait_view(PEERS))
        for peer in cluster.peers:
            said(peer)  # how they found each other
        with Spinning() as spinning:
            watch = train(cluster, run_file, folder / "out", options.data)
            while len(watch.losses) < steps:
                first, ticks = len(watch.times), spinning.ticks()
                for _ in range(min(STRETCH, steps - first)):
                    assert watch.step(DEADLINE_S) is not None, \
                        "ended too early"
                if len(watch.losses) == steps:
                    watch.finish(DEADLINE_S)
                times = watch.times[max(0, first - 1):]
                found = wrong(cluster)
                for line in found[:5]:
                    print(f"  {line}", flush=True)
                state.keep(str(len(state.done)), {
                    "steps": len(watch.times) - first, "wrong": len(found),
                    "changed": identities(cluster.wait_view(PEERS))
                    != together,
                    "ticks": spinning.ticks() - ticks,
                    "seconds": times[-1] - times[0],
                    "T": watch.step_time(max(0, first - 1)),
                    "longest": max(b - a for a, b in zip(times, times[1:]))})


def main():
    options = options_of("clean_test.py")
    targets, state = Targets(options), State(options.state)
    steps = STEPS if options.targets else STEPS_SHORT
    missing = steps - sum(d["steps"] for d in state.done.values())
    if missing > 0:
        run(options, missing, state)
    done = list(state.done.values())
    targets.show("steps, each once", sum(d["steps"] for d in done))
    targets.show("processors that others used meanwhile",
                 sum(d["ticks"] for d in done) / sum(d["seconds"] for d in done))
    targets.show("step time T", statistics.median(d["T"] for d in done), "s")
    targets.show("step, longest", max(d["longest"] for d in done), "s")
    targets.at_most("members expelled, or views without one",
                    sum(d["wrong"] for d in done), 0, "", exact=True)
    targets.at_most("incarnations that changed",
                    sum(d["changed"] for d in done), 0, "", exact=True)
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
