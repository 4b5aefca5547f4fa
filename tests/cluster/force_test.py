# tests/cluster/force_test.py -- `recover --force`, and the peers that return.
#
# The shoal that was made by force keeps its jobs; what was left of the old one
# joins it, alone or as the quorum that it still is, and brings the jobs that
# the forced peer had missed (runtime/core/cluster/force.cpp).
import os
import signal
import subprocess
import sys

from lifecycle_support import (Run, kill_together, log_of, run_scenarios,
                               scenario, wait_for)


def together(cluster):
    """Starts all, until each is a member with a vote."""
    cluster.start_all()
    wait_for(lambda: all(q["state"] == "active" for q in
                         cluster.wait_view(len(cluster.peers))["peers"]))


def force(cluster, alone):
    """Makes a shoal of one that waits; the ids of the old one and of that."""
    wait_for(lambda: (alone.status() or {}).get("state") == "waiting")
    old = alone.status()["id"]
    done = cluster.run(["recover", "--force", "--yes", "--data-dir",
                        str(cluster.mine)], alone.number)
    assert done.returncode == 0, done.stderr
    assert "waited for the old one's quorum nothing is done" in done.stdout
    made = alone.status()["id"]
    assert made != old
    return old, made


def jobs_that_run(peer):
    return [j for j in peer.status()["jobs"] if j["state"] == "running"]


@scenario
def a_quorum_that_returns_dissolves_into_the_forced_shoal(cluster, folder):
    """The job is the new shoal's alone: of one that both know, the two would
    run steps of their own until they meet it."""
    together(cluster)
    alone, *others = cluster.peers
    kill_together(others)
    old, made = force(cluster, alone)
    run = Run(cluster, folder, interval=10)
    run.advance(15)
    # While it hears nothing, the two find each other: two of three are one.
    os.kill(alone.pid(), signal.SIGSTOP)
    for p in others:
        p.start()
    for p in others:
        p.wait_ready()
    wait_for(lambda: all(p.status()["state"] == "member"
                         and len(p.status()["peers"]) == 2
                         and p.status()["id"] == old for p in others))
    os.kill(alone.pid(), signal.SIGCONT)
    assert cluster.wait_view(3)["id"] == made
    for p in cluster.peers:
        assert p.status()["id"] == made, p.name
        assert len(jobs_that_run(p)) == 1, p.status()["jobs"]
    run.advance(10)
    run.once_each()
    assert all(any("this shoal joins shoal" in t for t in log_of(p))
               for p in others)


@scenario
def two_that_return_to_the_forced_shoal_join_it(cluster, folder):
    together(cluster)
    run = Run(cluster, folder, interval=10)
    run.advance(15)
    alone, *others = cluster.peers
    kill_together(others)
    _, made = force(cluster, alone)
    for p in others:
        p.start()
    for p in others:
        p.wait_ready()
    assert cluster.wait_view(3)["id"] == made
    assert len(jobs_that_run(alone)) == 1
    run.advance(10)


@scenario
def a_cancel_that_waited_ends_nothing_in_the_forced_shoal(cluster, folder):
    """It was asked in a shoal that has no quorum, and reaches none of it."""
    together(cluster)
    run = Run(cluster, folder, interval=10)
    run.advance(15)
    alone, waits, gone = cluster.peers
    # In this order: a death is seen at once, and two could agree on it.
    os.kill(alone.pid(), signal.SIGSTOP)
    gone.kill()
    wait_for(lambda: waits.status()["state"] == "waiting")
    plan = cluster.run(["plan", "--data-dir", str(cluster.mine)], waits.number)
    assert plan.returncode == 0, plan
    assert "no quorum" in plan.stderr and "as present" in plan.stderr, plan
    job = waits.status()["jobs"][0]["id"]
    asks = cluster.spawn([cluster.shoal, "cancel", job, "--data-dir",
                          str(cluster.mine)], waits.number,
                         stderr=subprocess.PIPE)
    assert "waiting for it. no quorum" in asks.stderr.readline()
    os.kill(waits.pid(), signal.SIGSTOP)
    os.kill(alone.pid(), signal.SIGCONT)
    _, made = force(cluster, alone)
    os.kill(waits.pid(), signal.SIGCONT)
    said = asks.communicate(timeout=60)[1]
    assert asks.returncode == 1, said
    assert "in the one that it has joined it goes on" in said, said
    gone.start()
    gone.wait_ready()
    assert cluster.wait_view(3)["id"] == made
    run.advance(10)


@scenario
def a_peer_that_waits_brings_its_jobs_along(cluster, folder):
    together(cluster)
    alone, *others = cluster.peers
    alone.kill()
    cluster.wait_view(2)
    # Of two the one with the lower id is a quorum; the other one waits.
    returns = max(others, key=lambda p: p.status()["self"])
    run = Run(cluster, folder, interval=10, number=returns.number,
              flags=["--detach", "--checkpoint.patience_seconds", "0"])
    assert run.finish(60) == 0, run.events
    wait_for(lambda: returns.status()["jobs"][0]["step"] > 20)
    job = returns.status()["jobs"][0]["id"]
    kill_together(others)
    alone.start()  # it waits, so it is not ready
    _, made = force(cluster, alone)
    assert alone.status()["jobs"] == []
    returns.start()
    returns.wait_ready()
    assert cluster.wait_view(2)["id"] == made
    assert any("asking to join that one" in t for t in log_of(returns))
    wait_for(lambda: jobs_that_run(alone))
    assert [j["id"] for j in jobs_that_run(alone)] == [job]
    step = alone.status()["jobs"][0]["step"]
    wait_for(lambda: alone.status()["jobs"][0]["step"] > step + 10, 60)


@scenario
def a_half_that_went_on_asks_though_all_its_nodes_restarted(cluster, folder):
    """It lost its run without a question: none of its processes had been there
    when the other half was forced."""
    together(cluster)
    alone, *others = cluster.peers
    run = Run(cluster, folder, interval=10, number=others[0].number,
              flags=["--detach", "--checkpoint.patience_seconds", "0"])
    assert run.finish(60) == 0, run.events
    wait_for(lambda: others[0].status()["jobs"][0]["step"] > 15, 60)
    alone.kill()
    old = cluster.wait_view(2)["id"]
    step = others[0].status()["jobs"][0]["step"]
    wait_for(lambda: others[0].status()["jobs"][0]["step"] > step + 10, 60)
    for p in others:
        os.kill(p.pid(), signal.SIGSTOP)
    alone.start()  # it waits, so it is not ready
    _, made = force(cluster, alone)
    os.kill(alone.pid(), signal.SIGSTOP)
    for p in others:
        os.kill(p.pid(), signal.SIGCONT)
    for p in others:
        p.kill()
        p.start()
        p.wait_ready(60)
    wait_for(lambda: all(p.status()["state"] == "member"
                         and p.status()["id"] == old for p in others), 60)
    step = others[0].status()["jobs"][0]["step"]
    os.kill(alone.pid(), signal.SIGCONT)
    wait_for(lambda: any("has gone on" in t and "`shoal cancel`" in t
                         for p in others for t in log_of(p)), 60)
    wait_for(lambda: others[0].status()["jobs"][0]["step"] > step + 10, 60)
    assert all(p.status()["id"] == old for p in others)
    assert alone.status()["id"] == made
    # The user decides: without the job, that half joins.
    done = cluster.run(["cancel", "run", "--data-dir", str(cluster.mine)],
                       others[0].number)
    # It has ended there; that half may have joined before the command saw it.
    assert done.returncode == 0 or "it goes on" in done.stderr, done.stderr
    assert cluster.wait_view(3, 60)["id"] == made


TEXT_MIN = 8 << 20  # bytes; the files of checkpoints are smaller


def large_files(peer):
    return [f for f in (peer.store / "blobs").rglob("*")
            if f.is_file() and f.stat().st_size >= TEXT_MIN]


@scenario
def a_run_that_ended_in_the_old_half_ends_in_the_forced_shoal(cluster, folder):
    """Its last checkpoint is all that is left of it: nobody has its text, and
    there is no step to take it for."""
    together(cluster)
    run = Run(cluster, folder, interval=10, steps=150, replicas=1,
              flags=["--detach", "--checkpoint.patience_seconds", "0"])
    assert run.finish(60) == 0, run.events
    wait_for(lambda: all(p.status()["jobs"][0]["step"] > 15
                         for p in cluster.peers), 60)
    others = [p for p in cluster.peers if large_files(p)]
    alone, = (p for p in cluster.peers if p not in others)
    alone.kill()
    wait_for(lambda: others[0].status()["jobs"][0]["state"] == "done", 120)
    kill_together(others)
    for text in (f for p in others for f in large_files(p)):
        text.unlink()  # as the nodes do, minutes after the end
    alone.start()  # it waits, so it is not ready
    _, made = force(cluster, alone)
    assert len(jobs_that_run(alone)) == 1, alone.status()["jobs"]
    for p in others:
        p.start()
    assert cluster.wait_view(3, 60)["id"] == made
    wait_for(lambda: alone.status()["jobs"][0]["state"] == "done", 60)
    assert alone.status()["jobs"][0]["step"] == 150, alone.status()["jobs"]


for each in (a_quorum_that_returns_dissolves_into_the_forced_shoal,
             two_that_return_to_the_forced_shoal_join_it,
             a_cancel_that_waited_ends_nothing_in_the_forced_shoal,
             a_peer_that_waits_brings_its_jobs_along,
             a_half_that_went_on_asks_though_all_its_nodes_restarted,
             a_run_that_ended_in_the_old_half_ends_in_the_forced_shoal):
    each.peers = 3
for each in (a_half_that_went_on_asks_though_all_its_nodes_restarted,
             a_run_that_ended_in_the_old_half_ends_in_the_forced_shoal):
    each.two_histories = True


if __name__ == "__main__":
    sys.exit(run_scenarios())
