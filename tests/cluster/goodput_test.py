# tests/cluster/goodput_test.py -- how much of a shoal's work survives kills.
#
# A peer is killed at a fixed interval and started again at once. Goodput =
# committed tokens / integral of the surviving capacity. The capacity of n
# peers is their speed in this same run while nobody is harmed, measured before
# and after; a peer counts until it is killed, and again from its first view as
# a member. Each peer has its share of the processors (quotas.py), so that what
# a dead one leaves is not used by the others.
import json
import random
import signal
import statistics
import sys
import time

from cluster import Cluster
from quotas import can_make_quotas
from targets import State, Targets, options_of, run_text
from watch import train

PEERS = 4
#: Without a step, or until a peer is back: ten times the longest pause that a
#: kill may cause (2 s + 2 T), at T = 0.5 s. Longer is a hang, which counts.
HANG_S = 30
DEADLINE_S = 4 * HANG_S  # longer never ends
#: From its first view as a member until a peer has its state again: a death
#: before is one of two at a time.
STATE_S = 5
GOODPUT = {60: 0.95, 15: 0.90}  # by seconds between kills
MINUTES = {60: 10, 15: 4}
# 30.4 M parameters.
FULL = {"width": 512, "mlp": 1280, "blocks": 10, "heads": 8, "seq": 8,
        "batch": 4, "processors": 0.42, "calm": 20}
SHORT = {"width": 64, "mlp": 176, "blocks": 4, "heads": 4, "seq": 16,
         "batch": 4, "processors": None, "calm": 0.5}


# Where two were down at a time, steps may be run again: not counted twice.
REPEATS_MAX = 1000


class Storm:
    def __init__(self, cluster, watch, rng, calm_s):
        self.cluster, self.watch, self.rng = cluster, watch, rng
        self.calm_s = calm_s
        self.changes = []  # (time, peers that count)
        self.speeds = {}   # peers -> tokens per second, measured
        self.kills = []
        self.alone = {}  # kill -> whether all others were there, with state
        self.back_at = 0.0  # when the last was a member again
        self.back = []     # seconds until a member again
        self.waiting = {}  # peer -> when it was started again
        self.restarted = 0  # when the peer was without which was measured

    def listen(self):
        """Takes in what those that were started again have said."""
        for peer in list(self.waiting):
            for when, line in peer.lines.come():
                assert line is not None, f"{peer.name} ended while it joined"
                event = json.loads(line)
                if event["event"] == "view" and event["member"]:
                    self.back.append(when - self.waiting.pop(peer))
                    self.back_at = when
                    self.changes.append((when, PEERS - len(self.waiting)))
                    break

    def follow(self, until):
        """Follows the run; a peer that hangs is named."""
        while time.monotonic() < until:
            self.listen()
            try:
                assert self.watch.step(min(0.1, max(
                    0.0, until - time.monotonic()))) is not None, "it ended"
            except TimeoutError:
                last = max([self.watch.times[-1], *self.kills[-1:]])
                assert time.monotonic() < last + DEADLINE_S, (
                    f"no step for {DEADLINE_S} s")
            for peer, since in self.waiting.items():
                assert time.monotonic() < since + DEADLINE_S, (
                    f"{peer.name} is not back after {DEADLINE_S} s")

    def kill(self):
        victim = self.rng.choice([p for p in self.cluster.peers
                                  if p not in self.waiting])
        now = time.monotonic()
        self.alone[now] = not self.waiting and now > self.back_at + STATE_S
        victim.kill()
        self.kills.append(now)
        return victim

    def start(self, peer):
        peer.start()
        self.waiting[peer] = time.monotonic()

    def together(self):
        while self.waiting:
            self.follow(time.monotonic() + 0.1)
        self.cluster.wait_view(PEERS)
        self.watch.advance(3, DEADLINE_S)

    def measure(self):
        """The speed of the peers that there are, undisturbed; keeps it."""
        self.watch.advance(2, DEADLINE_S)
        first = len(self.watch.times) - 1
        self.follow(self.watch.times[first] + self.calm_s)
        self.watch.advance(1, DEADLINE_S)
        taken = self.watch.times[-1] - self.watch.times[first]
        tokens = self.watch.tokens[-1] - self.watch.tokens[first]
        count = sum(p.running() for p in self.cluster.peers)
        self.speeds.setdefault(count, []).append(tokens / taken)
        return self.watch.step_time(first)

    def measure_all(self):
        """Of all peers, and of all but one."""
        step_time = self.measure()
        victim = self.kill()
        self.watch.past(self.kills.pop(), 3, DEADLINE_S)
        self.measure()
        self.restarted = time.monotonic()
        self.start(victim)
        self.together()
        return step_time

    def rage(self, seconds, every):
        """The figures of the storm proper."""
        self.back = []
        # As in the storm, where a peer starts again when it is killed: a kill
        # while its state is on its way would be the loss of two at once.
        self.follow(self.restarted + every)
        first = self.watch.numbers[-1]
        self.changes = [(self.watch.times[-1], PEERS)]
        next_kill = time.monotonic()
        end = next_kill + seconds
        while next_kill < end:
            self.follow(next_kill)
            victim = self.kill()
            self.changes.append((self.kills[-1],
                                 PEERS - 1 - len(self.waiting)))
            self.start(victim)
            next_kill += every
        self.follow(end)
        while self.waiting:
            self.follow(time.monotonic() + 0.1)
        self.complete(max(end, self.kills[-1]))
        last = self.watch.numbers[-1]
        tokens, times = self.watch.tokens, self.watch.times
        return (tokens[last - 1] - tokens[first - 1], sorted(self.changes),
                times[last - 1])

    def complete(self, end):
        """Follows the run until a step after that time, and fills the gaps. A
        node that was away tells of steps later than they were."""
        while True:
            self.watch.past(end, 1, DEADLINE_S)
            self.watch.fill(self.cluster)
            if self.watch.times[-1] > end:
                return

    def speed(self, count):
        """Of `count` peers. Fewer than were measured, since one was not back
        when the next was killed: as much less as they are fewer."""
        known = max(count, min(self.speeds))
        return statistics.mean(self.speeds[known]) * count / known

    def capacity(self, changes, end):
        """Its integral; tokens."""
        total = 0.0
        for (since, count), (until, _) in zip(changes,
                                              [*changes[1:], (end, 0)]):
            total += self.speed(count) * (until - since)
        return total

    def pauses(self, changes, end):
        """Of each kill: the longest wait for a step until the next one."""
        times = self.watch.times
        found = []
        for since, until in zip(self.kills, [*self.kills[1:], end]):
            found.append(max(b - a for a, b in zip(times, times[1:])
                             if b > since and a < until))
        return found

    def hangs(self, first, end):
        """Waits that were too long: for a step from the first on, for a peer
        to come back."""
        times = [t for t in self.watch.times if first <= t <= end]
        return (sum(b - a > HANG_S for a, b in zip(times, times[1:]))
                + sum(took > HANG_S for took in self.back))

    def repeated(self):
        """Steps that came again, by whether only one peer was down; the other
        holds what it had."""
        found = {True: 0, False: 0}
        for count, when in zip(self.watch.repeated, self.watch.repeated_at):
            killed = max((k for k in self.alone if k < when), default=None)
            found[self.alone.get(killed, True)] += count
        return found


def one(options, fabric, every, minutes):
    shape = FULL if options.targets else SHORT
    rng = random.Random(f"{options.seed} {fabric} {every}")
    with Cluster(options.shoal, PEERS,
                 ["--threads", "1", "--fabric.force", fabric], options.keep,
                 processors=shape["processors"] and options.share) as cluster:
        folder = cluster.work
        run_file = folder / "run.toml"
        run_file.write_text(run_text(shape, 2, 2),
                            encoding="utf-8")
        cluster.start_all()
        cluster.wait_view(PEERS)
        watch = train(cluster, run_file, folder / "out", options.data,
                      gaps=True, repeats_max=REPEATS_MAX, tolerance=1e-3)
        watch.advance(5, DEADLINE_S)
        storm = Storm(cluster, watch, rng, shape["calm"])
        step_time = storm.measure_all()
        tokens, changes, end = storm.rage(minutes * 60, every)
        deaths = [watch.pause_since(killed, 2) for killed in storm.kills]
        hangs = storm.hangs(changes[0][0], end)
        longest = storm.pauses(changes, end)
        back, repeated = storm.back, storm.repeated()
        alone = sum(storm.alone[killed] for killed in storm.kills)
        cluster.wait_view(PEERS)
        if options.targets:
            step_time = statistics.mean([step_time, storm.measure_all()])
        watch.process.send_signal(signal.SIGINT)
        watch.process.wait(timeout=DEADLINE_S)
        return {"goodput": tokens / storm.capacity(changes, end),
                "kills": len(changes) // 2, "T": step_time,
                "speeds": storm.speeds, "pauses": deaths,
                "longest": longest, "back": back, "hangs": hangs,
                "alone": alone,
                "repeated": repeated[True], "of_two": repeated[False]}


def more(parser):
    parser.add_argument("--fabric", nargs="*", choices=["shm", "tls"],
                        default=["shm", "tls"])
    parser.add_argument("--every", nargs="*", type=int, choices=GOODPUT,
                        default=list(GOODPUT), help="seconds between kills")
    parser.add_argument("--minutes", type=float,
                        help="for each; default: 10, or 4 with 15 s")
    parser.add_argument("--share", type=float, default=FULL["processors"],
                        help="of a processor, for each peer; on a fast one "
                             "less makes a step of 0.3 s (%(default)s)")


def judge(targets, fabric, every, d):
    name = f"{fabric}, a kill each {every} s: "
    speeds = ", ".join(f"{n} peers: {'/'.join(f'{s:.0f}' for s in v)}"
                       for n, v in sorted(d["speeds"].items()))
    print(f"{name}{d['kills']} kills; tokens/s undisturbed: {speeds}; back "
          f"after {statistics.median(d['back']):.2f} s (median), "
          f"{max(d['back']):.2f} s at most")
    targets.at_least(name + "goodput", d["goodput"], GOODPUT[every], "%",
                     judged=False)
    targets.at_most(name + "pause, median", statistics.median(d["pauses"]),
                    0.5 + d["T"])
    targets.show(name + "pause, longest until the next kill", max(d["longest"]),
                 "s")
    targets.at_most(name + "hangs", d["hangs"], 0, "", exact=True)
    targets.at_most(f"{name}steps run again, {d['alone']} times that one peer "
                    "was down alone", d["repeated"], 0, "", exact=True)
    targets.show(name + "steps run again where two were", d["of_two"])
    targets.at_least(name + "step time T", d["T"], 0.3, "s", judged=False)


def main():
    options = options_of("goodput_test.py", more)
    if options.targets and not can_make_quotas():
        print("skipped: no control groups can be made here")
        return 77
    targets, state = Targets(options), State(options.state)
    if options.targets:
        for every in options.every:
            for fabric in options.fabric:
                name = f"{fabric} {every}"
                if name not in state.done:
                    state.keep(name, one(options, fabric, every,
                                         options.minutes or MINUTES[every]))
                judge(targets, fabric, every, state.done[name])
    else:
        for fabric in options.fabric:
            judge(targets, fabric, 15, one(options, fabric, 1, 2 / 60))
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
