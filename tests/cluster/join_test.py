# tests/cluster/join_test.py -- what it costs a run that a fresh peer joins.
#
# A peer without history joins peers that train, gets the state of a whole
# replica and takes its share of the work. Its trace (traces.py) says when its
# first byte of state was awaited, when the last one had come, and in which
# step it first computed. Measured: the time of the others' steps that overlap
# the transfer, against those before, and after how many steps it is of use.
# Each peer has its share of the processors, so that the newcomer's start does
# not take from the others.
import pathlib
import statistics
import sys
import tempfile
import time

from bars import Bars, State, options_of, run_text
from cluster import Cluster
from lifecycle_support import wait_for
from quotas import can_make_quotas
from traces import Reader, Trace, at_monotonic
from watch import train

PEERS = 4
ROUNDS = 5
CALM_STEPS = 15  # whose median is the step time before
SLOWER_MAX = 1.1
USEFUL_STEPS = 2
DEADLINE_S = 120
FULL = {"width": 384, "mlp": 1024, "blocks": 6, "heads": 6, "seq": 32,
        "batch": 20, "processors": 0.39}
SHORT = {"width": 64, "mlp": 176, "blocks": 4, "heads": 4, "seq": 16,
         "batch": 10, "processors": None}


class Newcomer(Trace):
    """When its state came, and its first work."""

    first_byte = last_byte = None
    works_at = works_in = None

    def on_begin(self, name, arguments, micros):
        if name == "fetching state" and self.first_byte is None:
            self.first_byte = at_monotonic(micros)
        if name == "forward" and self.works_in is None:
            self.works_at = at_monotonic(micros)
            self.works_in = arguments["step"]

    def on_end(self, name, arguments, micros):
        if name == "fetching state" and self.works_in is None:
            self.last_byte = at_monotonic(micros)


def joins(cluster, reader, watch, peer):
    """One newcomer; figures."""
    watch.advance(CALM_STEPS, DEADLINE_S)
    calm = watch.step_time(-CALM_STEPS)
    trace = Newcomer(reader, cluster.root / f"{peer.name}.trace")
    started = time.monotonic()
    peer.start(["--trace", str(trace.path)])
    peer.wait_ready(DEADLINE_S)
    deadline = started + DEADLINE_S
    while trace.works_in is None:
        watch.advance(1, DEADLINE_S)
        assert time.monotonic() < deadline, "the newcomer gets no work"
    assert trace.last_byte is not None, "it works, and got no state"
    watch.past(max(trace.works_at, trace.last_byte), 2, DEADLINE_S)
    spans = [(a, b) for a, b in zip(watch.times, watch.times[1:])
             if b > trace.first_byte and a < trace.last_byte]
    known = max(n for n, t in zip(watch.numbers, watch.times)
                if t <= trace.last_byte)
    reader.drop(trace)
    return {"calm": calm, "during": statistics.mean(b - a for a, b in spans),
            "longest": max(b - a for a, b in spans), "steps": len(spans),
            "transfer": trace.last_byte - trace.first_byte,
            "useful": trace.works_in - known,
            "useful_s": trace.works_at - started}


def leaves(cluster, watch, peer):
    assert peer.stop(DEADLINE_S) == 0
    wait_for(lambda: len(cluster.peers[0].status()["peers"]) == PEERS,
             DEADLINE_S)
    watch.advance(3, DEADLINE_S)


def run(options, fabric, rounds):
    shape = FULL if options.bars else SHORT
    with Cluster(options.shoal, PEERS + rounds,
                 ["--threads", "1", "--fabric.force", fabric], options.keep,
                 processors=shape["processors"]) as cluster, \
            tempfile.TemporaryDirectory(
                prefix="shoal-join-", ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        run_file = folder / "run.toml"
        run_file.write_text(run_text(shape, 5, 1),
                            encoding="utf-8")
        for peer in cluster.peers[:PEERS]:
            peer.start()
        for peer in cluster.peers[:PEERS]:
            peer.wait_ready()
        cluster.wait_view(PEERS)
        watch = train(cluster, run_file, folder / "out", options.data)
        watch.advance(5, DEADLINE_S)
        reader = Reader()
        found = []
        try:
            for peer in cluster.peers[PEERS:]:
                found.append(joins(cluster, reader, watch, peer))
                d = found[-1]
                print(f"  {fabric}: {d['transfer']:.2f} s of transfer, "
                      f"{d['steps']} steps meanwhile: {d['during']:.3f} s each,"
                      f" {d['longest']:.3f} s at most, {d['calm']:.3f} s "
                      f"before; works {d['useful']} steps later, "
                      f"{d['useful_s']:.2f} s after its start", flush=True)
                leaves(cluster, watch, peer)
        finally:
            reader.close()
        return found


def judge(bars, fabric, found):
    slower = statistics.median(d["during"] / d["calm"] for d in found)
    bars.show(f"{fabric}: step time T",
              statistics.median(d["calm"] for d in found), "s")
    bars.show(f"{fabric}: transfer, median",
              statistics.median(d["transfer"] for d in found), "s")
    bars.at_most(f"{fabric}: others' steps during it, times T", slower,
                 SLOWER_MAX, "", judged=False)
    bars.at_most(f"{fabric}: steps until it is of use, most",
                 max(d["useful"] for d in found), USEFUL_STEPS, "")


def more(parser):
    parser.add_argument("--fabric", nargs="*", choices=["shm", "tls"])


def main():
    options = options_of("join_test.py", more)
    if options.bars and not can_make_quotas():
        print("skipped: no control groups can be made here")
        return 77
    bars, state = Bars(options), State(options.state)
    for fabric in options.fabric or (["shm", "tls"] if options.bars
                                     else ["tls"]):
        if fabric not in state.done:
            state.keep(fabric, run(options, fabric,
                                   ROUNDS if options.bars else 1))
        judge(bars, fabric, state.done[fabric])
    code = bars.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
