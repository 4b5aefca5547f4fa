# tests/support/held_threads.py -- threads of a process that stand still, while the
# process around them lives on and answers: a tracer (ptrace) holds them.
import bisect
import contextlib
import ctypes
import functools
import os
import pathlib
import subprocess
import threading

WALL = 0x40000000
PTRACE_CONT, PTRACE_DETACH = 7, 17
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
FUTEX, FUTEX_WAKE, YIELD, EPOLL = 202, 1, 24, (232, 281)
# read, write, poll, pread64, pwrite64, fsync, fdatasync, epoll_wait, epoll_pwait
QUIET = {FUTEX, 0, 1, 7, 17, 18, 74, 75, 232, 281}  # of x86-64
FABRICS = ("shoal-shm",)
DEVICES = ("shoal-device",)


@functools.lru_cache
def functions(program):
    """The addresses in a program's file at which its functions begin, and whether
    each is one of the CPU's kernels: those take no lock."""
    listed = subprocess.run(["nm", "-n", "--defined-only", program], check=True,
                            capture_output=True, encoding="utf-8").stdout
    rows = [line.split() for line in listed.splitlines()]
    return ([int(row[0], 16) for row in rows],
            [row[2].startswith("_ZN5shoal7kernels3cpu") for row in rows])


def computes(task, at):
    """Whether a thread is in a function of the kernels."""
    program, base = str((task / "exe").resolve()), None
    for line in (task / "maps").read_text(encoding="utf-8").splitlines():
        if not line.endswith(" " + program):
            continue
        first, last = (int(x, 16) for x in line.split()[0].split("-"))
        base = first if base is None else base  # of its first section: address 0
        if first <= at < last:
            # In a chroot the path may be that of the system around it.
            there = pathlib.Path(program).exists()
            begins, of_kernels = functions(program if there else str(task / "exe"))
            row = bisect.bisect_right(begins, at - base) - 1
            return row >= 0 and of_kernels[row]
    return False


def holds_a_lock(task, name):
    """Whether a stopped thread may have a lock that all others wait for: it is
    in a library (malloc), or in a call that neither waits nor moves data. The
    thread of a fabric also locks its queue in each turn, for the job's actor
    too: it has no lock for certain where it sleeps or yields. That of a device
    locks its queue between two pieces of work: it has none where it computes or
    sleeps."""
    number, *rest = (task / "syscall").read_text(encoding="utf-8").split()
    if number == "running":  # not yet off its core
        return True
    if name in FABRICS:
        return int(number) not in (YIELD, *EPOLL)
    if name in DEVICES and int(number) < 0:
        return not computes(task, int(rest[-1], 16))
    if int(number) >= 0:
        waking = (int(number) == FUTEX
                  and int(rest[1], 16) & 0x7f == FUTEX_WAKE)
        return int(number) not in QUIET or waking
    at = int(rest[-1], 16)
    for line in (task / "maps").read_text(encoding="utf-8").splitlines():
        first, last = (int(x, 16) for x in line.split()[0].split("-"))
        if first <= at < last:
            return any(name in line for name in ("/libc", "/libstdc", "[vdso"))
    return False


class Held:
    """Threads of a process that stand still, each at its own work, so that the
    others have all that they need. All calls of ptrace must come from one
    thread."""

    def __init__(self, pid, name):
        self.threads = []
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            comm = (task / "comm").read_text(encoding="utf-8").strip()
            if comm == name:
                self.threads.append(int(task.name))
        assert self.threads, f"no thread is called {name}"
        self.name = name
        self.release = threading.Event()
        self.holding = threading.Event()
        self.wrong = None
        self.tracer = threading.Thread(target=self._hold, daemon=True)
        self.tracer.start()
        self.holding.wait()
        if self.wrong:
            raise self.wrong

    def _hold(self):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                                ctypes.c_void_p]
        try:
            for thread in self.threads:
                self._stop(libc, thread)
        except Exception as wrong:  # the caller's thread raises it
            self.wrong = wrong
        self.holding.set()
        while not self.release.wait(0.1):
            for thread in self.threads:  # one that has ended must be taken
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(thread, WALL | os.WNOHANG)
        for thread in self.threads:
            libc.ptrace(PTRACE_DETACH, thread, None, None)

    def _stop(self, libc, thread):
        def ask(request):
            if libc.ptrace(request, thread, None, None) != 0:
                raise OSError(ctypes.get_errno(), "ptrace")
        ask(PTRACE_SEIZE)
        while True:
            ask(PTRACE_INTERRUPT)
            os.waitpid(thread, WALL)
            if not holds_a_lock(pathlib.Path(f"/proc/{thread}"), self.name):
                return
            ask(PTRACE_CONT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release.set()
        self.tracer.join()
