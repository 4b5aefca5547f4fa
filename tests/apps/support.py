# tests/apps/support.py -- the program as a user runs it, in a world of its own.
#
# Each World has its own home, so that nodes, keys and caches of the user and
# of other tests are not seen. Waiting is always for a line of output, with a
# deadline that only a broken program meets.
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import processes  # noqa: E402, pylint: disable=wrong-import-position

# What a suite that runs under nohup would hand on to the programs.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Where everything is emulated, SHOAL_HANG_AFTER says more seconds.
DEADLINE_S = int(os.environ.get("SHOAL_HANG_AFTER", "120"))

TINY_RUN = """\
[model]
hidden_size = 32
intermediate_size = 48
num_hidden_layers = 3
num_attention_heads = 2
num_key_value_heads = 1
max_position_embeddings = 256

[training]
steps = 5
seq_len = 32
local_batch_size = 2
global_batch_size = 8

[optimizer]
lr = 1e-2

[validation]
freq = 5
steps = 2
"""


class Process:
    """A program under way, and its lines so far."""

    def __init__(self, command, env, cwd):
        self.child = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        self.lines = []
        self._come = processes.Lines(self.child.stdout)

    def wait_line(self, matches):
        """Returns the next line for which matches(line) holds."""
        while True:
            try:
                _, line = self._come.next(time.monotonic() + DEADLINE_S)
            except TimeoutError:
                raise AssertionError("no such line in time; so far:\n"
                                     + "\n".join(self.lines)) from None
            if line is None:
                raise AssertionError("ended before such a line; so far:\n"
                                     + "\n".join(self.lines))
            self.lines.append(line)
            if matches(line):
                return line

    def come(self):
        """Lines that have come and that nobody has waited for."""
        return [line for _, line in self._come.come() if line is not None]

    def said(self):
        """Its last lines, those that nobody has waited for too."""
        return (self.lines + self.come())[-40:]

    def end(self, signal=None):
        """Signals, waits and returns the exit code."""
        if signal is not None and self.child.poll() is None:
            self.child.send_signal(signal)
        try:
            code = self.child.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError("does not end; so far:\n"
                                 + "\n".join(self.lines)) from None
        self._come.join()
        self.child.stdout.close()
        return code


class World(unittest.TestCase):
    """A test case with its own folder, environment and processes."""

    program = None  # set by main()

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="shoal-test-")
        self.folder = pathlib.Path(self._folder.name)
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SHOAL_", "XDG_", "HF_"))}
        self.env["HOME"] = str(self.folder)
        self.env["TMPDIR"] = str(self.folder)
        # No path that does not exist is looked for on the hub.
        self.env["HF_HUB_OFFLINE"] = "1"
        self._processes = []

    def tearDown(self):
        for process in self._processes:
            if process.child.poll() is None:
                process.child.kill()
                process.child.wait()
            process.child.stdout.close()
        self._folder.cleanup()

    def start(self, *arguments, program=None):
        process = Process([program or self.program, *map(str, arguments)],
                          self.env, self.folder)
        self._processes.append(process)
        return process

    def run_shoal(self, *arguments, env=None, within=DEADLINE_S):
        return subprocess.run(
            [self.program, *map(str, arguments)], cwd=self.folder,
            env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=within,
            errors="replace", check=False)

    def answer_on_terminal(self, answer, *arguments):
        """Runs a command on a terminal of its own, and types `answer`.
        @returns what stood there, and the exit code"""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(self.program, [self.program, *map(str, arguments)],
                      self.env)
        seen, asked = b"", False
        try:
            while more := os.read(terminal, 4096):
                seen += more
                if not asked and b"[y/N]" in seen:
                    asked = True
                    os.write(terminal, answer.encode() + b"\n")
        except OSError:
            pass  # the command has ended
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertTrue(asked, seen)
        return seen.decode(), code

    def succeed(self, *arguments, env=None, within=DEADLINE_S):
        """Runs, expects 0; returns stdout."""
        done = self.run_shoal(*arguments, env=env, within=within)
        if done.returncode != 0:
            said = ["\n".join(p.said()) for p in self._processes]
            self.fail("\n---\n".join([f"exit code {done.returncode}",
                                      done.stderr + done.stdout, *said]))
        return done.stdout

    def refuse(self, code, *arguments, names=(), env=None):
        """Runs, expects `code`, and each of `names` in the error."""
        done = self.run_shoal(*arguments, env=env)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        for name in names:
            self.assertIn(name, done.stderr)
        return done.stderr

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_text_files(self):
        """A small corpus: several files, so that some are held out."""
        for i in range(12):
            self.write(f"text/{i}.txt", "".join(
                f"The {w} of file {i} is {i * k % 17}.\n"
                for k, w in enumerate(["cod", "herring", "sprat"] * 12)))
        return self.folder / "text"

    def processes(self, keepers=False):
        """Of nodes whose data is in this test's folder; or those that keep
        such nodes' memory."""
        return processes.of_folder(self.folder, keepers)

    def assert_ending(self, pids):
        for pid in pids:
            self.assertTrue(processes.ends(pid, DEADLINE_S),
                            "a process is left")

    def tiny_run(self):
        return self.write("tiny.toml", TINY_RUN)

    def train(self, out, *arguments):
        """Trains in one process with --json; returns the events."""
        return self.events(self.succeed(
            "train", self.tiny_run(), "--data", self.write_text_files(),
            "--out", out, "--json", *arguments))

    def assert_documented(self, command, *objects):
        """Each is as the reference says, with its fields and no others."""
        kinds = documented(command)
        for one in objects:
            name = one["event"] if "" not in kinds else ""
            self.assertIn(name, kinds, command)
            self.assertEqual(undocumented(one, kinds[name]), [], one)

    def events(self, stdout):
        """Every line of stdout is a JSON object with an event."""
        events = [json.loads(line) for line in stdout.splitlines()]
        for event in events:
            self.assertIn("event", event)
        return events


GUIDE = pathlib.Path(__file__).parents[2] / "apps" / "guide"


def documented(command):
    """What reference.md says of the JSON that a command prints: for each kind
    of event ("" where there are none) the types of the fields, by path."""
    found, names = {}, []
    for line in (GUIDE / "reference.md").read_text("utf-8").splitlines():
        if line.startswith("#"):
            names = []
            title, _, kinds = line.partition(": ")
            if title.startswith("### JSON of ") and f"`{command}`" in title:
                names = kinds.split(", ")
                for name in names:
                    found[name] = {}
        cells = [cell.strip() for cell in line.split(" | ")]
        if names and line.startswith("| `"):
            for name in names:
                found[name][cells[0].strip("| `")] = cells[1]
    return found


JSON_TYPES = {"text": str, "true or false": bool, "true": bool,
              "whole number": int, "number": (int, float), "object": dict}


def undocumented(value, fields, path=""):
    """Names of fields of an object that are not in the table, are missing
    though they are not optional, or are of another type."""
    wrong = []
    inside = {name[len(path):] for name in fields if name.startswith(path)}
    names = {name.split(".")[0].rstrip("[]") for name in inside}
    for name in names - value.keys():
        if "optional" not in fields[path + name]:
            wrong.append(f"{path}{name} is missing")
    for name, item in value.items():
        kind = fields.get(path + name, "").removesuffix(", optional")
        if not kind:
            wrong.append(f"{path}{name} is not in the reference")
            continue
        if item is None and kind.endswith(" or null"):
            continue
        wanted = JSON_TYPES.get(kind.removesuffix(" or null"), list)
        if not isinstance(item, wanted) or (
                isinstance(item, bool) and wanted is not bool):
            wrong.append(f"{path}{name} is {item!r}, not {kind}")
        below, nested = f"{path}{name}", [item]
        while isinstance(nested[0] if nested else None, list):
            below += "[]"
            nested = [each for some in nested for each in some]
        for each in nested:
            if isinstance(each, dict) and any(f.startswith(below + ".")
                                              for f in fields):
                wrong += undocumented(each, fields, below + ".")
    return wrong


def numbers(events):
    """What of a run must not depend on where and how it ran."""
    return ([(e["step"], e["loss"], e["grad_norm"], e["lr"], e["tokens"])
             for e in events if e["event"] == "step"],
            [(e["step"], e["loss"]) for e in events if e["event"] == "eval"])


def main():
    World.program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
