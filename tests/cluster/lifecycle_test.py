# tests/cluster/lifecycle_test.py -- nodes that leave, stop, hang and come back.
#
# Each scenario is a claim about what a user sees when processes end in some
# way, checked with real processes: exit codes, `shoal status`, the job's event
# lines, what the logs say, what is left on the machine. Names on the command
# line choose among the scenarios; bounds in seconds are generous, since a
# loaded machine is slow, except where a bound is the claim.
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from lifecycle_support import (Run, ends, kill_together, log_of, places,
                               run_scenarios, scenario, wait_for)


@scenario
def all_leave_at_once_and_come_back(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    for _ in range(2):
        began = time.monotonic()
        for p in cluster.peers:
            os.kill(p.pid(), signal.SIGTERM)
        codes = ends(cluster.peers, 5)
        print(f"  all left in {time.monotonic() - began:.2f} s")
        assert codes == [0] * 4, codes
        cluster.start_all()
        cluster.wait_view(4)


@scenario
def leaving_hands_over(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder)
    run.advance(5)
    leaver = cluster.peers[2]
    began = time.monotonic()
    assert leaver.stop(20) == 0
    print(f"  left in {time.monotonic() - began:.2f} s")
    run.advance(5)
    run.once_each()
    assert not run.said("state lost")
    cluster.wait_view(3)


@scenario
def the_only_copy_is_fetched_from_the_leaver(cluster, folder):
    cluster.start_all()
    cluster.wait_view(3)
    run = Run(cluster, folder, replicas=1)
    run.advance(5)
    names = [p[0] for p in places(cluster, cluster.peers[0]).values()]
    leaver = next(p for p in cluster.peers[1:] if p.name in names)
    began = time.monotonic()
    assert leaver.stop(20) == 0
    print(f"  left in {time.monotonic() - began:.2f} s")
    run.advance(5)
    run.once_each()
    assert not run.said("state lost")


the_only_copy_is_fetched_from_the_leaver.peers = 3


@scenario
def all_leave_during_a_job(cluster, folder):
    """The job is drained with a checkpoint; all exit; the command says so."""
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder)
    step = run.advance(5)
    began = time.monotonic()
    for p in cluster.peers:
        os.kill(p.pid(), signal.SIGTERM)
    codes = ends(cluster.peers, 20)
    print(f"  all left in {time.monotonic() - began:.2f} s")
    assert codes == [0] * 4, codes
    cluster.start_all()
    job = cluster.wait_view(4)["jobs"][0]
    assert job["state"] == "cancelled" and job["done_step"] >= step, job
    code = run.finish(30)
    print(f"  the command: {code}, {run.events[-1]}")
    run.once_each()
    assert [e for e in run.events if e["event"] == "checkpoint"]


@scenario
def one_leaves_alone_with_its_job(cluster, folder):
    cluster.start_all()
    run = Run(cluster, folder, replicas=1, stages=1)
    step = run.advance(5)
    began = time.monotonic()
    assert cluster.peers[0].stop(20) == 0
    print(f"  left in {time.monotonic() - began:.2f} s")
    cluster.start_all()
    job = cluster.peers[0].status()["jobs"][0]
    assert job["state"] == "cancelled" and job["done_step"] >= step, job


one_leaves_alone_with_its_job.peers = 1


def interrupted(cluster, folder, which, own):
    """Stops a run by a signal, resumes it; compares with an undisturbed one."""
    steps = 400
    other = folder / "whole"
    other.mkdir()
    kind = {"own": own, "replicas": 1, "stages": 1 if own else 2}
    run = Run(cluster, folder, steps=steps, **kind)
    run.advance(10)
    began = time.monotonic()
    run.process.send_signal(which)
    code = run.finish(20)
    print(f"  {which.name}: ended in {time.monotonic() - began:.2f} s after "
          f"step {max(run.losses)}: {code}")
    assert code == 130, code
    saved = [e for e in run.events if e["event"] == "checkpoint"]
    assert saved and saved[-1]["step"] == max(run.losses) < steps, saved
    assert (pathlib.Path(saved[-1]["path"]) / "model.safetensors").exists()
    again = Run(cluster, folder, steps=steps, flags=["--resume"], **kind)
    assert again.finish(60) == 0
    whole = Run(cluster, other, steps=steps, **kind)
    assert whole.finish(60) == 0
    assert {**run.losses, **again.losses} == whole.losses
    assert ((run.out / "model.safetensors").read_bytes()
            == (whole.out / "model.safetensors").read_bytes())


@scenario
def interrupt_of_an_embedded_run(cluster, folder):
    interrupted(cluster, folder, signal.SIGINT, own=True)
    second = folder / "second"
    second.mkdir()
    run = Run(cluster, second, own=True, replicas=1, stages=1)
    run.advance(3)
    # As `timeout` and other wrappers do: one press of Ctrl-C, two signals.
    run.process.send_signal(signal.SIGINT)
    run.process.send_signal(signal.SIGTERM)
    assert run.finish(20) == 130
    assert any(e["event"] == "checkpoint" for e in run.events), run.events
    assert (run.out / "model.safetensors").exists()
    run = Run(cluster, second, own=True, replicas=1, stages=1)
    run.advance(3)
    run.process.kill()
    run.process.wait()
    run = Run(cluster, second, own=True, replicas=1, stages=1, steps=5)
    assert run.finish(30) == 0
    left = [f for f in os.listdir(tempfile.gettempdir())
            if f.startswith("shoal-train-")]
    assert not left, left


interrupt_of_an_embedded_run.peers = 0


@scenario
def interrupt_of_a_run_on_nodes(cluster, folder):
    cluster.start_all()
    cluster.wait_view(2)
    interrupted(cluster, folder, signal.SIGTERM, own=False)


interrupt_of_a_run_on_nodes.peers = 2


@scenario
def a_detached_job_outlives_its_node(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, steps=300, flags=["--detach"])
    assert run.finish(20) == 0
    assert run.events[-1]["event"] == "submitted", run.events[-1]
    cluster.peers[0].kill()

    def over():
        job = cluster.peers[1].status()["jobs"][0]
        assert job["state"] in ("running", "done"), job
        return job["state"] == "done" and job
    assert wait_for(over, 60)["done_step"] == 300


@scenario
def a_command_hears_what_its_node_missed(cluster, folder):
    """Its node dies and comes back before the command looks again, and lacks
    the steps between."""
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder)
    run.advance(5)
    node, other = cluster.peers[:2]

    def step():
        return other.status()["jobs"][0]["step"]
    os.kill(run.process.pid, signal.SIGSTOP)
    node.kill()
    killed = step()
    wait_for(lambda: step() > killed + 10)
    node.start()
    node.wait_ready()
    cluster.wait_view(4)
    back = step()
    wait_for(lambda: step() > back + 10)
    os.kill(run.process.pid, signal.SIGCONT)
    run.until(lambda e: e["event"] == "step" and e["step"] > back + 10)
    run.once_each()
    # It misses the last checkpoint, too: the command has it of another one.
    os.kill(run.process.pid, signal.SIGSTOP)
    node.kill()
    done = cluster.run(["cancel", other.status()["jobs"][0]["id"], "--data-dir", str(cluster.mine)],
                       other.number)
    assert done.returncode == 0, done
    node.start()
    node.wait_ready()
    cluster.wait_view(4)
    os.kill(run.process.pid, signal.SIGCONT)
    assert run.finish(60) == 1
    told = [e.get("text", "") for e in run.events if e["event"] == "notice"]
    assert not any("is lost" in t or "before it had" in t for t in told), told
    saved = [e["step"] for e in run.events if e["event"] == "checkpoint"]
    assert saved and saved[-1] == max(run.losses), (saved, max(run.losses))


@scenario
def commands_whose_node_is_gone_say_so(cluster, folder):
    cluster.start_all()
    node = cluster.peers[0]
    run = Run(cluster, folder, replicas=1, stages=1)
    run.advance(3)
    node.kill()
    began = time.monotonic()
    code = run.finish(120)
    print(f"  the command: {code} in {time.monotonic() - began:.1f} s")
    assert code == 1
    began = time.monotonic()
    late = Run(cluster, folder, replicas=1, stages=1)
    assert late.finish(20) == 1
    text = (cluster.root / "train.log").read_text().splitlines()
    print("  " + "\n  ".join(t for t in text if "shoal:" in t))
    assert any("may go on: `shoal attach" in t for t in text), text
    status = cluster.run(["status", "--data-dir", str(cluster.mine)], 1)
    assert status.returncode == 1 and "no node" in status.stderr, status


commands_whose_node_is_gone_say_so.peers = 1


def two_die(cluster, folder, both_copies, interval):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, interval=interval)
    run.advance(25)
    if interval and not any(e["event"] == "checkpoint" for e in run.events):
        run.until(lambda e: e["event"] == "checkpoint")
    stages = list(places(cluster, cluster.peers[0]).values())
    by_name = {p.name: p for p in cluster.peers}
    first = cluster.peers[0].name
    if both_copies:
        names = next(s for s in stages if first not in s)
    else:
        own = next(s for s in stages if first in s)
        rest = next(s for s in stages if first not in s)
        names = [next(n for n in own if n != first), rest[0]]
    kill_together([by_name[n] for n in names])
    killed = time.monotonic()
    return run, killed


@scenario
def one_of_each_stage_dies(cluster, folder):
    # of four, two: exactly half, which is a quorum only with the lowest id
    run, killed = two_die(cluster, folder, False, 0)
    alive = [p for p in cluster.peers if p.running()]
    time_out = time.monotonic() + 15
    while time.monotonic() < time_out:
        if any("no quorum for view" in t for t in log_of(alive[0])):
            break
        if len(alive[0].status()["peers"]) == 2:
            break
    if alive[0].status()["state"] == "waiting":
        print("  no quorum of two: one comes back")
        dead = next(p for p in cluster.peers if not p.running())
        dead.start()
        dead.wait_ready()
    run.advance(5, 30)
    print(f"  goes on {time.monotonic() - killed:.1f} s later")
    run.once_each()
    assert not run.said("state lost")


def both_copies_die(cluster, folder, interval):
    run, _ = two_die(cluster, folder, True, interval)
    alive = [p for p in cluster.peers if p.running()]
    wait_for(lambda: alive[0].status()["state"] == "waiting"
             or len(alive[0].status()["peers"]) == 2)
    if alive[0].status()["state"] == "waiting":
        print("  no quorum of two: one comes back")
        dead = next(p for p in cluster.peers if not p.running())
        dead.start()
        dead.wait_ready()
    lost, waits = "state lost", "waiting for the checkpoint"
    said = run.until(lambda e: lost in e.get("text", "")
                     or waits in e.get("text", ""))
    if waits in said["text"]:  # only the dead have the newest: they come back
        print(f"  {said['text']}")
        for dead in [p for p in cluster.peers if not p.running()]:
            dead.start()
            dead.wait_ready()
        said = run.until(lambda e: lost in e.get("text", ""))
    print(f"  {said['text']}")
    run.now()
    first = run.advance(1)
    steps = [e["step"] for e in run.events if e["event"] == "step"]
    print(f"  steps went to {max(steps)}; now at {first}")
    run.advance(3)
    if interval:
        assert "resuming at step 0" not in said["text"]
    else:
        assert "resuming at step 0" in said["text"]


@scenario
def both_copies_die_with_checkpoints(cluster, folder):
    both_copies_die(cluster, folder, 10)


@scenario
def both_copies_die_without_checkpoints(cluster, folder):
    both_copies_die(cluster, folder, 0)


@scenario
def a_killed_majority(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, interval=10)
    run.advance(25)
    alone = cluster.peers[0]
    kill_together(cluster.peers[1:])

    def waiting_lines():
        return [t for t in log_of(alone) if "no quorum for view" in t]
    wait_for(waiting_lines)
    assert alone.status()["state"] == "waiting"
    table = cluster.run(["status", "--data-dir", str(cluster.mine)], 1).stdout
    assert "waiting" in table, table
    line = waiting_lines()[0]
    assert "recover --force" in line, line
    assert all(p.name in line for p in cluster.peers[1:]), line
    wait_for(lambda: len(waiting_lines()) >= 2, 15)
    # two of four are a quorum only with the lowest id: bring back two
    for p in cluster.peers[1:3]:
        p.start()
    for p in cluster.peers[1:3]:
        p.wait_ready()
    run.until(lambda e: e["event"] == "step", 60)
    run.advance(3)
    # the two die again: force
    cluster.wait_view(3)
    kill_together(cluster.peers[1:3])
    wait_for(lambda: alone.status()["state"] == "waiting")
    old = alone.status()["id"]
    out = cluster.run(["recover", "--force", "--yes", "--data-dir",
                       str(cluster.mine)], 1)
    print(f"  {out.stdout.strip()} {out.stderr.strip()}")
    assert out.returncode == 0
    status = alone.status()
    assert status["id"] != old and len(status["peers"]) == 1
    assert status["jobs"][0]["state"] == "running", status
    run.advance(5, 60)


@scenario
def all_die_and_come_back(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, interval=10)
    run.advance(25)
    kill_together(cluster.peers)
    cluster.start_all()
    cluster.wait_view(4)
    said = run.until(lambda e: "resum" in e.get("text", ""))
    print(f"  {said['text']}")
    run.advance(5, 60)


@scenario
def a_witness_keeps_the_quorum(cluster, folder):
    cluster.peers[2].start(["--witness"])
    for p in cluster.peers[:2]:
        p.start()
    for p in cluster.peers:
        p.wait_ready()
    cluster.wait_view(3)
    run = Run(cluster, folder, stages=1, number=3)
    run.advance(5)
    used = {n for s in places(cluster, cluster.peers[2]).values() for n in s}
    assert used == {"peer1", "peer2"}, used
    for p in cluster.peers[:2]:
        p.kill()
        killed = time.monotonic()
        cluster.wait_view(2)
        run.advance(3)
        print(f"  goes on {time.monotonic() - killed:.1f} s after the kill")
        p.start()
        p.wait_ready()
        cluster.wait_view(3)
        run.advance(20)
    run.once_each()
    assert not run.said("state lost")


a_witness_keeps_the_quorum.peers = 3


@scenario
def refusals_are_clear_and_logs_stay_small(cluster, folder):
    first, second = cluster.peers
    first.start()
    first.wait_ready()
    text = cluster.run(["node", "--data-dir", str(cluster.mine)], 1)
    assert text.returncode == 1 and str(first.pid()) in text.stderr, text
    print(f"  {text.stderr.strip()}")
    # a wrong key: one line on each side
    key = cluster.root / "other.key"
    key.write_bytes(os.urandom(32).hex().encode() + b"\n")
    key.chmod(0o600)
    address = first.status()["address"]
    before = len(log_of(first))
    second.start(["--cluster-key", str(key), "--join", address,
                  "--listen", "127.0.0.1:0"])
    second.wait_ready()
    time_out = time.monotonic() + 8
    wait_for(lambda: time.monotonic() > time_out)
    for p, skip in ((first, before), (second, 0)):
        lines = [t for t in log_of(p)[skip:] if "[network]" in t]
        print(f"  {p.name}: {len(lines)} lines: {lines[:2]}")
        assert 1 <= len(lines) <= 3, lines
    assert second.stop(10) == 0
    # a peer that is gone for long
    second.start()
    second.wait_ready()
    cluster.wait_view(2)
    second.kill()
    time_out = time.monotonic() + 3
    wait_for(lambda: time.monotonic() > time_out)
    before = len(log_of(first))
    time_out = time.monotonic() + 10
    wait_for(lambda: time.monotonic() > time_out)
    grown = log_of(first)[before:]
    print(f"  {len(grown)} lines in 10 s: {grown[:2]}")
    assert len(grown) <= 3, grown


refusals_are_clear_and_logs_stay_small.peers = 2


@scenario
def idle_nodes_use_nothing(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)

    def ticks(pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().split(")")[1]
        return sum(int(x) for x in fields.split()[11:13])
    time_out = time.monotonic() + 3
    wait_for(lambda: time.monotonic() > time_out)
    before = [ticks(p.pid()) for p in cluster.peers]
    time_out = time.monotonic() + 20
    while time.monotonic() < time_out:
        signal.sigtimedwait([], 1)
    used = [(ticks(p.pid()) - b) / os.sysconf("SC_CLK_TCK") / 20 * 100
            for p, b in zip(cluster.peers, before)]
    print("  " + ", ".join(f"{u:.2f} %" for u in used))
    assert max(used) < 1, used
    for p in cluster.peers:
        assert p.stop(10) == 0
    for p in cluster.peers:
        sockets = [f for f in p.store.rglob("*") if f.is_socket()]
        assert not sockets, sockets


@scenario
def a_hung_peer_is_expelled_and_rejoins(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder)
    run.advance(10)
    hung = cluster.peers[2]
    os.kill(hung.pid(), signal.SIGSTOP)
    stopped = time.monotonic()
    others = [p for p in cluster.peers if p is not hung]
    wait_for(lambda: len(others[0].status()["peers"]) == 3, 10)
    print(f"  expelled after {time.monotonic() - stopped:.2f} s")
    run.advance(3, 20)
    print(f"  the run goes on after {time.monotonic() - stopped:.2f} s")
    wait_for(lambda: time.monotonic() > stopped + 10)
    os.kill(hung.pid(), signal.SIGCONT)
    woken = time.monotonic()
    cluster.wait_view(4)
    print(f"  back after {time.monotonic() - woken:.2f} s")
    run.advance(20)
    run.once_each()
    assert any("expelled" in t for t in log_of(hung))


def mount(*arguments):
    done = subprocess.run(["mount", *arguments], capture_output=True,
                          text=True, check=False)
    return done.returncode == 0


def steps_logged(peer):
    """In the file that its node keeps of the only job."""
    [log] = peer.store.glob("jobs/*/events.jsonl")
    events = [json.loads(line) for line in
              log.read_text(encoding="utf-8").splitlines()
              if line.endswith("}")]  # else a full disk has cut it
    return [e["step"] for e in events if e["event"] == "step"]


@scenario
def full_disks_cost_no_model(cluster, folder):
    """One warning, then the last model is kept until there is room for it, and
    so is each line of the logs."""
    text = folder / "text"
    text.write_bytes(bytes(32 + (i * i * 7 + i // 3) % 90
                           for i in range(300_000)))
    disks = [p.store for p in cluster.peers]
    mounted = []
    try:
        for disk in disks:
            if not mount("-t", "tmpfs", "-o", "size=3m", "none", str(disk)):
                print("  skipped: no tmpfs can be mounted here")
                return
            mounted.append(disk)
        cluster.start_all()
        cluster.wait_view(2)
        run = Run(cluster, folder, steps=60, replicas=2, stages=1, interval=10,
                  data=[str(text)])
        run.until(lambda e: "cannot be written" in e.get("text", ""))
        assert len(run.said("could not be written")) == 1, run.events
        assert max(run.losses) == 60
        wait_for(lambda: "cannot be written" in
                 cluster.peers[0].status()["jobs"][0].get("waiting", ""))
        for disk in disks:
            assert mount("-o", "remount,size=64m", str(disk))
        assert run.finish(60) == 0
        assert run.said("checkpoints are written again")
        assert (run.out / "model.safetensors").exists()
        run.once_each()
        for peer in cluster.peers:
            wait_for(lambda p=peer: steps_logged(p) == list(range(1, 61)))
            told = [t for t in log_of(peer) if "what jobs do is not" in t]
            assert len(told) <= 1, told
    finally:
        for peer in cluster.peers:
            if peer.running():
                peer.kill()
        for disk in mounted:
            subprocess.run(["umount", "-l", str(disk)], check=False)


full_disks_cost_no_model.peers = 2


if __name__ == "__main__":
    sys.exit(run_scenarios())
