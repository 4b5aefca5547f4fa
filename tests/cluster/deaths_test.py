# tests/cluster/deaths_test.py -- several peers die at once, with what they hold.
#
# Those that compute a job die together, or with all that hold its newest
# checkpoint, and come back seconds later with their disks; pairs of four peers
# die in turn, and in a storm. Checked: no more steps come again than lie
# between two checkpoints, with the losses that they had, whichever peer died; where
# the run waits for a checkpoint, it says for whom. Where nobody comes back, the
# copy of the command that follows the run is restored, or a person ends the wait.
import random
import signal
import subprocess
import sys
import time

from all_killed_test import RUN, TOLERANCE, newest
from cluster import Cluster
from lifecycle_support import kill_together
from processes import Lines
from targets import State, Targets, options_of
from watch import Watch, events_known, train

INTERVAL = 20  # steps between checkpoints
LONG = 3 * INTERVAL  # long enough for each to be copied home at once
DEADLINE_S = 100
STEPS_MAX = 10 * LONG  # until the newest checkpoints are where they stay
SEEDS = 20  # of each row, with --targets

# name: peers, replicas, stages, who dies, seconds until they are back, times
ROWS = {
    "5 peers, 2 replicas: both die": (5, 2, 1, "workers", 3.0, 1),
    "5 peers, 2 replicas: both die, soon back": (5, 2, 1, "workers", 0.3, 1),
    "4 peers, 2 replicas: both die": (4, 2, 1, "workers", 3.0, 1),
    "6 peers, 2 replicas: both and another die": (6, 2, 1, "one more", 3.0, 1),
    "7 peers, 2 replicas: all that hold the checkpoint die":
        (7, 2, 1, "holders", 3.0, 1),
    "4 peers, 2 x 2: pairs in turn": (4, 2, 2, "in turn", 3.0, 4),
    "4 peers, 2 x 2: a storm of pairs": (4, 2, 2, "storm", 0.5, 6),
}
# Those that hold the checkpoint die for good, and this ends the wait.
ENDS = ("the copy at home", "a person")
SHORT = ("5 peers, 2 replicas: both die, soon back",
         "7 peers, 2 replicas: all that hold the checkpoint die",
         "4 peers, 2 x 2: a storm of pairs")


def workers(cluster):
    """The peers that compute the job, by its plan."""
    for peer in cluster.peers:
        if peer.running():
            names = {stage["peer"]
                     for replica in peer.status()["jobs"][0]["places"]
                     for stage in replica}
            return [p for p in cluster.peers if p.name in names]
    raise AssertionError("no peer runs")


def holders(cluster, age=0):
    """The peers whose stores have the newest published checkpoint, or the one
    `age` places before it."""
    known = sorted({(e["epoch"], e["step"], e["digest"])
                    for e in events_known(cluster, "checkpoint")})
    digest = known[-1 - min(age, len(known) - 1)][2]
    return [p for p in cluster.peers
            if any((cluster.root / "stores" / str(p.number)).rglob(digest[2:]))]


def at_home(cluster, watch):
    """Whether the newest checkpoint has been copied home, and the next one is
    not due yet."""
    steps = sorted({e["step"] for e in events_known(cluster, "checkpoint")})
    if len(steps) < 2:
        return False
    watch.now()
    return (watch.next - 1 - steps[-1] < (steps[-1] - steps[-2]) // 2 and
            (cluster.work / "out" / "checkpoint" /
             f"step-{steps[-1]}").is_dir())


def settle(cluster, watch, home=False):
    """Goes on until the two newest checkpoints are at the same peers: a view
    may have moved them, and the one before is new enough to go on from. With
    `home`, the newest has been copied home as well: the run would wait for its
    holders rather than take an older one from there. These peers: of a newer one
    that is published meanwhile one store is the first."""
    for _ in range(STEPS_MAX):
        settled = holders(cluster)
        if settled == holders(cluster, 1) and (
                not home or at_home(cluster, watch)):
            return settled
        watch.advance(1, DEADLINE_S)
    raise AssertionError(f"not settled in {STEPS_MAX} steps")


def victims(cluster, who, rng, number, settled=()):
    computing = workers(cluster)
    if who == "workers":
        return computing
    if who == "one more":
        return computing + [rng.choice([p for p in cluster.peers
                                        if p not in computing])]
    if who == "holders":
        return computing + [p for p in settled if p not in computing]
    if who == "in turn":
        return [cluster.peers[number % 4], cluster.peers[(number + 1) % 4]]
    return rng.sample(cluster.peers, 2)


def one(cluster, watch, rng, row, number, since):
    """Kills; the steps that came again, and when all were started again."""
    _, _, _, who, back_s, _ = row
    watch.advance(rng.randint(2 * INTERVAL, 4 * INTERVAL), DEADLINE_S)
    settled = settle(cluster, watch) if who == "holders" else ()
    dead = victims(cluster, who, rng, number, settled)
    kill_together(dead)
    done = newest(cluster, watch, since, "step")
    signal.sigtimedwait([], back_s)
    started = time.monotonic()
    for peer in dead:
        peer.start()
    cluster.wait_view(len(cluster.peers), 60)
    watch.past(time.monotonic(), 2, DEADLINE_S)
    lost = watch.repeated[-1] if watch.repeated_at and \
        watch.repeated_at[-1] > since else 0
    print(f"  {', '.join(p.name for p in dead)} killed after step {done}: "
          f"{lost} steps again", flush=True)
    return lost, started


def run(options, name, seed):
    row = ROWS[name]
    peers, replicas, stages, who, _, times = row
    rng = random.Random(seed)
    with Cluster(options.shoal, peers, ["--threads", "1"],
                 options.keep) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        run_file.write_text(
            RUN.format(interval=INTERVAL)
            .replace("replicate_degree = 2", f"replicate_degree = {replicas}")
            .replace("parallel_degree = 2", f"parallel_degree = {stages}"),
            encoding="utf-8")
        cluster.start_all()
        cluster.wait_view(peers)
        # More is allowed for, so that it is counted, not fatal.
        watch = train(cluster, run_file, folder / "out", options.data,
                      repeats_max=1000 * INTERVAL, tolerance=TOLERANCE,
                      gaps=True)
        watch.advance(INTERVAL, DEADLINE_S)
        lost, since = [], 0.0
        for number in range(times):
            again, since = one(cluster, watch, rng, row, number, since)
            lost.append(again)
        waited = any("waiting for the checkpoint" in e["text"]
                   for e in events_known(cluster, "notice"))
        watch.process.send_signal(signal.SIGINT)
        watch.process.wait(timeout=DEADLINE_S)
    return {"lost": lost, "said": waited, "deviation": watch.deviation}


def follow(cluster, run_file, folder, data, how):
    """The run by who submits it, or by a command without a copy at home."""
    if how != "a person":
        return train(cluster, run_file, folder / "out", data,
                     repeats_max=1000 * INTERVAL, tolerance=TOLERANCE,
                     gaps=True)
    done = cluster.run(["train", str(run_file), "--data", *data, "--detach",
                        "--data-dir", str(cluster.mine)], 1)
    assert done.returncode == 0, done.stderr
    log = open(cluster.root / "attach.log", "a", encoding="utf-8")
    process = cluster.spawn(
        [cluster.shoal, "attach", "run", "--json", "--data-dir",
         str(cluster.mine)], 1, stdout=subprocess.PIPE, stderr=log)
    return Watch(process, Lines(process.stdout, log),
                 repeats_max=1000 * INTERVAL, tolerance=TOLERANCE, gaps=True)


def said(watch, what):
    """Reads on until the run says so; the line."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        texts = [event.get("text", "") for _, event in watch.others]
        for text in texts:
            if what in text:
                return text
        assert not watch.over and time.monotonic() < deadline, \
            f"not said: '{what}'; step {watch.next - 1}, before:\n" \
            + "\n".join(texts[-20:])
        try:
            watch.step(0.2)
        except TimeoutError:
            pass


def nobody_comes_back(options, how):
    """All that hold the newest checkpoint die for good."""
    with Cluster(options.shoal, 7, ["--threads", "1"],
                 options.keep) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        run_file.write_text(
            RUN.format(interval=LONG)
            .replace("pipeline_parallel_degree = 2",
                     "pipeline_parallel_degree = 1"), encoding="utf-8")
        cluster.start_all()
        cluster.wait_view(7)
        watch = follow(cluster, run_file, folder, options.data, how)
        watch.advance(3 * INTERVAL, DEADLINE_S)
        settled = settle(cluster, watch, home=how != "a person")
        last = watch.next - 1
        dead = victims(cluster, "holders", random.Random(1), 0, settled)
        kill_together(dead)
        said(watch, "waiting for the checkpoint")
        if how == "a person":
            there = next(p for p in cluster.peers if p.running())
            done = cluster.run(["recover", "run", "--data-dir",
                                str(cluster.mine)], there.number)
            assert done.returncode == 0, done.stderr
            assert "It had said: waiting for the checkpoint" in done.stdout, (
                done.stdout)
        else:
            said(watch, "is offered to the job")
        line = said(watch, "resuming at step")
        print(f"{how}: {line}", flush=True)
        step = int(line.split("resuming at step ")[1].split(",")[0])
        assert step == 0 if how == "a person" else step > last - LONG
        # The text has died, too. Who has submitted the run gives it again.
        print(f"{how}: {said(watch, 'here has the job')}", flush=True)
        if how != "a person":
            said(watch, "the job's data is given to")
            watch.past(time.monotonic(), 2, DEADLINE_S)
        for peer in dead:
            peer.start()
        cluster.wait_view(7, 60)
        watch.past(time.monotonic(), 2, DEADLINE_S)
        watch.process.send_signal(signal.SIGINT)
        watch.process.wait(timeout=DEADLINE_S)


def main():
    options = options_of("deaths_test.py",
                         lambda p: p.add_argument("--row", choices=ROWS))
    targets, state = Targets(options), State(options.state)
    names = [options.row] if options.row else ROWS if options.targets else SHORT
    for name in names:
        for seed in range(options.seed,
                          options.seed + (SEEDS if options.targets else 1)):
            if f"{name} {seed}" not in state.done:
                print(f"{name}, seed {seed}", flush=True)
                state.keep(f"{name} {seed}", run(options, name, seed))
        of = [what for key, what in state.done.items()
              if key.rsplit(" ", 1)[0] == name]
        targets.at_most(f"{name}: steps again, most",
                        max(max(o["lost"]) for o in of), INTERVAL, "", exact=True)
        if ROWS[name][3] == "holders":
            targets.at_least(f"{name}: runs that said for whom they wait",
                             sum(o["said"] for o in of), len(of))
        targets.at_most(f"{name}: losses of these differ by",
                        max(o["deviation"] for o in of), TOLERANCE, "",
                        exact=True)
    for how in () if options.row else ENDS:
        nobody_comes_back(options, how)
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
