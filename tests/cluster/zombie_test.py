# tests/cluster/zombie_test.py -- peers that are stopped, missed, and wake.
#
# SIGSTOP until the others have expelled a peer, then SIGCONT. Whatever it was
# about to do changes nothing: it learns that it is out and comes back as
# another member (a later incarnation); every step of the run comes once, and
# the losses are those of a run that nobody disturbed. Names on the command
# line choose among the scenarios. With --targets a peer sleeps for half a
# minute, else until the others have made some steps without it. The nodes have
# no shares of the processors: nothing here is measured against a capacity.
import os
import shutil
import signal
import sys
import time

from cluster import Cluster
from lifecycle_support import (SCENARIOS, Run, log_of, places, run_scenarios,
                               scenario, wait_for)
from targets import State, Targets, options_of

WIDTH = 128
STEPS = 250
MEASURED = ["a_zombie_changes_nothing", "a_zombie_changes_nothing_over_tls",
            "two_zombies_change_nothing"]
SLEEP_S = 30  # with --targets, at least
SLACK = 2  # as many more steps as would be made while they sleep
BACK_S = 5.0  # until all are in one view again


def members(peer):
    """Name -> incarnation, as a peer sees it."""
    return {p["name"]: p["incarnation"] for p in peer.status()["peers"]}


def undisturbed(cluster, folder, steps):
    """Losses by step, and seconds of a step."""
    calm = folder / "calm"
    calm.mkdir()
    run = Run(cluster, calm, steps=steps, width=WIDTH)
    assert run.finish(300) == 0
    run.once_each()
    shutil.rmtree(calm)
    made = [e["unix_ms"] for e in run.events if e["event"] == "step"]
    return run.losses, (made[-1] - made[0]) / 1000 / (len(made) - 1)


def enough(cluster, folder, seconds):
    """Steps that are not over while peers sleep for so long."""
    if seconds == 0:
        return STEPS
    _, step_time = undisturbed(cluster, folder, STEPS)
    return STEPS + int(SLACK * seconds / step_time)


def sleep_and_wake(cluster, run, zombies, followed, seconds):
    """Stops them for `seconds` at least, until they are expelled and more steps
    are made; wakes them. Returns when all are together again: after how long."""
    before = members(followed)
    for peer in zombies:
        os.kill(peer.pid(), signal.SIGSTOP)
    stopped = time.monotonic()
    left = len(cluster.peers) - len(zombies)
    wait_for(lambda: len(followed.status()["peers"]) == left, 60)
    run.advance(5)
    while time.monotonic() < stopped + seconds:
        run.advance(1)
    assert len(followed.status()["peers"]) == left
    for peer in zombies:
        os.kill(peer.pid(), signal.SIGCONT)
    woken = time.monotonic()
    cluster.wait_view(len(cluster.peers), 60)
    back = time.monotonic() - woken
    print(f"  asleep for {woken - stopped:.1f} s, back after {back:.2f} s",
          flush=True)
    after = members(followed)
    for peer in cluster.peers:
        if peer in zombies:
            assert after[peer.name] > before[peer.name], (before, after)
            assert any("expelled" in t for t in log_of(peer)), peer.name
        else:
            assert after[peer.name] == before[peer.name], (before, after)
    return back


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
    return worst


def zombies_of(cluster, folder, count, rounds=1):
    """Peers that work, others than the one where the run is followed; after
    how long they were back, and how far the losses are off."""
    seconds = getattr(cluster, "asleep_s", 0)
    cluster.start_all()
    cluster.wait_view(len(cluster.peers))
    steps = enough(cluster, folder, rounds * seconds)
    calm, _ = undisturbed(cluster, folder, steps)
    run = Run(cluster, folder, steps=steps, width=WIDTH)
    run.advance(5)
    followed = cluster.peers[0]
    back = []
    for _ in range(rounds):
        # Of each stage one at most: another copy stays awake.
        chosen = [next(n for n in names if n != followed.name)
                  for names in places(cluster, followed).values()][:count]
        back.append(sleep_and_wake(
            cluster, run, [p for p in cluster.peers if p.name in chosen],
            followed, seconds))
    worst = finish(run, calm)
    return {"zombies": count * rounds, "back": back, "off": worst}


@scenario
def a_zombie_changes_nothing(cluster, folder):
    return zombies_of(cluster, folder, 1, rounds=2)


@scenario
def a_zombie_changes_nothing_over_tls(cluster, folder):
    return zombies_of(cluster, folder, 1)


a_zombie_changes_nothing_over_tls.flags = ["--fabric.force", "tls"]


@scenario
def two_zombies_change_nothing(cluster, folder):
    return zombies_of(cluster, folder, 2)


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


def half_a_minute(options, name):
    """One scenario in full; its figures."""
    function = SCENARIOS[name]
    with Cluster(options.shoal, getattr(function, "peers", 4),
                 ["--threads", "1", *getattr(function, "flags", [])],
                 options.keep) as cluster:
        cluster.asleep_s = SLEEP_S
        return function(cluster, cluster.work)


def main():
    if "--targets" not in sys.argv:
        return run_scenarios()
    options = options_of("zombie_test.py")
    targets, state = Targets(options), State(options.state)
    for name in MEASURED:
        if name not in state.done:
            print(f"{name}:", flush=True)
            state.keep(name, half_a_minute(options, name))
    done = state.done.values()
    targets.show(f"peers asleep for {SLEEP_S} s, expelled, back as new members",
                 sum(d["zombies"] for d in done))
    targets.at_most("one view of all after they woke, longest",
                    max(t for d in done for t in d["back"]), BACK_S)
    # Had there been one, the scenario would have failed.
    targets.at_most("steps lost or repeated", 0, 0, "", exact=True)
    targets.at_most("losses off by", max(d["off"] for d in done), 1e-3, "",
                    exact=True)
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
