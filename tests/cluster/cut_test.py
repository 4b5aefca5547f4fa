# tests/cluster/cut_test.py -- two hosts that cannot reach each other.
#
# Both reach a third, so nobody is expelled: the view lists the pair, no work
# is placed on both of its ends, and the run goes on, each step once. When the
# two reach each other again the view says so. Hosts are network namespaces
# (network.py); exit code 77 without the right to make them.
import argparse
import sys
import time

from hosts_test import Hosts, by_multicast, up
from lifecycle_support import Run, wait_for
from network import can_make_namespaces


def cuts(cluster):
    """Pairs of names that every peer's status lists as cut; None while they
    do not agree."""
    found = None
    for peer in cluster.peers:
        status = peer.status()
        names = {p["id"]: p["name"] for p in status["peers"]}
        assert len(names) == len(cluster.peers), f"{peer.name}: expelled"
        pairs = sorted(sorted(names[i] for i in pair)
                       for pair in status["cuts"])
        if found is not None and pairs != found:
            return None
        found = pairs
    return found


def workers(peer):
    """Names of the members that the plan of the only job names."""
    return {stage["peer"] for replica in peer.status()["jobs"][0]["places"]
            for stage in replica}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if not can_make_namespaces():
        print("skipped: no right to make network namespaces")
        return 77
    with Hosts(options.shoal, count=4) as cluster:
        cluster.keep = options.keep
        up(cluster, by_multicast(cluster))
        run = Run(cluster, cluster.work, replicas=2, stages=1, number=4)
        run.advance(5)
        names = sorted(workers(cluster.peers[3]))
        assert len(names) == 2, names
        a, b = (p for p in cluster.peers if p.name in names)
        a.host.cut(b.host)
        began = time.monotonic()
        wait_for(lambda: cuts(cluster) == [names], 30)
        listed = time.monotonic() - began
        run.advance(1, 30)
        goes_on = time.monotonic() - began
        run.advance(5)
        left = workers(cluster.peers[3])
        assert not set(names) <= left, f"both ends of the cut work: {left}"
        print(f"{a.name}-{b.name} cut: listed by all after {listed:.2f} s, "
              f"the run goes on after {goes_on:.2f} s with "
              f"{', '.join(sorted(left))}", flush=True)
        a.host.heal(b.host)
        began = time.monotonic()
        wait_for(lambda: cuts(cluster) == [], 30)
        print(f"healed: listed by nobody after "
              f"{time.monotonic() - began:.2f} s", flush=True)
        run.advance(5)
        run.once_each()
    return 0


if __name__ == "__main__":
    sys.exit(main())
