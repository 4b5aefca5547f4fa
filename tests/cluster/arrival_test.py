# tests/cluster/arrival_test.py -- a peer joins a run: its state comes meanwhile.
#
# One peer trains; a second one joins, of which the run wants a replica. Its
# state (some 480 MB with the large size) comes while steps run. Shows that no
# step is lost or repeated, how long steps take before, while state is on its
# way and after, the pauses of the two changes of the view, and how many steps
# there are between the last byte of a copy and the first step that the joiner
# takes part in. Judged against the bars only with --bars, since a loaded
# machine is slow.
import argparse
import pathlib
import statistics
import sys
import tempfile

from cluster import Cluster
from watch import Watch

SIZES = {
    # about 2 M and 30 M parameters
    "small": (256, 704, 2),
    "large": (512, 1408, 9),
}


def run_file(folder, size, steps, sequences, tokens):
    hidden, inner, layers = SIZES[size]
    path = pathlib.Path(folder) / "run.toml"
    path.write_text(f"""[model]
hidden_size = {hidden}
intermediate_size = {inner}
num_hidden_layers = {layers}
num_attention_heads = 8
max_position_embeddings = {tokens}
[training]
seq_len = {tokens}
local_batch_size = 1
global_batch_size = {sequences}
steps = {steps}
seed = 7
[optimizer]
lr = 1e-4
[validation]
enable = false
[checkpoint]
enable = false
[parallelism]
data_parallel_replicate_degree = 2
pipeline_parallel_degree = 1
""", encoding="utf-8")
    return path


def views(watch):
    """(time, committed steps, text) of the job's layouts."""
    return [(e["unix_ms"] / 1e3 - watch.clock,
             watch.before_time(e["unix_ms"] / 1e3 - watch.clock), e["plan"])
            for _, e in watch.others if e["event"] == "view"]


def gaps(times):
    return [b - a for a, b in zip(times, times[1:])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--before", type=int, default=12)
    parser.add_argument("--after", type=int, default=12)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--fabric", default="tls")
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    parser.add_argument("--bars", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="shoal-join-")
    run = run_file(folder, options.size, options.steps, options.sequences,
                   options.tokens)
    flags = ["--threads", "1", "--fabric.force", options.fabric]
    with Cluster(options.shoal, 2, flags, options.keep) as cluster:
        cluster.peers[0].start()
        cluster.peers[0].wait_ready()
        process, lines = cluster.train(
            [str(run), "--data", *options.data, "--out",
             str(pathlib.Path(folder) / "out")])
        watch = Watch(process, lines)
        watch.advance(options.before)
        cluster.peers[1].start()
        cluster.peers[1].wait_ready()
        while not any("replica 1" in text for _, _, text in views(watch)):
            watch.advance(1)
        watch.advance(options.after)
        report(watch, options, arrived_at(cluster.peers[1]))
        process.terminate()
        process.wait(timeout=60)
    return 0


def arrived_at(peer):
    """When the peer said that its last unit had come; None: it did not."""
    found = None
    while not peer.lines.queue.empty():
        when, line = peer.lines.queue.get()
        if line and "all state that was to come is here" in line:
            found = when
    return found


def report(watch, options, here):
    for when, steps, text in views(watch):
        print(f"after step {steps}: {text}")
    began = [v for v in views(watch) if "on its way" in v[2]]
    ended = next(v for v in views(watch) if "replica 1" in v[2])
    times = watch.times
    first = began[0] if began else ended
    before = gaps([t for t in times if t < first[0]][2:])
    median = statistics.median(before)
    print(f"{len(before)} steps before: median {median:.3f} s, longest "
          f"{max(before):.3f} s")
    if began:
        during = gaps([t for t in times if first[0] <= t < ended[0]])
        if during:
            print(f"{len(during)} steps while state came: median "
                  f"{statistics.median(during):.3f} s, longest "
                  f"{max(during):.3f} s")
    for when, steps, text in [first, ended]:
        inside = ([t for t in times if t <= when][-1:]
                  + [t for t in times if t > when][:1])
        print(f"the view after step {steps}: {gaps(inside)[0]:.3f} s between "
              "its two steps")
    first = next(t for t in times if t > ended[0])
    if here is not None:
        useful = watch.before_time(first) - watch.before_time(here)
        print(f"the first step that the joiner takes part in is committed "
              f"{useful} steps and {first - here:.3f} s after its last unit "
              "has come")
    after = gaps([t for t in times if t > ended[0]])
    print(f"{len(after)} steps after: median {statistics.median(after):.3f} s")
    if options.bars:
        assert began, "state did not come while steps ran"
        assert here is not None and useful <= 2, "it is of use too late"
        assert max(during) <= 1.1 * median, "a step took too long"


if __name__ == "__main__":
    sys.exit(main())
