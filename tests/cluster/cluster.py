# tests/cluster/cluster.py -- real shoal processes for tests.
#
# Every peer lives in a mount namespace of its own: its data directory is
# bind-mounted at the same path for all, and the directories of the others are
# hidden, so that no file is shared by accident. Without the right to make
# namespaces the peers share the file system (isolated is then False).
#
# Everything started here is ended by pid in close(), which says what is left:
# processes, ports and shared memory (left.py). At the end of a test that went
# well the logs of all nodes must tell one history (history.py).
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
# pylint: disable=wrong-import-position
import history
import left
from processes import Lines
from quotas import Quotas
from targets import OutOfTime, without_limit


class Peer:
    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.name = f"peer{number}"
        self.store = cluster.root / "stores" / str(number)
        self.store.mkdir(parents=True)
        self.process = None
        self.starts = 0
        self.host = cluster.network.hosts[number - 1] if cluster.network \
            else None

    def start(self, flags=(), stdin=None, program=None):
        """`program`: another build of shoal."""
        self.starts += 1
        log = open(self.cluster.root / f"{self.name}.{self.starts}.log", "w",
                   encoding="utf-8")
        command = [program or self.cluster.shoal, "node", "--http", "off",
                   "--data-dir",
                   str(self.cluster.mine), "--name", self.name,
                   "--cluster", self.cluster.cluster, "--json",
                   *self.cluster.node_flags, *flags]
        self.process = self.cluster.spawn(command, self.number, share=True,
                                          stdin=stdin, stdout=subprocess.PIPE,
                                          stderr=log)
        self.lines = Lines(self.process.stdout, log)

    def wait_ready(self, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            when, line = self.lines.next(deadline)
            if line is None:
                raise RuntimeError(f"{self.name} ended before it was ready; "
                                   f"see {self.cluster.root}")
            if json.loads(line)["event"] == "ready":
                return when

    def pid(self):
        """The node itself, below unshare and the shell that became it."""
        return self.process.pid

    def kill(self):
        self.cluster.held.note(self.pid())
        os.kill(self.pid(), signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=30):
        self.cluster.held.note(self.pid())
        os.kill(self.pid(), signal.SIGTERM)
        return self.process.wait(timeout=seconds)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def status(self):
        out = self.cluster.run(["status", "--data-dir", str(self.cluster.mine),
                                "--json"], self.number)
        return json.loads(out.stdout) if out.returncode == 0 else None


def in_use(shared):
    """Whether a process that lives, of another test say, maps such a file."""
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps, encoding="utf-8", errors="replace") as lines:
                if "/dev/shm/" + shared in lines.read():
                    return True
        except OSError:
            pass  # it has ended meanwhile, or is another user's
    return False


def train_command(arguments):
    """`shoal train --json`. What an earlier run has left in --out is moved
    aside: many tests train again and again."""
    return ["train", *arguments, "--json",
            *([] if "--resume" in arguments else ["--overwrite"])]


def print_log_ends(folder, lines=8, width=300):
    """The last lines of each log of a test that failed, and where all are."""
    said = [f"  logs: {folder}"]
    for log in sorted(folder.glob("*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        said += [f"  {log.name}:"]
        said += [f"    {line[:width]}" for line in text.splitlines()[-lines:]]
    print("\n".join(said), flush=True)


class Cluster:
    #: Whether a node may end by itself, or at its end by the watchdog, so that
    #: its socket stays.
    may_end = False

    def __init__(self, shoal, peers, node_flags=(), keep=False, hosts=None,
                 processors=None):
        """`hosts`: what makes a Network in a folder; None: this host.
        `processors`: as many each node may use (quotas.py); None: all."""
        self.shoal = str(pathlib.Path(shoal).resolve())
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="shoal-cluster-"))
        self.mine = self.root / "mine"
        self.mine.mkdir()
        #: For what a test writes; it goes when all have ended.
        self.work = self.root / "work"
        self.work.mkdir()
        self.cluster = self.root.name
        self.node_flags = list(node_flags)
        self.keep = keep
        self.isolated = self._can_isolate()
        self.environment = dict(os.environ,
                                XDG_CONFIG_HOME=str(self.root / "config"),
                                XDG_CACHE_HOME=str(self.root / "cache"),
                                XDG_DATA_HOME=str(self.root / "data"))
        self.started = []
        self.network = hosts(self.root) if hosts else None
        self.processors = processors
        self.quotas = Quotas(f"{self.cluster}-")
        self.held = left.Held()
        self.shm_before = set(os.listdir("/dev/shm"))
        self.peers = [Peer(self, n) for n in range(1, peers + 1)]

    @staticmethod
    def _can_isolate():
        try:
            probe = subprocess.run(["unshare", "--mount", "true"],
                                   capture_output=True, check=False)
        except FileNotFoundError:
            return False
        return probe.returncode == 0

    def _limit(self, command, number):
        if self.processors is None:
            return command
        group = self.quotas.share(str(number), self.processors)
        if group is None:
            raise RuntimeError("no control groups can be made here")
        return ["sh", "-c", f"echo $$ > '{group}' && exec \"$@\"", "sh",
                *command]

    def _isolate(self, command, number):
        if not self.isolated:
            own = str(self.root / "stores" / str(number))
            return [own if c == str(self.mine) else c for c in command]
        script = ('mount --bind "$1" "$2" && mount -t tmpfs none "$3" '
                  '&& shift 3 && exec "$@"')
        inside = ["sh", "-c", script, "sh",
                  str(self.root / "stores" / str(number)), str(self.mine),
                  str(self.root / "stores"), *command]
        if self.network:
            return self.network.hosts[number - 1].command(inside)
        return ["unshare", "--mount", "--propagation", "private", *inside]

    def spawn(self, command, number, share=False, **options):
        command = self._isolate(command, number)
        if share:
            command = self._limit(command, number)
        process = subprocess.Popen(command, text=True, env=self.environment,
                                   **options)
        self.started.append(process)
        return process

    def run(self, arguments, number, timeout=60):
        return subprocess.run(self._isolate([self.shoal, *arguments], number),
                              text=True, env=self.environment, timeout=timeout,
                              capture_output=True, check=False)

    def start_all(self):
        for peer in self.peers:
            peer.start()
        return max(peer.wait_ready() for peer in self.peers)

    def wait_view(self, count, seconds=30):
        """Waits until every running peer sees one view of `count` peers."""
        deadline = time.monotonic() + seconds
        seen = None
        while time.monotonic() < deadline:
            seen = [p.status() for p in self.peers if p.running()]
            if (all(seen) and len({s["epoch"] for s in seen}) == 1
                    and all(len(s["peers"]) == count for s in seen)):
                self.note_held()
                return seen[0]
        raise TimeoutError(f"no view of {count} peers: "
                           f"{[s and len(s['peers']) for s in seen]}")

    def train(self, arguments, number=1):
        """Starts `shoal train --json`; returns (process, lines)."""
        log = open(self.root / "train.log", "a", encoding="utf-8")
        process = self.spawn(
            [self.shoal, *train_command(arguments), "--data-dir",
             str(self.mine)], number, stdout=subprocess.PIPE, stderr=log)
        return process, Lines(process.stdout, log)

    def audit(self, out):
        """What `shoal audit` finds of a run: each step has used its own
        samples, or this fails."""
        result = subprocess.run([self.shoal, "audit", str(out), "--json"],
                                capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, (result.stdout, result.stderr)
        found = json.loads(result.stdout)
        assert found["proven"], found
        return found

    def train_alone(self, arguments):
        """`shoal train --json` without a node: in the command's process, which
        sees no node's directory."""
        home = self.root / "alone"
        home.mkdir(exist_ok=True)
        log = open(self.root / "alone.log", "a", encoding="utf-8")
        process = subprocess.Popen(
            [self.shoal, *train_command(arguments)], text=True,
            env=dict(self.environment, XDG_DATA_HOME=str(home)),
            stdout=subprocess.PIPE, stderr=log)
        self.started.append(process)
        return process, Lines(process.stdout, log)

    def __enter__(self):
        return self

    @without_limit()
    def __exit__(self, wrong, *_):
        """Ends all peers, in order if nothing was wrong; then nothing may be
        left behind, and there was one history. Else the logs stay and are
        named."""
        good = False
        try:
            if wrong is None:
                for peer in self.peers:
                    if peer.running():
                        code = peer.stop(60)
                        assert code == 0 or self.may_end, (
                            f"{peer.name} ended with {code}")
                self.one_history()
                good = True
        finally:
            self.keep = self.keep or not (good or wrong is OutOfTime)
            remains = self.sockets() if good and not self.may_end else []
            remains += self.close()
            if self.keep:
                print_log_ends(self.root)
        assert not (good and remains), f"left behind: {remains}"

    def one_history(self):
        """Fails if the logs of the nodes tell of more than one."""
        wrong = history.forks(self.root)
        assert not wrong, f"a fork: {wrong}"

    def note_held(self):
        """What is to be looked for when the nodes are gone."""
        for peer in self.peers:
            if peer.running():
                self.held.note(peer.pid())

    def sockets(self):
        """Of nodes that have ended: those in order take theirs along, and
        those that were killed have been started again since."""
        return [str(p) for p in self.root.rglob("*") if p.is_socket()]

    @without_limit()
    def close(self):
        """Ends all that was started here; what is left of it, in words."""
        self.note_held()
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        remains = left.processes(self.root) + self.held.left()
        if self.network:
            self.network.close()
        self.quotas.close()
        remains += self.shared_left()
        if not self.keep:
            shutil.rmtree(self.root, ignore_errors=True)
        return remains

    def shared_left(self):
        """Files of shared memory that are nobody's. Those of a node that another
        test has just killed are there until its keeper has removed them."""
        deadline = time.monotonic() + left.KEEPER_S
        while True:
            found = sorted(
                "/dev/shm/" + name for name in os.listdir("/dev/shm")
                if name not in self.shm_before and not in_use(name)
                # Another test's: a folder, or gone by now.
                and os.path.isfile("/dev/shm/" + name))
            if not found or time.monotonic() >= deadline:
                return found
