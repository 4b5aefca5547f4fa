# tests/cluster/all_killed_test.py -- SIGKILL of all peers at once.
#
# At a random moment of a run with checkpoints all processes are killed, and
# started again at once. Checked: how soon the first step comes, how many steps
# come again (the target: those between two checkpoints), and that what is
# loaded is the newest checkpoint that was complete, and whole: steps that come
# again have the losses that they had, and no node says that a file is damaged.
import random
import signal
import sys
import time

from cluster import Cluster
from lifecycle_support import kill_together
from quotas import share_of
from targets import State, Targets, options_of, percentile
from watch import events_known, train

PEERS = 4
PROCESSORS = 0.42  # of each, with --targets
KILLS = 50
INTERVAL = 10  # steps between checkpoints
FIRST_STEP_S = 10.0
DEADLINE_S = 100
RUN = """[model]
hidden_size = 128
intermediate_size = 352
num_hidden_layers = 4
num_attention_heads = 4
max_position_embeddings = 64
[training]
steps = 1000000
seq_len = 64
local_batch_size = 1
global_batch_size = 8
seed = 7
[optimizer]
lr = 1e-3
[parallelism]
data_parallel_replicate_degree = 2
pipeline_parallel_degree = 2
[validation]
enable = false
[checkpoint]
enable = true
interval = {interval}
"""
# Sums of other layouts differ in the last digits, and steps gather that.
TOLERANCE = 1e-4


def damaged(cluster):
    """What all processes of all peers have said so far."""
    logs = [cluster.root / f"{peer.name}.{start}.log"
            for peer in cluster.peers for start in range(1, peer.starts + 1)]
    return [line for log in logs
            for line in log.read_text(encoding="utf-8").splitlines()
            if "damaged" in line or "set aside" in line]


def newest(cluster, watch, since, kind):
    """The highest step with such an event since that time."""
    return max((e["step"] for e in events_known(cluster, kind)
                if e["unix_ms"] / 1e3 - watch.clock > since), default=0)


def one(cluster, watch, rng, since):
    """Kills all; its figures: seconds until the first step, steps that came
    again, whether a complete checkpoint was newer than what was loaded; and
    when they were started. `since`: when they had been before."""
    # Between two checkpoints, while one is written: anywhere.
    watch.advance(rng.randint(1, 2 * INTERVAL), DEADLINE_S)
    signal.sigtimedwait([], rng.uniform(0, 2 * watch.step_time(-10)))
    kill_together(cluster.peers)
    done = newest(cluster, watch, since, "step")
    saved = newest(cluster, watch, since, "checkpoint")
    started = time.monotonic()
    for peer in cluster.peers:
        peer.start()
    watch.past(started, 1, DEADLINE_S)
    first = next(i for i, t in enumerate(watch.times) if t > started)
    took = watch.times[first] - started
    lost = done + 1 - watch.numbers[first]
    older = watch.numbers[first] <= saved
    print(f"  all killed after step {done}: {lost} steps again, the first "
          f"{took:.2f} s after the start", flush=True)
    return {"took": took, "lost": lost, "older": older}, started


def main():
    options = options_of("all_killed_test.py")
    targets, state = Targets(options), State(options.state)
    kills = KILLS if options.targets else 2
    rng = random.Random(options.seed + len(state.done))
    with Cluster(options.shoal, PEERS, ["--threads", "1"], options.keep,
                 processors=share_of(options, PROCESSORS)) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        run_file.write_text(RUN.format(interval=INTERVAL), encoding="utf-8")
        cluster.start_all()
        cluster.wait_view(PEERS)
        # One more interval is allowed for, so that it is counted, not fatal.
        watch = train(cluster, run_file, folder / "out", options.data,
                      repeats_max=4 * INTERVAL, tolerance=TOLERANCE, gaps=True)
        watch.advance(INTERVAL + 2, DEADLINE_S)
        bad, since = 0, 0.0
        for number in range(len(state.done), kills):
            figures, since = one(cluster, watch, rng, since)
            found = damaged(cluster)[bad:]
            for line in found:
                print(f"  {line}", flush=True)
            bad += len(found)
            state.keep(str(number), {**figures, "damaged": len(found),
                                     "deviation": watch.deviation})
        watch.process.send_signal(signal.SIGINT)
        watch.process.wait(timeout=DEADLINE_S)
    done = list(state.done.values())
    of = {key: [d[key] for d in done] for key in done[0]}
    targets.show("times that all were killed", len(done))
    targets.at_most("first step after the start, longest", max(of["took"]),
                    FIRST_STEP_S)
    targets.show("first step after the start, median",
                 percentile(of["took"], 0.5), "s")
    targets.at_most("steps that came again, most", max(of["lost"]), INTERVAL,
                    "")
    targets.show("of these, more than the interval: kills while a checkpoint "
                 "was written", sum(lost > INTERVAL for lost in of["lost"]))
    targets.at_most("loads of an older checkpoint than the newest complete one",
                    sum(of["older"]), 0, "", exact=True)
    targets.at_most("losses of these differ by", max(of["deviation"]),
                    TOLERANCE, "", exact=True)
    targets.at_most("damaged files", sum(of["damaged"]), 0, "", exact=True)
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
