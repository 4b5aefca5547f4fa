# tests/bench/perftest_bench.py -- our fabrics beside ucx_perftest.
#
# Usage: perftest_bench.py BUILD [--rounds N]
#
# The same transport, machine and cores: server on the first core, client on the
# second; rounds of the two take turns, which goes first alternates, and medians
# are printed. Shared memory: ours against UCX's posix. TCP over loopback: our
# UCX-TCP against UCX's tcp. Latency is one way of 8 bytes; bandwidth the better
# of tag_bw and ucp_am_bw. ucx_perftest is in Debian's ucx-utils.
#
# Targets: latency at most 1.5x, bandwidth at least 0.9x.
import argparse
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

LATENCY, RATES = 8, (1 << 20, 4 << 20)
LATENCY_TARGET, RATE_TARGET = 1.5, 0.9
MOVED = 1 << 30  # bytes of one perftest run; 256 MiB warm up
# Ours -> what UCX is told.
PAIRS = {"shm": {"UCX_TLS": "posix,self"},
         "ucx": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}}
NAMES = {"shm": ("shm", "UCX posix"), "ucx": ("UCX-TCP", "UCX tcp")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def perftest(test, size, settings, cores):
    """Microseconds one way, or GB/s."""
    latency = test.endswith("lat")
    count = 20000 if latency else max(16, MOVED // size)
    port = free_port()
    command = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(count),
               "-w", str(count // 4), "-p", str(port), "-f", "-v"]
    environment = {**os.environ, "UCX_WARN_UNUSED_ENV_VARS": "n", **settings}

    def start(core, *more):
        return subprocess.Popen([*command, "-c", str(core), *more], text=True,
                                env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
    server = start(cores[0])
    try:
        while not listens(port) and server.poll() is None:
            time.sleep(0.01)
        client = start(cores[1], "127.0.0.1")
        out, _ = client.communicate(timeout=120)
        server.wait(timeout=30)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    return last_figure(out, latency)


def listens(port):
    """Without touching it: the server takes the first who connects."""
    return any(line.split()[1].endswith(f":{port:04X}")
               and line.split()[3] == "0A"
               for line in open("/proc/net/tcp", encoding="ascii")
               if "local" not in line)


def last_figure(out, latency):
    """CSV: iterations, latency percentile / average / overall in us, MB/s
    (of 2^20 bytes) average / overall, messages/s."""
    for line in reversed(out.splitlines()):
        parts = line.strip().split(",")
        if len(parts) >= 6 and parts[0].isdigit():
            figures = [float(x) for x in parts]
            return figures[1] if latency else figures[5] * 2**20 / 1e9
    raise RuntimeError(f"ucx_perftest said: {out}")


def ours(build, name, cores):
    """Size -> figure of one round."""
    done = subprocess.run(
        [str(build / "tests/bench/fabric_bench"), name, str(cores[0]),
         str(cores[1]), str(LATENCY), *map(str, RATES)],
        capture_output=True, text=True, check=True)
    rows = (line.split() for line in done.stdout.splitlines())
    return {int(size): float(figure) for size, figure in rows}


def theirs(settings, cores):
    found = {LATENCY: min(perftest(t, LATENCY, settings, cores)
                          for t in ("tag_lat", "ucp_am_lat"))}
    for size in RATES:
        found[size] = max(perftest(t, size, settings, cores)
                          for t in ("tag_bw", "ucp_am_bw"))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if shutil.which("ucx_perftest") is None:
        print("perftest: ucx_perftest not found (Debian: ucx-utils)")
        return 0
    if len(cores) < 2:
        print("perftest: needs two cores")
        return 0
    for name, settings in PAIRS.items():
        both = ([], [])
        for number in range(options.rounds):
            runs = [lambda: both[0].append(ours(options.build, name, cores)),
                    lambda: both[1].append(theirs(settings, cores))]
            for run in runs if number % 2 == 0 else reversed(runs):
                run()
        for size in (LATENCY, *RATES):
            a, b = ([r[size] for r in side] for side in both)
            report(NAMES[name], size, a, b)
    return 0


def report(names, size, a, b):
    mine, other = statistics.median(a), statistics.median(b)
    latency = size == LATENCY
    what = f"{size} B one way" if latency else f"{size >> 20} MiB"
    unit = "us" if latency else "GB/s"
    target = (f"at most {LATENCY_TARGET}x" if latency
              else f"at least {RATE_TARGET}x")
    print(f"perftest: {what}: {names[0]} {mine:.2f} {unit} "
          f"({min(a):.2f}-{max(a):.2f}), {names[1]} {other:.2f} {unit} "
          f"({min(b):.2f}-{max(b):.2f}): {mine / other:.2f}x (target {target})",
          flush=True)


if __name__ == "__main__":
    sys.exit(main())
