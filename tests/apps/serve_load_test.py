# tests/apps/serve_load_test.py -- clients that are slow, silent, too many, or go.
#
# One process serves a small model. Some streams are measured, with and without
# the others beside them; afterwards nothing of the others is left.
#
# As a benchmark:
#   SHOAL_LOAD="silent=500 slow=450 aborts=10000" \
#     python3 tests/apps/serve_load_test.py build/shoal
import asyncio
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import time

from support import TINY_RUN, World, main

WISH = {"silent": 60, "slow": 60, "aborts": 300, "good": 4, "tokens": 1000,
        "at_once": 900}
WISH.update({k: int(v) for k, v in (
    item.split("=") for item in os.environ.get("SHOAL_LOAD", "").split())})


def request(seed, tokens):
    data = json.dumps({
        "model": "tiny", "prompt": f"The cod of file {seed % 10}",
        "max_tokens": tokens, "temperature": 0.8, "seed": seed,
        "stream": True}).encode()
    return (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(data)) + data


async def get(at, path):
    reader, writer = await asyncio.open_connection(*at)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
                 "Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


class Load(World):
    """The server's address is self.at."""

    async def good(self, seed, pauses):
        """A stream that is read at once. @returns its text"""
        reader, writer = await asyncio.open_connection(*self.at)
        writer.write(request(seed, WISH["tokens"]))
        self.assertIn(b" 200 ", await reader.readline())
        text, came = "", None
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                now = time.monotonic()
                if came is not None:
                    pauses.append(now - came)
                came = now
                text += json.loads(line[6:])["choices"][0]["text"]
            elif line.startswith(b"data: [DONE]"):
                writer.close()
                return text
        raise AssertionError("a stream was cut")

    async def all_good(self):
        pauses = []
        texts = await asyncio.gather(*(self.good(i, pauses)
                                       for i in range(WISH["good"])))
        pauses.sort()
        return texts, pauses[len(pauses) * 99 // 100]

    async def silent(self):
        """Says half a request, then nothing."""
        reader, writer = await asyncio.open_connection(*self.at)
        writer.write(request(1, 5)[:40])
        return reader, writer

    async def slow(self, i):
        """Asks for a long text and reads none of it."""
        end = socket.socket()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, self.at)
        reader, writer = await asyncio.open_connection(sock=end, limit=1024)
        writer.write(request(i, 3900))
        return reader, writer

    async def abort(self, i, rng):
        """@returns the status, after which the client is gone"""
        with contextlib.suppress(ConnectionError):
            reader, writer = await asyncio.open_connection(*self.at)
            writer.write(request(i, 3900))
            status = await reader.readline()
            for _ in range(rng.randrange(20)):
                await reader.readline()
            writer.transport.abort()
            return status.split()[1]

    def memory(self, process):
        status = pathlib.Path(f"/proc/{process.child.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) >> 10

    def test_others_cost_little_and_leave_nothing(self):
        self.write("run.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "run.toml", "--out", "m")
        process = self.start("serve", "m", "--as", "tiny", "--http",
                             "127.0.0.1:0", "--threads", 1)
        line = process.wait_line(lambda line: " is served at http://" in line)
        host, port = line.split("http://")[1].split("/")[0].rsplit(":", 1)
        self.at = host, int(port)
        asyncio.run(self.load(process))
        self.assertEqual(process.end(signal.SIGINT), 130)

    async def load(self, process):
        rng = random.Random(1)
        await self.all_good()
        alone, alone_p99 = await self.all_good()
        before = self.memory(process)
        others = await asyncio.gather(*(self.silent()
                                        for _ in range(WISH["silent"])))
        others += await asyncio.gather(*(self.slow(i)
                                         for i in range(WISH["slow"])))
        # Once their connections are full, slow streams cost no pass.
        of_others = True
        while of_others:
            tokens = await self.tokens()
            texts, p99 = await self.all_good()
            self.assertEqual(texts, alone)
            of_others = (await self.tokens() - tokens
                         != WISH["good"] * WISH["tokens"])
        loaded = self.memory(process)
        refused = 0
        for first in range(0, WISH["aborts"], 100):
            statuses = await asyncio.gather(*(
                self.abort(i, rng) for i in range(first, first + 100)))
            self.assertLessEqual(set(statuses), {b"200", b"429", b"503", None})
            refused += sum(s != b"200" for s in statuses)
        for _, writer in others:
            writer.transport.abort()
        self.assertEqual((await self.all_good())[0], alone)
        left = re.compile(r'shoal_(?:pipeline_)?(?:streams|pages)\{.*\} (\d+)')
        numbers = []
        while set(numbers) != {"0"}:
            await asyncio.sleep(0.01)
            numbers = left.findall(await get(self.at, "/metrics"))
        print(f"p99 between tokens {alone_p99 * 1e3:.2f} ms alone, "
              f"{p99 * 1e3:.2f} ms beside {len(others)} slow clients; memory "
              f"{before} MiB, {loaded} MiB beside them, {self.memory(process)} "
              f"MiB after {WISH['aborts']} aborts, {refused} of them refused")
        self.assertLess(self.memory(process), before + 100 + WISH["slow"])
        await self.overload()

    async def overload(self):
        """More streams than the server takes: the rest is told to wait."""
        told = await asyncio.gather(*(self.asked(i)
                                      for i in range(WISH["at_once"])))
        self.assertGreater(told.count(429), 0)
        self.assertEqual(told.count(200) + told.count(429), len(told))
        self.assertGreaterEqual(told.count(200), 512)

    async def asked(self, i):
        """@returns the status; what is taken is complete, what is not says
        when to try again"""
        reader, writer = await asyncio.open_connection(*self.at)
        writer.write(request(i, 200))
        status = int((await reader.readline()).split()[1])
        rest = b""
        while not rest.endswith(b"0\r\n\r\n" if status == 200 else b"}"):
            rest += await reader.read(65536)
        self.assertIn(b"[DONE]" if status == 200 else b"Retry-After: 1", rest)
        writer.close()
        return status

    async def tokens(self):
        """Generated so far."""
        return int(re.search(r"shoal_generated_tokens_total (\d+)",
                             await get(self.at, "/metrics"))[1])


if __name__ == "__main__":
    main()
