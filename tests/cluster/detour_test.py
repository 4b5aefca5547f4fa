# tests/cluster/detour_test.py -- a stage of a replica dies: no replica is lost.
#
# 2 x 2 with so much state that it moves in the background. A peer is killed:
# the one that runs the same stage in the other replica takes its microbatches,
# at once (runtime/core/planning/detours.hpp). The peer comes back, its state
# arrives while steps run, and the layout is whole again. Each step is committed
# once, with the samples that it should have; nothing is lost.
import signal
import subprocess
import sys
import time

from cluster import Cluster
from quotas import share_of
from targets import State, Targets, options_of, run_text
from watch import train

PEERS = 4
PROCESSORS = 0.42  # of each, with --targets
DEADLINE_S = 120
# 8.3 M parameters and 2,048 tokens in a step: two replicas gain more than their sums of
# gradients cost even over links of 50 MB/s, which is what a busy machine may measure.
SHAPE = {"width": 384, "mlp": 1280, "blocks": 4, "heads": 6, "seq": 256,
         "batch": 8}
DETOUR = "run stages of several replicas"


def views(watch):
    """(when, plan) of the job's layouts so far."""
    watch.now()
    return [(e["unix_ms"] / 1e3 - watch.clock, e["plan"])
            for _, e in watch.others if e["event"] == "view"]


def until(watch, wanted):
    """Follows the run to a layout; when it came, and its plan."""
    deadline = time.monotonic() + DEADLINE_S
    while not wanted(views(watch)[-1][1]):
        assert time.monotonic() < deadline, views(watch)[-1]
        watch.advance(1, DEADLINE_S)
    return views(watch)[-1]


def one(options, fabric):
    """The figures of one death."""
    with Cluster(options.shoal, PEERS,
                 ["--threads", "1", "--fabric.force", fabric], options.keep,
                 processors=share_of(options, PROCESSORS)) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        run_file.write_text(run_text(SHAPE, 2, 2), encoding="utf-8")
        cluster.start_all()
        cluster.wait_view(PEERS)
        out = folder / "out"
        watch = train(cluster, run_file, out, options.data)
        watch.advance(10, DEADLINE_S)
        before = watch.step_time()
        whole = views(watch)[-1][1]
        assert whole.count("replica") == 2, whole
        # Not the one that the command follows.
        victim = next(p for p in cluster.peers[1:] if f"{p.name} layer" in whole)
        victim.kill()
        killed = time.monotonic()
        watch.past(killed, 2, DEADLINE_S)
        pause = watch.pause_since(killed)
        _, meanwhile = until(watch, lambda plan: victim.name not in plan)
        print(f"  {fabric}: {victim.name} dies: {meanwhile}", flush=True)
        assert DETOUR in meanwhile, meanwhile
        first = len(watch.times)
        watch.advance(6, DEADLINE_S)
        detour = watch.step_time(first)
        victim.start()
        victim.wait_ready()
        _, after = until(watch, lambda plan: f"{victim.name} layer" in plan
                         and DETOUR not in plan and "on its way" not in plan)
        print(f"  {fabric}: and comes back: {after}", flush=True)
        watch.advance(4, DEADLINE_S)
        watch.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + DEADLINE_S
        while watch.process.poll() is None and time.monotonic() < deadline:
            watch.now()
        assert watch.process.wait(1) == 130  # interrupted
        lost = [e for _, e in watch.others
                if "state lost" in e.get("text", "")]
        audit = subprocess.run(
            [options.shoal, "audit", str(out)], text=True,
            capture_output=True, timeout=DEADLINE_S, check=False)
        print("  " + audit.stdout.strip().splitlines()[-1], flush=True)
    return {"before": before, "detour": detour, "pause": pause,
            "lost": len(lost) + len(watch.repeated),
            "audit": audit.returncode}


def judge(targets, fabric, d):
    targets.show(f"{fabric}: step time T of all, of three (median)",
                 f"{d['before']:.3f} s, {d['detour']:.3f} s")
    targets.at_most(f"{fabric}: pause", d["pause"], 2 + 2 * d["before"])
    targets.at_most(f"{fabric}: steps lost or repeated", d["lost"], 0, "",
                    exact=True)
    targets.at_most(f"{fabric}: samples missing, repeated or unknown",
                    int(d["audit"] != 0), 0, "", exact=True)


def main():
    options = options_of("detour_test.py")
    targets, state = Targets(options), State(options.state)
    for fabric in ["shm", "tls"] if options.targets else ["tls"]:
        if fabric not in state.done:
            state.keep(fabric, one(options, fabric))
        judge(targets, fabric, state.done[fabric])
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
