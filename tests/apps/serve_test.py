# tests/apps/serve_test.py -- a model that one process serves, as clients see it.
import json
import pathlib
import re
import shutil
import signal
import struct
import threading
import time

from serving import PROMPTS, Endpoint, Serving
from support import DEADLINE_S, TINY_RUN, main


class Serve(Serving):
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
        # Each prompt has its own chance; a seed is that of each.
        batch = {**body, "prompt": [PROMPTS[1]] * 3}
        texts = [[c["text"] for c in at.post(b)[1]["choices"]] for b in (
            batch, {k: v for k, v in batch.items() if k != "seed"})]
        self.assertEqual(texts[0], [expected] * 3)
        self.assertEqual(len(set(texts[1])), 3)
        cut = at.post({**body, "stop": expected[5:8]})[1]["choices"][0]
        self.assertEqual(cut["text"], expected[:expected.index(expected[5:8])])
        self.assertEqual(cut["finish_reason"], "stop")
        self.probabilities(at)
        self.guesses(at)
        self.mistakes(at)
        self.assertIn("shoal_requests_total", at.get("/metrics")[1])
        process.wait_line(lambda line: "completions" in line and "200" in line)
        process.wait_line(lambda line: "400: max_tokens: " in line)
        # Also of what is refused before a model reads it.
        for body, said in (('{"model": "tiny", "prompt": "x", '
                            '"max_tokens": -5}', "400: max_tokens"),
                           ("{", "400: "), ('{"model": "another", '
                                            '"prompt": "x"}', "404: ")):
            at.post(body)
            process.wait_line(lambda line, said=said: said in line)
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
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:  # a pipeline reports once a second
            numbers = left.findall(at.get("/metrics")[1])
            if set(numbers) == {"0"}:
                break
        self.assertEqual(numbers, ["0", "0", "0"])
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_a_model_that_never_fits_is_refused_at_once(self):
        """Nothing of it is uploaded: the answer names needs and peers."""
        told = self.refuse(1, "serve", "m", "--http", "off",
                           "--cache-tokens", 1 << 27)
        self.assertRegex(told, r"needs at least [\d.]+ GiB .* has [\d.]+ GiB "
                         r"on 1 member \([\d.]+ GiB: \S+\)")

    def test_a_model_with_windows_answers_as_generate_does(self):
        """Blocks with a window have pages of their own, which run out."""
        self.write("windows.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096\n"
            'model_type = "mistral"\nsliding_window = 20'))
        self.succeed("init", "windows.toml", "--out", "m", "--overwrite")
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0",
                                 "--cache-tokens", 4096)
        prompts = [p * n for p in PROMPTS for n in (1, 4, 16)]
        expected = [self.alone(p, 60, temperature=0) for p in prompts]
        results = {}

        def one(i):
            results[i] = at.stream({"model": "tiny", "prompt": prompts[i % 12],
                                    "max_tokens": 60, "temperature": 0})

        threads = [threading.Thread(target=one, args=(i,)) for i in range(36)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        for i in range(36):
            self.assertEqual(results.get(i), (200, {0: expected[i % 12]}))
        self.assertEqual(process.end(signal.SIGINT), 130)

    def guesses(self, at):
        """A text that repeats itself is guessed ahead, and is the same."""
        prompt = "over and over, " * 4
        for options in ({"temperature": 0}, {"temperature": 0.6, "seed": 4}):
            body = {"model": "tiny", "prompt": prompt, "max_tokens": 180,
                    **options}
            expected = self.alone(prompt, 180, **options)
            self.assertEqual(at.post(body)[1]["choices"][0]["text"], expected)
        counted = re.compile(r"shoal_pipeline_accepted_tokens_total\{.*\} (\d+)")
        for _ in range(2000):  # a pipeline tells of itself once a second
            if int(counted.search(at.get("/metrics")[1])[1]) > 0:
                return
            at.post(body)
        self.fail("no guess was right: " + at.get("/metrics")[1])

    def probabilities(self, at):
        """Of chosen tokens, of the likeliest ones, and of a prompt's."""
        body = {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": 12,
                "temperature": 0, "logprobs": 5}
        choice = at.post(body)[1]["choices"][0]
        chosen = choice["logprobs"]
        self.assertEqual([len(v) for v in chosen.values()], [12] * 4)
        for own, p, top in zip(chosen["tokens"], chosen["token_logprobs"],
                               chosen["top_logprobs"]):
            self.assertEqual(len(top), 5)
            self.assertEqual(list(top.values()),
                             sorted(top.values(), reverse=True))
            self.assertEqual(max(top, key=top.get), own)  # it is greedy
            self.assertEqual(top[own], p)
        drawn = at.post({**body, "temperature": 2, "seed": 3, "logprobs": 1})
        drawn = drawn[1]["choices"][0]["logprobs"]
        self.assertTrue(any(len(top) == 2 for top in drawn["top_logprobs"]))
        for own, top in zip(drawn["tokens"], drawn["top_logprobs"]):
            self.assertIn(own, top)
        # The same text as a prompt: the model has one id for each byte.
        ids = list(PROMPTS[0].encode()) + [
            int(t[8:], 16) if t.startswith("bytes:") else ord(t)
            for t in chosen["tokens"]]
        at_once = {**body, "prompt": ids, "echo": True, "max_tokens": 0}
        for _ in range(2):  # its pages are shared the second time
            told = at.post(at_once)[1]
            echoed = told["choices"][0]["logprobs"]
            self.assertEqual(told["usage"]["completion_tokens"], 0)
            self.assertIsNone(echoed["token_logprobs"][0])
            self.assertIsNone(echoed["top_logprobs"][0])
            for key in chosen:
                self.assertEqual(len(echoed[key]), len(ids))
                if key != "text_offset":
                    self.assertEqual(echoed[key][-12:], chosen[key])
        # As a harness asks: with one token more, which is not the prompt's.
        more = at.post({**at_once, "max_tokens": 1})[1]["choices"][0]
        self.assertEqual({k: v[:-1] for k, v in more["logprobs"].items()},
                         echoed)
        self.assertTrue(more["text"].startswith(PROMPTS[0]))
        self.assertEqual(at.stream({**at_once, "max_tokens": 1})[1],
                         {0: more["text"]})
        told, answer = at.post({**body, "logprobs": 6})
        self.assertEqual((told, answer["error"]["param"]), (400, "logprobs"))

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

    # It was ignored: no file in GGUF could be talked with.
    def a_gguf_files_template_is_its_own(self, file):
        key, text = b"tokenizer.chat_template", b"{{ messages[0].content }}"
        text += b" " * (-(8 + len(key) + 4 + 8 + len(text)) % 32)
        more = (struct.pack("<Q", len(key)) + key
                + struct.pack("<IQ", 8, len(text)) + text)
        data = bytearray(file.read_bytes())
        data[16] += 1  # the number of keys
        self.write("chat/tokenizer.json", "")
        (self.folder / "chat/chat.gguf").write_bytes(data[:24] + more + data[24:])
        self.succeed("init", self.tiny_run(), "--out", "bytes")
        shutil.copy(self.folder / "bytes/tokenizer.json", self.folder / "chat")
        process = self.start("serve", "chat/chat.gguf", "--http", "127.0.0.1:0")
        line = process.wait_line(lambda line: " is served at http://" in line)
        at = Endpoint(re.search(r"http://([^/ ]+)/v1", line)[1])
        status, answer = at.post(
            {"model": "chat", "max_tokens": 4, "temperature": 0, "messages": [
                {"role": "user", "content": "fish"}]}, "/v1/chat/completions")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["usage"]["prompt_tokens"], 4 + len(text) - 25)
        self.assertEqual(process.end(signal.SIGINT), 130)

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
        # What a killed one leaves, the next one removes.
        process = self.start("serve", file, "--http", "127.0.0.1:0")
        process.wait_line(lambda line: " is served at http://" in line)
        process.end(signal.SIGKILL)
        self.assertEqual(len(self.unpacked()), 1)
        process = self.start("serve", file, "--http", "127.0.0.1:0")
        line = process.wait_line(lambda line: " is served at http://" in line)
        self.assertEqual(len(self.unpacked()), 1)
        at = Endpoint(re.search(r"http://([^/ ]+)/v1", line)[1])
        status, answer = at.post({"model": "tiny_llama", "max_tokens": 4,
                                  "prompt": [5, 6, 7], "temperature": 0})
        self.assertEqual(status, 200, answer)
        self.assertEqual(process.end(signal.SIGINT), 130)
        self.a_gguf_files_template_is_its_own(file)
        cut = self.write("cut.gguf", "")
        (self.folder / "cut.gguf").write_bytes(file.read_bytes()[:-100])
        self.refuse(1, "serve", cut, names=["cut.gguf: tensor ", "truncated"])
        self.assertEqual(self.unpacked(), [])

    # A text with such a token made the pipeline begin anew, for ever.
    def test_a_tokenizer_with_more_ids_than_the_model_takes_no_text(self):
        path = self.folder / "m" / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        tokenizer["added_tokens"] = [*tokenizer.get("added_tokens", ()), {
            "id": 256, "content": "<|tool|>", "special": True,
            "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False}]
        path.write_text(json.dumps(tokenizer))
        process, at = self.serve("--http", "127.0.0.1:0")
        self.assertTrue(any("the tokenizer has 257 ids" in line
                            for line in process.lines), process.lines)
        body = {"model": "m", "max_tokens": 4, "temperature": 0}
        for prompt in ("<|tool|> a herring", "a herring"):
            status, answer = at.post({**body, "prompt": prompt})
            self.assertEqual(status, 400, answer)
            self.assertIn("has 257 ids", answer["error"]["message"])
        self.assertEqual(at.post({**body, "prompt": [5, 6]})[0], 200)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def unpacked(self):
        """Folders that were made of GGUF files."""
        return [p for p in self.folder.iterdir()
                if p.name.startswith("shoal-gguf-")]

    # It was said to end with a checkpoint, which could be fetched.
    def test_a_lone_node_that_leaves_says_what_it_serves_no_longer(self):
        nodes = {}
        self.begin_node("one", nodes, {})
        self.succeed("serve", "m", "--as", "m1", "--detach", "--name", "one")
        left = self.run_shoal("leave", "--name", "one")
        self.assertEqual(left.returncode, 0, left.stderr)
        for says in ("model m1 is served by no other peer", "`shoal serve`"):
            self.assertIn(says, left.stderr)
        for no in ("checkpoint", "shoal attach"):
            self.assertNotIn(no, left.stderr)
        self.assertEqual(nodes["one"].end(), 0)

    # One was said to come, or just "not found".
    def test_a_job_that_has_ended_without_a_checkpoint_is_not_served(self):
        nodes = {}
        self.begin_node("one", nodes, {})
        train = ["train", self.tiny_run(), "--data", self.write_text_files(),
                 "--name", "one"]
        self.succeed(*train, "--detach", "--training.steps", 10 ** 6,
                     "--job.name", "cut")
        self.refuse(1, "serve", "cut", "--name", "one",
                    names=["has no checkpoint yet"])
        self.succeed("cancel", "cut", "--now", "--name", "one")
        self.refuse(1, "serve", "cut", "--name", "one", names=[
            "job cut has ended", "has ended without one", "last 8 runs"])
        self.succeed(*train, "--out", "out", "--job.name", "gone")
        self.assertEqual(nodes["one"].end(signal.SIGTERM), 0)
        shutil.rmtree(self.folder / ".local/share/shoal/one/blobs")
        self.begin_node("one", nodes, {})
        self.refuse(1, "serve", "gone", "--name", "one", names=[
            "the checkpoint of step 5 of job gone", "The job has ended",
            "may have been removed", "last 8 runs"])


if __name__ == "__main__":
    main()
