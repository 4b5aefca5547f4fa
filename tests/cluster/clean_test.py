# tests/cluster/clean_test.py -- nobody is expelled because the machine is busy.
#
# A run of a tiny model while processes of no concern to it spin on every
# processor: nothing dies, stops or loses a link, so the members of the view
# must stay who they are, and every step comes once.
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile

from bars import Bars, options_of
from cluster import Cluster
from watch import train

PEERS = 4
STEPS = 10_000
STEPS_SHORT = 200
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
    while True:
        try:
            _, line = peer.lines.queue.get_nowait()
        except queue.Empty:
            return events
        assert line is not None, f"{peer.name} ended"
        events.append(json.loads(line))


def members(event):
    return sorted(event["names"]) if event["member"] else None


def main():
    options = options_of("clean_test.py")
    bars = Bars(options)
    steps = STEPS if options.bars else STEPS_SHORT
    with Cluster(options.shoal, PEERS, ["--threads", "1"],
                 options.keep) as cluster, tempfile.TemporaryDirectory(
                     prefix="shoal-clean-",
                     ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        run_file = folder / "run.toml"
        run_file.write_text(RUN.format(steps=steps), encoding="utf-8")
        cluster.start_all()
        together = cluster.wait_view(PEERS)
        for peer in cluster.peers:
            said(peer)  # how they found each other
        with Spinning() as spinning:
            watch = train(cluster, run_file, folder / "out", options.data)
            while len(watch.losses) < steps:
                assert watch.step(DEADLINE_S) is not None, "ended too early"
            taken = watch.times[-1] - watch.times[0]
            load = spinning.ticks() / taken
            watch.finish(DEADLINE_S)
        names = sorted(p.name for p in cluster.peers)
        wrong = [e["text"] for peer in cluster.peers for e in said(peer)
                 if (e["event"] == "view" and members(e) != names)
                 or e["event"] == "waiting" or "expelled" in e["text"]]
        after = cluster.wait_view(PEERS)
        same = ([(p["id"], p["incarnation"]) for p in together["peers"]]
                == [(p["id"], p["incarnation"]) for p in after["peers"]])
    for line in wrong[:5]:
        print(f"  {line}")
    bars.show("steps, each once", len(watch.losses))
    bars.show("processors that others used meanwhile", load)
    bars.show("step time T", watch.step_time(), "s")
    bars.show("step, longest", max(
        b - a for a, b in zip(watch.times, watch.times[1:])), "s")
    bars.at_most("members expelled, or views without one", len(wrong), 0, "",
                 exact=True)
    bars.at_most("incarnations that changed", int(not same), 0, "", exact=True)
    return bars.finish()


if __name__ == "__main__":
    sys.exit(main())
