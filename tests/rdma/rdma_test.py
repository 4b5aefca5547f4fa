# tests/rdma/rdma_test.py -- two nodes train and serve over verbs, in a VM.
#
# Usage: tools/rdma-vm python3 tests/rdma/rdma_test.py PROGRAM
# What silently went another way has failed: the devices count the packets that
# they send.
import json
import pathlib
import signal
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "apps"))
from support import DEADLINE_S, TINY_RUN, World, main, numbers  # noqa: E402


def packets():
    """What each device has sent."""
    return [int(pathlib.Path(f"/sys/class/infiniband/{device}/ports/1/"
                             "hw_counters/sent_pkts").read_text())
            for device in ("rxe0", "rxe1")]


class Rdma(World):
    def pair(self, name):
        """The link of a node that has one peer."""
        status = json.loads(self.succeed("status", "--name", name, "--json"))
        pairs = [x for x in status["links"] if x["peer"] != status["self"]]
        return pairs[0] if pairs else {"fabric": None}

    def two_nodes(self, *options_of_two):
        """Two nodes, each with its device, whose pair goes by RDMA."""
        nodes = [self.start("node", "--threads", 1, "--name", name,
                            "--memory", "256M", "--fabric.force", "rdma",
                            "--fabric.trusted_networks", network, *options)
                 for name, network, options in (
                     ("one", "10.77.0.1", ()),
                     ("two", "10.77.0.2", options_of_two))]
        for node in nodes:
            node.wait_line(lambda line: "2 peers" in line)
        deadline = time.monotonic() + DEADLINE_S
        for name in ("one", "two"):
            while self.pair(name)["fabric"] != "rdma":
                self.assertLess(time.monotonic(), deadline, self.pair(name))
        return nodes

    def test_a_run_survives_the_death_of_a_peer(self):
        one, two = self.two_nodes("--non-voting")  # one may decide alone
        before = packets()
        run = self.start("train", self.tiny_run(), "--name", "one", "--data",
                         self.write_text_files(), "--out", "out", "--json",
                         "--training.steps", 4,
                         "--parallelism.pipeline_parallel_degree", 1,
                         "--parallelism.data_parallel_replicate_degree", 2)

        def said(**what):
            return run.wait_line(
                lambda line: line.startswith("{")
                and what.items() <= json.loads(line).items())

        said(event="step")
        sent = [now - then for now, then in zip(packets(), before)]
        self.assertGreater(min(sent), 20)
        two.end(signal.SIGKILL)
        said(state="done")
        self.assertEqual(run.end(), 0)
        self.assertEqual(one.end(signal.SIGTERM), 0)

    def test_two_peers_train_over_rdma_as_one_process_does(self):
        two_stages = ("--parallelism.pipeline_parallel_degree", 2,
                      "--parallelism.data_parallel_replicate_degree", 1)
        alone = numbers(self.train("alone", "--threads", 1))
        nodes = self.two_nodes()
        before = packets()
        together = numbers(self.train("together", "--name", "one", *two_stages))
        sent = [now - then for now, then in zip(packets(), before)]
        print("RDMA packets sent:", *sent)
        self.assertEqual(together, alone)
        # Activations go one way and gradients the other, of 2 KiB and more
        # in each of 5 steps of 4 microbatches.
        self.assertGreater(min(sent), 20)
        for name in ("one", "two"):
            moved = {m["fabric"]: m for m in self.pair(name)["moved"]}
            jobs = [j for j in moved["rdma"]["jobs"] if j["job"]]
            self.assertGreater(jobs[0]["sent_bytes"], 0)
            self.assertGreater(jobs[0]["received_bytes"], 0)
            self.assertNotIn("shm", moved)
        for node in nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def answer(self, address):
        """The text of a stream, once the model is ready."""
        body = json.dumps({"model": "m", "prompt": "The herring",
                           "max_tokens": 12, "temperature": 0}).encode()
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                with urllib.request.urlopen(urllib.request.Request(
                        f"http://{address}/v1/completions", body,
                        {"Content-Type": "application/json"})) as got:
                    return json.loads(got.read())["choices"][0]["text"]
            except (urllib.error.HTTPError, urllib.error.URLError) as error:
                self.assertLess(time.monotonic(), deadline, error)

    def test_weights_and_hidden_states_of_a_served_model_go_over_rdma(self):
        run = self.write("wide.toml", TINY_RUN.replace(
            "hidden_size = 32", "hidden_size = 256").replace(
            "intermediate_size = 48", "intermediate_size = 1024"))
        self.succeed("init", run, "--out", "model")
        weights = (self.folder / "model" / "model.safetensors").stat().st_size
        alone = self.start("serve", "model", "--as", "m", "--http",
                           "127.0.0.1:0", "--threads", 1)
        line = alone.wait_line(lambda line: " is served at http://" in line)
        expected = self.answer(line.split("http://")[1].split("/")[0])
        self.assertEqual(alone.end(signal.SIGINT), 130)
        nodes = self.two_nodes()
        before = packets()
        self.succeed("serve", "model", "--as", "m", "--stages", 2, "--detach",
                     "--name", "one")
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        self.assertEqual(self.answer(status["http"]), expected)
        sent = [now - then for now, then in zip(packets(), before)]
        print("bytes of weights:", weights, "RDMA packets sent:", *sent)
        # The other peer's half of the layers, in packets of 4 KiB at most.
        self.assertGreater(sent[0], weights // 4 // 4096)
        moved = {m["fabric"]: m for m in self.pair("one")["moved"]}
        self.assertGreater(moved["rdma"]["sent_bytes"], weights // 4)
        self.assertNotIn("shm", moved)
        for node in nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)


if __name__ == "__main__":
    main()
