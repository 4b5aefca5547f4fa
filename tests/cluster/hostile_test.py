# tests/cluster/hostile_test.py -- strangers at every port while a run goes on.
#
# Four nodes train; strangers at their ports send random bytes and frames,
# replay a real session, are too long, speak other versions, open 1,000
# connections and leave 5,000 half-open. Others are strangers to TLS itself:
# messages of it after the handshake, hellos in tiny records, whole handshakes
# with false proofs; and every node dials servers that do the same. Calm and
# hostile stretches of steps alternate. Shows that nobody is let in, the view
# does not change, a member still gets in, memory stays bounded, the logs stay
# short and every step comes once. The step time against the undisturbed one is
# printed, and held against the target (+20 %) only with --targets: the
# strangers take processor time of this machine, too.
#
# --table [ATTACK ...] tries the attacks one by one instead, --seconds each, and
# prints what each costs (sieges.py); with --targets its targets count.
import argparse
import os
import pathlib
import random
import signal
import statistics
import sys
import threading

from cluster import Cluster
from kill_test import run_file
from sieges import Attackers, members, table
from strangers import Recorder, Strangers, let_in, more_descriptors, ports_of
from watch import Watch

# What a node may grow by: 256 places of at most 40 KiB, and what the
# allocator keeps of it. The run's own buffers are there before.
MEMORY_KIB_MAX = 64 * 1024
# A node's lines about views and members, and what strangers may make it write:
# 20 lines at once and one a second, of at most 300 bytes, for an hour.
LOG_BYTES_MAX = 1 << 20
# What stranger.cpp does in each round, at each port.
OF_TLS = (("key-updates",), ("tiny-records",), ("false-proof",),
          ("short-proof", "--held", "50"), ("http", "--crowd"))
OF_TLS_S = 1


def peak_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(
            encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("no VmHWM")


def ups(cluster):
    """How often a node's TLS fabric has let somebody in, clients included."""
    return sum(text.count(" up at ") for text in (
        path.read_text(encoding="utf-8", errors="replace")
        for path in cluster.root.glob("peer*.log")))


class Siege:
    """Attacks until it is stopped, port by port."""

    def __init__(self, strangers, ports, seed, connections, half_open, held,
                 program):
        self.strangers, self.ports, self.seed = strangers, ports, seed
        self.program = program
        self.connections, self.half_open = connections, half_open
        self.held = held
        self.count = {}
        self.rounds = 0
        self.errors = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            rng = random.Random(self.seed)
            self._crowds()
            while not self.over.is_set():
                self._round(rng)
                self.rounds += 1
        except Exception as e:  # pylint: disable=broad-except
            self.errors.append(repr(e))

    def _add(self, name, count):
        self.count[name] = self.count.get(name, 0) + count

    def _crowds(self):
        tcp, _ = self.ports
        share = [self.connections // len(tcp), self.half_open // len(tcp)]
        for name, each in zip(("connections", "half-open"), share):
            held = []
            for port in tcp:
                held += self.strangers.many(port, each,
                                            max(50, self.held // len(tcp)))
                self._add(name, each)
            for s in held:
                s.close()

    def _round(self, rng):
        tcp, udp = self.ports
        s = self.strangers
        for port in tcp:
            for attack in (s.random_bytes, s.random_records, s.random_frames,
                           s.replay, s.oversize, s.other_version):
                try:
                    self._add(attack.__name__, attack(port, rng))
                except OSError:
                    pass  # the backlog is full
        for port in udp:
            self._add("datagrams", s.datagrams(port, rng))
        for attack in OF_TLS:
            counted = Attackers(self.program, [*attack, "--seconds",
                                               str(OF_TLS_S)], tcp).counted()
            self._add(attack[0], counted["tries"])
            if counted["let_in"]:
                let_in.append((attack, counted))

    def stop(self):
        self.over.set()
        self.thread.join(120)
        assert not self.thread.is_alive(), "an attack hangs"
        assert not self.errors, self.errors


def stretch(watch, steps, until=lambda: True):
    """The median time of the next `steps`, or of those until `until()` holds."""
    watch.now()
    first = len(watch.times)
    watch.advance(steps)
    while not until():
        watch.advance(1)
    times = watch.times[first:]
    return statistics.median(b - a for a, b in zip(times, times[1:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shoal")
    parser.add_argument("--stranger", type=pathlib.Path,
                        help="the program of stranger.cpp")
    parser.add_argument("--table", nargs="*", metavar="ATTACK",
                        help="one by one, what each costs; none: all")
    parser.add_argument("--seconds", type=float, default=25,
                        help="of each attack of the table")
    parser.add_argument("--nice", type=int, default=19,
                        help="of the strangers of the table")
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--stretches", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40, help="per stretch")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--half-open", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", nargs="*", default=["/usr/include/c++"])
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.stranger = options.stranger or (
        pathlib.Path(options.shoal).parent / "tests/cluster/stranger")
    if options.table is not None:
        return table(options, options.table)
    servers = [Attackers(options.stranger, [name])
               for name in ("serve-key-updates", "serve-tickets")]
    try:
        return under_siege(options, servers)
    finally:
        for s in servers:
            s.kill()


def asks(cluster, address):
    """Whether a client that holds the key is answered at an address."""
    asked = cluster.run(["status", "--peer", address, "--json"], 1)
    assert asked.returncode == 0, asked.stderr


def stretches(options, cluster, strangers, ports, watch):
    """Calm and hostile step times, in turn, and what the strangers did."""
    held = more_descriptors()
    os.nice(19)  # who attacks from elsewhere takes no time here
    calm, hostile, count = [], [], {}
    for turn in range(options.stretches):
        calm.append(stretch(watch, options.steps))
        siege = Siege(strangers, ports, options.seed + turn,
                      options.connections, options.half_open, held,
                      options.stranger)
        hostile.append(stretch(watch, options.steps, lambda s=siege:
                               s.rounds > 0 or s.errors))
        if turn + 1 == options.stretches:
            # A peer that comes now gets in, at the first port it knows.
            asks(cluster, cluster.peers[0].status()["peers"][0]["addresses"][0])
        siege.stop()
        for name, number in siege.count.items():
            count[name] = count.get(name, 0) + number
    assert count["half-open"] >= options.half_open - 4
    assert all(count.get(attack) for attack in (
        "random_bytes", "random_records", "random_frames", "replay",
        "oversize", "other_version", "datagrams",
        *(a[0] for a in OF_TLS))), count
    print(f"ports {ports}: {count}")
    return statistics.median(calm), statistics.median(hostile)


def under_siege(options, servers):
    dialled = [f"127.0.0.1:{s.port()}" for s in servers]
    cluster = Cluster(options.shoal, 4, ["--threads", "1", *(
        word for d in dialled for word in ("--join", d))], options.keep)
    with cluster:
        folder = cluster.work
        # The run is stopped when all has been seen.
        run = run_file(folder, options.size, 100000)
        cluster.start_all()
        view = cluster.wait_view(4)
        ports = [ports_of(p.pid()) for p in cluster.peers]
        tcp = sorted({port for t, _ in ports for port in t})
        udp = sorted({port for _, u in ports for port in u})
        assert len(tcp) >= 4, f"ports: {tcp}"
        # A real session, of a client who holds the key, for the replays.
        recorder = Recorder(ports[0][0][0])
        asks(cluster, recorder.address())
        assert len(recorder.bytes) > 500
        strangers = Strangers(folder, bytes(recorder.bytes))

        process, lines = cluster.train(
            [str(run), "--data", *options.data, "--out", str(folder / "out")])
        watch = Watch(process, lines)
        watch.advance(10)
        started = cluster.wait_view(4)
        admitted = ups(cluster)
        assert admitted >= 12, "the nodes' lines are not as they were"
        before = [peak_kib(p.pid()) for p in cluster.peers]
        calm, hostile = stretches(options, cluster, strangers, (tcp, udp),
                                  watch)
        grown = [peak_kib(p.pid()) - b for p, b in zip(cluster.peers, before)]
        ended = cluster.wait_view(4)
        watch.now()
        print(f"step time {hostile:.4f} s against {calm:.4f} s undisturbed, "
              f"{hostile / calm:.2f}x (target 1.20); memory grew by at most "
              f"{max(grown)} KiB")
        assert not let_in, f"let in: {let_in}"
        # The client that came meanwhile, and nobody else.
        assert ups(cluster) == admitted + 1, "somebody is up who should not be"
        # Views may follow what links carry; who is in them stays.
        for then in (view, started):
            assert members(ended) == members(then), "somebody left or came"
        assert max(grown) <= MEMORY_KIB_MAX, f"memory grew: {grown} KiB"
        logs = [p.stat().st_size for p in cluster.root.glob("peer*.log")]
        assert max(logs) <= LOG_BYTES_MAX, f"logs grew: {logs}"
        served = [s.stop() for s in servers]
        print(f"as servers: {served}")
        assert all(s["tries"] for s in served), "nobody dialled the servers"
        assert not options.targets or hostile <= 1.2 * calm, \
            "steps take too long"
        os.kill(process.pid, signal.SIGINT)  # the run: the view was watched
        process.wait(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
