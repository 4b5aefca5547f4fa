# tests/cluster/hang_test.py -- one thread of a node stands still for ever.
#
# A tracer (ptrace) holds a single thread; the process around it lives on and
# answers heartbeats, so that the failure detector has nothing to find. The
# others must find out by the job's own budget who holds it up, keep flight
# records, expel it and go on without losing a step; the node with the hung
# thread says so and ends. Names on the command line choose among the scenarios.
import json
import sys
import time

from lifecycle_support import (Run, log_of, places, run_scenarios, scenario,
                               wait_for)

from held_threads import Held  # cluster.py knows its folder

TARGET_S = 10 * 30  # what tests wait for: ten times what it should take


def flights(peer):
    return sorted(peer.store.glob("flight/*.jsonl"))


def check_flight(path):
    """It says why, and what happened before."""
    first, *events = [json.loads(line) for line in
                      path.read_text(encoding="utf-8").splitlines()]
    assert first["reason"] and first["peer"], first
    assert 0 < len(events) <= 2000, len(events)
    times = [e["unix_us"] for e in events]
    assert times == sorted(times)
    return first, events


def hold(cluster, folder, thread, steps=60):
    """Holds a thread of a peer that works; the others go on. The peer."""
    cluster.may_end = True  # the held one ends by itself, with an error
    cluster.start_all()
    cluster.wait_view(len(cluster.peers))
    run = Run(cluster, folder, steps=steps, width=128)
    run.advance(10)
    followed = cluster.peers[0]
    names = places(cluster, followed)[1]
    victim = next(p for p in cluster.peers
                  if p.name in names and p is not followed)
    with Held(victim.pid(), thread):
        held = time.monotonic()
        run.now()
        made = len(run.losses)
        wait_for(lambda: victim.name not in
                 [p["name"] for p in followed.status()["peers"]], TARGET_S)
        expelled = time.monotonic()
        run.advance(1, TARGET_S)
        print(f"  expelled after {expelled - held:.1f} s, the next step after "
              f"{time.monotonic() - held:.1f} s", flush=True)
        assert victim.process.wait(TARGET_S) != 0
        print(f"  the held node has ended after {time.monotonic() - held:.1f}"
              " s", flush=True)
    assert any("this node ends" in line for line in log_of(victim))
    for peer in cluster.peers:
        if peer is victim:
            continue
        wait_for(lambda p=peer: flights(p), TARGET_S)
        first, events = check_flight(flights(peer)[0])
        print(f"  {peer.name}: {first['reason']}; {len(events)} events, "
              f"{len(first['under_way'])} transfers under way", flush=True)
    assert run.said("holds the job up and is expelled")
    victim.start()
    victim.wait_ready()
    cluster.wait_view(len(cluster.peers), TARGET_S)
    assert run.finish(TARGET_S) == 0
    run.once_each()
    assert not run.said("state lost")
    assert len(run.losses) == steps and made < steps
    assert run.audit()["steps"] == steps
    return run


@scenario
def a_device_that_hangs(cluster, folder):
    hold(cluster, folder, "shoal-device")


@scenario
def a_device_that_hangs_beside_peers_without_work(cluster, folder):
    """They keep flight records too, once they hear of it."""
    hold(cluster, folder, "shoal-device")


a_device_that_hangs_beside_peers_without_work.peers = 6


@scenario
def sums_that_hang(cluster, folder):
    hold(cluster, folder, "shoal-sums")


@scenario
def a_link_that_hangs(cluster, folder):
    """Shared memory is not served any more; control messages are. Its node
    finds out by a budget of its own, not when it cannot stop later."""
    run = hold(cluster, folder, "shoal-shm")
    assert run.said("its links stand still")


@scenario
def actors_that_hang(cluster, folder):
    """No actor of the node runs any more, its supervisor and its timer among
    them: only a thread that waits for none of them can end it."""
    cluster.may_end = True
    cluster.start_all()
    cluster.wait_view(len(cluster.peers))
    run = Run(cluster, folder, steps=40, width=128)
    run.advance(10)
    followed = cluster.peers[0]
    names = places(cluster, followed)[1]
    victim = next(p for p in cluster.peers
                  if p.name in names and p is not followed)
    with Held(victim.pid(), "caf.multiplexer"):
        held = time.monotonic()
        assert victim.process.wait(TARGET_S) != 0
        print(f"  the held node has ended after {time.monotonic() - held:.1f}"
              " s", flush=True)
    assert any("has not run for a minute: this node ends" in line
               for line in log_of(victim))
    assert run.finish(TARGET_S) == 0
    run.once_each()
    assert not run.said("state lost")


@scenario
def a_disk_that_hangs_while_data_are_fetched(cluster, folder):
    """Every peer is a keeper: no step begins before all have the text."""
    cluster.may_end = True
    cluster.start_all()
    cluster.wait_view(len(cluster.peers))
    victim = cluster.peers[-1]
    with Held(victim.pid(), "shoal-disk"):
        held = time.monotonic()
        run = Run(cluster, folder, steps=20, flags=[
            "--fault_tolerance.copies", str(len(cluster.peers) - 1)])
        assert victim.process.wait(TARGET_S) != 0
        print(f"  the held node has ended after {time.monotonic() - held:.1f}"
              " s", flush=True)
    assert any("its disk has been at one piece" in line
               for line in log_of(victim))
    assert run.finish(TARGET_S) == 0
    others = [p.name for p in cluster.peers if p is not victim]
    assert not any(run.said(f"{name} holds the job up") for name in others)
    run.once_each()


@scenario
def a_device_that_wakes_in_time(cluster, folder):
    """Held for less than the budget: nobody is expelled."""
    cluster.start_all()
    cluster.wait_view(len(cluster.peers))
    run = Run(cluster, folder, steps=40, width=128)
    run.advance(10)
    before = {p["name"]: p["incarnation"]
              for p in cluster.peers[0].status()["peers"]}
    with Held(cluster.peers[2].pid(), "shoal-device") as held:
        held.release.wait(1)  # so long it is held
    assert run.finish(TARGET_S) == 0
    run.once_each()
    after = {p["name"]: p["incarnation"]
             for p in cluster.peers[0].status()["peers"]}
    assert after == before
    assert not run.said("is expelled")


if __name__ == "__main__":
    sys.exit(run_scenarios())
