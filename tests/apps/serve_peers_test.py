# tests/apps/serve_peers_test.py -- models that several peers serve: their deaths,
# versions of a model that still trains, all families by stages.
import hashlib
import json
import pathlib
import re
import signal
import threading
import time

from serving import (GOLDEN, LONG, PROMPTS, Serving, cut_model,
                     golden_ids)
from support import DEADLINE_S, TINY_RUN, main


class ServePeers(Serving):
    def test_each_family_gives_the_tokens_of_transformers(self):
        """At temperature 0, by one, two and three stages."""
        nodes, at = {}, {}
        for name in ("one", "two", "three"):
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        models = sorted(folder.parent.name
                        for folder in GOLDEN.glob("*/golden.safetensors"))
        self.assertEqual(len(models), 13)
        for stages in (1, 2, 3):
            self.each_family(models, stages, at["two"])

    def each_family(self, models, stages, at):
        for model in models:
            self.succeed("serve", GOLDEN / model, "--as", model, "--stages",
                         stages, "--name", "one", "--detach")
        jobs = [job for job in json.loads(self.succeed(
            "jobs", "--json", "--name", "one")) if job["state"] == "running"]
        for job in jobs:
            shape = json.loads(
                (GOLDEN / job["name"] / "config.json").read_text())
            layers = shape.get("num_hidden_layers", shape.get("n_layer"))
            self.assertEqual([len(p) for p in job["places"]],
                             [min(stages, layers)], job)
        for model in models:
            prompt = golden_ids(model, "prompt")
            expected = golden_ids(model, "greedy")
            status, answer = at.post(
                {"model": model, "prompt": prompt, "temperature": 0,
                 "max_tokens": len(expected), "ignore_eos": True,
                 "return_token_ids": True})
            self.assertEqual(status, 200, answer)
            choice = answer["choices"][0]
            self.assertEqual(choice["prompt_token_ids"], prompt)
            self.assertEqual(choice["token_ids"], expected, (model, stages))
        for job in jobs:
            done = self.run_shoal("cancel", job["id"], "--name", "one")
            # It may still send the last answers when it is asked.
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stderr, "^(shoal: job .* was asked to end; "
                                          "waiting for it\n)?$")

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
        threads, results = self.begin_long_streams(at[outside])
        # A stage; if it can be, the peer that was given the model's files.
        dies = next(n for n in names if n not in (first, outside))
        nodes[dies].end(signal.SIGKILL)
        self.assertLess(len(results), len(PROMPTS), "all ended before the death")
        for thread in threads:
            thread.join(DEADLINE_S)
        for i, text in enumerate(expected):
            self.assertEqual(results.get(i), (200, {0: text}))
        self.a_node_that_leaves_answers_first(
            nodes[outside], at[outside], expected[0],
            lambda: self.start("leave", "--name", outside))
        last, = set(names) - {first, dies, outside}
        self.a_node_that_leaves_answers_first(
            nodes[last], at[last], expected[0],
            lambda: nodes[last].child.send_signal(signal.SIGTERM))

    def job(self):
        return json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]

    def until(self, what, asked):
        """Asks until it is so; each time also a node, which takes some time."""
        for _ in range(600):
            self.job()
            if asked():
                return
        self.fail(f"not so: {what}\n{self.job()}")

    def test_ctrl_c_ends_a_model_after_what_it_answers(self):
        """Streams were cut in the middle; and of another node, too."""
        nodes, at = {}, {}
        for name in ("one", "two"):
            self.begin_node(name, nodes, at)
        nodes["one"].wait_line(lambda line: "2 peers" in line)
        self.write("long.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "long.toml", "--out", "long")
        command = self.start("serve", "long", "--as", "tiny", "--name", "one")
        command.wait_line(lambda line: " is served at " in line)
        threads, results = self.begin_long_streams(at["two"])
        command.child.send_signal(signal.SIGINT)
        command.wait_line(lambda line: line.startswith("ending: "))
        # 503 while it ends, 404 if that has been quick.
        self.until("no more requests are begun", lambda: at["one"].post(
            {"model": "tiny", "prompt": "x", "max_tokens": 1})[0] in (503, 404))
        for thread in threads:
            thread.join()
        for i, prompt in enumerate(PROMPTS):
            self.assertEqual(results[i], (200, {0: self.alone(
                prompt, LONG, temperature=0, model="long")}))
        self.assertEqual(command.end(), 130)
        again = self.start("serve", "long", "--as", "tiny", "--name", "one")
        again.wait_line(lambda line: " is served at " in line)
        self.succeed("cancel", "tiny", "--name", "two")
        again.wait_line(lambda line: "is not served any more" in line)
        self.assertEqual(again.end(), 0)

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
                r'shoal_pipeline_streams\{model_name="tiny",pipeline="1"\} [1-9]')
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
        body = {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": LONG,
                "seed": 5}
        whole = at[other].stream(body)  # computed apart: it has no key
        text, last, (connection, answer) = at[dies].begin(body)
        nodes[dies].end(signal.SIGKILL)
        answer.close()
        connection.close()
        status, answer = at[other].stream(
            body, None, {**key, "Last-Event-ID": last})
        self.assertEqual(whole, (status, {0: text + answer[0]}))
        del body["seed"]
        self.assertEqual(at[other].stream(
            body, None, {"Last-Event-ID": last})[0], 400)

    def a_node_that_leaves_answers_first(self, node, at, expected, leave):
        text, _, (connection, answer) = at.begin(
            {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": LONG,
             "temperature": 0})
        leave()
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

    def test_a_minority_goes_on_serving_what_it_holds(self):
        nodes, at = {}, {}
        for name in ("one", "two", "three"):
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        said = self.succeed("serve", "m", "--as", "wide", "--stages", 9,
                            "--replicas", 4, "--detach", "--name", "one")
        self.assertIn("stages = 9: ", said)
        self.assertIn("replicas = 4: 3 pipelines, as pipeline 4 of 4: no peer is "
                      "left", said)
        self.succeed("cancel", "wide", "--name", "one")
        events = self.events(self.succeed(
            "serve", "m", "--as", "tiny", "--stages", 1, "--replicas", 3,
            "--detach", "--json", "--name", "one"))
        self.assert_documented("serve", *events)
        self.assertEqual(events[-1]["url"], f"http://{at['one'].address}/v1")
        job, = [j for j in json.loads(self.succeed(
            "jobs", "--json", "--name", "one")) if j["name"] == "tiny"]
        holds = job["places"][0][0]["peer"]
        body = {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": 24,
                "temperature": 0}
        expected = self.alone(PROMPTS[0], temperature=0)
        self.assertEqual(at[holds].stream(body), (200, {0: expected}))
        for name, node in nodes.items():
            if name != holds:
                node.end(signal.SIGKILL)
        nodes[holds].wait_line(lambda line: "no quorum" in line)
        self.assertEqual(at[holds].stream(body), (200, {0: expected}))
        for prompt in "abcdef":  # none goes to a pipeline that is dead
            self.assertEqual(at[holds].post(body | {"prompt": 40 * prompt})[0], 200)
        self.assertEqual(at[holds].get("/ready")[0], 200)

    # Disks.

    def test_no_disk_needs_room_for_the_whole_model(self):
        """Not even that of the node to which it is uploaded."""
        self.write("wide.toml", TINY_RUN.replace("= 48", "= 512").replace(
            "num_hidden_layers = 3", "num_hidden_layers = 12"))
        self.succeed("init", "wide.toml", "--out", "wide")
        total = cut_model(self.folder / "wide", self.folder / "cut")
        room = total * 8 // 10
        names = ("one", "two", "three")
        nodes, at = {}, {}
        for name in names:
            self.begin_node(name, nodes, at, "--disk", f"{room / 1024}KiB")
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        said = self.succeed("serve", "cut", "--as", "tiny", "--stages", 1,
                            "--detach", "--name", "one")
        self.assertIn("no room for the whole model", said)
        body = {"model": "tiny", "prompt": PROMPTS[0], "max_tokens": 24,
                "temperature": 0}
        expected = self.alone(PROMPTS[0], temperature=0, model="cut")
        stores = {name: pathlib.Path(json.loads(self.succeed(
            "status", "--json", "--name", name))["data_dir"]) / "blobs"
            for name in names}
        files = {hashlib.sha256(file.read_bytes()).hexdigest()
                 for file in (self.folder / "cut").glob("*.safetensors")}
        self.until("each file is on two disks", lambda: self.copies(
            files, stores.values()) >= 2)
        for name, store in stores.items():
            used = sum(f.stat().st_size for f in store.rglob("*")
                       if f.is_file())
            self.assertLessEqual(used, room, name)
            self.assertEqual(at[name].stream(body), (200, {0: expected}))
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        keepers = {k["peer"] for k in status["jobs"][0]["keepers"]}
        self.assertEqual(keepers, set(names))
        # The one that runs it; what it kept is on the others, too.
        peers = {p["id"]: p["name"] for p in status["peers"]}
        dies = peers[status["jobs"][0]["places"][0][0]["id"]]
        nodes[dies].end(signal.SIGKILL)
        lives = [name for name in names if name != dies]
        nodes[lives[0]].wait_line(lambda line: f"{dies} is gone" in line)
        for name in lives:
            self.assertEqual(at[name].stream(body), (200, {0: expected}))

    @staticmethod
    def copies(files, stores):
        """On how many disks each of these files is at least."""
        return min(sum((store / name[:2] / name[2:]).exists()
                       for store in stores) for name in files)

    def test_a_model_that_all_disks_together_cannot_have_is_refused(self):
        total = cut_model(self.folder / "m", self.folder / "cut")
        nodes, at = {}, {}
        for name, share in (("one", 4), ("two", 5)):
            self.begin_node(name, nodes, at, "--disk",
                            f"{total // share / 1024}KiB")
        for node in nodes.values():
            node.wait_line(lambda line: "2 peers" in line)
        done = self.run_shoal("serve", "cut", "--detach", "--name", "one")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "the files of the model need .*; the disks "
                                      "of the peers have room for .*: one .*, "
                                      "two .*")
        store = json.loads(self.succeed(
            "status", "--json", "--name", "one"))["data_dir"]
        self.assertEqual([f for f in pathlib.Path(store, "blobs").rglob("*")
                          if f.is_file()], [], "something was uploaded")

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
        # A folder of that name, where it was trained, was served in its place.
        job = json.loads(self.succeed("status", "--json", "--name", "three"))[
            "jobs"][0]["id"]
        self.write("learns/run.json", "{}")
        self.refuse(2, "serve", "learns", "--name", "three", names=[
            "`shoal serve ./learns --name three`",
            f"`shoal serve {job} --name three`"])
        self.refuse(1, "serve", "./learns", "--name", "three",
                    names=["learns has no model yet"])
        (self.folder / "learns/run.json").unlink()
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
        self.a_stream_goes_on_with_its_version(at["one"], at[asked], body)

    def a_stream_goes_on_with_its_version(self, first, other, body):
        """Its events name it; where it is not served any more, that is said."""
        begun, last, (connection, answer) = first.begin(body)
        connection.close()
        answer.close()
        key = {"Idempotency-Key": "one request"}
        number, step = last.split("@")
        status, rest, same = self.stream_of_version(
            other, body, headers={**key, "Last-Event-ID": last})
        self.assertEqual((status, str(same)), (200, step), rest)
        self.assertEqual(begun + rest[0], self.alone(
            PROMPTS[0], LONG, temperature=0,
            model=f"out/checkpoint/step-{step}"))
        for gone in (f"{number}@1", number):
            status, why = other.stream(body, None,
                                       {**key, "Last-Event-ID": gone})
            self.assertEqual(status, 410, why)
            self.assertIn("without Last-Event-ID", why)

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
    def stream_of_version(at, body, each=None, headers=None):
        """Like Endpoint.stream(), with the step that all events name."""
        steps = set()
        status, texts = at.stream(body, each, headers, events=lambda event: steps.add(
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


if __name__ == "__main__":
    main()
