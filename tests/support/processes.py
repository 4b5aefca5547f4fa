# tests/support/processes.py -- nodes that run, or should not any more.
#
# Found by a folder that their command line names. A killed node's memory is
# kept a moment longer by a process with the same command line and another name
# (runtime/host/memory_keeper.hpp).
import os
import select

KEEPER = "shoal-memory"


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
