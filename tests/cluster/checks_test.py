# tests/cluster/checks_test.py -- what the scripts here check can fail.
#
# Each thing that a test may leave behind is left behind once, each fork is
# written once, and a run that takes too long is cut once: it must be found,
# and only that. Without nodes: what stands for one has a cluster's folder in
# its environment.
import json
import os
import mmap
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import history
import left
import targets
from cluster import Cluster

HOLD = """
import os, socket, sys
memory = os.memfd_create("shoal")
os.ftruncate(memory, 4096)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(memory, listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


class Left(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory(prefix="shoal-checks-")
        self.held = left.Held()
        self.node = subprocess.Popen(
            [sys.executable, "-c", HOLD], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ, XDG_DATA_HOME=self.root.name))
        self.memory, self.port = map(int, self.node.stdout.readline().split())
        self.held.note(self.node.pid)

    def tearDown(self):
        self.end()
        self.node.stdout.close()
        self.root.cleanup()

    def end(self):
        self.node.stdin.close()
        self.node.wait(timeout=60)

    def processes(self):
        return left.processes(self.root.name, 0)

    def test_nothing_is_left_of_what_has_ended(self):
        self.end()
        self.assertEqual(self.processes(), [])
        self.assertEqual(self.held.left(), [])

    def test_a_process(self):
        self.assertIn(str(self.node.pid), self.processes()[0])
        self.assertEqual(left.processes(self.root.name + "x", 0), [])

    def test_a_process_that_ends_soon_is_waited_for(self):
        self.node.stdin.close()
        self.assertEqual(left.processes(self.root.name), [])

    def test_a_port(self):
        self.assertIn(f"tcp port {self.port}", self.held.left())

    def test_a_descriptor_of_shared_memory(self):
        other = os.open(f"/proc/{self.node.pid}/fd/{self.memory}", os.O_RDWR)
        self.end()
        what = f"shared memory held by process {os.getpid()}"
        self.assertEqual(self.held.left(), [what])
        os.close(other)
        self.assertEqual(self.held.left(), [])

    def test_mapped_shared_memory(self):
        other = os.open(f"/proc/{self.node.pid}/fd/{self.memory}", os.O_RDWR)
        self.end()
        with mmap.mmap(other, 4096):
            os.close(other)
            self.assertEqual(len(self.held.left()), 1)
        self.assertEqual(self.held.left(), [])

    def test_a_listener_that_was_handed_on(self):
        ours, theirs = socket.socketpair()
        self.held.sockets.add(os.fstat(theirs.fileno()).st_ino)
        self.end()
        self.assertEqual(self.held.left(),
                         [f"sockets held by process {os.getpid()}"])
        ours.close()
        theirs.close()

    def test_the_end_of_a_cluster_fails(self):
        with self.assertRaisesRegex(AssertionError, "left behind.*process"):
            with Cluster("true", 0) as cluster:
                sleeper = subprocess.Popen(
                    [sys.executable, "-c", HOLD], env=cluster.environment,
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
                usual, left.KEEPER_S = left.KEEPER_S, 0.0
        left.KEEPER_S = usual
        sleeper.communicate(b"", timeout=60)


def step(number, assignment, ms, loss=1.0, data=0):
    return {"event": "step", "step": number, "epoch": assignment, "loss": loss,
            "grad_norm": 2.0, "data": data or number, "unix_ms": ms}


class Forks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="shoal-checks-")
        self.root = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def node(self, name, events=(), views=()):
        jobs = self.root / "stores" / name / "jobs" / "00a"
        jobs.mkdir(parents=True)
        (jobs / "events.jsonl").write_text(
            "".join(json.dumps(e) + "\n" for e in events) + '{"event": "st',
            encoding="utf-8")
        (self.root / f"{name}.1.log").write_text("[node] up\n" + "".join(
            json.dumps({"event": "view", "shoal": s, "epoch": e, "digest": d})
            + "\n" for s, e, d in views), encoding="utf-8")

    def found(self, count, text=""):
        wrong = history.forks(self.root)
        self.assertEqual(len(wrong), count, wrong)
        self.assertTrue(all(text in line for line in wrong), wrong)

    def test_one_history_is_none(self):
        self.node("1", [step(1, 1, 10), step(2, 1, 20), step(3, 4, 40)],
                  [("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")])
        # It heard of a step only later.
        self.node("2", [step(1, 1, 10), step(2, 1, 60), step(3, 4, 41)],
                  [("a", 1, "x"), ("a", 2, "y")])
        self.found(0)

    def test_two_views_of_one_number(self):
        self.node("1", views=[("a", 2, "x")])
        self.node("2", views=[("a", 2, "y")])
        self.found(1, "view 2 of shoal a")

    def test_two_results_of_a_step(self):
        self.node("1", [step(1, 1, 10)])
        self.node("2", [step(1, 1, 10, loss=1.5)])
        self.found(1, "results")

    def test_other_samples(self):
        lost = {"event": "notice", "text": "state lost: nobody holds unit 1"}
        self.node("1", [step(1, 1, 10)])
        self.node("2", [lost, step(1, 2, 20, data=7)])
        self.found(1, "samples")

    def test_who_goes_on_alone(self):
        self.node("1", [step(1, 1, 10), step(2, 1, 30)])
        self.node("2", [step(1, 1, 10), step(2, 2, 20)])
        wrong = history.forks(self.root)
        self.assertTrue(any("committed after" in w for w in wrong), wrong)

    def test_a_step_again_without_a_loss(self):
        self.node("1", [step(1, 1, 10), step(2, 1, 20), step(2, 2, 30)])
        self.found(1, "run again")

    def test_a_step_again_after_a_loss(self):
        lost = {"event": "notice", "text": "state lost: nobody holds unit 1"}
        self.node("1", [step(1, 1, 10), step(2, 1, 20), lost, step(2, 2, 30)])
        self.found(0)

    def test_the_end_of_a_cluster_fails(self):
        with self.assertRaisesRegex(AssertionError, "a fork"):
            with Cluster("true", 0) as cluster:
                self.root = cluster.root
                self.node("1", views=[("a", 2, "x")])
                self.node("2", views=[("a", 2, "y")])
        shutil.rmtree(self.root)  # kept, since it failed


CUT = """
import signal
import sys
sys.path.insert(0, {here!r})
import targets
targets.LIMIT_S = 0.2
options = targets.options_of("cut")
state = targets.State(options.state)
if "first" not in state.done:
    state.keep("first", 1)
    with targets.without_limit():
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        print("whole", flush=True)
    signal.pause()
state.keep("second", 2)
figures = targets.Targets(options)
figures.at_most("sum", sum(state.done.values()), 3, "")
code = figures.finish()
state.forget()
sys.exit(code)
"""


class Limit(unittest.TestCase):
    def test_a_run_that_takes_too_long_is_cut_and_goes_on(self):
        with tempfile.TemporaryDirectory(prefix="shoal-checks-") as folder:
            here = str(pathlib.Path(__file__).resolve().parent)
            script = pathlib.Path(folder) / "cut.py"
            script.write_text(CUT.format(here=here), encoding="utf-8")
            state = pathlib.Path(folder) / "new" / "state"
            results = pathlib.Path(folder) / "new" / "results"
            command = [sys.executable, str(script), sys.executable, "--targets",
                       "--state", str(state), "--results", str(results)]

            def run(*more):
                return subprocess.run([*command, *more], text=True, timeout=60,
                                      capture_output=True, check=False)
            cut = run()
            self.assertEqual(cut.returncode, targets.UNFINISHED, cut.stderr)
            self.assertIn("whole", cut.stdout)
            self.assertIn("--state", cut.stdout)
            other = run("--seed", "2")  # other options: from the start
            self.assertEqual(other.returncode, targets.UNFINISHED, other.stderr)
            again = run("--seed", "2")
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertIn("sum: 3", again.stdout)
            self.assertFalse(state.exists())
            self.assertIn("sum 3 (3)", targets.table(results))
            known = run("--seed", "2")  # until the results are removed
            self.assertEqual(known.returncode, 0, known.stderr)
            self.assertIn("measured before", known.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
