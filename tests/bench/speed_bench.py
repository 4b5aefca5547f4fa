# tests/bench/speed_bench.py -- generation and training beside the rivals.
#
# Usage: speed_bench.py SHOAL [--rounds N] [--threads 1,2] [--json FILE]
#
# Rivals are found by path, and "not found" is written where one is not:
#   SHOAL_BENCH_LLAMA=PROGRAM:MODEL[:MODEL...]   llama-bench, and GGUF files of
#       the tiny1b shape whose names say BF16, Q8_0 or Q4_0
#   SHOAL_BENCH_TORCH=PYTHON                     a Python with torch
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

TYPES = {"bf16": "BF16", "q8": "Q8_0", "q4": "Q4_0"}
PROMPT, TOKENS = 512, 32
SHAPES = ("gpt2-124m", "llama-30m")


def shoal(options, *arguments):
    done = subprocess.run(
        [options.shoal, "bench", *arguments, "--runs", "1", "--json"],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def llama():
    """(program, {type: model}), or None."""
    parts = os.environ.get("SHOAL_BENCH_LLAMA", "").split(os.pathsep)
    if not os.access(parts[0], os.X_OK):
        return None
    models = {ours: path for ours, theirs in TYPES.items()
              for path in parts[1:] if theirs in pathlib.Path(path).name}
    return parts[0], models


def llama_rate(found, kind, threads, what):
    if found is None or kind not in found[1]:
        return None
    size = ["-p", str(PROMPT), "-n", "0"] if what == "prefill" else [
        "-p", "0", "-n", str(TOKENS)]
    done = subprocess.run(
        [found[0], "-m", found[1][kind], "-t", str(threads), *size, "-r", "1",
         "-ngl", "0", "-o", "json"], check=True, capture_output=True,
        text=True)
    return json.loads(done.stdout)[0]["avg_ts"]


def torch():
    python = os.environ.get("SHOAL_BENCH_TORCH", "/usr/bin/python3")
    try:
        seen = subprocess.run([python, "-c", "import torch"], check=False,
                              capture_output=True)
    except OSError:
        return None
    return python if seen.returncode == 0 else None


def torch_rate(python, shape, threads):
    if python is None:
        return None
    script = pathlib.Path(__file__).with_name("torch_train.py")
    done = subprocess.run(
        [python, str(script), "--shape", shape, "--threads", str(threads)],
        check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["tokens_per_s"]


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


def rows(options):
    rival, python = llama(), torch()
    for threads in options.threads:
        for row in shoal(options, "memory", "--threads", str(threads)):
            yield {"what": row["what"], "threads": threads, "unit": row["unit"],
                   "limit": row["value"]}
        for what in ("prefill", "decode"):
            for kind, theirs in TYPES.items():
                ours, limit, other = in_turns(
                    options.rounds,
                    lambda: shoal(options, what, "--type", kind, "--threads",
                                  str(threads), "--prompt", str(PROMPT),
                                  "--tokens", str(TOKENS))[0],
                    lambda: llama_rate(rival, kind, threads, what))
                yield {"what": f"{what} tiny1b {kind}", "threads": threads,
                       "unit": "tokens/s", "limit": limit, "shoal": ours,
                       "rival": f"llama.cpp {theirs}", "rival_rate": other}
        for shape in SHAPES:
            ours, limit, other = in_turns(
                options.rounds,
                lambda: shoal(options, "train", "--shape", shape, "--threads",
                              str(threads))[0],
                lambda: torch_rate(python, shape, threads))
            yield {"what": f"train {shape} f32", "threads": threads,
                   "unit": "tokens/s", "limit": limit, "shoal": ours,
                   "rival": "PyTorch", "rival_rate": other}


def text_of(row):
    line = f"{row['what']:<26} {row['threads']:>2} thr  "
    if "shoal" not in row:
        return line + f"limit {row['limit']:.1f} {row['unit']}"
    line += (f"{row['shoal']:9.1f} {row['unit']}  "
             f"{100 * row['shoal'] / row['limit']:5.1f} % of limit  ")
    if row["rival_rate"] is None:
        return line + f"{row['rival']}: not found"
    return line + (f"{row['rival']} {row['rival_rate']:.1f}: "
                   f"{row['shoal'] / row['rival_rate']:.2f}x")


def main():
    parser = argparse.ArgumentParser(
        description="Generation and training beside the rivals.")
    parser.add_argument("shoal")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    options.threads = [n for n in map(int, options.threads.split(","))
                       if n <= cores]
    found = []
    for row in rows(options):
        found.append(row)
        print(text_of(row), flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n",
                                encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
