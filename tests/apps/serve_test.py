# tests/apps/serve_test.py -- models that are served, as clients see them.
import http.client
import json
import re
import signal
import threading

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

    def stream(self, body, each=None, headers=None):
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
            at.stream({**bodies[0], "max_tokens": 250})
        self.assertEqual(numbers, ["0", "0", "0"])
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_a_model_that_never_fits_is_refused_at_once(self):
        """Nothing of it is uploaded: the answer names needs and peers."""
        told = self.refuse(1, "serve", "m", "--http", "off",
                           "--cache-tokens", 1 << 27)
        self.assertRegex(told, r"needs at least [\d.]+ GiB .* has [\d.]+ GiB "
                         r"on 1 member \([\d.]+ GiB: \S+\)")

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

    def job(self):
        return json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]

    def until(self, what, asked):
        """Asks until it is so; each time also a node, which takes some time."""
        for _ in range(600):
            self.job()
            if asked():
                return
        self.fail(f"not so: {what}\n{self.job()}")

    def test_pipelines_follow_the_load(self):
        """Requests that wait make a second pipeline, calm removes it; texts are
        the same throughout."""
        nodes, at = {}, {}
        for name in ("one", "two"):
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "2 peers" in line)
        # There is room for one request at a time.
        self.succeed("serve", "m", "--as", "tiny", "--replicas", "auto",
                     "--grow-after", 1, "--shrink-after", 2, "--cache-tokens",
                     256, "--detach", "--name", "one")
        self.assertEqual(self.job()["pipelines"], 1)
        bodies = [{"model": "tiny", "prompt": f"{i} herrings", "max_tokens": 200,
                   "temperature": 0.8, "seed": i} for i in range(8)]
        alone = [at["one"].stream(body) for body in bodies]
        over, results = threading.Event(), []

        def load(i):
            while not over.is_set():
                results.append((i, at["one" if i % 2 else "two"].stream(
                    bodies[i])))

        threads = [threading.Thread(target=load, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        try:
            self.until("2 pipelines", lambda: self.job()["pipelines"] == 2)
            second = re.compile(
                r'shoal_pipeline_streams\{model="tiny",pipeline="1"\} [1-9]')
            for name in at:
                self.until("both work", lambda name=name: second.search(
                    at[name].get("/metrics")[1]))
            places = [stage["id"] for place in self.job()["places"]
                      for stage in place]
            self.assertEqual(len(set(places)), 2, places)
        finally:
            over.set()
            for thread in threads:
                thread.join(DEADLINE_S)
        self.until("1 pipeline", lambda: self.job()["pipelines"] == 1)
        self.assertGreaterEqual(len(results), 8)
        for i, result in results:
            self.assertEqual(result, alone[i])
        for i, body in enumerate(bodies):
            self.assertEqual(at["two"].stream(body), alone[i])
        self.assertEqual(len(self.job()["places"]), 1)

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
