# tests/cluster/left.py -- what nodes have, and who has it when they are gone.
#
# A node is known by its folder, which is in its environment and in that of
# all it starts: its memory keeper, too (runtime/host/memory_keeper.hpp). Its sockets
# and its shared memory, which has no name in any folder, are known by their
# inodes: Held notes them while it lives and looks for them afterwards, in the
# descriptors and memory of all processes that this user may see, and among the
# ports that the kernel has open on this host.
import os
import pathlib
import re
import select
import time

KEEPER_S = 10.0  # a killed node's keeper ends by itself, 0.2 s later
MEMORY = "/memfd:shoal"  # transport/shm/segment.cpp
INODE = re.compile(r"^socket:\[(\d+)\]$")
TABLES = ["tcp", "tcp6", "udp", "udp6"]
LISTENS = "0A"  # a TCP socket's state in these tables


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def of_root(pid, root):
    """Whether it was started for a cluster with this folder, and lives."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        if (folder / "stat").read_text(encoding="ascii", errors="replace"
                                       ).rpartition(")")[2].split()[0] in "ZX":
            return False
        return any(str(root).encode() in (folder / what).read_bytes()
                   for what in ("environ", "cmdline"))
    except OSError:  # it has ended, or is another user's
        return False


def processes(root, wait_s=None):
    """Those that have not ended by then, after KEEPER_S if not said."""
    deadline = time.monotonic() + (KEEPER_S if wait_s is None else wait_s)
    left = []
    for pid in [p for p in pids() if p != os.getpid() and of_root(p, root)]:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:  # readable when it has ended
            ended = select.select([fd], [], [],
                                  max(0.0, deadline - time.monotonic()))[0]
            if not ended and of_root(pid, root):
                name = pathlib.Path(f"/proc/{pid}/comm").read_text(
                    encoding="utf-8").strip()
                left.append(f"process {pid} ({name})")
        except FileNotFoundError:
            pass
        finally:
            os.close(fd)
    return left


def sockets_of(pid):
    """Inodes of its sockets, and those of its shared memory."""
    sockets, memory = set(), set()
    folder = f"/proc/{pid}/fd"
    try:
        for fd in os.listdir(folder):
            try:
                target = os.readlink(f"{folder}/{fd}")
                if found := INODE.match(target):
                    sockets.add(int(found[1]))
                elif target.startswith(MEMORY):
                    memory.add(os.stat(f"{folder}/{fd}").st_ino)
            except OSError:
                pass  # closed meanwhile
    except OSError:
        pass  # it has ended, or is another user's
    return sockets, memory


def mapped_by(pid):
    """Inodes of shared memory that it has mapped."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8",
                  errors="replace") as lines:
            return {int(line.split()[4]) for line in lines if MEMORY in line}
    except OSError:
        return set()


def listening():
    """Inode -> port, of this host: TCP that listens, and UDP."""
    found = {}
    for table in TABLES:
        try:
            with open(f"/proc/net/{table}", encoding="ascii") as lines:
                for words in list(map(str.split, lines))[1:]:
                    if table.startswith("udp") or words[3] == LISTENS:
                        port = int(words[1].rpartition(":")[2], 16)
                        found[int(words[9])] = f"{table} port {port}"
        except OSError:
            pass  # no such protocol here
    return found


class Held:
    """What nodes have been seen to have."""

    def __init__(self):
        self.sockets, self.memory = set(), set()

    def note(self, pid):
        sockets, memory = sockets_of(pid)
        self.sockets |= sockets
        self.memory |= memory

    def left(self):
        """Of that, after all of them have ended."""
        out = [port for inode, port in listening().items()
               if inode in self.sockets]
        for pid in pids():
            sockets, memory = sockets_of(pid)
            memory |= mapped_by(pid)
            if memory & self.memory:
                out.append(f"shared memory held by process {pid}")
            if sockets & self.sockets:
                out.append(f"sockets held by process {pid}")
        return out
