# tests/support/processes.py -- what programs say, and nodes that run, or should
# not any more.
#
# Nodes are found by a folder that their command line names. A killed node's
# memory is kept a moment longer by a process with the same command line and
# another name (runtime/host/memory_keeper.hpp).
import os
import queue
import select
import threading
import time

KEEPER = "shoal-memory"


class Lines:
    """Lines of a stream as they come, with the time of their arrival; a copy
    goes to `log`."""

    def __init__(self, stream, log=None):
        self._queue = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(stream, log),
                                        daemon=True)
        self._reader.start()

    def _read(self, stream, log):
        for line in stream:
            now = time.monotonic()
            if log:
                log.write(line)
                log.flush()
            self._queue.put((now, line.rstrip("\n")))
        self._queue.put((time.monotonic(), None))

    def next(self, deadline):
        """(time, line), line None at the end; TimeoutError at the deadline."""
        try:
            return self._queue.get(
                timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError from None

    def come(self):
        """(time, line) of each that has come and that next() has not given."""
        while True:
            try:
                yield self._queue.get_nowait()
            except queue.Empty:
                return

    def join(self):
        """Waits for the end of the stream."""
        self._reader.join()


def of_folder(folder, keepers=False):
    """Nodes whose data is in the folder; or those that keep such nodes'
    memory."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{entry}/comm", encoding="utf-8") as file:
                keeper = file.read().strip() == KEEPER
        except OSError:
            continue  # it has ended
        if keeper == keepers and b"node" in words and any(
                w.startswith(str(folder).encode()) for w in words):
            found.append(int(entry))
    return found


def ends(pid, seconds):
    """Whether a process has ended by then."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:  # readable when it has
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


def left_of(folder, seconds):
    """Which nodes and keepers of the folder do not end."""
    return [pid for keepers in (False, True)
            for pid in of_folder(folder, keepers) if not ends(pid, seconds)]
