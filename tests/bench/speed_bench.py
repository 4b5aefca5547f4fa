# tests/bench/speed_bench.py -- generation and training beside the rivals.
#
# Usage: speed_bench.py SHOAL [--rounds N] [--threads 1,2] [--json FILE]
#                       [--only memory,load,prefill,decode,train,quality]
#                       [--types bf16,q8,q4]
#
#   memory           what this machine's memory and processors can do
#   load             from the start of `shoal generate` to its first token, of
#                    2 GB in bf16 that are in the page cache; target: 2 s
#   prefill, decode  of 1.1 B parameters, beside llama.cpp. bf16 is a mapped
#                    file, as generate reads one; q8 and q4 are packed
#   train            of two shapes, beside PyTorch
#   quality          perplexity and bits of q8 and q4 (quantize_test.py; some
#                    minutes)
# Rivals are found by path, and "not found" is written where one is not:
#   SHOAL_BENCH_LLAMA=PROGRAM         llama-bench, or a Python with llama_cpp
#   SHOAL_BENCH_MODELS=FOLDER         where models of random weights are kept
#       that this makes (gguf_model.py, hf_model.py; 2 GB each in 16 bits);
#       else a folder for this run
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
import time

import gguf_model
import hf_model

TYPES = {"bf16": "BF16", "q8": "Q8_0", "q4": "Q4_0"}
PROMPT, TOKENS = 512, 16
SHAPES = ("gpt2-124m", "llama-30m")
PARTS = ("memory", "load", "prefill", "decode", "train", "quality")
LOAD_TARGET_S = 2.0
WHY_SHOWN = 120  # characters; the JSON has all
HERE = pathlib.Path(__file__).resolve().parent


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
            script = HERE / "llama_rates.py"
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
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE,
                                   stderr=errors, text=True)
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise subprocess.CalledProcessError(
                process.returncode, command, stderr=errors.read())
    return json.loads(said), round(used.ru_maxrss / 1024)


def shoal_training(options, shape, kind, threads):
    said, peak = output_and_peak(
        [options.shoal, "bench", "train", "--shape", shape, "--type", kind,
         "--threads", str(threads), "--runs", "3", "--json"])
    return said[0], peak


def torch_training(python, shape, kind, threads, way):
    """(tokens a second, MiB), or why there is none: not every Python that has
    torch can compile."""
    command = [python, str(HERE / "torch_train.py"), "--shape", shape,
               "--type", kind, "--threads", str(threads)]
    try:
        said, peak = output_and_peak(
            command + (["--compile"] if way == "compiled" else []))
    except subprocess.CalledProcessError as error:
        lines = [at for at in error.stderr.splitlines() if at.strip()]
        return None, (lines or [f"exit code {error.returncode}"])[-1].strip()
    return (said["tokens_per_s"], peak), None


def training(options, python, shape, kind, threads):
    """One row: in each round ours, then PyTorch's ways; the better counts."""
    ours, theirs, missing = [], {"eager": [], "compiled": []}, {}
    for _ in range(options.rounds):
        ours.append(shoal_training(options, shape, kind, threads))
        for way, found in theirs.items():
            if python is None or way in missing:
                continue
            one, why = torch_training(python, shape, kind, threads, way)
            if one:
                found.append(one)
            else:
                missing[way] = why
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
                   rival_rates=rates,
                   rival_mib=max(peak for _, peak in theirs[best]))
    if missing:
        row["missing"] = missing
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


def own_model(folder):
    """A directory of 1.1 B parameters in bf16, in the page cache."""
    model = pathlib.Path(folder) / "tiny1b-hf"
    if not model.exists():
        hf_model.write(model, "tiny1b")
        os.sync()  # what is still being written takes the disk's time
    for path in model.glob("*.safetensors"):
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass
    return model


def first_token(options, model, threads, tokens):
    """Seconds to the first token; MiB then: resident, and not of files."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [options.shoal, "generate", str(model), "--prompt-ids", "1,2,3",
         "--max-tokens", str(tokens), "--threads", str(threads)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    first = process.stdout.read(1)
    took = time.perf_counter() - start
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(
        encoding="utf-8")
    sizes = {key: int(value.split()[0]) // 1024 for key, value in
             (line.split(":", 1) for line in status.splitlines())
             if key in ("VmRSS", "RssAnon")}
    _, errors = process.communicate()
    if process.returncode != 0 or not first:
        raise RuntimeError("generate failed: " + errors.decode())
    return took, sizes


def load_row(options, threads, folder):
    model = own_model(folder)
    took = [first_token(options, model, threads, 1)[0]
            for _ in range(max(3, options.rounds))]
    # One that goes on after its first token can be looked at.
    _, sizes = first_token(options, model, threads, 8)
    file = (model / "model.safetensors").stat().st_size
    return {"what": "load tiny1b bf16, first token", "threads": threads,
            "unit": "s", "shoal": statistics.median(took),
            "target": LOAD_TARGET_S,
            "ok": statistics.median(took) <= LOAD_TARGET_S,
            "file_mib": file >> 20, "resident_mib": sizes["VmRSS"],
            "anonymous_mib": sizes["RssAnon"]}


def inference_rows(options, threads, folder):
    for kind in options.types:
        rival = Llama(kind, threads, folder)
        mapped = ("--model", str(own_model(folder))) if kind == "bf16" else ()
        for what in ("prefill", "decode"):
            if what not in options.only:
                continue
            ours, limit, other = in_turns(
                options.rounds,
                lambda: shoal(options, what, *mapped, "--type", kind,
                              "--threads", str(threads), "--prompt",
                              str(PROMPT), "--tokens", str(TOKENS))[0],
                lambda: rival.rate(what))
            yield {"what": f"{what} tiny1b {kind}", "threads": threads,
                   "unit": "tokens/s", "limit": limit, "shoal": ours,
                   "rival": f"llama.cpp {TYPES[kind]}", "rival_rate": other}
        rival.close()


def quality_rows(options, threads, folder):
    """What tests/apps/quantize_test.py finds."""
    results = pathlib.Path(folder) / "quality.jsonl"
    script = HERE.parent / "apps" / "quantize_test.py"
    done = subprocess.run(
        [sys.executable, str(script), options.shoal, "--results",
         str(results)], check=False, capture_output=True, text=True)
    if not results.exists():
        raise RuntimeError("quantize_test.py failed: " + done.stderr[-2000:])
    found = json.loads(results.read_text(encoding="utf-8"))
    results.unlink()
    for figure in found["figures"]:
        yield {"what": figure["what"], "threads": threads,
               "unit": figure["unit"], "shoal": figure["measured"],
               "target": figure["target"], "ok": figure["ok"]}


def training_rows(options, threads):
    python = torch()
    for shape in SHAPES:
        for kind in ("f32", "bf16"):
            yield training(options, python, shape, kind, threads)


def rows(options, folder):
    for threads in options.threads:
        if "memory" in options.only:
            yield from memory_rows(options, threads)
        if "load" in options.only:
            yield load_row(options, threads, folder)
        if "prefill" in options.only or "decode" in options.only:
            yield from inference_rows(options, threads, folder)
        if "train" in options.only:
            yield from training_rows(options, threads)
    if "quality" in options.only:
        yield from quality_rows(options, max(options.threads), folder)


def figure(value, unit):
    if unit == "%":
        return f"{100 * value:+.2f} %"
    return f"{value:.2f} {unit}".strip()


def target_text(row):
    line = f"{figure(row['shoal'], row['unit']):>9}  "
    if row["target"] is not None:
        line += (f"(target {figure(row['target'], row['unit'])}): "
                 f"{'ok' if row['ok'] else 'short'}  ")
    if "resident_mib" in row:
        line += (f"{row['resident_mib']} MiB resident of a file of "
                 f"{row['file_mib']}, {row['anonymous_mib']} anonymous")
    return line.rstrip()


def text_of(row):
    line = f"{row['what']:<30} {row['threads']:>2} thr  "
    if "target" in row:
        return line + target_text(row)
    if "shoal" not in row:
        return line + f"limit {row['limit']:.1f} {row['unit']}"
    line += (f"{row['shoal']:9.1f} {row['unit']}  "
             f"{100 * row['shoal'] / row['limit']:5.1f} % of limit  ")
    if row["rival_rate"] is None:
        line += f"{row['rival']}: not found"
    else:
        line += (f"{row['rival']} {row['rival_rate']:.1f}: "
                 f"{row['shoal'] / row['rival_rate']:.2f}x")
    if "rival_mib" in row:
        line += f"  {row['shoal_mib']} MiB, theirs {row['rival_mib']}"
    for way, why in row.get("missing", {}).items():
        line += f"  {way}: not found ({why[:WHY_SHOWN]})"
    return line


def main():
    parser = argparse.ArgumentParser(
        description="Generation and training beside the rivals.")
    parser.add_argument("shoal")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--types", default=",".join(TYPES))
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    options.threads = [n for n in map(int, options.threads.split(","))
                       if n <= cores]
    options.only = options.only.split(",")
    for part in options.only:
        if part not in PARTS:
            parser.error(f"--only: no part is called {part}; there is "
                         + ", ".join(PARTS))
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
