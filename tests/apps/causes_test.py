# tests/apps/causes_test.py -- why a job failed, or does not go on: told by every
# peer, also by those that have no part in it, and by the command that follows.
import json
import signal

from support import World, main

NAMES = ("one", "two", "three")
ALONE = ("--parallelism.data_parallel_replicate_degree", 1,
         "--parallelism.pipeline_parallel_degree", 1,
         "--fault_tolerance.copies", 0)


class Causes(World):
    def nodes(self):
        nodes = {}
        for name in NAMES:
            nodes[name] = self.start("node", "--threads", 1, "--name", name)
            nodes[name].wait_line(lambda line: line.startswith("ready:"))
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        return nodes

    def jobs(self, name):
        return json.loads(self.succeed("jobs", "--json", "--name", name))

    def test_every_peer_says_why_a_job_failed(self):
        nodes = self.nodes()
        text = self.write_text_files()
        self.succeed("init", self.tiny_run(), "--out", "m")
        weights = self.folder / "m" / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1000])
        for name in NAMES:
            done = self.run_shoal(
                "train", "--model.path", self.folder / "m", "--training.steps",
                5, "--training.seq_len", 32, "--name", name, "--out",
                f"out-{name}", "--data", text, *ALONE)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("model.safetensors", done.stderr)
            self.assertNotIn("could not be saved", done.stdout)
        for name in NAMES:
            found = self.jobs(name)
            self.assertEqual([j["state"] for j in found], ["failed"] * 3)
            for job in found:
                self.assertIn("model.safetensors", job["cause"])
                attached = self.run_shoal("attach", job["id"], "--name", name)
                self.assertEqual(attached.returncode, 1)
                self.assertIn("model.safetensors", attached.stderr)
            self.assertIn("model.safetensors",
                          self.succeed("jobs", "--name", name))
        for node in nodes.values():
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_a_run_says_that_its_shoal_has_no_quorum_or_is_gone(self):
        nodes = self.nodes()
        run = self.start(
            "train", self.tiny_run(), "--name", "one", "--out", "out",
            "--data", self.write_text_files(), "--training.steps", 1000000,
            "--metrics.log_freq", 1)
        run.wait_line(lambda line: line.startswith("step 3/"))
        for name in ("two", "three"):
            nodes[name].end(signal.SIGKILL)
        run.wait_line(lambda line: "no quorum" in line and "two" in line)
        self.assertIn("no quorum", self.jobs("one")[0]["waiting"])
        self.assertIn("no quorum", self.succeed("jobs", "--name", "one"))
        nodes["one"].end(signal.SIGKILL)
        run.wait_line(lambda line: "no other node does" in line)
        run.end(signal.SIGKILL)


if __name__ == "__main__":
    main()
