# tests/cluster/zombie_test.py -- peers that are stopped, missed, and wake.
#
# SIGSTOP until the others have expelled a peer, then SIGCONT. Whatever it was
# about to do changes nothing: it learns that it is out and comes back as
# another member (a later incarnation); every step of the run comes once, and
# the losses are those of a run that nobody disturbed. Names on the command
# line choose among the scenarios. SHOAL_ZOMBIE_SECONDS: how long a peer sleeps at
# least; the steps that the others make meanwhile are waited for in any case.
import os
import shutil
import signal
import sys
import time

from lifecycle_support import (Run, log_of, places, run_scenarios, scenario,
                               wait_for)

WIDTH = 128
SLEEP_S = float(os.environ.get("SHOAL_ZOMBIE_SECONDS", "0"))
STEPS = 250 + int(60 * SLEEP_S)  # it goes on while they sleep


def members(peer):
    """Name -> incarnation, as a peer sees it."""
    return {p["name"]: p["incarnation"] for p in peer.status()["peers"]}


def undisturbed(cluster, folder, steps=STEPS):
    calm = folder / "calm"
    calm.mkdir()
    run = Run(cluster, calm, steps=steps, width=WIDTH)
    assert run.finish(300) == 0
    run.once_each()
    return run.losses


def sleep_and_wake(cluster, run, zombies, followed):
    """Stops them until they are expelled and more steps are made; wakes them.
    Returns when all are together again."""
    before = members(followed)
    for peer in zombies:
        os.kill(peer.pid(), signal.SIGSTOP)
    stopped = time.monotonic()
    left = len(cluster.peers) - len(zombies)
    wait_for(lambda: len(followed.status()["peers"]) == left, 60)
    run.advance(5)
    while time.monotonic() < stopped + SLEEP_S:
        run.advance(1)
    assert len(followed.status()["peers"]) == left
    for peer in zombies:
        os.kill(peer.pid(), signal.SIGCONT)
    woken = time.monotonic()
    cluster.wait_view(len(cluster.peers), 60)
    print(f"  asleep for {woken - stopped:.1f} s, back after "
          f"{time.monotonic() - woken:.2f} s", flush=True)
    after = members(followed)
    for peer in cluster.peers:
        if peer in zombies:
            assert after[peer.name] > before[peer.name], (before, after)
            assert any("expelled" in t for t in log_of(peer)), peer.name
        else:
            assert after[peer.name] == before[peer.name], (before, after)


def finish(run, calm):
    assert run.finish(300) == 0
    run.once_each()
    assert not run.said("state lost")
    assert run.audit()["steps"] == len(calm)
    assert sorted(run.losses) == sorted(calm)
    worst = max(abs(run.losses[s] - calm[s]) / calm[s] for s in calm)
    print(f"  {len(calm)} steps, each once; losses differ by {worst:.1e} at "
          "most", flush=True)
    # Another number of replicas adds in another order, and steps gather that.
    assert worst <= 1e-3, "other losses"


def zombies_of(cluster, folder, count, rounds=1):
    """Peers that work, others than the one where the run is followed."""
    cluster.start_all()
    cluster.wait_view(len(cluster.peers))
    calm = undisturbed(cluster, folder)
    run = Run(cluster, folder, steps=STEPS, width=WIDTH)
    run.advance(5)
    followed = cluster.peers[0]
    for _ in range(rounds):
        # Of each stage one at most: another copy stays awake.
        chosen = [next(n for n in names if n != followed.name)
                  for names in places(cluster, followed).values()][:count]
        sleep_and_wake(cluster, run,
                       [p for p in cluster.peers if p.name in chosen],
                       followed)
    finish(run, calm)
    shutil.rmtree(folder / "calm", ignore_errors=True)


@scenario
def a_zombie_changes_nothing(cluster, folder):
    zombies_of(cluster, folder, 1, rounds=2)


@scenario
def a_zombie_changes_nothing_over_tls(cluster, folder):
    zombies_of(cluster, folder, 1)


a_zombie_changes_nothing_over_tls.flags = ["--fabric.force", "tls"]


@scenario
def two_zombies_change_nothing(cluster, folder):
    zombies_of(cluster, folder, 2)


two_zombies_change_nothing.peers = 5


@scenario
def a_zombie_meets_others_that_were_restarted(cluster, folder):
    """All that it knew of the others is old: their processes, ports, votes."""
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, interval=10, width=WIDTH, steps=STEPS)
    run.advance(25)
    zombie, others = cluster.peers[3], cluster.peers[:3]
    before = members(others[0])
    os.kill(zombie.pid(), signal.SIGSTOP)
    wait_for(lambda: len(others[0].status()["peers"]) == 3, 60)
    for peer in others:
        os.kill(peer.pid(), signal.SIGKILL)
    for peer in others:
        peer.process.wait()
    for peer in others:
        peer.start()
    for peer in others:
        peer.wait_ready()
    wait_for(lambda: len(others[0].status()["peers"]) == 3, 60)
    os.kill(zombie.pid(), signal.SIGCONT)
    cluster.wait_view(4, 60)
    after = members(others[0])
    assert after[zombie.name] > before[zombie.name], (before, after)
    assert run.finish(300) == 0
    steps = [e["step"] for e in run.events if e["event"] == "step"]
    assert sorted(set(steps)) == list(range(1, STEPS + 1)), steps
    again = [s for s in set(steps) if steps.count(s) > 1]
    print(f"  {len(again)} steps again after all others died", flush=True)


@scenario
def a_minority_that_stays_awake_waits_for_the_zombies(cluster, folder):
    """Nobody is expelled, so all stay the members that they were."""
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, steps=STEPS, width=WIDTH)
    run.advance(5)
    before = members(cluster.peers[0])
    for peer in cluster.peers[1:]:
        os.kill(peer.pid(), signal.SIGSTOP)
    wait_for(lambda: cluster.peers[0].status()["state"] == "waiting", 60)
    for peer in cluster.peers[1:]:
        os.kill(peer.pid(), signal.SIGCONT)
    cluster.wait_view(4, 60)
    run.advance(5)
    run.once_each()
    assert members(cluster.peers[0]) == before
    assert run.finish(300) == 0
    run.once_each()


if __name__ == "__main__":
    sys.exit(run_scenarios())
