# tests/apps/serving.py -- what tests of served models share: OpenAI's API at an
# address, and worlds with a model and nodes.
import http.client
import importlib
import importlib.util
import json
import pathlib
import re
import struct
import threading

from support import DEADLINE_S, World

PROMPTS = ["The cod of file 3", "A herring", "x", "The sprat of file 9 is the "
           "same as that of file 10, and so on, for all of them"]


# Tokens of a stream that still runs when a peer is killed.
LONG = 3000


class Endpoint:
    """OpenAI's API at an address."""

    def __init__(self, address):
        self.address = address

    def connect(self):
        return http.client.HTTPConnection(self.address, timeout=DEADLINE_S)

    def get(self, path):
        with_close = self.connect()
        with_close.request("GET", path)
        answer = with_close.getresponse()
        body = answer.read().decode()
        with_close.close()
        return answer.status, body

    def post(self, body, path="/v1/completions"):
        connection = self.connect()
        connection.request("POST", path, body if isinstance(body, str)
                           else json.dumps(body),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text)

    def begin(self, body, after=3):
        """The text and the id of the first events of a stream, whose connection
        is then left open."""
        connection = self.connect()
        connection.request("POST", "/v1/completions",
                           json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json",
                            "Idempotency-Key": "one request"})
        answer, text, last = connection.getresponse(), "", ""
        for line in answer:
            line = line.decode().rstrip("\n")
            if line.startswith("id: "):
                last = line[4:]
            elif line.startswith("data: "):
                text += json.loads(line[6:])["choices"][0]["text"]
                after -= 1
            elif after <= 0:
                return text, last, (connection, answer)
        raise AssertionError("it has ended")

    def stream(self, body, each=None, headers=None, events=None):
        """Texts of the choices, by the events of a stream."""
        connection = self.connect()
        connection.request("POST", "/v1/completions",
                           json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json",
                            **(headers or {})})
        answer = connection.getresponse()
        if answer.status != 200:
            text = answer.read().decode()
            connection.close()
            return answer.status, text
        texts, done = {}, False
        for line in answer:
            line = line.decode().rstrip("\n")
            if line == "data: [DONE]":
                done = True
            elif line.startswith("data: "):
                event = json.loads(line[6:])
                if "error" in event:
                    return 500, event
                if events:
                    events(event)
                for choice in event["choices"]:
                    texts[choice["index"]] = (
                        texts.get(choice["index"], "") + choice["text"])
                if each:
                    each(texts)
        connection.close()
        return (200 if done else 0), texts


GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


def cut_model(whole, into):
    """A model's folder with a file for each tensor. @returns the bytes of these"""
    data = (whole / "model.safetensors").read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    into.mkdir()
    for other in whole.iterdir():
        if other.suffix == ".json" and other.name != "checksums.json":
            (into / other.name).write_bytes(other.read_bytes())
    weights, total = {}, 0
    for i, (name, tensor) in enumerate(sorted(header.items()), 1):
        begin, end = tensor["data_offsets"]
        text = json.dumps({name: {**tensor, "data_offsets": [0, end - begin]}})
        text = text.encode() + b" " * (-len(text) % 8)
        file = f"model-{i:05}-of-{len(header):05}.safetensors"
        (into / file).write_bytes(struct.pack("<Q", len(text)) + text
                                  + data[8 + size + begin:8 + size + end])
        weights[name] = file
        total += (into / file).stat().st_size
    (into / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weights}))
    return total


def golden_ids(model, name):
    """Ids that a golden file has (make_goldens.py): numbers as F32."""
    data = (GOLDEN / model / "golden.safetensors").read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return [int(x) for x in struct.unpack_from(
        f"<{(end - begin) // 4}f", data, 8 + size + begin)]


class Serving(World):
    def setUp(self):
        super().setUp()
        self.succeed("init", self.tiny_run(), "--out", "m")

    def package(self, name):
        """A package of PyPI; without it the test is skipped."""
        if not importlib.util.find_spec(name):
            self.skipTest(f"{name} is not installed")
        return importlib.import_module(name)

    def openai_client(self, at, key="none", **more):
        """A client of OpenAI's package; without that the test is skipped."""
        client = self.package("openai").OpenAI(
            api_key=key, timeout=DEADLINE_S,
            base_url=f"http://{at.address}/v1", **more)
        self.addCleanup(client.close)
        return client

    def alone(self, prompt, tokens=24, model="m", **options):
        """What `generate` makes of a prompt."""
        flags = [f for k, v in options.items()
                 for f in ("--" + k.replace("_", "-"), v)]
        lines = self.succeed("generate", model, "--prompt", prompt, "--json",
                             "--max-tokens", tokens, *flags)
        return self.events(lines)[-1]["text"]

    def begin_long_streams(self, at):
        """A stream of LONG tokens for each prompt, of all of which some has come.
        @returns their threads, and {number: answer}, once they have ended"""
        results, begun = {}, threading.Semaphore(0)

        def one_stream(i):
            told = [False]

            def each(texts):
                if not told[0] and len(texts.get(0, "")) > 10:
                    told[0] = True
                    begun.release()
            results[i] = at.stream(
                {"model": "tiny", "prompt": PROMPTS[i], "max_tokens": LONG,
                 "temperature": 0}, each)

        threads = [threading.Thread(target=one_stream, args=(i,))
                   for i in range(len(PROMPTS))]
        for thread in threads:
            thread.start()
        for _ in threads:
            self.assertTrue(begun.acquire(timeout=DEADLINE_S))
        return threads, results

    def serve(self, *flags):
        process = self.start("serve", "m", *flags)
        line = process.wait_line(lambda line: " is served at http://" in line)
        return process, Endpoint(re.search(r"http://([^/ ]+)/v1", line)[1])

    def begin_node(self, name, nodes, at, *flags):
        nodes[name] = self.start("node", "--threads", 1, "--name", name,
                                 "--http", "127.0.0.1:0", *flags)
        nodes[name].wait_line(lambda line: line.startswith("ready:"))
        status = json.loads(self.succeed("status", "--json", "--name", name))
        at[name] = Endpoint(status["http"])
