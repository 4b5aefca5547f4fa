# tests/bench/speed_bench.py -- generation and training beside the rivals.
#
# Usage: speed_bench.py SHOAL [--rounds N] [--threads 1,2] [--json FILE]
#                       [--only memory,prefill,decode,train] [--types bf16,..]
#
# Rivals are found by path, and "not found" is written where one is not:
#   SHOAL_BENCH_LLAMA=PROGRAM         llama-bench, or a Python with llama_cpp
#   SHOAL_BENCH_MODELS=FOLDER         where GGUF files of random weights are
#       kept that this makes (gguf_model.py); else a folder for this run
#   SHOAL_BENCH_TORCH=PYTHON          a Python with torch
# Each round runs what is compared once after the other, so that all of them
# see the same machine; medians are told. "of limit" is per cent of what this
# machine could do at most, measured by `shoal bench` in the same run.
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import gguf_model

TYPES = {"bf16": "BF16", "q8": "Q8_0", "q4": "Q4_0"}
PROMPT, TOKENS = 512, 16
SHAPES = ("gpt2-124m", "llama-30m")


def shoal(options, *arguments):
    done = subprocess.run(
        [options.shoal, "bench", *arguments, "--runs", "1", "--json"],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def is_python(program):
    return "python" in pathlib.Path(program).name


class Llama:
    """llama.cpp with one model; None in place of a rate if it is not found."""

    def __init__(self, kind, threads, folder):
        self.child = None
        program = os.environ.get("SHOAL_BENCH_LLAMA", "")
        self.found = os.access(program, os.X_OK)
        if not self.found:
            return
        theirs = TYPES[kind]
        model = pathlib.Path(folder) / f"tiny1b-{theirs}.gguf"
        if not model.exists():
            part = model.with_suffix(".part")
            gguf_model.write(part, theirs, "tiny1b")
            part.rename(model)
        self.command = [program, "-m", str(model), "-t", str(threads)]
        if is_python(program):
            script = pathlib.Path(__file__).with_name("llama_rates.py")
            self.child = subprocess.Popen(
                [program, str(script), str(model), str(threads)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL)
            self.line()  # ready

    def line(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError("llama.cpp ended early")
        return line

    def rate(self, what):
        if not self.found:
            return None
        count = PROMPT if what == "prefill" else TOKENS
        if self.child:
            self.child.stdin.write(f"{what} {count}\n")
            self.child.stdin.flush()
            return float(self.line())
        size = ["-p", str(count), "-n", "0"] if what == "prefill" else [
            "-p", "0", "-n", str(count)]
        done = subprocess.run(
            [*self.command, *size, "-r", "1", "-ngl", "0", "-o", "json"],
            check=True, capture_output=True, text=True)
        return json.loads(done.stdout)[0]["avg_ts"]

    def close(self):
        if self.child:
            self.child.stdin.close()
            self.child.wait()


def torch():
    python = os.environ.get("SHOAL_BENCH_TORCH", "/usr/bin/python3")
    try:
        seen = subprocess.run([python, "-c", "import torch"], check=False,
                              capture_output=True)
    except OSError:
        return None
    return python if seen.returncode == 0 else None


def output_and_peak(command):
    """What a command prints as JSON, and the most memory it held, in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return json.loads(said), round(used.ru_maxrss / 1024)


def shoal_training(options, shape, kind, threads):
    said, peak = output_and_peak(
        [options.shoal, "bench", "train", "--shape", shape, "--type", kind,
         "--threads", str(threads), "--runs", "3", "--json"])
    return said[0], peak


def torch_training(python, shape, kind, threads, compiled):
    """(tokens a second, MiB); nothing where this Python cannot compile."""
    script = pathlib.Path(__file__).with_name("torch_train.py")
    command = [python, str(script), "--shape", shape, "--type", kind,
               "--threads", str(threads)]
    try:
        said, peak = output_and_peak(
            command + (["--compile"] if compiled else []))
    except subprocess.CalledProcessError:
        if not compiled:
            raise
        return None
    return said["tokens_per_s"], peak


def training(options, python, shape, kind, threads):
    """One row: in each round ours, then PyTorch's ways; the better counts."""
    ours, theirs = [], {"eager": [], "compiled": []}
    for _ in range(options.rounds):
        ours.append(shoal_training(options, shape, kind, threads))
        for way, found in theirs.items():
            one = python and torch_training(python, shape, kind, threads,
                                            way == "compiled")
            if one:
                found.append(one)
    row = {"what": f"train {shape} {kind}", "threads": threads,
           "unit": "tokens/s",
           "limit": statistics.median(r["limit"] for r, _ in ours),
           "shoal": statistics.median(r["value"] for r, _ in ours),
           "shoal_mib": max(peak for _, peak in ours),
           "rival": "PyTorch", "rival_rate": None}
    rates = {way: statistics.median(rate for rate, _ in found)
             for way, found in theirs.items() if found}
    if rates:
        best = max(rates, key=rates.get)
        row.update(rival=f"PyTorch {best}", rival_rate=rates[best],
                   rival_mib=max(peak for _, peak in theirs[best]))
    return row


def in_turns(rounds, measure, rival):
    """Medians of our rate, its limit and the rival's rate."""
    ours, limits, theirs = [], [], []
    for _ in range(rounds):
        row = measure()
        ours.append(row["value"])
        limits.append(row["limit"])
        rate = rival()
        if rate is not None:
            theirs.append(rate)
    return (statistics.median(ours), statistics.median(limits),
            statistics.median(theirs) if theirs else None)


def memory_rows(options, threads):
    for row in shoal(options, "memory", "--threads", str(threads)):
        yield {"what": row["what"], "threads": threads, "unit": row["unit"],
               "limit": row["value"]}


def inference_rows(options, threads, folder):
    for kind in options.types:
        rival = Llama(kind, threads, folder)
        for what in ("prefill", "decode"):
            if what not in options.only:
                continue
            ours, limit, other = in_turns(
                options.rounds,
                lambda: shoal(options, what, "--type", kind, "--threads",
                              str(threads), "--prompt", str(PROMPT),
                              "--tokens", str(TOKENS))[0],
                lambda: rival.rate(what))
            yield {"what": f"{what} tiny1b {kind}", "threads": threads,
                   "unit": "tokens/s", "limit": limit, "shoal": ours,
                   "rival": f"llama.cpp {TYPES[kind]}", "rival_rate": other}
        rival.close()


def training_rows(options, threads):
    python = torch()
    for shape in SHAPES:
        for kind in ("f32", "bf16"):
            yield training(options, python, shape, kind, threads)


def rows(options, folder):
    for threads in options.threads:
        if "memory" in options.only:
            yield from memory_rows(options, threads)
        if "prefill" in options.only or "decode" in options.only:
            yield from inference_rows(options, threads, folder)
        if "train" in options.only:
            yield from training_rows(options, threads)


def text_of(row):
    line = f"{row['what']:<26} {row['threads']:>2} thr  "
    if "shoal" not in row:
        return line + f"limit {row['limit']:.1f} {row['unit']}"
    line += (f"{row['shoal']:9.1f} {row['unit']}  "
             f"{100 * row['shoal'] / row['limit']:5.1f} % of limit  ")
    if row["rival_rate"] is None:
        return line + f"{row['rival']}: not found"
    line += (f"{row['rival']} {row['rival_rate']:.1f}: "
             f"{row['shoal'] / row['rival_rate']:.2f}x")
    if "rival_mib" in row:
        line += f"  {row['shoal_mib']} MiB, theirs {row['rival_mib']}"
    return line


def main():
    parser = argparse.ArgumentParser(
        description="Generation and training beside the rivals.")
    parser.add_argument("shoal")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", default="memory,prefill,decode,train")
    parser.add_argument("--types", default=",".join(TYPES))
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    options.threads = [n for n in map(int, options.threads.split(","))
                       if n <= cores]
    options.only = options.only.split(",")
    options.types = options.types.split(",")
    found = []
    with tempfile.TemporaryDirectory() as made:
        folder = os.environ.get("SHOAL_BENCH_MODELS", made)
        for row in rows(options, folder):
            found.append(row)
            print(text_of(row), flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n",
                                encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
