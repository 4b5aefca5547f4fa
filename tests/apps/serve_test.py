# tests/apps/serve_test.py -- models that are served, as clients see them.
import http.client
import json
import pathlib
import re
import signal
import threading
import time

from support import DEADLINE_S, TINY_RUN, World, main

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
        answer, text, last = connection.getresponse(), "", 0
        for line in answer:
            line = line.decode().rstrip("\n")
            if line.startswith("id: "):
                last = int(line[4:])
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
            return answer.status, answer.read().decode()
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


class Serve(World):
    def setUp(self):
        super().setUp()
        self.succeed("init", self.tiny_run(), "--out", "m")

    def alone(self, prompt, tokens=24, model="m", **options):
        """What `generate` makes of a prompt."""
        flags = [f for k, v in options.items()
                 for f in ("--" + k.replace("_", "-"), v)]
        lines = self.succeed("generate", model, "--prompt", prompt, "--json",
                             "--max-tokens", tokens, *flags)
        return self.events(lines)[-1]["text"]

    def serve(self, *flags):
        process = self.start("serve", "m", *flags)
        line = process.wait_line(lambda line: " is served at http://" in line)
        return process, Endpoint(re.search(r"http://([^/ ]+)/v1", line)[1])

    def test_one_process_answers_as_generate_does(self):
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        self.assertEqual(at.get("/ready")[0], 200)
        models = json.loads(at.get("/v1/models")[1])
        self.assertEqual([m["id"] for m in models["data"]], ["tiny"])
        for prompt in PROMPTS:
            body = {"model": "tiny", "prompt": prompt, "max_tokens": 24,
                    "temperature": 0}
            status, answer = at.post(body)
            self.assertEqual(status, 200, answer)
            expected = self.alone(prompt, temperature=0)
            self.assertEqual(answer["choices"][0]["text"], expected)
            self.assertEqual(answer["usage"]["completion_tokens"], 24)
            self.assertEqual(at.stream(body), (200, {0: expected}))
        # Sampled: the seed decides, alone and among others.
        body = {"model": "tiny", "prompt": PROMPTS[1], "max_tokens": 24,
                "temperature": 0.9, "seed": 11}
        expected = self.alone(PROMPTS[1], temperature=0.9, seed=11)
        self.assertEqual(at.post(body)[1]["choices"][0]["text"], expected)
        several = at.post({**body, "n": 3})[1]["choices"]
        self.assertEqual(several[0]["text"], expected)
        self.assertEqual(len({c["text"] for c in several}), 3)
        cut = at.post({**body, "stop": expected[5:8]})[1]["choices"][0]
        self.assertEqual(cut["text"], expected[:expected.index(expected[5:8])])
        self.assertEqual(cut["finish_reason"], "stop")
        self.mistakes(at)
        self.assertIn("shoal_requests_total", at.get("/metrics")[1])
        process.wait_line(lambda line: "completions" in line and "200" in line)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_many_streams_share_a_small_cache(self):
        """Pages run out, clients go, and each text is what it is alone."""
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0",
                                 "--cache-tokens", 512)
        bodies = [{"model": "tiny", "prompt": f"number {i % 10} " * (1 + i % 5),
                   "max_tokens": 90, "temperature": 0.8, "seed": i % 10}
                  for i in range(50)]
        alone = [at.stream(body) for body in bodies]
        results = {}

        def one(i):
            if i % 5 == 4:  # its client goes
                _, _, (connection, answer) = at.begin(bodies[i % 50])
                answer.close()
                connection.close()
            else:
                results[i] = at.stream(bodies[i % 50])

        threads = [threading.Thread(target=one, args=(i,)) for i in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        self.assertEqual(len(results), 160)
        for i, result in results.items():
            self.assertEqual(result, alone[i % 50])
        left = re.compile(r'shoal_(?:pipeline_)?(?:streams|pages)\{.*\} (\d+)')
        for _ in range(100):  # a pipeline tells of itself once a second
            numbers = left.findall(at.get("/metrics")[1])
            if set(numbers) == {"0"}:
                break
            time.sleep(0.1)
        self.assertEqual(numbers, ["0", "0", "0"])
        self.assertEqual(process.end(signal.SIGINT), 130)

    # Damaged files.

    def test_damaged_weights_are_named_and_not_served(self):
        whole = (self.folder / "m" / "model.safetensors").read_bytes()
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:8 + size])
        name = "model.layers.1.self_attn.q_proj.weight"

        def of(changed, data=whole[8 + size:]):
            text = json.dumps(changed).encode()
            text += b" " * (-(len(text) + 8) % 64)
            return len(text).to_bytes(8, "little") + text + data

        last = max((k for k in header if k != "__metadata__"),
                   key=lambda k: header[k]["data_offsets"][0])
        without = {k: v for k, v in header.items() if k != last}
        end = header[last]["data_offsets"][0]
        shape = {**header, name: {**header[name], "shape": [16, 64]}}
        kind = {**header, name: {**header[name], "dtype": "I32"}}
        first, _ = header[name]["data_offsets"]
        no_number = bytearray(whole)
        no_number[8 + size + first:12 + size + first] = b"\0\0\xc0\x7f"
        overlong = {**header, name: {**header[name], "data_offsets":
                                     [first, len(whole)]}}
        for damaged, said in (
                (whole[:4], "model.safetensors"),
                (whole[:100], "model.safetensors"),
                (whole[:-100], "tensor "),
                (of(without, whole[8 + size:8 + size + end]),
                 f"tensor {last}: is missing"),
                (of(shape), name + ": has shape [16,64]"),
                (of(kind), name + ": type I32"),
                (of(overlong), name),
                (bytes(no_number), name + ": value 0 is no finite number"),
                (b"\xff" * 8 + whole[8:], "model.safetensors")):
            (self.folder / "bad").mkdir(exist_ok=True)
            for file in (self.folder / "m").iterdir():
                (self.folder / "bad" / file.name).write_bytes(
                    damaged if file.name == "model.safetensors"
                    else file.read_bytes())
            self.refuse(1, "serve", "bad", "--http", "127.0.0.1:0",
                        names=["bad", said])
        # Bytes that still are numbers: a run's checksums tell.
        self.train("out")
        weights = self.folder / "out" / "model.safetensors"
        flipped = bytearray(weights.read_bytes())
        flipped[-5] ^= 1
        weights.write_bytes(flipped)
        self.refuse(1, "serve", "out", "--http", "127.0.0.1:0",
                    names=["out/model.safetensors"])

    def test_a_gguf_file_is_served_as_its_directory(self):
        golden = pathlib.Path(__file__).parents[1] / "golden"
        file = golden / "gguf" / "tiny_llama.gguf"
        ids = ["--prompt-ids", "5,6,7,200,11", "--json", "--max-tokens", 40,
               "--temperature", 0]
        alone = [[e["id"] for e in self.events(self.succeed(
            "generate", model, *ids)) if e["event"] == "token"]
            for model in (golden / "tiny_llama", file)]
        self.assertEqual(len(alone[0]), 40)
        self.assertEqual(*alone)
        process = self.start("serve", file, "--http", "127.0.0.1:0")
        line = process.wait_line(lambda line: " is served at http://" in line)
        at = Endpoint(re.search(r"http://([^/ ]+)/v1", line)[1])
        status, answer = at.post({"model": "tiny_llama", "max_tokens": 4,
                                  "prompt": [5, 6, 7], "temperature": 0})
        self.assertEqual(status, 200, answer)
        self.assertEqual(process.end(signal.SIGINT), 130)
        cut = self.write("cut.gguf", "")
        (self.folder / "cut.gguf").write_bytes(file.read_bytes()[:-100])
        self.refuse(1, "serve", cut, names=["cut.gguf: tensor ", "truncated"])
        self.assertEqual(
            [p for p in self.folder.iterdir()
             if p.name.startswith("shoal-gguf-")], [])

    # Versions.

    TRAINS = TINY_RUN.replace("steps = 5\n", "steps = 100000\n", 1).replace(
        "max_position_embeddings = 256",
        "max_position_embeddings = 4096") + """
[checkpoint]
interval = 250
keep_latest_k = 1000

[job]
name = "learns"
"""

    def test_a_job_that_trains_is_served_version_by_version(self):
        self.write("long.toml", self.TRAINS)
        texts = self.write_text_files()
        alone = self.start("train", "long.toml", "--data", texts, "--out",
                           "alone")
        alone.wait_line(lambda line: line.startswith("step 60/"))
        alone.end(signal.SIGINT)
        nodes, at = {}, {}
        for name in ("one", "two", "three"):
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        self.refuse(1, "serve", "learns", "--name", "three",
                    names=["no folder learns", "no job 'learns'"])
        train = self.start("train", "long.toml", "--data", texts, "--out",
                           "out", "--name", "one")
        self.wait_for_checkpoint()
        served = self.start("serve", "learns", "--name", "three")
        served.wait_line(lambda line: "is a training job" in line)
        served.wait_line(lambda line: " is served at http://" in line)
        self.assertEqual(json.loads(at["two"].get("/v1/models")[1])
                         ["data"][0]["id"], "learns-served")
        answers = self.across_versions(at["three"])
        steps = sorted({a[0] for a in answers})
        self.assertGreaterEqual(len(steps), 2, "no switch was seen")
        for step, prompt, tokens in sorted({a[:3] for a in answers}):
            expected = self.alone(prompt, tokens, temperature=0,
                                  model=f"out/checkpoint/step-{step}")
            self.assertEqual({a[3] for a in answers
                              if a[:3] == (step, prompt, tokens)}, {expected})
        self.assertIn("shoal_model_step", at["three"].get("/metrics")[1])
        job = [j for j in json.loads(self.succeed("jobs", "--json", "--name",
                                                  "two"))
               if j["kind"] == "serve"][0]
        self.assertGreaterEqual(job["version"], steps[-1])
        served.end(signal.SIGINT)
        train.end(signal.SIGINT)
        self.training_lost_nothing()

    def test_a_request_keeps_its_version_when_a_peer_dies(self):
        nodes, at = {}, {}
        names = ("one", "two", "three", "four")
        for name in names:
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "4 peers" in line)
        # Few checkpoints: each reaches the folder.
        self.write("long.toml", self.TRAINS.replace("= 250", "= 1500"))
        self.start("train", "long.toml", "--data", self.write_text_files(),
                   "--out", "out", "--name", "one")
        self.wait_for_checkpoint()
        self.succeed("serve", "learns", "--stages", 2, "--detach", "--name",
                     "one")
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        peers = {p["id"]: p["name"] for p in status["peers"]}
        job = [j for j in status["jobs"] if j["kind"] == "serve"][0]
        at_work = [peers[s["id"]] for p in job["places"] for s in p]
        dies = next(n for n in at_work if n != "one")
        asked = next(n for n in names if n not in (dies, "one"))
        body = {"model": "learns-served", "prompt": PROMPTS[0],
                "temperature": 0, "max_tokens": LONG}
        killed = []

        def each(texts):
            if not killed and len(texts.get(0, "")) > 500:
                killed.append(dies)
                nodes[dies].end(signal.SIGKILL)

        status, texts, step = self.stream_of_version(at[asked], body, each)
        self.assertEqual((status, killed), (200, [dies]), texts)
        self.assertEqual(texts[0], self.alone(
            PROMPTS[0], LONG, temperature=0,
            model=f"out/checkpoint/step-{step}"))

    def wait_for_checkpoint(self):
        for _ in range(600):
            jobs = json.loads(self.succeed("jobs", "--json", "--name", "one"))
            if jobs and "checkpoint" in jobs[0]:
                return
            time.sleep(0.2)
        self.fail("no checkpoint came")

    def across_versions(self, at):
        """Requests, one after the other, until three versions have answered and a
        long one has run on while newer requests got the next version. Step,
        prompt, tokens and text of each."""
        answers, crossed, end = [], [], time.monotonic() + DEADLINE_S

        def go_on(prompt, tokens):
            while time.monotonic() < end and not (
                    crossed and len({a[0] for a in answers}) >= 3):
                status, texts, step = self.stream_of_version(
                    at, {"model": "learns-served", "prompt": prompt,
                         "temperature": 0, "max_tokens": tokens})
                answers.append((step, prompt, tokens,
                                texts[0] if status == 200 else (status, texts)))
                if max(a[0] for a in answers) > step:
                    crossed.append(step)

        threads = [threading.Thread(target=go_on, args=one)
                   for one in ((PROMPTS[0], LONG), (PROMPTS[1], 40))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * DEADLINE_S)
        self.assertTrue(crossed, "no stream ran across a switch")
        return answers

    @staticmethod
    def stream_of_version(at, body, each=None):
        """Like Endpoint.stream(), with the step that all events name."""
        steps = set()
        status, texts = at.stream(body, each, events=lambda event: steps.add(
            event["system_fingerprint"]))
        (step,) = steps
        return status, texts, int(step.removeprefix("step-"))

    def training_lost_nothing(self):
        """The losses are those of the same run where nothing is served."""
        def losses(out):
            lines = (self.folder / out / "metrics.jsonl").read_text()
            return {e["step"]: e["loss"] for e in map(json.loads,
                                                      lines.splitlines())
                    if "loss" in e and e.get("event", "step") == "step"}
        alone, served = losses("alone"), losses("out")
        self.assertGreaterEqual(len(alone), 60)
        self.assertEqual(sorted(served), list(range(1, max(served) + 1)))
        for step in sorted(alone)[:60]:
            self.assertAlmostEqual(alone[step], served[step], 3, step)

    def mistakes(self, at):
        for body, status, param in (
                ("{", 400, None),
                ({"model": "other", "prompt": "x"}, 404, "model"),
                ({"model": "tiny", "prompt": "x" * 300}, 400, "prompt"),
                ({"model": "tiny", "prompt": "x", "max_tokens": 256}, 400,
                 "max_tokens"),
                ({"model": "tiny", "prompt": [1, 256]}, 400, "prompt"),
                ({"model": "tiny", "prompt": "x", "temperature": "hot"}, 400,
                 "temperature")):
            told, answer = at.post(body)
            self.assertEqual(told, status, answer)
            if param:
                self.assertEqual(answer["error"]["param"], param, answer)
        self.assertEqual(at.get("/v1/nothing")[0], 404)

    def begin_node(self, name, nodes, at):
        nodes[name] = self.start("node", "--threads", 1, "--name", name,
                                 "--http", "127.0.0.1:0")
        nodes[name].wait_line(lambda line: line.startswith("ready:"))
        status = json.loads(self.succeed("status", "--json", "--name", name))
        at[name] = Endpoint(status["http"])

    def test_streams_survive_the_death_of_their_peers(self):
        names = ("one", "two", "three", "four")
        nodes, at = {}, {}
        for name in names:
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "4 peers" in line)
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        self.write("long.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "long.toml", "--out", "long")
        self.succeed("serve", "long", "--as", "tiny", "--stages", 2, "--detach",
                     "--name", "one")
        peers = {p["id"]: p["name"] for p in status["peers"]}
        job = json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]
        expected = [self.alone(p, LONG, temperature=0, model="long")
                    for p in PROMPTS]
        first, outside = self.outside(job, peers)
        self.another_peer_goes_on_with_a_stream(nodes, at, first, outside)
        nodes[outside].wait_line(lambda line: f"{first} is gone" in line)
        results, begun = {}, threading.Semaphore(0)

        def one_stream(i):
            told = [False]

            def each(texts):
                if not told[0] and len(texts.get(0, "")) > 10:
                    told[0] = True
                    begun.release()
            results[i] = at[outside].stream(
                {"model": "tiny", "prompt": PROMPTS[i], "max_tokens": LONG,
                 "temperature": 0}, each)

        threads = [threading.Thread(target=one_stream, args=(i,))
                   for i in range(len(PROMPTS))]
        for thread in threads:
            thread.start()
        for _ in threads:
            self.assertTrue(begun.acquire(timeout=DEADLINE_S))
        # A stage; if it can be, the peer that was given the model's files.
        dies = next(n for n in names if n not in (first, outside))
        nodes[dies].end(signal.SIGKILL)
        self.assertLess(len(results), len(PROMPTS), "all ended before the death")
        for thread in threads:
            thread.join(DEADLINE_S)
        for i, text in enumerate(expected):
            self.assertEqual(results.get(i), (200, {0: text}))
        self.a_node_that_leaves_answers_first(nodes[outside], at[outside],
                                              expected[0])

    def another_peer_goes_on_with_a_stream(self, nodes, at, dies, other):
        """Its client has asked a peer that is killed."""
        key = {"Idempotency-Key": "one request"}
        body = {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": LONG}
        whole = at[other].stream(body, None, key)
        text, last, (connection, answer) = at[dies].begin(body)
        nodes[dies].end(signal.SIGKILL)
        answer.close()
        connection.close()
        status, answer = at[other].stream(
            body, None, {**key, "Last-Event-ID": str(last)})
        self.assertEqual(whole, (status, {0: text + answer[0]}))
        self.assertEqual(at[other].stream(
            body, None, {"Last-Event-ID": str(last)})[0], 400)

    def a_node_that_leaves_answers_first(self, node, at, expected):
        text, _, (connection, answer) = at.begin(
            {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": LONG,
             "temperature": 0})
        node.child.send_signal(signal.SIGTERM)
        for line in answer:
            line = line.decode()
            if line.startswith("data: {"):
                text += json.loads(line[6:])["choices"][0]["text"]
        connection.close()
        self.assertEqual(text, expected)
        self.assertEqual(node.end(), 0)

    @staticmethod
    def outside(job, peers):
        """The nodes that have no stage."""
        at_work = {stage["id"] for places in job["places"] for stage in places}
        return [name for peer, name in peers.items() if peer not in at_work]


if __name__ == "__main__":
    main()
