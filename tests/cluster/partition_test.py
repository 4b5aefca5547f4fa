# tests/cluster/partition_test.py -- shoals whose network falls apart.
#
# Hosts are network namespaces (network.py) that throw away what they would
# send to some others. Whatever is cut: two peers never tell different views of
# one number, a minority waits and says so, every step of the run comes once
# and the losses go on falling, and when the network is whole again all are in
# one view, at most TARGET_S later: printed, and judged ten times as generously
# without --targets, since a loaded machine is slow. Names on the command line
# choose among the cases; exit code 77 without the right to make namespaces.
import json
import math
import random
import sys
import time

from history import views
from hosts_test import Hosts, by_multicast, up
from lifecycle_support import Run
from network import can_make_namespaces
from quotas import share_of
from targets import SLACK, State, Targets, options_of, percentile

TARGET_S = 5.0
PROCESSORS = 0.39  # of each, with --targets
CASES = {}
SEED = {"value": 1}


def case(peers, apart=True, fabric="tls", watch=0):
    """`watch`: by id, whose node the run is followed on; it must go on."""
    def add(function):
        CASES[function.__name__] = function, peers, apart, fabric, watch
        return function
    return add


class Shoal:
    """Peers, a run on all of them, and what the peers have said so far."""

    def __init__(self, cluster, folder, watch, slack, width=64):
        self.cluster = cluster
        self.slack = slack
        self.healed = []  # seconds until one view of all, of each time
        self.out = False  # the node where the run is followed, for a while
        self.said = {p.name: [] for p in cluster.peers}  # (time, event)
        up(cluster, by_multicast(cluster))
        listed = cluster.peers[0].status()["peers"]
        by_name = {p.name: p for p in cluster.peers}
        # By id: the first one's half goes on when the halves are equal.
        self.peers = [by_name[p["name"]]
                      for p in sorted(listed, key=lambda p: p["id"])]
        # Every peer that works holds the whole model: any of them may go on.
        self.run = Run(cluster, folder, replicas=min(4, len(self.peers)),
                       stages=1, number=self.peers[watch].number,
                       width=width)
        self.run.advance(5)

    def listen(self):
        """Takes in what the peers have said."""
        for peer in self.cluster.peers:
            for when, line in peer.lines.come():
                assert line is not None, f"{peer.name} ended"
                self.said[peer.name].append((when, json.loads(line)))

    def pass_time(self, seconds):
        """Follows the run for so long."""
        until = time.monotonic() + seconds
        while True:
            try:
                assert self.run.take(until) is not None, "the run ended"
            except TimeoutError:
                return

    def wait(self, what, good, seconds=60):
        until = time.monotonic() + seconds
        while True:
            self.listen()
            value = good()
            if value is not None and value is not False:
                return value
            assert time.monotonic() < until, f"never came: {what}"
            self.pass_time(0.05)

    def view(self, peer):
        """(time, event) of its newest view."""
        return next((s for s in reversed(self.said[peer.name])
                     if s[1]["event"] == "view"), None)

    def one_view_since(self, peers):
        """When these told the newest view, if it is of just them all."""
        views = [self.view(p) for p in peers]
        if (all(views) and all(v["member"] for _, v in views)
                and len({v["digest"] for _, v in views}) == 1
                and sorted(views[0][1]["names"])
                == sorted(p.name for p in peers)):
            return max(when for when, _ in views)
        return None

    def waits(self, peer, since):
        return any(when >= since and event["event"] == "waiting"
                   for when, event in self.said[peer.name])

    def ways(self, some, others, open_, both=True):
        for a in some:
            for b in others:
                (a.host.heal if open_ else a.host.cut)(b.host, both)

    def split(self, going_on, waiting):
        """Cuts the two groups apart: one goes on, the other waits."""
        began = time.monotonic()
        self.ways(going_on, waiting, False)
        self.divided(going_on, waiting, began)

    def divided(self, going_on, waiting, began):
        agreed = self.wait("a view of those that go on",
                           lambda: self.one_view_since(going_on))
        for peer in waiting:
            self.wait(f"{peer.name} says that it waits",
                      lambda p=peer: self.waits(p, began))
            assert peer.status()["state"] == "waiting"
        self.run.advance(3)
        print(f"  {len(going_on)} go on after {agreed - began:.2f} s, "
              f"{len(waiting)} wait", flush=True)

    def whole(self, healed):
        """All come together; prints and judges how long that took."""
        since = self.wait("one view of all", lambda:
                          self.one_view_since(self.peers), TARGET_S * 10)
        took = max(0.0, since - healed)
        print(f"  healed: one view of all after {took:.2f} s "
              f"(target {TARGET_S} s)",
              flush=True)
        self.healed.append(took)
        assert took <= TARGET_S * self.slack, "too long"
        self.run.advance(5)

    def heal(self, some, others, both=True):
        self.ways(some, others, True, both)
        self.whole(time.monotonic())

    def others_know(self, steps):
        """These steps are in the log of some other node."""
        for path in self.cluster.root.glob("stores/*/jobs/*/events.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                event = json.loads(line)
                if event["event"] == "step":
                    steps.discard(event["step"])
        assert not steps, f"nobody knows of {sorted(steps)}"

    def check(self):
        """What holds whatever was cut."""
        steps = [e["step"] for e in self.run.events if e["event"] == "step"]
        assert steps == sorted(set(steps)), f"a step came again: {steps}"
        if not self.out:
            self.run.once_each()
        else:  # whose node was out may lack what was said meanwhile
            self.others_know(set(range(1, steps[-1] + 1)) - set(steps))
        assert not self.run.said("state lost"), self.run.said("state lost")
        losses = [self.run.losses[s] for s in sorted(self.run.losses)]
        assert all(map(math.isfinite, losses))
        tenth = max(1, len(losses) // 10)
        first, last = sum(losses[:tenth]), sum(losses[-tenth:])
        assert last < first, f"the loss does not fall: {first} {last}"
        self.cluster.one_history()
        found, tellings = views(self.cluster.root)
        print(f"  {len(losses)} steps, each once; {tellings} tellings of "
              f"{len(found)} views, no fork", flush=True)


@case(4)
def halves_of_four(shoal):
    one, two, three, four = shoal.peers
    shoal.split([one, four], [two, three])
    shoal.heal([one, four], [two, three])


@case(5, watch=4)
def three_and_two_of_five(shoal):
    # The lowest id is with the two: it is the number that counts.
    low, high = shoal.peers[:2], shoal.peers[2:]
    shoal.split(high, low)
    shoal.heal(high, low)


@case(2)
def of_two_the_lowest_id_goes_on(shoal):
    one, two = shoal.peers
    shoal.split([one], [two])
    shoal.heal([one], [two])


@case(4)
def a_former_majority_waits(shoal):
    """Three of the four of an old view meet, but one of them knows the newer
    view, of two, whose quorum is elsewhere: it waits. The others learn from it
    that they are out, and may at most found a shoal of their own."""
    one, two, three, four = shoal.peers
    shoal.split([one, two], [three, four])
    began = time.monotonic()
    shoal.ways([one], [two], False)
    shoal.ways([two], [three, four], True)
    shoal.divided([one], [two], began)
    shoal.pass_time(10)
    shoal.listen()
    assert shoal.one_view_since([one]) and two.status()["state"] == "waiting"
    assert all(not p.status()["jobs"] or p.status()["state"] == "waiting"
               for p in (two, three, four)), "a second run of the job"
    shoal.heal([one], [two, three, four])


@case(4)
def groups_that_change(shoal):
    one, two, three, four = shoal.peers
    shoal.split([one, two], [three, four])
    began = time.monotonic()
    shoal.ways([one], [two], False)
    shoal.ways([three], [four], False)
    shoal.ways([one], [three], True)
    shoal.ways([two], [four], True)
    shoal.divided([one, three], [two], began)
    shoal.ways([one], [two, four], True)
    shoal.heal([three], [two, four])


@case(4)
def a_peer_that_is_not_heard_waits(shoal):
    """One-way: what it sends is lost, what is sent to it arrives."""
    mute, rest = shoal.peers[2], shoal.peers[:2] + shoal.peers[3:]
    began = time.monotonic()
    shoal.ways([mute], rest, False, both=False)
    shoal.divided(rest, [mute], began)
    shoal.heal([mute], rest, both=False)


@case(4)
def a_peer_that_does_not_hear_waits(shoal):
    """One-way: what the others send to it is lost."""
    deaf, rest = shoal.peers[2], shoal.peers[:2] + shoal.peers[3:]
    began = time.monotonic()
    shoal.ways(rest, [deaf], False, both=False)
    shoal.divided(rest, [deaf], began)
    shoal.heal(rest, [deaf], both=False)


def cut_pairs(peer):
    status = peer.status()
    names = {p["id"]: p["name"] for p in status["peers"]}
    return sorted(sorted(names.get(i, i) for i in pair)
                  for pair in status["cuts"])


def bridged(shoal, some, others, both=True):
    """Groups that reach each other only by the rest: nobody is expelled while
    the rest is a bridge, and the view lists the pairs."""
    wanted = sorted(sorted([a.name, b.name]) for a in some for b in others)
    began = time.monotonic()
    shoal.ways(some, others, False, both)
    shoal.wait("the pairs in every peer's view", lambda: all(
        cut_pairs(p) == wanted for p in shoal.peers))
    shoal.run.advance(3)
    print(f"  {len(wanted)} cut, listed and the run goes on after "
          f"{time.monotonic() - began:.2f} s", flush=True)
    assert {len(p.status()["peers"]) for p in shoal.peers} == {
        len(shoal.peers)}, "somebody was expelled"
    shoal.ways(some, others, True, both)
    healed = time.monotonic()
    shoal.wait("no pair in any view", lambda: all(
        cut_pairs(p) == [] for p in shoal.peers))
    shoal.whole(healed)


@case(3)
def a_bridge_between_two(shoal):
    one, two, three = shoal.peers
    bridged(shoal, [one], [three])


@case(3)
def a_one_way_cut_between_two(shoal):
    one, two, three = shoal.peers
    bridged(shoal, [two], [three], both=False)


@case(5)
def a_bridge_between_pairs(shoal):
    one, two, three, four, five = shoal.peers
    bridged(shoal, [one, two], [four, five])


@case(4)
def flapping(shoal):
    """Cut and healed again faster than anybody can agree, and slower."""
    rng = random.Random(1)
    groups = shoal.peers[:2], shoal.peers[2:]
    for _ in range(8):
        shoal.ways(*groups, False)
        shoal.pass_time(rng.uniform(0.1, 3.0))
        shoal.ways(*groups, True)
        healed = time.monotonic()
        shoal.pass_time(rng.uniform(0.1, 2.0))
    shoal.whole(healed)


@case(5)
def ways_that_come_and_go(shoal):
    """Any way, in any direction, by seed; a peer that is left out comes back."""
    shoal.out = True
    rng = random.Random(SEED["value"])
    pairs = [(a, b) for a in shoal.peers for b in shoal.peers if a is not b]
    for _ in range(8):
        share = rng.choice((0.1, 0.3, 0.6))
        cut = [pair for pair in pairs if rng.random() < share]
        for a, b in cut:
            a.host.cut(b.host, both=False)
        shoal.pass_time(rng.uniform(0.5, 5.0))
        for a, b in cut:
            a.host.heal(b.host, both=False)
        healed = time.monotonic()
        shoal.pass_time(rng.uniform(0.1, 2.0))
    shoal.whole(healed)


@case(4, apart=False, fabric="shm")
def tensors_pass_where_control_messages_do_not(shoal):
    """Shared memory does not mind network namespaces: a peer that is cut off
    could still send tensors, and must not count."""
    off, rest = shoal.peers[1], [shoal.peers[0], *shoal.peers[2:]]
    links = off.status()["links"]
    assert any(m["fabric"] == "shm" and m["sent_bytes"] > 0
               for link in links for m in link["moved"]), links
    shoal.split(rest, [off])
    shoal.heal(rest, [off])


def one(options, name):
    """Seconds until all were in one view again, of each time."""
    function, peers, apart, fabric, watch = CASES[name]
    with Hosts(options.shoal, apart=apart, count=peers,
               processors=share_of(options, PROCESSORS)) as cluster:
        cluster.keep = options.keep
        cluster.node_flags += ["--fabric.force", fabric]
        shoal = Shoal(cluster, cluster.work, watch, SLACK)
        function(shoal)
        shoal.check()
    return shoal.healed


def more(parser):
    parser.add_argument("names", nargs="*", help="of cases; default: all")


def main():
    options = options_of("partition_test.py", more)
    SEED["value"] = options.seed
    if not can_make_namespaces():
        print("skipped: no right to make network namespaces")
        return 77
    targets, state = Targets(options), State(options.state)
    for name in options.names or CASES:
        if name not in state.done:
            print(f"{name}:", flush=True)
            state.keep(name, one(options, name))
    took = [t for times in state.done.values() for t in times]
    targets.show("cuts that were healed", len(took))
    targets.at_most("one view of all after that, longest", max(took), TARGET_S)
    targets.show("one view of all after that, median", percentile(took, 0.5),
                 "s")
    # Had there been one, the case would have failed.
    targets.at_most("forks, steps lost or repeated", 0, 0, "", exact=True)
    code = targets.finish(" ".join(options.names))
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
