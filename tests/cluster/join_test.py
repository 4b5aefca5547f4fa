# tests/cluster/join_test.py -- what it costs a run that a fresh peer joins.
#
# A peer without history joins peers that train, gets the state of a whole
# replica and takes its share of the work. Its trace (traces.py) says when its
# first byte of state was awaited, when the last one had come, and in which
# step it first computed. Measured: the time of the others' steps that overlap
# the transfer, against those before, after how many steps it is of use, and
# the pauses of the changes of the view. No step is lost or repeated (watch.py).
#
# fifth: four peers train. second: one trains a model of which the state takes
# longer than a step; it must come while steps run. Each has its share of the
# processors, so that the newcomer's start does not take from the others.
# --copies 0: then nobody misses copies, and what arrives is paced.
import statistics
import sys
import time

from cluster import Cluster
from lifecycle_support import wait_for
from quotas import can_make_quotas
from targets import State, Targets, options_of, run_text
from traces import Reader, Trace, at_monotonic
from watch import train

ROUNDS = 5
CALM_STEPS = 15  # whose median is the step time before
SLOWER_MAX = 1.1
USEFUL_STEPS = 2
DEADLINE_S = 120
FIFTH = {"peers": 4, "replicas": 5, "arrives": False}
SECOND = {"peers": 1, "replicas": 2, "arrives": True, "batch": 2, "seq": 16}
CASES = {
    "fifth": {
        True: {**FIFTH, "width": 384, "mlp": 1024, "blocks": 6, "heads": 6,
               "seq": 32, "batch": 20, "processors": 0.39},
        False: {**FIFTH, "width": 64, "mlp": 176, "blocks": 4, "heads": 4,
                "seq": 16, "batch": 10, "processors": None}},
    "second": {  # 30 and 14 million parameters
        True: {**SECOND, "width": 512, "mlp": 1408, "blocks": 9, "heads": 8,
               "processors": 0.85},
        False: {**SECOND, "width": 384, "mlp": 1024, "blocks": 8,
                "heads": 6, "processors": None}},
}


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


def views(watch):
    """(time, text) of the job's layouts."""
    return [(e["unix_ms"] / 1e3 - watch.clock, e["plan"])
            for _, e in watch.others if e["event"] == "view"]


def pause_at(watch, when):
    """Between the steps around that time; None: there are none yet."""
    around = [b - a for a, b in zip(watch.times, watch.times[1:])
              if a <= when < b]
    return around[0] if around else None


def joins(cluster, reader, watch, peer, shape):
    """One newcomer; figures."""
    watch.advance(CALM_STEPS, DEADLINE_S)
    calm = watch.step_time(-CALM_STEPS)
    trace = Newcomer(reader, cluster.root / f"{peer.name}.trace")
    started = time.monotonic()
    known = len(views(watch))
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
    newest = max(n for n, t in zip(watch.numbers, watch.times)
                 if t <= trace.last_byte)
    reader.drop(trace)
    changes = views(watch)[known:]
    if shape["arrives"]:
        assert any("on its way" in text for _, text in changes), \
            "no state came while steps ran"
        assert len(spans) > 1, "no step ran while state came"
    return {"calm": calm, "during": statistics.mean(b - a for a, b in spans),
            "longest": max(b - a for a, b in spans), "steps": len(spans),
            "transfer": trace.last_byte - trace.first_byte,
            "useful": trace.works_in - newest,
            "pauses": [p for p in (pause_at(watch, t) for t, _ in changes)
                       if p is not None],
            "useful_s": trace.works_at - started}


def leaves(cluster, watch, peer, peers):
    assert peer.stop(DEADLINE_S) == 0
    wait_for(lambda: len(cluster.peers[0].status()["peers"]) == peers,
             DEADLINE_S)
    watch.advance(3, DEADLINE_S)


def run(options, shape, fabric, rounds):
    peers = shape["peers"]
    with Cluster(options.shoal, peers + rounds,
                 ["--threads", "1", "--fabric.force", fabric], options.keep,
                 processors=shape["processors"]) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        text = run_text(shape, shape["replicas"], 1)
        if options.copies is not None:
            text += f"[fault_tolerance]\ncopies = {options.copies}\n"
        run_file.write_text(text, encoding="utf-8")
        for peer in cluster.peers[:peers]:
            peer.start()
        for peer in cluster.peers[:peers]:
            peer.wait_ready()
        cluster.wait_view(peers)
        watch = train(cluster, run_file, folder / "out", options.data)
        watch.advance(5, DEADLINE_S)
        reader = Reader()
        found = []
        try:
            for peer in cluster.peers[peers:]:
                found.append(joins(cluster, reader, watch, peer, shape))
                d = found[-1]
                print(f"  {fabric}: {d['transfer']:.2f} s of transfer, "
                      f"{d['steps']} steps meanwhile: {d['during']:.3f} s each,"
                      f" {d['longest']:.3f} s at most, {d['calm']:.3f} s "
                      f"before; works {d['useful']} steps later, "
                      f"{d['useful_s']:.2f} s after its start; pauses "
                      + ", ".join(f"{p:.2f}" for p in d["pauses"]) + " s",
                      flush=True)
                leaves(cluster, watch, peer, peers)
        finally:
            reader.close()
        return found


def judge(targets, name, found):
    slower = statistics.median(d["during"] / d["calm"] for d in found)
    targets.show(f"{name}: step time T",
                 statistics.median(d["calm"] for d in found), "s")
    targets.show(f"{name}: transfer, median",
                 statistics.median(d["transfer"] for d in found), "s")
    pauses = [p for d in found for p in d["pauses"]]
    if pauses:
        targets.show(f"{name}: step with a change of the view, most",
                     max(pauses), "s")
    targets.at_most(f"{name}: others' steps during it, times T", slower,
                    SLOWER_MAX, "", judged=False)
    targets.at_most(f"{name}: steps until it is of use, most",
                    max(d["useful"] for d in found), USEFUL_STEPS, "")


def more(parser):
    parser.add_argument("--case", nargs="*", choices=sorted(CASES))
    parser.add_argument("--fabric", nargs="*", choices=["shm", "tls"])
    parser.add_argument("--copies", type=int)
    parser.add_argument("--rounds", type=int)


def main():
    options = options_of("join_test.py", more)
    cases = options.case or sorted(CASES)
    if options.targets and not can_make_quotas():
        print("skipped: no control groups can be made here")
        return 77
    targets, state = Targets(options), State(options.state)
    for case in cases:
        shape = CASES[case][options.targets]
        for fabric in options.fabric or (["shm", "tls"] if options.targets
                                         else ["tls"]):
            name = f"{case}, {fabric}"
            if name not in state.done:
                print(f"{name}:", flush=True)
                state.keep(name, run(options, shape, fabric,
                                     options.rounds
                                     or (ROUNDS if options.targets else 1)))
            judge(targets, name, state.done[name])
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
