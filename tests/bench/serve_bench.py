# tests/bench/serve_bench.py -- a served model of 1.1 B parameters, over HTTP.
#
# Usage: serve_bench.py SHOAL [--rounds N] [--threads N] [--types bf16,q8,q4]
#                       [--only one,many,ttft,stall,stages,rules]
#                       [--json FILE]
#
#   one     one stream's tokens/s, beside `shoal bench decode`
#   many    16 streams at once, tokens/s of all, beside llama-server
#   ttft    time to the first token of a prompt of 512, beside `bench prefill`
#   stall   the pause between tokens that 99 % of 8 streams' pauses keep, while
#           a long prompt is read, beside without one
#   stages  32 streams: two nodes with one thread and one stage each, over shared
#           memory and over TLS, beside one process with two threads
#   rules   tokens/s of texts that keep to a JSON schema, of one stream and of 16,
#           beside the same without, both without guesses ahead
# llama-server is found by SHOAL_BENCH_LLAMA_SERVER=PROGRAM ("not found" is
# written where it is not); models of random weights are kept in
# SHOAL_BENCH_MODELS=FOLDER, else made for this run (2 GB each in 16 bits).
# Each round runs what is compared once after the other; medians are told.
import argparse
import asyncio
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import gguf_model
import hf_model

TYPES = {"bf16": "BF16", "q8": "Q8_0", "q4": "Q4_0"}
PARTS = ("one", "many", "ttft", "stall", "stages", "rules")
SHAPE = "tiny1b"
LONG = 4096  # tokens of a prompt; the models' context is longer
STREAMS = 16
START_S = 300
# None of them ends within the tokens that are asked for.
SCHEMAS = {
    "a schema of objects": {"type": "array", "minItems": 100, "items": {
        "type": "object", "additionalProperties": False,
        "required": ["name", "kind", "amount", "tags", "open"],
        "properties": {
            "name": {"type": "string", "maxLength": 24},
            "kind": {"enum": ["order", "offer", "invoice", "note"]},
            "amount": {"type": "number"},
            "tags": {"type": "array", "maxItems": 4, "items": {
                "type": "string", "maxLength": 12}},
            "open": {"type": "boolean"}}}},
    "a schema of 500 values and a pattern": {
        "type": "array", "minItems": 100, "items": {"anyOf": [
            {"enum": [f"value {i * 7919 % 10007}" for i in range(500)]},
            {"type": "string", "pattern": "^[\\w .,;:/-]{3,40}$"}]}},
}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A program that serves OpenAI's API, in a folder of its own."""

    def __init__(self, command, port, ready, env=None):
        self.port = port
        self.log = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(command, stdout=self.log,
                                      stderr=subprocess.STDOUT, env=env)
        until = time.monotonic() + START_S
        while not asyncio.run(answers(port, ready)):
            if self.child.poll() is not None or time.monotonic() > until:
                self.log.seek(0)
                raise RuntimeError("the server did not start:\n"
                                   + self.log.read()[-2000:])
            time.sleep(0.1)

    def close(self):
        self.child.send_signal(signal.SIGINT)
        self.child.wait()
        self.log.close()


async def answers(port, path):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
                     "Connection: close\r\n\r\n".encode())
        status = await reader.readline()
        writer.close()
        return b" 200 " in status
    except OSError:
        return False


async def stream(port, prompt, tokens, **more):
    """Times at which tokens came, the first entry that of the request."""
    data = json.dumps({"model": "m", "prompt": prompt, "max_tokens": tokens,
                       "temperature": 0, "ignore_eos": True, "stream": True,
                       "cache_prompt": False, **more}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write((f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Type: application/json\r\n"
                  f"Content-Length: {len(data)}\r\n\r\n").encode() + data)
    times = [time.monotonic()]
    if b" 200 " not in await reader.readline():
        raise RuntimeError((await reader.read(2000)).decode())
    while line := await reader.readline():
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            if event["choices"] and len(times) <= tokens:
                times.append(time.monotonic())
            used = event.get("usage") or {}
            if used.get("completion_tokens", tokens) != tokens:
                raise RuntimeError(f"{used} of {tokens} tokens: it has ended")
        elif line.startswith(b"data: [DONE]"):
            break
    writer.close()
    return times


def prompts(count, length, rng):
    vocabulary = gguf_model.SHAPES[SHAPE][5]
    return [[rng.randrange(300, vocabulary) for _ in range(length)]
            for _ in range(count)]


async def all_streams(port, count, length, tokens, rng):
    return await asyncio.gather(*(stream(port, p, tokens)
                                  for p in prompts(count, length, rng)))


def rate_of_all(port, count, length, tokens, rng):
    began = time.monotonic()
    told = asyncio.run(all_streams(port, count, length, tokens, rng))
    return count * tokens / (max(t[-1] for t in told) - began)


def rate_of_one(port, rng):
    times = asyncio.run(stream(port, prompts(1, 32, rng)[0], 96))
    return (len(times) - 2) / (times[-1] - times[1])


def first_token_s(port, rng):
    times = asyncio.run(stream(port, prompts(1, 512, rng)[0], 1))
    return times[1] - times[0]


def rule_of(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {
        "name": "s", "schema": schema}}}


def rate_with(port, count, rng, **more):
    """Tokens/s of `count` streams of which each has 96 tokens."""
    async def run():
        return await asyncio.gather(*(stream(
            port, p, 96, stream_options={"include_usage": True}, **more)
            for p in prompts(count, 32, rng)))
    began = time.monotonic()
    told = asyncio.run(run())
    return count * 96 / (max(t[-1] for t in told) - began)


def p99_s(port, with_prompt, rng):
    async def run():
        streams = [asyncio.ensure_future(stream(port, p, 160))
                   for p in prompts(8, 32, rng)]
        if with_prompt:
            await asyncio.sleep(2)
            await stream(port, prompts(1, LONG, rng)[0], 1)
        return [await s for s in streams]
    pauses = sorted(b - a for t in asyncio.run(run())
                    for a, b in zip(t[1:], t[2:]))
    return pauses[len(pauses) * 99 // 100]


class Bench:
    def __init__(self, options, models, scratch):
        self.options, self.models, self.scratch = options, models, scratch
        self.rival = os.environ.get("SHOAL_BENCH_LLAMA_SERVER", "")
        self.rng = random.Random(1)
        self.rows = []
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SHOAL_", "XDG_"))}
        self.env["HOME"] = str(scratch)

    def folder(self):
        model = self.models / SHAPE
        if not model.exists():
            hf_model.write(model, SHAPE)
        if not (model / "tokenizer.json").exists():
            hf_model.write_tokenizer(model, SHAPE)
        return model

    def shoal(self, kind, *more):
        port = free_port()
        quantize = [] if kind == "bf16" else ["--quantize", kind]
        return Server([self.options.shoal, "serve", self.folder(), "--as", "m",
                       "--http", f"127.0.0.1:{port}", "--threads",
                       str(self.options.threads), *quantize, *more],
                      port, "/ready", self.env)

    def llama(self, kind):
        if not os.access(self.rival, os.X_OK):
            return None
        file = self.models / f"{SHAPE}-{TYPES[kind]}.gguf"
        if not file.exists():
            gguf_model.write(file, TYPES[kind], SHAPE)
        port = free_port()
        return Server([self.rival, "-m", file, "-t", str(self.options.threads),
                       "-np", str(STREAMS), "-c", str(STREAMS * 512), "--port",
                       str(port), "--no-webui"], port, "/health")

    def tell(self, what, unit, ours, theirs, of, target):
        row = {"what": what, "unit": unit, "shoal": statistics.median(ours),
               "of": of, "other": statistics.median(theirs) if theirs else None}
        self.rows.append(row)
        other = (f"{row['other']:.4g}" if theirs else "not found")
        ratio = f": {row['shoal'] / row['other']:.2f}x" if theirs else ""
        print(f"serve: {what}: {row['shoal']:.4g} {unit}, {of} {other}{ratio} "
              f"(target {target})", flush=True)

    def figure(self, what, kind, more):
        done = subprocess.run(
            [self.options.shoal, "bench", what, "--type", kind, "--threads",
             str(self.options.threads), "--runs", "1", "--json", *more],
            check=True, capture_output=True, text=True)
        return json.loads(done.stdout)[0]["value"]

    def of_type(self, kind, parts):
        ours, theirs = {}, {}
        for _ in range(self.options.rounds):
            def add(to, name, value):
                to.setdefault(name, []).append(value)
            server = self.shoal(kind)
            try:
                asyncio.run(stream(server.port, [400, 500], 4))
                if "one" in parts:
                    add(ours, "one", rate_of_one(server.port, self.rng))
                if "many" in parts:
                    add(ours, "many", rate_of_all(server.port, STREAMS, 32, 64,
                                                  self.rng))
                if "ttft" in parts:
                    add(ours, "ttft", first_token_s(server.port, self.rng))
                if "stall" in parts:
                    add(theirs, "stall", p99_s(server.port, False, self.rng))
                    add(ours, "stall", p99_s(server.port, True, self.rng))
            finally:
                server.close()
            if "rules" in parts:
                self.rules(kind, add, ours, theirs)
            if "one" in parts:
                add(theirs, "one", self.figure("decode", kind, []))
            if "ttft" in parts:
                add(theirs, "ttft", 512 / self.figure("prefill", kind, []))
            if "many" in parts and (rival := self.llama(kind)):
                try:
                    asyncio.run(stream(rival.port, [400, 500], 4))
                    add(theirs, "many", rate_of_all(rival.port, STREAMS, 32, 64,
                                                    self.rng))
                    add(theirs, "their one", rate_of_one(rival.port, self.rng))
                finally:
                    rival.close()
        told = {"one": ("one stream", "tokens/s", "bench decode", "0.95x"),
                "many": (f"{STREAMS} streams", "tokens/s", "llama-server",
                         "1.3x"),
                "ttft": ("first token after a prompt of 512", "s",
                         "bench prefill", "1.1x at most"),
                "stall": (f"p99 between tokens while {LONG} are read",
                          "s", "without", "2x at most")}
        for count in (1, STREAMS):
            for name in SCHEMAS:
                told[f"{count} x {name}"] = (f"{name}, {count} streams",
                                             "tokens/s", "without", "0.9x")
        for name, (what, unit, of, target) in told.items():
            if name in ours:
                self.tell(f"{kind}, {what}", unit, ours[name],
                          theirs.get(name), of, target)
        if "one" in ours and "their one" in theirs:
            self.tell(f"{kind}, one stream", "tokens/s", ours["one"],
                      theirs["their one"], "llama-server", "none")

    def rules(self, kind, add, ours, theirs):
        # Random weights repeat themselves, so guesses ahead would decide.
        server = self.shoal(kind, "--speculate", "0")
        port = server.port
        try:
            for count in (1, STREAMS):
                for name, schema in SCHEMAS.items():
                    what = f"{count} x {name}"
                    rule = rule_of(schema)
                    rate_with(port, 1, self.rng, **rule)  # compiles it
                    add(theirs, what, rate_with(port, count, self.rng))
                    add(ours, what, rate_with(port, count, self.rng, **rule))
        finally:
            server.close()

    def of_two(self, fabric):
        """Tokens/s of two nodes with a thread each."""
        home = self.scratch / f"nodes-{fabric}-{free_port()}"
        home.mkdir()
        env = {**self.env, "HOME": str(home)}
        force = ["--no-shared-memory"] if fabric == "tls" else []
        port = free_port()
        nodes = [subprocess.Popen(
            [self.options.shoal, "node", "--name", name, "--threads", "1",
             "--http", f"127.0.0.1:{port}" if name == "one" else "off", *force],
            env=env, stdout=subprocess.DEVNULL) for name in ("one", "two")]
        try:
            for _ in range(600):
                seen = subprocess.run(
                    [self.options.shoal, "status", "--json", "--name", "one"],
                    env=env, capture_output=True, text=True, check=False)
                if seen.returncode == 0 and len(
                        json.loads(seen.stdout)["peers"]) == 2:
                    break
                time.sleep(0.1)
            subprocess.run(
                [self.options.shoal, "serve", self.folder(), "--as", "m",
                 "--stages", "2", "--detach", "--name", "one"], env=env,
                check=True, stdout=subprocess.DEVNULL)
            asyncio.run(stream(port, [400, 500], 4))
            return rate_of_all(port, 32, 32, 48, self.rng)
        finally:
            for node in nodes:
                node.kill()
                node.wait()
            shutil.rmtree(home, ignore_errors=True)

    def stages(self):
        one, found = [], {"shm": [], "tls": []}
        for _ in range(self.options.rounds):
            server = self.shoal("bf16")
            try:
                asyncio.run(stream(server.port, [400, 500], 4))
                one.append(rate_of_all(server.port, 32, 32, 48, self.rng))
            finally:
                server.close()
            for fabric, rates in found.items():
                rates.append(self.of_two(fabric))
        for fabric, target in (("shm", "0.95x"), ("tls", "0.85x")):
            self.tell(f"bf16, 32 streams over two stages, {fabric}", "tokens/s",
                      found[fabric], one, "one process", target)


def main():
    parser = argparse.ArgumentParser(description="A served model over HTTP.")
    parser.add_argument("shoal")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--json")
    options = parser.parse_args()
    options.shoal = str(pathlib.Path(options.shoal).resolve())
    parts, types = options.only.split(","), options.types.split(",")
    if unknown := set(parts) - set(PARTS) | set(types) - set(TYPES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as scratch:
        models = pathlib.Path(os.environ.get("SHOAL_BENCH_MODELS", scratch))
        bench = Bench(options, models, pathlib.Path(scratch))
        for kind in types:
            bench.of_type(kind, parts)
        if "stages" in parts:
            bench.stages()
    if options.json:
        path = pathlib.Path(options.json)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(bench.rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
