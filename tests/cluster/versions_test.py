# tests/cluster/versions_test.py -- peers whose programs plan otherwise.
#
# Of two builds of shoal with unlike planners (runtime/core/planner_version.hpp)
# no two peers meet in a shoal: each says so by name, a new one stays alone, and
# a member that comes back as the other build waits without a shoal of its own.
# Commands work across builds.
import argparse
import sys

from cluster import Cluster
from lifecycle_support import log_of, wait_for

REASON = "plans otherwise"


def met(peer):
    """Whether it says of another node that it plans otherwise."""
    return any(REASON in other["why"]
               for other in (peer.status() or {}).get("apart", []))


def a_fresh_peer_of_another_build_stays_alone(cluster, other):
    first, second, third = cluster.peers
    first.start()
    second.start()
    ours = cluster.wait_view(2)["id"]
    third.start(program=other)
    wait_for(lambda: any(met(peer) for peer in cluster.peers))
    theirs = third.status()
    assert theirs["id"] != ours and len(theirs["peers"]) == 1, theirs
    assert first.status()["id"] == ours
    assert len(first.status()["peers"]) == 2
    assert third.stop() == 0


def a_member_that_comes_back_as_another_build_waits(cluster, other):
    third = cluster.peers[-1]
    third.start()
    ours = cluster.wait_view(3)["id"]
    third.kill()
    cluster.wait_view(2)
    third.start(program=other)
    wait_for(lambda: met(third))
    late = third.status()
    assert late["state"] == "waiting" and late["id"] == ours, late
    wait_for(lambda: any("refuses this node's version" in line
                         for line in log_of(third)))
    third.kill()
    third.start()
    assert cluster.wait_view(3)["id"] == ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--next-planner", required=True,
                        help="shoal, with another version of its planner")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with Cluster(options.shoal, 3, ["--threads", "1"], options.keep) as cluster:
        for test in (a_fresh_peer_of_another_build_stays_alone,
                     a_member_that_comes_back_as_another_build_waits):
            test(cluster, options.next_planner)
            print(f"{test.__name__}: ok", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
