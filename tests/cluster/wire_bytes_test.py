# tests/cluster/wire_bytes_test.py -- what a step sends is what it must send.
#
# Two hosts (network.py), every tensor by TLS. The bytes that both hosts' network
# devices count for a long run less those for a short one are the bytes of the
# steps between. The need is computed: replicas send every gradient twice
# between them ((R - 1) / R of it each way, parts and sums); stages send each
# microbatch's activations and their gradients once, and every reduced gradient
# once to who follows. Target: within 2 %.
import argparse
import json
import pathlib
import sys
import tempfile

from cluster import Cluster
from layouts_test import losses
from network import Network, can_make_namespaces, ip

STEPS = (5, 25)
BATCH, SEQ, HIDDEN, LAYERS, MLP, VOCAB = 16, 64, 256, 4, 688, 256
RUN = f"""[model]
vocab_size = {VOCAB}
hidden_size = {HIDDEN}
intermediate_size = {MLP}
num_hidden_layers = {LAYERS}
num_attention_heads = 4
max_position_embeddings = {SEQ}
[training]
seq_len = {SEQ}
local_batch_size = 4
global_batch_size = {BATCH}
[validation]
enable = false
[checkpoint]
enable = false
[fault_tolerance]
copies = 1
copy_every = 1
"""
PARAMETERS = (2 * VOCAB * HIDDEN + HIDDEN
              + LAYERS * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * MLP + 2 * HIDDEN))
NEED = {  # (stages, replicas) -> bytes of a step, both hosts together
    (1, 2): 2 * 4 * PARAMETERS,
    (2, 1): 2 * 4 * BATCH * SEQ * HIDDEN + 4 * PARAMETERS,
}


def sent(cluster):
    """Bytes that all hosts have sent so far."""
    total = 0
    for host in cluster.network.hosts:
        out = ip("-n", host.namespace, "-s", "-j", "link", "show", "eth0")
        total += json.loads(out.stdout)[0]["stats64"]["tx"]["bytes"]
    return total


def run_steps(cluster, run, folder, data, layout, steps):
    before = sent(cluster)
    stages, replicas = layout
    process, lines = cluster.train(
        [str(run), "--data", *data, "--out", f"{folder}/out",
         "--training.steps", str(steps),
         "--parallelism.pipeline_parallel_degree", str(stages),
         "--parallelism.data_parallel_replicate_degree", str(replicas)])
    losses(process, lines, steps)
    return sent(cluster) - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    options = parser.parse_args()
    if not can_make_namespaces():
        print("skipped: no right to make network namespaces")
        return 77
    wrong = []
    with Cluster(options.shoal, 2, ["--threads", "1"],
                 hosts=lambda root: Network(root, 2)) as cluster:
        key = cluster.root / "key"
        key.write_text("5a" * 32, encoding="utf-8")
        key.chmod(0o600)
        cluster.node_flags += ["--cluster-key", str(key)]
        for peer in cluster.peers:
            peer.start(["--listen", f"{peer.host.address}:0"])
        for peer in cluster.peers:
            peer.wait_ready()
        cluster.wait_view(2)
        with tempfile.TemporaryDirectory(prefix="shoal-bytes-") as folder:
            run = pathlib.Path(folder) / "run.toml"
            run.write_text(RUN, encoding="utf-8")
            run_steps(cluster, run, folder, options.data, (1, 2), 1)
            # Now both have the data.
            for layout, need in NEED.items():
                counts = [run_steps(cluster, run, folder, options.data, layout,
                                    steps) for steps in STEPS]
                step = (counts[1] - counts[0]) / (STEPS[1] - STEPS[0])
                print(f"{layout[1]} x {layout[0]}: {step:.0f} bytes a step on "
                      f"the wire, {need} needed: {step / need - 1:+.2%}",
                      flush=True)
                if abs(step / need - 1) > 0.02:
                    wrong.append(layout)
    assert not wrong, f"more than needed, or less: {wrong}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
