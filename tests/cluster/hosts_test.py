# tests/cluster/hosts_test.py -- eight nodes on eight hosts.
#
# The hosts are network namespaces on a bridge (network.py), each with an
# address, a mount namespace and a data directory of its own. They find each
# other by multicast, and again by each other way alone; a run on them gives
# the losses of one process; the bytes on the wire are those that the layout
# needs. Skipped (exit code 77) without the right to make namespaces.
import argparse
import json
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import time

from cluster import Cluster
from layouts_test import losses
from network import Network, can_make_namespaces

HOSTS = 8
PORT = 7717
RUN = """[model]
hidden_size = 64
intermediate_size = 176
num_hidden_layers = 8
num_attention_heads = 4
num_key_value_heads = 2
max_position_embeddings = 64
[training]
steps = 50
seq_len = 64
local_batch_size = 1
global_batch_size = 8
seed = 3
[validation]
enable = false
[checkpoint]
enable = false
"""
USUAL_STEPS = 10  # what they take is then known
NOTICED_MAX = 20  # steps at a quarter of the speed; ten on a quiet machine
NOTICED_MAX_S = 30  # or this time, where steps took less than:
SHORT_S = 0.1
SHARE, QUARTER = 0.4, 0.1  # of a processor: to be had on a busy machine, too
LAYOUTS = {  # name -> (stages, replicas, exact)
    "8 stages": (8, 1, True),
    "2 x 4": (4, 2, False),
}


class Hosts(Cluster):
    def __init__(self, shoal, apart=True, count=HOSTS, families="both",
                 processors=None):
        super().__init__(shoal, count, ["--threads", "1"],
                         hosts=lambda root: Network(root, count, apart,
                                                    families),
                         processors=processors)
        self.key = self.root / "key"
        self.key.write_text("5a" * 32, encoding="utf-8")
        self.key.chmod(0o600)
        self.node_flags += ["--cluster-key", str(self.key)]


def up(cluster, flags_of):
    for peer in cluster.peers:
        peer.start(flags_of(peer))
    ready = max(peer.wait_ready() for peer in cluster.peers)
    view = cluster.wait_view(len(cluster.peers))
    return time.monotonic() - ready, view


def by_multicast(cluster):
    return lambda peer: ["--listen", f"{peer.host.address}:0"]


def by_join(cluster):
    """All name the third: any peer can be the seed."""
    seed = cluster.peers[2].host.address
    return lambda peer: ["--no-discovery", "--listen",
                         f"{peer.host.address}:{PORT}", "--join",
                         f"{seed}:{PORT}"]


WAYS = {"multicast": by_multicast, "join": by_join}


def unlike(shoal, data):
    """Half the processor time, half the layers, without being told."""
    with Hosts(shoal, count=2) as cluster:
        if not cluster.network.hosts[1].limit(0.5):
            print("unlike peers: skipped: no control groups")
            return
        _, view = up(cluster, by_multicast(cluster))
        speeds = {p["name"]: p["devices"][0]["mflops"] for p in view["peers"]}
        with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder:
            run = pathlib.Path(folder) / "run.toml"
            run.write_text(RUN.replace("num_hidden_layers = 8",
                                       "num_hidden_layers = 24"),
                           encoding="utf-8")
            _, plan = losses(*cluster.train(
                [str(run), "--data", *data, "--out", f"{folder}/out",
                 "--parallelism.pipeline_parallel_degree", "2",
                 "--parallelism.data_parallel_replicate_degree", "1"]))
        layers = layers_of(plan)
        share = layers["peer2"] / layers["peer1"]
        print(f"unlike peers: {speeds} MFLOP/s, {plan}: {share:.0%} of the "
              "other's layers", flush=True)
        assert 0.4 <= share <= 0.6, "not half of the work"


def straggler(shoal, data):
    """A host that becomes four times slower during a run gets less work."""
    with Hosts(shoal, count=2) as cluster:
        # Both, so that they were alike.
        usual, slow = cluster.network.hosts
        if not usual.limit(SHARE) or not slow.limit(SHARE):
            print("straggler: skipped: no control groups")
            return
        up(cluster, by_multicast(cluster))
        with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder:
            run = pathlib.Path(folder) / "run.toml"
            run.write_text(
                RUN.replace("hidden_size = 64", "hidden_size = 256")
                .replace("intermediate_size = 176", "intermediate_size = 704")
                .replace("steps = 50", "steps = 5000"), encoding="utf-8")
            process, lines = cluster.train(
                [str(run), "--data", *data, "--out", f"{folder}/out",
                 "--parallelism.pipeline_parallel_degree", "2",
                 "--parallelism.data_parallel_replicate_degree", "1"])
            first, now, slowed_at, step = None, None, None, 0
            began, usual_s = [], 0
            while now is None or share_of(now) >= share_of(first):
                _, line = lines.next(time.monotonic() + 120)
                assert line is not None, "the run ended"
                event = json.loads(line)
                if event["event"] == "view":
                    now = event["plan"]
                    first = first or now
                elif event["event"] == "step":
                    step = event["step"]
                    began.append(time.monotonic())
                if step >= USUAL_STEPS and slowed_at is None:
                    slow.limit(QUARTER)
                    slowed_at, since = step, time.monotonic()
                    usual_s = statistics.median(
                        b - a for a, b in zip(began, began[1:]))
                assert (slowed_at is None or step <= slowed_at + NOTICED_MAX
                        or (usual_s < SHORT_S
                            and time.monotonic() < since + NOTICED_MAX_S)), \
                    f"{step - slowed_at} steps at a quarter of the speed: {now}"
            print(f"straggler: {first}, a quarter of the speed from step "
                  f"{slowed_at}; {now} at step {step} (T = {usual_s:.3f} s)",
                  flush=True)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def layers_of(plan):
    """How many layers each peer has, of "a layers 0-3, b layer 4"."""
    return {name: int(last or first) - int(first) + 1 for name, first, last in
            re.findall(r"(\w+) layers? (\d+)(?:-(\d+))?", plan)}


def share_of(plan):
    """The part of the layers that peer2 has."""
    layers = layers_of(plan)
    return layers.get("peer2", 0) / sum(layers.values())


def same_losses(cluster, folder, data):
    run = folder / "run.toml"
    run.write_text(RUN, encoding="utf-8")
    common = [str(run), "--data", *data, "--out", str(folder / "out")]
    alone, _ = losses(*cluster.train_alone(common))
    for name, (stages, replicas, exact) in LAYOUTS.items():
        got, plan = losses(*cluster.train(
            [*common, "--parallelism.pipeline_parallel_degree", str(stages),
             "--parallelism.data_parallel_replicate_degree", str(replicas)],
            number=5))
        loss, norm = (max(abs(x[i] - y[i]) / abs(y[i])
                          for x, y in zip(got, alone)) for i in (0, 1))
        print(f"  {name}: losses differ by {loss:.1e} at most, norms by "
              f"{norm:.1e} ({plan})", flush=True)
        # Norms gather the rounding of all steps before: replicas that share
        # the microbatches unevenly have come to 1.1e-5 in step 50.
        assert got == alone if exact else loss <= 1e-5 and norm <= 1e-4, \
            "other losses"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("ways", nargs="*", default=list(WAYS),
                        help=f"of {', '.join(WAYS)}")
    parser.add_argument("--one-machine", action="store_true",
                        help="containers of one machine: one boot id and /dev/shm")
    parser.add_argument("--unlike", action="store_true",
                        help="two hosts, one with half the processor time")
    parser.add_argument("--straggler", action="store_true",
                        help="two hosts, one becomes slower during a run")
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if not can_make_namespaces():
        print("skipped: no right to make network namespaces")
        return 77
    if options.unlike or options.straggler:
        (unlike if options.unlike else straggler)(options.shoal, options.data)
        return 0
    for way in options.ways:
        with Hosts(options.shoal, not options.one_machine) as cluster:
            cluster.keep = options.keep
            took, view = up(cluster, WAYS[way](cluster))
            found = sorted(p["addresses"][0] for p in view["peers"])
            print(f"{way}: one view of {HOSTS} {took:.2f} s after the last "
                  f"was ready: {', '.join(found)}", flush=True)
            with tempfile.TemporaryDirectory(prefix="shoal-hosts-") as folder:
                same_losses(cluster, pathlib.Path(folder), options.data)
            for peer in cluster.peers:
                assert peer.stop() == 0, f"{peer.name} ended badly"
    return 0


if __name__ == "__main__":
    sys.exit(main())
