# tests/apps/top_test.py -- `shoal top` on a pseudo terminal, beside a real shoal that
# trains and serves.
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

try:
    import pyte
except ImportError:  # installed for Debian's own Python
    print("python3-pyte is not installed: skipped")
    sys.exit(77)

from serving import Serving
from support import DEADLINE_S, TINY_RUN, main

BLOCKS = "▁▂▃▄▅▆▇█"


class Screen:
    """A terminal on which the program runs, with what it shows."""

    def __init__(self, world, columns, rows, *arguments, env=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.size(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.child = subprocess.Popen(
            [world.program, "top", *map(str, arguments)], cwd=world.folder,
            env={**world.env, "TERM": "screen-256color", **(env or {})},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        world.addCleanup(self.close)

    def size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def text(self):
        return "\n".join(self.screen.display)

    def read(self, seconds):
        """Takes what has come; waits for more at most that long."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        more = os.read(self.master, 65536)
        self.raw += more
        self.stream.feed(more)
        return True

    def until(self, holds):
        """Reads until holds(text) of what is shown."""
        end = time.monotonic() + DEADLINE_S
        while not holds(self.text()):
            if time.monotonic() > end or (self.child.poll() is not None
                                          and not self.read(0)):
                raise AssertionError(f"not shown; code {self.child.poll()}:\n"
                                     + self.text())
            self.read(0.2)
        return self.text()

    def wait(self, *parts):
        return self.until(lambda text: all(p in text for p in parts))

    def type(self, keys):
        os.write(self.master, keys.encode())

    def end(self):
        """@returns the exit code, once all that it wrote is read"""
        end = time.monotonic() + DEADLINE_S
        while self.child.poll() is None and time.monotonic() < end:
            self.read(0.1)
        while self.read(0):
            pass
        return self.child.wait(1)

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)
        self.master = self.slave = -1


class Top(Serving):
    def restored(self, screen):
        """The terminal is as it was: its modes, its page and its cursor."""
        self.assertEqual(termios.tcgetattr(screen.slave), screen.before)
        self.assertIn(b"\x1b[?1049l", screen.raw)
        self.assertTrue(screen.raw.rstrip().endswith(b"\x1b[?1l\x1b>")
                        or b"\x1b[?25h" in screen.raw or
                        b"\x1b[34h\x1b[?25h" in screen.raw)

    def test_elsewhere_than_on_a_terminal_it_says_what_to_use(self):
        self.refuse(2, "top", names=["terminal", "shoal status --json"])

    def test_without_a_node_it_leaves_the_terminal_alone(self):
        screen = Screen(self, 80, 24)
        self.assertEqual(screen.end(), 1)
        self.assertIn(b"no node", screen.raw)
        self.assertNotIn(b"\x1b[?1049h", screen.raw)

    def test_a_shoal_that_trains_and_serves(self):
        nodes, at = {}, {}
        for name in ("anna", "ben"):
            self.begin_node(name, nodes, at)
        self.succeed("serve", "m", "--as", "tiny", "--name", "anna", "--detach")
        run = self.write("long.toml", TINY_RUN.replace("steps = 5\nseq",
                                                       "steps = 1000000\nseq"))
        self.succeed("train", run, "--data", self.write_text_files(), "--name",
                     "anna", "--detach")
        screen = Screen(self, 160, 40, "--name", "anna", "--interval", 0.3)
        text = screen.wait("2 up", "anna", "ben", "Peers", "Training jobs",
                           "Served models", "tiny", "active")
        # The curve of a run's loss, its speed, and what both peers use.
        text = screen.until(
            lambda t: sum(t.count(b) for b in BLOCKS) >= 3 and " ETA" in t
            and "train 0 tok/s" not in t and t.count(" %") >= 3)
        status = json.loads(self.succeed("status", "--json", "--name", "anna"))

        def rows(page):
            return [[line for line in page.split("\n") if peer["id"][:8] in line]
                    for peer in status["peers"]]

        # A peer's memory comes with its own answer.
        text = screen.until(lambda t: all("MiB" in "".join(r) for r in rows(t)))
        for row in rows(text):
            self.assertEqual(len(row), 1, text)
            self.assertIn("active", row[0])
        over = threading.Event()
        self.addCleanup(over.set)

        def ask():
            while not over.is_set():
                at["ben"].stream({"model": "tiny", "prompt": "The cod",
                                  "max_tokens": 200, "temperature": 0})
        threading.Thread(target=ask, daemon=True).start()
        # They are another peer's clients: their tokens are its own figure.
        screen.until(lambda t: "serve 0 tok/s" not in t
                     and "serve - tok" not in t)
        over.set()
        for key, part in (("2", "Links of anna"),
                          ("3", "Traffic between peers"), ("4", "CHECKPOINT"),
                          ("5", "PIPELINES"), ("\t", "[1 all]")):
            screen.type(key)
            screen.wait(part)
        screen.type("ss")
        screen.wait("s sort: NAME")
        screen.type("?")
        screen.wait("sort by the next column")
        screen.type("?")
        # 40 columns: names and states, nothing beyond the edge.
        screen.size(40, 14)
        text = screen.until(lambda t: "more below" in t and "ben" in t
                            and "anna" in t and "Peers" in t)
        self.assertIn("2 up", text)
        self.assertTrue(all(len(line) <= 40 for line in text.split("\n")))
        screen.size(100, 30)
        screen.wait("STATE", "ROLE", "q end")
        screen.type("p")
        paused = screen.wait("PAUSED")
        while screen.read(2):
            pass  # what was under way
        self.assertEqual(screen.text(), paused)
        screen.type("p")
        screen.until(lambda t: "PAUSED" not in t)
        # The node dies: it is shown as lost, and found again.
        nodes["anna"].end(signal.SIGKILL)
        screen.wait("LOST", "anna")
        self.begin_node("anna", nodes, at)
        screen.until(lambda t: "LOST" not in t and "member" in t)
        screen.type("q")
        self.assertEqual(screen.end(), 0)
        self.restored(screen)

    def test_ctrl_c_restores_the_terminal_and_no_color_has_none(self):
        nodes, at = {}, {}
        self.begin_node("anna", nodes, at)
        for env in ({}, {"NO_COLOR": "1"}):
            screen = Screen(self, 80, 24, "--name", "anna", env=env)
            screen.wait("member", "1 up", "none; `shoal train` begins one")
            colours = any(screen.screen.buffer[y][x].fg != "default"
                          for y in range(24) for x in range(80))
            self.assertEqual(colours, not env)
            used = self.cpu_of(screen.child.pid)
            for _ in range(4):
                screen.read(0.5)
            self.assertLess(self.cpu_of(screen.child.pid) - used, 0.5)
            screen.type("\x03")
            self.assertEqual(screen.end(), 130)
            self.restored(screen)

    def cpu_of(self, pid):
        """Seconds of processor time."""
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
