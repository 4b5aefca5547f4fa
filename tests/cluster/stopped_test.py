# tests/cluster/stopped_test.py -- peers that fall silent without an end.
#
# SIGSTOP; the wire pulled out while bytes are on their way; and the control
# connections cut while shared memory still works. Measured from then on: when
# the others have agreed on a view without the peer, and when what was pending
# has completed: a submission made at that moment is answered, a blob that the
# peer was asked for is given up, and a step is committed without the peer, which
# begins only when all transfers of the step before it have ended. Then it comes
# back, and no step is lost, said twice or made by two. Hosts are network
# namespaces (network.py); exit code 77 without the right to make them.
import json
import os
import signal
import subprocess
import sys
import time

from fetch import Fetch
from hosts_test import Hosts
from lifecycle_support import MODEL
from network import can_make_namespaces, ip
from partition_test import Shoal
from quotas import share_of
from targets import State, Targets, options_of, percentile

PEERS = 4
PROCESSORS = 0.42  # of each, with --targets
AGREED_S = 3.0
PENDING_S = 4.0
ROUNDS = 6  # of each case, with --targets
DEADLINE_S = 60
IN_FLIGHT_MIN = 100_000  # bytes: more than control messages are


def unacknowledged(peer, other):
    """Bytes that are on their way from one host to another."""
    shown = subprocess.run(
        ["nsenter", f"--net=/run/netns/{peer.host.namespace}", "ss", "-tnH"],
        check=True, capture_output=True, text=True).stdout
    found = [line.split() for line in shown.splitlines()]
    ways = (other.host.address + ":", f"[{other.host.address6}]:")
    return sum(int(c[2]) for c in found if c[4].startswith(ways))


def ip_tc(peer, what, *limits):
    """Limits what goes to a host, or no longer; whether the kernel can."""
    return subprocess.run(
        ["ip", "netns", "exec", peer.host.network.switch, "tc", "qdisc", what,
         "dev", f"v{peer.host.number}", "root", *(["tbf"] if limits else []),
         *limits], check=False, capture_output=True).returncode == 0


class Silence:
    """One way to fall silent, and back."""

    def __init__(self, shoal, peer):
        self.shoal, self.peer = shoal, peer
        self.rest = [p for p in shoal.peers if p is not peer]

    def ready(self):
        """Whether this is the moment."""
        return True

    def on_their_way(self):
        return sum(unacknowledged(p, self.peer) for p in self.rest)


class Stop(Silence):
    def begin(self):
        os.kill(self.peer.pid(), signal.SIGSTOP)

    def end(self):
        os.kill(self.peer.pid(), signal.SIGCONT)


class Unplug(Silence):
    """The other end of the host's wire goes down: its own keeps addresses and
    routes, as that of a machine whose cable is pulled does."""

    def __init__(self, shoal, peer):
        super().__init__(shoal, peer)
        # So slow that tensors are under way most of the time.
        self.slow = ip_tc(peer, "add", "rate", "200mbit", "burst", "64kb",
                          "latency", "1s")

    def ready(self):
        return not self.slow or self.on_their_way() >= IN_FLIGHT_MIN

    def wire(self, state):
        ip("-n", self.peer.host.network.switch, "link", "set",
           f"v{self.peer.host.number}", state)

    def begin(self):
        self.wire("down")

    def end(self):
        self.wire("up")
        if self.slow:
            ip_tc(self.peer, "del")


class Cut(Silence):
    """Nothing passes on the network; shared memory does."""

    def begin(self):
        self.shoal.ways([self.peer], self.rest, False)

    def end(self):
        self.shoal.ways([self.peer], self.rest, True)


CASES = {  # how, hosts share no memory, fabric, width of the model
    "stopped, shared memory": (Stop, False, "shm", 64),
    "control link cut, shared memory": (Cut, False, "shm", 64),
    "stopped, TLS": (Stop, True, "tls", 64),
    "link down, TLS": (Unplug, True, "tls", 256),
}
# zombie_test.py and partition_test.py have the others.
SHORT = ["link down, TLS"]


def submission(shoal, at, folder):
    """A small job, submitted at a peer; the process."""
    text = folder / "text"
    if not text.exists():
        text.write_text("It was a small text, and it was enough. " * 2000,
                        encoding="utf-8")
    run = folder / "small.toml"
    run.write_text(MODEL.format(steps=1, replicas=1, stages=1, width=64,
                                blocks=1, enable="false", interval=500),
                   encoding="utf-8")
    return shoal.cluster.spawn(
        [shoal.cluster.shoal, "train", str(run), "--data", str(text),
         "--data.validation_permille", "0", "--detach", "--json", "--data-dir", str(shoal.cluster.mine)],
        at.number, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def agreed(shoal, rest, since):
    """When the last of them told a view of just them; None: not yet."""
    names = sorted(p.name for p in rest)
    told = [next((when for when, e in shoal.said[p.name]
                  if when >= since and e["event"] == "view" and e["member"]
                  and sorted(e["names"]) == names), None) for p in rest]
    return None if None in told else max(told)


def silent(shoal, how, folder):
    """The figures of one time: seconds, and bytes that were on their way."""
    rest = how.rest
    shoal.run.advance(3, DEADLINE_S)
    epoch = max(e["epoch"] for e in shoal.run.events if e["event"] == "view")
    clock = time.time() - time.monotonic()
    shoal.wait("tensors are on their way", how.ready, DEADLINE_S)
    began = time.monotonic()
    how.begin()
    pending = how.on_their_way()
    asked = submission(shoal, rest[-1], folder)
    wanted = Fetch(rest[-1])  # of all, the silent one among them
    came = {}

    def look():
        shoal.listen()
        now = time.monotonic()
        if (when := agreed(shoal, rest, began)) is not None:
            came.setdefault("agreed", when)
        if asked.poll() is not None:
            came.setdefault("submission", now)
        if "fetch" not in came and wanted.ended():
            came["fetch"] = now
        step = next((e for e in shoal.run.events if e["event"] == "step"
                     and e["epoch"] > epoch), None)
        if step:
            came.setdefault("step", step["unix_ms"] / 1e3 - clock)
        return len(came) == 4

    try:
        shoal.wait("an agreement, answers and a step without it", look,
                   DEADLINE_S)
    except AssertionError as e:
        raise AssertionError(f"{e}; what came: {came}") from None
    said = asked.stdout.read()
    assert asked.returncode == 0 and any(
        json.loads(line)["event"] == "submitted"
        for line in said.splitlines() if line.startswith("{")), said
    how.end()
    shoal.whole(time.monotonic())
    return {**{k: t - began for k, t in came.items()}, "bytes": pending}


def case(options, name, rounds):
    how, apart, fabric, width = CASES[name]
    found = []
    with Hosts(options.shoal, apart=apart, count=PEERS,
               processors=share_of(options, PROCESSORS)) as cluster:
        cluster.keep = options.keep
        cluster.node_flags += ["--fabric.force", fabric]
        folder = cluster.work
        shoal = Shoal(cluster, folder, 0, 1 if options.targets else 10, width)
        for number in range(rounds):
            victim = shoal.peers[1 + number % (PEERS - 1)]
            found.append(silent(shoal, how(shoal, victim), folder))
            print("  " + ", ".join(f"{k} {v:.2f} s" if k != "bytes" else
                                   f"{v} bytes on their way"
                                   for k, v in found[-1].items()), flush=True)
        shoal.check()
    return found


def judge(targets, name, found):
    targets.at_most(f"{name}: agreed, longest",
                    max(f["agreed"] for f in found), AGREED_S)
    targets.show(f"{name}: agreed, median",
                 percentile([f["agreed"] for f in found], 0.5), "s")
    targets.at_most(f"{name}: all that was pending completed, longest",
                    max(max(f["submission"], f["fetch"], f["step"])
                        for f in found), PENDING_S)
    targets.show(f"{name}: of these, a fetch from the peer, longest",
                 max(f["fetch"] for f in found), "s")
    if name.startswith("link down"):
        targets.at_least(f"{name}: times with bytes on their way",
                         sum(f["bytes"] >= IN_FLIGHT_MIN for f in found),
                         len(found), judged=False)


def main():
    options = options_of("stopped_test.py")
    if not can_make_namespaces():
        print("skipped: no right to make network namespaces")
        return 77
    targets, state = Targets(options), State(options.state)
    for name in CASES if options.targets else SHORT:
        if name not in state.done:
            print(f"{name}:", flush=True)
            state.keep(name, case(options, name,
                                  ROUNDS if options.targets else 1))
        judge(targets, name, state.done[name])
    code = targets.finish()
    state.forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
