# tests/cluster/traces.py -- what nodes are doing, from their traces, live.
#
# Each node writes its trace (`shoal node --trace`) to a pipe that one thread
# here reads; what it had written before it was killed is still read, so that
# open_spans() afterwards says what it was doing when it died.
import json
import os
import select
import threading
import time


class Trace:
    """The trace of one process of a node."""

    def __init__(self, reader, path):
        os.mkfifo(path)
        self.path = path
        # For both: the pipe then has an end while no node writes.
        self.file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.rest = b""
        self.open = {}  # (row, name) -> [arguments], innermost last
        self.stack = {}  # row -> [name]
        self.begun = {}  # name -> time of the newest begin
        self.took = {}  # name -> durations, the newest last
        self.lost = 0
        reader.add(self)

    def take(self):
        """Reads what is there. Of the reader's thread, or under its lock."""
        while True:
            try:
                more = os.read(self.file, 1 << 16)
            except BlockingIOError:
                return
            *lines, self.rest = (self.rest + more).split(b"\n")
            for line in lines:
                if len(line) > 1:
                    self._event(json.loads(line.rstrip(b",")))

    def _event(self, e):
        phase = e["ph"]
        if phase in "Bb":
            row = e.get("tid", e.get("id"))
            self.open.setdefault((row, e["name"]), []).append(
                (e["ts"], e.get("args", {})))
            if phase == "B":
                self.stack.setdefault(row, []).append(e["name"])
            self.on_begin(e["name"], e.get("args", {}), e["ts"])
        elif phase in "Ee":
            row = e.get("tid", e.get("id"))
            name = e["name"] if phase == "e" else self.stack[row].pop()
            begun = self.open.get((row, name))
            if begun:  # else its begin was lost, or it was never opened
                when, arguments = begun.pop()
                self.took.setdefault(name, []).append((e["ts"] - when) / 1e6)
                self.on_end(name, arguments, e["ts"])
        elif e["name"] == "lost_events":
            self.lost += e["args"]["count"]

    def on_begin(self, name, arguments, micros):
        """Called for each span that begins, on the reader's thread."""

    def on_end(self, name, arguments, micros):
        """As on_begin."""

    def open_spans(self):
        return {name for (_, name), spans in self.open.items() if spans}

    def close(self):
        os.close(self.file)


class Reader:
    """Reads traces on a thread of its own."""

    def __init__(self):
        self.lock = threading.RLock()
        self.traces = []
        self.poll = select.epoll()
        self.ended = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def add(self, trace):
        with self.lock:
            self.traces.append(trace)
            self.poll.register(trace.file, select.EPOLLIN)

    def drop(self, trace):
        """Reads what is left of it, and no more after that."""
        with self.lock:
            if trace not in self.traces:
                return
            trace.take()
            self.traces.remove(trace)
            self.poll.unregister(trace.file)
            trace.close()

    def _read(self):
        try:  # of this thread alone: a busy machine must not hold it up
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
        except PermissionError:
            pass
        while not self.ended:
            ready = {f for f, _ in self.poll.poll(1.0)}
            with self.lock:
                for trace in list(self.traces):
                    if trace.file in ready:
                        trace.take()

    def close(self):
        self.ended = True
        self.thread.join()
        for trace in list(self.traces):
            self.drop(trace)
        self.poll.close()


def at_monotonic(micros):
    """A time of a trace, on the clock of time.monotonic()."""
    return micros / 1e6 - (time.time() - time.monotonic())
