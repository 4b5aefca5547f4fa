# tests/apps/serve_storm_test.py -- streams of a served model while peers die.
#
# Four nodes serve a model in two stages. Each stream is asked of any of them;
# when its connection breaks, its client asks another one for the rest, by its
# Idempotency-Key and Last-Event-ID. Nodes are killed and started again
# meanwhile. Each text must be what it is with one undisturbed process.
#
# As a benchmark, with the longest pauses, by the clock instead of by what has
# come, and with a training job beside it that must lose no step:
#   SHOAL_STORM="streams=1000 tokens=400 every_s=3" \
#     python3 tests/apps/serve_storm_test.py build/shoal
import asyncio
import json
import os
import random
import signal
import time

from support import DEADLINE_S, TINY_RUN, World, main

NAMES = ("one", "two", "three", "four")
WISH = {"streams": 40, "tokens": 1500, "kills": 3, "every_s": 0, "seed": 1,
        "train": 200, "at_once": 1000}
WISH.update({k: float(v) if k == "every_s" else int(v) for k, v in (
    item.split("=") for item in os.environ.get("SHOAL_STORM", "").split())})


def body_of(i):
    """Requests repeat, so that what is right is computed once for many."""
    return {"model": "tiny", "prompt": f"The herring of file {i % 25} " * (
        1 + i % 3), "max_tokens": WISH["tokens"], "temperature": 0.8,
            "seed": i % 25, "stream": True}


class Client:
    """One stream, over as many connections as it takes."""

    def __init__(self, i):
        self.i = i
        self.alive = None  # gives the addresses of peers that live
        self.text = ""
        self.last = 0
        self.came = None
        self.pause = 0  # longest, s
        self.connections = 0
        self.finished = False

    async def once(self, address):
        """@returns whether the stream has ended well"""
        self.connections += 1
        host, port = address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            data = json.dumps(body_of(self.i)).encode()
            head = ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\n"
                    f"Content-Length: {len(data)}\r\n"
                    f"Idempotency-Key: stream {self.i}\r\n")
            if self.last:
                head += f"Last-Event-ID: {self.last}\r\n"
            writer.write(head.encode() + b"\r\n" + data)
            status = await reader.readline()
            if not status.endswith(b"\n"):  # cut; by a peer that lives?
                if address in self.alive():
                    raise AssertionError(f"{address} answers nothing")
                return False
            if b" 200 " not in status:
                if not any(code in status for code in (b" 429 ", b" 503 ")):
                    raise AssertionError(status + await reader.read(2000))
                return False
            number = 0
            while line := await reader.readline():
                if not line.endswith(b"\n"):
                    return False  # cut
                line = line.rstrip()
                if line.startswith(b"id: "):
                    number = int(line[4:])
                elif line == b"data: [DONE]":
                    return True
                elif line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    if "error" in event:
                        return False
                    self.take(event["choices"][0]["text"], number)
            return False
        finally:
            writer.close()

    def take(self, text, number):
        now = time.monotonic()
        if self.came is not None:
            self.pause = max(self.pause, now - self.came)
        self.came = now
        self.text += text
        self.last = number

    async def run(self, alive, rng):
        self.alive = alive
        while not self.finished:
            address = rng.choice(alive()) if alive() else None
            try:
                self.finished = bool(address) and await self.once(address)
            except (OSError, asyncio.IncompleteReadError):
                pass
            if not self.finished:
                await asyncio.sleep(0.02)


class Storm(World):
    def begin(self, name):
        node = self.start("node", "--threads", 1, "--name", name, "--http",
                          "127.0.0.1:0")
        node.wait_line(lambda line: line.startswith("ready:"))
        status = json.loads(self.succeed("status", "--json", "--name", name))
        self.nodes[name], self.at[name] = node, status["http"]

    def undisturbed(self):
        """The texts of all requests, by one process."""
        process = self.start("serve", "m", "--as", "tiny", "--http",
                             "127.0.0.1:0", "--threads", 1)
        line = process.wait_line(lambda line: " is served at http://" in line)
        address = line.split("http://")[1].split("/")[0]
        clients = [Client(i) for i in range(75)]

        async def all_of_them():
            await asyncio.gather(*(c.run(lambda: [address], random.Random(1))
                                   for c in clients))
        asyncio.run(all_of_them())
        self.assertEqual(process.end(signal.SIGINT), 130)
        return [c.text for c in clients]

    def test_no_token_is_lost_or_doubled(self):
        self.write("run.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "run.toml", "--out", "m")
        expected = self.undisturbed()
        self.nodes, self.at = {}, {}
        for name in NAMES:
            self.begin(name)
        for node in self.nodes.values():
            node.wait_line(lambda line: "4 peers" in line)
        self.succeed("serve", "m", "--as", "tiny", "--stages", 2, "--detach",
                     "--name", "one")
        if WISH["train"]:
            training = self.start(
                "train", "run.toml", "--data", self.write_text_files(), "--out",
                "trained", "--training.steps", WISH["train"], "--json",
                "--name", "one")
            training.wait_line(lambda line: '"event":"step"' in line)
        clients = [Client(i) for i in range(WISH["streams"])]
        began = time.monotonic()
        kills = asyncio.run(self.storm(clients))
        took = time.monotonic() - began
        if WISH["train"]:
            self.check_training(training)
        wrong = [c.i for c in clients if c.text != expected[c.i % 75]]
        self.assertEqual(wrong, [])
        pauses = sorted(c.pause for c in clients)
        print(f"{len(clients)} streams, {kills} kills, {took:.1f} s, "
              f"{sum(len(c.text) for c in clients) / took:.0f} bytes/s; "
              f"connections {sum(c.connections for c in clients)}; pauses: "
              f"median {pauses[len(pauses) // 2]:.2f} s, p99 "
              f"{pauses[len(pauses) * 99 // 100]:.2f} s, longest "
              f"{pauses[-1]:.2f} s")

    def check_training(self, training):
        """Each step is committed once."""
        code = training.end()
        lines = training.lines + training.come()
        self.assertEqual(code, 0, lines[-40:])
        events = [json.loads(line) for line in lines if line.startswith("{")]
        steps = [e["step"] for e in events if e["event"] == "step"]
        self.assertEqual(steps, list(range(1, WISH["train"] + 1)))

    async def storm(self, clients):
        rng = random.Random(WISH["seed"])
        gate = asyncio.Semaphore(WISH["at_once"])

        async def one(client):
            async with gate:
                await client.run(lambda: list(self.at.values()), rng)
        tasks = [asyncio.ensure_future(one(c)) for c in clients]
        kills = 0
        tokens = WISH["tokens"] * len(clients)
        while not all(t.done() for t in tasks):
            if WISH["every_s"]:
                await asyncio.sleep(WISH["every_s"])
            else:  # spread over what is to come
                share = tokens * (kills + 1) // (WISH["kills"] + 2)
                while (sum(c.last for c in clients) < share
                       and not all(t.done() for t in tasks)):
                    await asyncio.sleep(0.01)
            if WISH["every_s"] or kills < WISH["kills"]:
                name = rng.choice(NAMES)
                del self.at[name]
                self.nodes[name].end(signal.SIGKILL)
                kills += 1
                await asyncio.get_running_loop().run_in_executor(
                    None, self.begin, name)
            else:
                await asyncio.wait(tasks, timeout=DEADLINE_S)
                self.assertTrue(all(t.done() for t in tasks), "streams hang")
        for t in tasks:
            t.result()
        return kills


if __name__ == "__main__":
    main()
