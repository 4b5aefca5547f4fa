# tests/cluster/kill_test.py -- SIGKILL any peer of a run: it goes on.
#
# Of 2 x 2 peers, or of one pipeline whose stages others follow: then with no
# step lost (copies at every step), or with few run again, to the same losses.
# Trains once undisturbed and once while random peers are killed and started
# again, the founder and the submitter's node among them. Shows that no
# committed step is lost or repeated, that the losses agree, how long the run
# paused, and that nothing is left behind. Pauses are printed and held against
# the target (2 s + 2 T) only with --targets, since a loaded machine is slow.
import argparse
import math
import random
import statistics
import sys
import time

from cluster import Cluster
from watch import train

SIZES = {
    # about 0.9 M parameters; 10.8 M parameters and a step of >= 0.2 s on two
    # cores
    "small": ("""[model]
hidden_size = 128
intermediate_size = 352
num_hidden_layers = 4
num_attention_heads = 4
max_position_embeddings = 128
[training]
seq_len = 128
local_batch_size = 4
global_batch_size = 16
"""),
    "large": ("""[model]
hidden_size = 384
intermediate_size = 1024
num_hidden_layers = 6
num_attention_heads = 6
max_position_embeddings = 128
[training]
seq_len = 128
local_batch_size = 2
global_batch_size = 8
"""),
}
#: Seconds from a kill until the killed peer is back, on any machine: a run lasts
#: that long for each kill.
CYCLE_S = 4
COMMON = """seed = 7
[optimizer]
lr = 3e-4
[validation]
enable = false
[checkpoint]
enable = false
"""


def run_file(folder, size, steps, replicas=2, stages=2, copy_every=1):
    text = (SIZES[size] + f"steps = {steps}\n" + COMMON + f"""[parallelism]
data_parallel_replicate_degree = {replicas}
pipeline_parallel_degree = {stages}
[fault_tolerance]
copy_every = {copy_every}
""")
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--between", type=int, default=4,
                        help="steps between a recovery and the next kill")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--copy-every", type=int, default=1)
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    count = options.replicas * options.stages

    cluster = Cluster(options.shoal, count, ["--threads", "1"], options.keep)
    with cluster:
        ready = cluster.start_all()
        cluster.wait_view(count)
        print(f"view of all {time.monotonic() - ready:.2f} s after the last "
              f"was ready; isolated: {cluster.isolated}")

        def run_of(steps):
            return run_file(cluster.work, options.size, steps,
                            options.replicas, options.stages,
                            options.copy_every)
        steps = options.steps
        if not steps:
            tried = train(cluster, run_of(20), cluster.work / "tried",
                          options.data)
            tried.finish(120)
            steps = options.kills * (options.between + 10 + math.ceil(
                CYCLE_S / tried.step_time()))
        run = run_of(steps)
        calm = train(cluster, run, cluster.work / "calm", options.data)
        calm.finish(120)
        gaps = [b - a for a, b in zip(calm.times, calm.times[1:])]
        step_time = statistics.median(gaps)
        print(f"undisturbed: {len(calm.losses)} steps, T = {step_time:.3f} s, "
              f"final loss {calm.losses[steps]:.6f}")

        watch = train(cluster, run, cluster.work / "killed",
                      options.data,
                      repeats_max=options.copy_every
                      if options.copy_every > 1 else 0)
        pauses = []
        # Who was admitted first has founded; the run is submitted at peer1.
        founder = min(cluster.peers[0].status()["peers"],
                      key=lambda p: p["incarnation"])["name"]
        first = [next(p.number for p in cluster.peers if p.name == founder), 1]
        order = [*dict.fromkeys(first),
                 *(rng.randint(1, count) for _ in range(options.kills))]
        order = order[:options.kills]
        for number in order:
            watch.advance(options.between)
            victim = cluster.peers[number - 1]
            victim.kill()
            killed = time.monotonic()
            watch.past(killed, 2)
            pause = watch.pause_since(killed)
            pauses.append(pause)
            print(f"killed {victim.name} after step "
                  f"{watch.before_time(killed)}: a pause of {pause:.2f} s",
                  flush=True)
            restarted = time.monotonic()
            victim.start()
            victim.wait_ready()
            cluster.wait_view(count)
            watch.past(restarted, 2)
            print(f"  back, {time.monotonic() - restarted:.2f} s later; a "
                  f"pause of {watch.pause_since(restarted):.2f} s", flush=True)
        watch.finish(180)
        difference = max(
            abs(watch.losses[s] - calm.losses[s]) / calm.losses[s]
            for s in (steps,))
        target = 2 + 2 * step_time
        print(f"{len(order)} kills: {len(watch.losses)} steps, each once; "
              f"pauses median {statistics.median(pauses):.2f} s, longest "
              f"{max(pauses):.2f} s (target {target:.2f} s); final loss "
              f"differs by {difference:.2e} (target 1e-3)")
        causes = [e.get("cause", "") for _, e in watch.others
                  if e["event"] == "view"]
        for name in {cluster.peers[n - 1].name for n in order}:
            assert any(f"{name} is gone" in c for c in causes), (name, causes)
        if watch.repeated:
            print(f"steps run again, by kill: {watch.repeated}")
        assert len(watch.losses) == steps, "steps are missing"
        audit = cluster.audit(cluster.work / "killed")
        print(f"audit: {audit['samples']} samples, each used once")
        # Other splits into stages are the same arithmetic.
        allowed = 1e-3 if options.replicas > 1 else 0
        assert difference <= allowed, "the losses differ"
        assert not options.targets or max(pauses) <= target, \
            "a pause was too long"
    return 0


if __name__ == "__main__":
    sys.exit(main())
