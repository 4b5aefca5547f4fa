# tests/cluster/jobs_test.py -- several jobs, and the commands about them, on
# real processes.
#
# Scenarios are functions; `jobs_test.py SHOAL NAME...` runs some. Waiting is
# for lines and views, with far deadlines.
import json
import sys
import time

from lifecycle_support import (DATA, MODEL, Run, ends, run_scenarios,
                               scenario, wait_for)


def command(cluster, number, *arguments, code=0, timeout=120):
    done = cluster.run([*arguments, "--data-dir", str(cluster.mine)], number,
                       timeout)
    assert done.returncode == code, (arguments, done.returncode, done.stdout,
                                     done.stderr)
    return done


def jobs(cluster, number=1):
    return json.loads(command(cluster, number, "jobs", "--json").stdout)


def job_named(cluster, name, number=1):
    return next(j for j in jobs(cluster, number) if j["name"] == name)


def run_file(folder, name, steps, replicas=1, stages=1, interval=0, width=64):
    file = folder / f"{name}.toml"
    file.write_text(MODEL.format(
        steps=steps, replicas=replicas, stages=stages, width=width, blocks=4,
        enable="true" if interval else "false", interval=interval or 500),
        encoding="utf-8")
    return str(file)


def detach(cluster, number, folder, name, steps, *flags, **shape):
    """Submits and returns the job's id, from the JSON line."""
    done = command(cluster, number, "train",
                   run_file(folder, name, steps, **shape), "--data", *DATA,
                   "--detach", "--json", *flags)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return next(e["job"] for e in lines if e["event"] == "submitted")


@scenario
def a_detached_run_is_fetched_from_any_peer(cluster, folder):
    cluster.start_all()
    cluster.wait_view(2)
    job = detach(cluster, 1, folder, "calm", 30)
    listed = job_named(cluster, "calm", 2)
    assert listed["id"] == job and listed["steps"] == 30, listed
    out = folder / "fetched"
    done = command(cluster, 2, "attach", job[:6], "--out", str(out), "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [e["step"] for e in events if e["event"] == "step"]
    assert steps == list(range(1, 31)), steps
    assert (out / "model.safetensors").exists()
    listed = job_named(cluster, "calm")
    assert listed["state"] == "done" and listed["step"] == 30, listed
    assert isinstance(listed["loss"], float), listed
    # Later, by name, by the other peer, and the same bytes.
    command(cluster, 1, "attach", "calm", "--out", str(folder / "again"))
    assert ((folder / "again" / "model.safetensors").read_bytes()
            == (out / "model.safetensors").read_bytes())
    table = command(cluster, 1, "jobs").stdout
    assert "calm" in table and "30/30" in table, table
    wrong = command(cluster, 1, "attach", "nothing", code=1).stderr
    assert "shoal jobs" in wrong, wrong


a_detached_run_is_fetched_from_any_peer.peers = 2


@scenario
def a_cancelled_run_says_how_to_go_on(cluster, folder):
    cluster.start_all()
    cluster.wait_view(2)
    run = Run(cluster, folder, replicas=1, stages=2)
    step = run.advance(3)
    done = command(cluster, 2, "cancel", "out")
    assert "cancelled" in done.stdout, done.stdout
    assert run.finish() == 1
    end = next(e for e in run.events if e["event"] == "done")
    assert end["state"] == "cancelled" and end["step"] >= step, end
    said = (cluster.root / "train.log").read_text(encoding="utf-8")
    assert "--resume" in said, said
    assert (run.out / "checkpoint" / f"step-{end['step']}").is_dir()
    again = command(cluster, 2, "cancel", "out", code=1).stderr
    assert "ended already" in again, again


a_cancelled_run_says_how_to_go_on.peers = 2


@scenario
def peers_leave_by_command(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder)
    run.advance(3)
    done = command(cluster, 2, "leave")
    assert "has left" in done.stdout, done.stdout
    done = command(cluster, 1, "leave", "peer3")
    assert "has left" in done.stdout, done.stdout
    assert ends([cluster.peers[1], cluster.peers[2]], 30) == [0, 0]
    for p in (cluster.peers[0], cluster.peers[3]):
        wait_for(lambda p=p: len(p.status()["peers"]) == 2, 30)
    run.advance(5)
    run.once_each()
    assert not run.said("state lost"), run.said("state lost")
    wrong = command(cluster, 1, "leave", "nobody", code=1).stderr
    assert "nobody" in wrong, wrong
    run.process.terminate()
    run.finish()


@scenario
def a_job_of_higher_priority_takes_what_it_needs(cluster, folder):
    # Room for one of the two jobs: each stage needs 5 to 9 MB.
    cluster.start_all()
    cluster.wait_view(2)
    low = Run(cluster, folder, replicas=1, stages=2)
    low.advance(3)
    folder_high = folder / "high"
    folder_high.mkdir()
    file = run_file(folder_high, "high", 40, stages=2)
    process, lines = cluster.train(
        [file, "--data", *DATA, "--out", str(folder_high / "high"),
         "--priority", "5"], 2)
    high = Run.__new__(Run)
    high.cluster, high.out = cluster, folder_high / "high"
    high.events, high.losses = [], {}
    high.process, high.lines = process, lines
    waits = low.until(lambda e: "waiting" in e.get("text", ""))
    print(f"  low: {waits['text']}")
    submitted = wait_for(lambda: job_named(cluster, "high"))
    assert submitted["priority"] == 5, submitted
    low.now()
    # What low committed after the view that has the other job: at most 10.
    views = [i for i, e in enumerate(low.events) if e["event"] == "view"]
    after = [e for e in low.events[views[-1]:] if e["event"] == "step"]
    assert len(after) <= 10, after
    assert "waiting" in job_named(cluster, "out"), jobs(cluster)
    assert high.finish(120) == 0
    step = low.advance(3)  # it has its peers back
    print(f"  low goes on at step {step}")
    low.once_each()
    assert not low.said("state lost"), low.said("state lost")
    command(cluster, 1, "cancel", "out")
    low.finish()


a_job_of_higher_priority_takes_what_it_needs.peers = 2
a_job_of_higher_priority_takes_what_it_needs.flags = ["--memory", "9M"]


@scenario
def jobs_of_one_priority_share_the_peers(cluster, folder):
    cluster.start_all()
    cluster.wait_view(2)
    first = detach(cluster, 1, folder, "first", 60, stages=2)
    second = detach(cluster, 2, folder, "second", 60, stages=2)
    for name in (first, second):
        command(cluster, 1, "attach", name, "--out", str(folder / name))
    # The same data, seed and shape: the same losses, side by side or not.
    a, b = (job_named(cluster, n) for n in ("first", "second"))
    assert a["state"] == b["state"] == "done", (a, b)
    assert a["loss"] == b["loss"], (a, b)


jobs_of_one_priority_share_the_peers.peers = 2


@scenario
def a_text_outlives_the_node_that_took_it(cluster, folder):
    # Room for one of the two jobs: ours waits, and only the submitter's node
    # has its text.
    for p in cluster.peers[:3]:
        p.start(["--memory", "8M"])
    for p in cluster.peers[:3]:
        p.wait_ready()
    cluster.wait_view(3)
    detach(cluster, 2, folder, "first", 100000, "--priority", "5", stages=3)
    run = Run(cluster, folder, steps=5, replicas=1, stages=2,
              data=["/usr/include/linux"])
    run.until(lambda e: "memory" in e.get("text", ""))
    # Its socket is below one path for all: the command moves by address.
    cluster.peers[0].kill()
    run.until(lambda e: "lost the node at" in e.get("text", ""))
    wait_for(lambda: len(cluster.peers[1].status()["peers"]) == 2)
    cluster.peers[3].start()
    cluster.peers[3].wait_ready()
    assert run.finish(120) == 0
    assert (run.out / "model.safetensors").exists()
    command(cluster, 2, "cancel", "first")


@scenario
def ended_jobs_give_their_disk_back(cluster, folder):
    cluster.start_all()
    peer = cluster.peers[0]
    run = Run(cluster, folder, steps=6, replicas=1, stages=1, interval=2)
    assert run.finish() == 0
    resumed = Run(cluster, folder, steps=9, replicas=1, stages=1,
                  flags=["--resume"])
    assert resumed.finish() == 0
    working = list(peer.store.glob("jobs/from-*"))
    wait_for(lambda: not list(peer.store.glob("jobs/from-*")))
    assert not list(peer.store.glob("jobs/writing-*")), working
    # What a crash has left goes at the next start.
    left = peer.store / "jobs" / "writing-1-1"
    left.mkdir()
    peer.kill()
    peer.start()
    peer.wait_ready()
    wait_for(lambda: not left.exists())


ended_jobs_give_their_disk_back.peers = 1


@scenario
def node_lines_have_fields(cluster, folder):
    cluster.start_all()
    deadline = time.monotonic() + 30
    while True:
        _, line = cluster.peers[0].lines.next(deadline)
        event = json.loads(line)
        if event["event"] == "view" and event["peers"] == 2:
            break
    assert event["epoch"] >= 1 and event["member"] is True, event
    assert sorted(event["names"]) == ["peer1", "peer2"], event
    assert event["jobs"] == 0, event


node_lines_have_fields.peers = 2


if __name__ == "__main__":
    sys.exit(run_scenarios())
