# tests/cluster/sieges.py -- what each kind of stranger costs a run: a table.
#
# Three nodes train. For each attack a calm stretch is followed by one under
# attack, one stranger at each port (stranger.cpp); strangers run at the lowest
# priority (--nice), since an attacker on another machine would take no time here. A
# row says
# how often the attack was tried, the steps per second against the calm ones
# before, and the longest gap between two steps. Nobody may be let in, and who
# is a member stays one.
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import time

from cluster import Cluster
from kill_test import run_file
from strangers import ports_of
from watch import Watch

#: By name: what stranger.cpp is to do. More than one address, where it says.
ATTACKS = {
    "connect and reset": ["reset"],
    "reset after one byte": ["one-byte"],
    "slow hello, 400 held": ["slow-hello", "--held", "400"],
    "garbage": ["garbage"],
    "whole handshakes, false proof": ["false-proof"],
    "whole handshakes, 55 of 56 bytes": ["short-proof", "--held", "100"],
    "TLS 1.2 and older": ["old-version"],
    "silent, many addresses": ["silent", "--held", "400", "--crowd"],
    "HTTP, many addresses": ["http", "--crowd"],
    "key updates": ["key-updates"],
    "hello in tiny records": ["tiny-records", "--rate", "33"],
    "beacons": None,  # replayed, with a flipped bit, random
}
#: Steps per second, of the calm ones.
SHARE_MIN = 0.6
#: One connection that kept a whole node busy is why there is this target.
GAP_S_MAX = 1.0
GAP_COUNTS = ("key updates",)
#: Until the door closes any connection, and a second for a loaded machine.
KEPT_S_MAX = 6.0

GROUP, BEACON_PORT = "239.255.83.72", 18372
BEACON_BYTES = 100  # no less than a real one


class Attackers:
    """Processes of stranger.cpp, each at a port, until they are stopped."""

    def __init__(self, program, arguments, ports=(0,), nice=19):
        self.processes = [subprocess.Popen(
            ["nice", "-n", str(nice), str(program), *arguments, "--port",
             str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True) for port in ports]

    def port(self):
        """Of one that serves."""
        return int(self.processes[0].stdout.readline())

    def stop(self):
        """Ends them; what they counted, together."""
        for p in self.processes:
            p.stdin.close()
        return self.counted()

    def counted(self):
        """The same, of those that end by themselves (--seconds)."""
        total = {}
        for p in self.processes:
            line = p.stdout.readlines()[-1]
            assert p.wait(60) == 0, f"a stranger failed: {p.args}"
            for key, value in json.loads(line).items():
                if key == "longest_s":
                    total[key] = max(total.get(key, 0), value)
                elif key != "attack":
                    total[key] = total.get(key, 0) + value
        return total

    def kill(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
                p.wait()


class Beacons:
    """Sends real beacons again, damaged ones and noise: a process."""

    def __init__(self, nice):
        self.process = subprocess.Popen(
            ["nice", "-n", str(nice), sys.executable, __file__, "beacons"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop(self):
        self.process.stdin.close()
        tries = int(self.process.stdout.read())
        assert self.process.wait(60) == 0
        return {"tries": tries, "let_in": 0, "longest_s": 0}

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def heard_beacons(count, seconds):
    """Real beacons of nodes on this machine, as many as come in time."""
    heard = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((GROUP, BEACON_PORT))
        for _, name in socket.if_nameindex():
            try:
                s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                             struct.pack("=4s4si", socket.inet_aton(GROUP),
                                         bytes(4), socket.if_nametoindex(name)))
            except OSError:
                pass  # no IPv4 there
        over = time.monotonic() + seconds
        while len(heard) < count and time.monotonic() < over:
            s.settimeout(max(0.01, over - time.monotonic()))
            try:
                heard.append(s.recv(2048))
            except TimeoutError:
                break
    return heard


def send_beacons():
    """Until standard input ends; prints how many."""
    rng = random.Random(1)
    heard = heard_beacons(200, 5) or [rng.randbytes(BEACON_BYTES)]
    sent = 0
    os.set_blocking(0, False)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                     socket.inet_aton("127.0.0.1"))
        while True:
            try:
                if not os.read(0, 1):
                    break
            except BlockingIOError:
                pass
            for _ in range(100):
                datagram = bytearray(rng.choice(heard))
                kind = rng.randrange(3)
                if kind == 1:
                    datagram[rng.randrange(len(datagram))] ^= (
                        1 << rng.randrange(8))
                elif kind == 2:
                    datagram = rng.randbytes(rng.randrange(1, 1400))
                try:
                    s.sendto(datagram, (GROUP, BEACON_PORT))
                    sent += 1
                except OSError:
                    pass
    print(sent)


def rate(watch, seconds):
    """Steps per second of the next ones, and the longest gap."""
    start = time.monotonic()
    watch.now()
    first = len(watch.times)
    watch.until(start + seconds)
    inside = [t for t in watch.times[max(0, first - 1):]]
    # A step that has not come yet is a gap, too.
    edges = inside + [start + seconds]
    gap = max((b - a for a, b in zip(edges, edges[1:])), default=seconds)
    return (len(watch.times) - first) / seconds, gap


def members(view):
    """Who is in a view, and since which."""
    return sorted((p["id"], p["incarnation"], p["state"])
                  for p in view["peers"])


def siege(options, watch, name, ports):
    calm, _ = rate(watch, max(2, options.seconds / 2))
    arguments = ATTACKS[name]
    attackers = (Beacons(options.nice) if arguments is None else
                 Attackers(options.stranger, arguments, ports, options.nice))
    try:
        steps, gap = rate(watch, options.seconds)
        counted = attackers.stop()
    finally:
        attackers.kill()
    return {"attack": name, "tries": counted["tries"], "calm": calm,
            "share": steps / calm if calm else 0.0, "gap": gap,
            "let_in": counted["let_in"], "kept": counted["longest_s"]}


def missed(row):
    """What of a row is short of a target, in words."""
    out = []
    if row["share"] < SHARE_MIN:
        out.append(f"{row['share']:.2f} of the calm steps per second, target "
                   f"{SHARE_MIN}")
    if row["attack"] in GAP_COUNTS and row["gap"] > GAP_S_MAX:
        out.append(f"a gap of {row['gap']:.2f} s, target {GAP_S_MAX} s")
    if row["kept"] > KEPT_S_MAX:
        out.append(f"a connection was kept for {row['kept']:.1f} s")
    return out


def table(options, names):
    """Prints a row for each attack; 1 if a target was missed."""
    for name in names:
        if name not in ATTACKS:
            sys.exit(f"no such attack: {name}; there are {list(ATTACKS)}")
    cluster = Cluster(options.shoal, 3, ["--threads", "1"], options.keep)
    short = []
    with cluster:
        run = run_file(cluster.work, options.size, 10**7, replicas=3, stages=1)
        cluster.start_all()
        before = cluster.wait_view(3)
        ports = sorted({port for p in cluster.peers
                        for port in ports_of(p.pid())[0]})
        process, lines = cluster.train(
            [str(run), "--data", *options.data, "--out",
             str(cluster.work / "out")])
        watch = Watch(process, lines)
        watch.advance(10)
        print("| attack | tries | steps/s, of the calm | longest gap |\n"
              "|---|---|---|---|", flush=True)
        for name in names or ATTACKS:
            row = siege(options, watch, name, ports)
            wrong = missed(row)
            print(f"| {name} | {row['tries']:,} | {row['share']:.2f} of "
                  f"{row['calm']:.1f} | {row['gap']:.2f} s |"
                  + (" **short**" if wrong else ""), flush=True)
            assert row["let_in"] == 0, f"let in: {row}"
            short += [f"{name}: {w}" for w in wrong]
        after = cluster.wait_view(3)
        assert members(after) == members(before), "somebody left or came"
        logs = max(p.stat().st_size for p in
                   pathlib.Path(cluster.root).glob("peer*.log"))
        print(f"the longest log of a node: {logs / 1e6:.2f} MB")
        os.kill(process.pid, signal.SIGINT)
        process.wait(60)
    print("\n".join(short))
    return 1 if short and options.targets else 0


if __name__ == "__main__":
    send_beacons()
