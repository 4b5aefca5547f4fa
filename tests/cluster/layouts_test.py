# tests/cluster/layouts_test.py -- the same run on any layout gives the same
# losses.
#
# 50 steps in one process against 2 stages, unequal stages, 2 replicas and
# 2 x 2 on four nodes: pipelines to the last bit, replicas within 1e-5. With
# --tls the nodes move tensors by TLS alone.
import argparse
import json
import sys
import time

from cluster import Cluster

RUN = """[model]
hidden_size = 64
intermediate_size = 176
num_hidden_layers = 4
num_attention_heads = 4
num_key_value_heads = 2
max_position_embeddings = 64
{tied}
[training]
steps = 50
seq_len = 64
local_batch_size = 2
global_batch_size = 8
seed = 3
[validation]
enable = false
[checkpoint]
enable = false
"""
LAYOUTS = {  # name -> (flags, exact)
    "2 stages": (["--parallelism.pipeline_parallel_degree", "2",
                  "--parallelism.data_parallel_replicate_degree", "1"], True),
    "stages of 3 and 1": (
        ["--parallelism.pipeline_parallel_layers_per_stage", "3,1",
         "--parallelism.data_parallel_replicate_degree", "1"], True),
    "2 stages, 1f1b": (
        ["--parallelism.pipeline_parallel_degree", "2",
         "--parallelism.data_parallel_replicate_degree", "1",
         "--parallelism.pipeline_parallel_schedule", "1f1b"], True),
    "2 stages, interleaved": (
        ["--parallelism.pipeline_parallel_degree", "2",
         "--parallelism.data_parallel_replicate_degree", "1",
         "--parallelism.pipeline_parallel_schedule", "interleaved"], True),
    "2 stages, zero_bubble in 2 runs": (
        ["--parallelism.pipeline_parallel_degree", "2",
         "--parallelism.data_parallel_replicate_degree", "1",
         "--parallelism.pipeline_parallel_schedule", "zero_bubble",
         "--parallelism.pipeline_parallel_virtual_degree", "2"], True),
    "2 replicas": (["--parallelism.pipeline_parallel_degree", "1",
                    "--parallelism.data_parallel_replicate_degree", "2"],
                   False),
    "2 x 2": (["--parallelism.pipeline_parallel_degree", "2",
               "--parallelism.data_parallel_replicate_degree", "2"], False),
}


def losses(process, lines, steps=50):
    found = {}
    plans = []
    while True:
        _, line = lines.next(time.monotonic() + 120)
        if line is None:
            break
        event = json.loads(line)
        if event["event"] == "step":
            found[event["step"]] = (event["loss"], event["grad_norm"])
        if event["event"] == "view":
            plans.append(event["plan"])
    assert process.wait(timeout=60) == 0, "the run failed"
    assert sorted(found) == list(range(1, steps + 1)), "steps are missing"
    return [found[s] for s in sorted(found)], plans[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    options = parser.parse_args()
    flags = ["--threads", "1"]
    if options.tls:
        flags.append("--no-shared-memory")
    failed = []
    with Cluster(options.shoal, 4, flags) as cluster:
        folder = cluster.work
        cluster.start_all()
        cluster.wait_view(4)
        for tied in ("", "tie_word_embeddings = true"):
            run = folder / "run.toml"
            run.write_text(RUN.format(tied=tied), encoding="utf-8")
            alone = None
            for name in [None, *LAYOUTS]:
                layout, exact = LAYOUTS[name] if name else ([], True)
                arguments = [str(run), "--data", *options.data, "--out",
                             str(folder / "out"), *layout]
                if name is None:  # in the command's own process
                    process, lines = cluster.train_alone(arguments)
                else:
                    process, lines = cluster.train(arguments)
                got, plan = losses(process, lines)
                if name is None:
                    alone = got
                    continue
                worst = max(abs(a - b) / abs(b) for x, y in zip(got, alone)
                            for a, b in zip(x, y))
                good = got == alone if exact else worst <= 1e-5
                print(f"{'tied ' if tied else ''}{name}: differs by "
                      f"{worst:.1e} at most ({plan})", flush=True)
                if not good:
                    failed.append(name)
    assert not failed, f"other losses: {failed}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
