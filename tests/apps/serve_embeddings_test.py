# tests/apps/serve_embeddings_test.py -- /v1/embeddings: against the hidden states of
# transformers, bit for bit whatever else is computed, by one and by two stages, and
# after the death of a peer.
#
# Golden files have logits and no hidden states. Logits are the head's product with
# the hidden state after the final norm, so the product of an embedding must point
# where they do; the head has more rows than columns, so no other vector does.
import array
import base64
import json
import math
import signal
import struct
import threading

from serving import GOLDEN, PROMPTS, Endpoint, Serving
from support import DEADLINE_S, TINY_RUN, main

PATH = "/v1/embeddings"
MODEL = GOLDEN / "tiny_llama"
LENGTH = 24  # tokens of a golden text


def tensor(file, name):
    """Its shape, and its values as F32."""
    data = file.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    entry = json.loads(data[8:8 + size])[name]
    assert entry["dtype"] == "F32"
    begin, end = entry["data_offsets"]
    return entry["shape"], array.array("f", data[8 + size + begin:
                                                 8 + size + end])


def rows(file, name):
    shape, values = tensor(file, name)
    width = shape[-1]
    return [values[i:i + width] for i in range(0, len(values), width)]


def unit(values):
    length = math.sqrt(sum(x * x for x in values))
    return [x / length for x in values]


class Embeddings(Serving):
    def embed(self, at, given, **more):
        status, answer = at.post({"model": "tiny", "input": given, **more},
                                 PATH)
        self.assertEqual(status, 200, answer)
        self.assertEqual([d["index"] for d in answer["data"]],
                         list(range(len(answer["data"]))))
        return [d["embedding"] for d in answer["data"]]

    def golden(self, at, mean):
        """Of the first golden text, as far as each of its tokens."""
        golden = MODEL / "golden.safetensors"
        ids = [int(x) for x in tensor(golden, "ids")[1][:LENGTH]]
        logits = rows(golden, "logits")[:LENGTH]
        head = rows(MODEL / "model.safetensors", "lm_head.weight")
        ends = (1, 2, 7, LENGTH)
        got = self.embed(at, [ids[:end] for end in ends])
        for end, embedding in zip(ends, got):
            self.assertAlmostEqual(sum(x * x for x in embedding), 1, places=5)
            expected = logits[end - 1]
            if mean:
                expected = [sum(column) for column in zip(*logits[:end])]
            product = unit([sum(a * b for a, b in zip(row, embedding))
                            for row in head])
            for a, b in zip(product, unit(expected)):
                self.assertAlmostEqual(a, b, places=5)

    def begin(self, model, *flags):
        process = self.start("serve", model, "--as", "tiny", "--http",
                             "127.0.0.1:0", *flags)
        line = process.wait_line(lambda line: " is served at http://" in line)
        return process, Endpoint(line.split("http://")[1].split("/")[0])

    def test_hidden_states_are_those_of_transformers(self):
        pooled = self.folder / "pooled"
        pooled.mkdir()
        for file in ("config.json", "model.safetensors"):
            (pooled / file).write_bytes((MODEL / file).read_bytes())
        (pooled / "1_Pooling").mkdir()
        (pooled / "1_Pooling" / "config.json").write_text(json.dumps(
            {"word_embedding_dimension": 64, "pooling_mode_mean_tokens": True,
             "pooling_mode_lasttoken": False}))
        for model, flags, mean in (
                (MODEL, [], False), (MODEL, ["--pooling", "mean"], True),
                (pooled, [], True), (pooled, ["--pooling", "last"], False)):
            with self.subTest(flags=flags, mean=mean):
                process, at = self.begin(model, *flags)
                self.golden(at, mean)
                self.assertEqual(process.end(signal.SIGINT), 130)

    def test_requests(self):
        process, self.at = self.begin("m")
        for check in (self.forms, self.mistakes, self.many, self.beside_texts,
                      self.package_of_openai):
            with self.subTest(check.__name__):
                check()
        self.assertEqual(process.end(signal.SIGINT), 130)

    def forms(self):
        ids = [list(p.encode()) for p in PROMPTS]
        texts = self.embed(self.at, PROMPTS)
        self.assertEqual(len(set(map(tuple, texts))), len(PROMPTS))
        self.assertEqual(self.embed(self.at, ids), texts)
        for prompt, of_ids, expected in zip(PROMPTS, ids, texts):
            self.assertEqual(self.embed(self.at, prompt), [expected])
            self.assertEqual(self.embed(self.at, of_ids), [expected])
        coded = self.embed(self.at, PROMPTS, encoding_format="base64",
                           user="me", dimensions=len(texts[0]))
        for text, expected in zip(coded, texts):
            values = array.array("f", base64.b64decode(text, validate=True))
            # A number of the list is the shortest one that is the float.
            self.assertEqual(values, array.array("f", expected))
        status, answer = self.at.post({"model": "tiny", "input": PROMPTS}, PATH)
        self.assertEqual((status, answer["object"], answer["model"]),
                         (200, "list", "tiny"))
        tokens = sum(map(len, ids))
        self.assertEqual(answer["usage"], {"prompt_tokens": tokens,
                                           "total_tokens": tokens})
        self.assertEqual(answer["data"][0]["object"], "embedding")
        self.assertEqual(
            self.embed(self.at, "xyz" + PROMPTS[0],
                       truncate_prompt_tokens=len(PROMPTS[0])),
            texts[:1])

    def mistakes(self):
        width = len(self.embed(self.at, "a")[0])
        for param, more in (
                ("input", {"input": None}), ("input", {"input": []}),
                ("input", {"input": ""}), ("input", {"input": ["a", 1]}),
                ("input", {"input": [[]]}), ("input", {"input": [1, -1]}),
                ("input", {"input": [1 << 20]}), ("input", {"input": {}}),
                ("input", {"input": ["a"] * 2049}),
                ("input", {"input": "a" * 257}),
                ("dimensions", {"dimensions": width - 1}),
                ("dimensions", {"dimensions": 0}),
                ("encoding_format", {"encoding_format": "int8"}),
                ("encoding_format", {"encoding_format": 1}),
                ("user", {"user": 1})):
            status, answer = self.at.post(
                {"model": "tiny", "input": "a", **more}, PATH)
            self.assertEqual((status, answer["error"]["param"]), (400, param),
                             answer)
            self.assertTrue(answer["error"]["message"].startswith(param),
                            answer)
        self.assertEqual(
            self.at.post({"model": "other", "input": "a"}, PATH)[0], 404)
        # The context has room for it: nothing follows.
        self.assertEqual(len(self.embed(self.at, "a" * 256)), 1)

    def many(self):
        """More than the queue of a pipeline has places."""
        texts = [f"text {i % 50}" for i in range(2048)]
        got = self.embed(self.at, texts, encoding_format="base64")
        self.assertEqual((got[:50] * 41)[:len(texts)], got)
        self.assertEqual(len(set(got[:50])), 50)

    def beside_texts(self):
        alone = self.embed(self.at, PROMPTS)
        done = []

        def generate():
            done.append(self.at.post(
                {"model": "tiny", "prompt": PROMPTS, "max_tokens": 100,
                 "n": 4, "ignore_eos": True})[0])
        threads = [threading.Thread(target=generate) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not done:
            self.assertEqual(self.embed(self.at, PROMPTS), alone)
        for thread in threads:
            thread.join(DEADLINE_S)
        self.assertEqual(done, [200] * 3)

    def package_of_openai(self):
        openai, client = self.package("openai"), self.openai_client(self.at)
        answer = client.embeddings.create(model="tiny", input=PROMPTS)
        expected = self.embed(self.at, PROMPTS)
        self.assertEqual(
            [array.array("f", d.embedding) for d in answer.data],
            [array.array("f", e) for e in expected])
        self.assertEqual(answer.usage.total_tokens, sum(map(len, PROMPTS)))
        with self.assertRaises(openai.BadRequestError) as raised:
            client.embeddings.create(model="tiny", input="a", dimensions=3)
        self.assertEqual(raised.exception.param, "dimensions")

    def test_stages_and_deaths_change_no_bit(self):
        self.write("long.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "long.toml", "--out", "long")
        # Of several passes, and some that begin alike.
        texts = PROMPTS + [f"{i} " + "the cod of file " * 100 * i
                           for i in range(1, 3)]
        alone = {}
        for pooling in ("last", "mean"):
            process, one = self.begin("long", "--pooling", pooling)
            alone[pooling] = [self.embed(one, text)[0] for text in texts]
            self.assertEqual(process.end(signal.SIGINT), 130)
        nodes, at = {}, {}
        for name in ("one", "two", "three"):
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        for pooling, expected in alone.items():
            self.succeed("serve", "long", "--as", "tiny", "--stages", 2,
                         "--pooling", pooling, "--detach", "--name", "one")
            job = next(j for j in json.loads(self.succeed(
                "jobs", "--json", "--name", "one")) if j["state"] == "running")
            self.assertEqual(len(job["places"][0]), 2)
            self.assertEqual(self.embed(at["two"], texts), expected)
            if pooling == "mean":
                self.after_a_death(nodes, at, job, texts, expected)
            else:
                self.succeed("cancel", job["id"], "--name", "one")

    def after_a_death(self, nodes, at, job, texts, expected):
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        peers = {p["id"]: p["name"] for p in status["peers"]}
        at_work = [peers[stage["id"]] for stage in job["places"][0]]
        asks, = set(nodes) - set(at_work)
        got = []

        def ask():
            while len(got) < 40:
                got.append(self.embed(at[asks], texts))
        thread = threading.Thread(target=ask)
        thread.start()
        while len(got) < 2 and thread.is_alive():
            thread.join(0.05)
        nodes[at_work[-1]].end(signal.SIGKILL)
        self.assertLess(len(got), 40, "all ended before the death")
        thread.join(DEADLINE_S)
        self.assertEqual(len(got), 40)
        for one in got:
            self.assertEqual(one, expected)


if __name__ == "__main__":
    main()
