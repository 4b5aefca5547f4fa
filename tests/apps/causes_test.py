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
        for name in NAMES:
            done = self.run_shoal(
                "train", self.tiny_run(), "--name", name, "--out",
                f"out-{name}", "--data", text, "--training.steps", 40,
                "--optimizer.lr", 1000, "--training.max_norm", 0,
                "--training.max_bad_steps", 4, *ALONE)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("diverged", done.stderr)
            self.assertNotIn("could not be saved", done.stdout)
        for name in NAMES:
            found = self.jobs(name)
            self.assertEqual([j["state"] for j in found], ["failed"] * 3)
            for job in found:
                self.assertIn("diverged", job["cause"])
                attached = self.run_shoal("attach", job["id"], "--name", name)
                self.assertEqual(attached.returncode, 1)
                self.assertIn("diverged", attached.stderr)
            self.assertIn("diverged",
                          self.succeed("jobs", "--name", name))
        for node in nodes.values():
            self.assertEqual(node.end(signal.SIGTERM), 0)

    # A notice, a line of the node within the command, and the command's last
    # line told it.
    def test_a_command_says_once_why_its_job_failed(self):
        train = ["train", self.tiny_run(), "--data", self.write_text_files(),
                 "--out", "out"]
        self.succeed(*train)
        newest = self.folder / "out/checkpoint/step-5"
        for moments in newest.glob("optimizer*.safetensors"):
            moments.write_bytes(moments.read_bytes().replace(
                b"exp_avg_sq.model.norm.w", b"exp_avg_sq.model.nrom.w"))
        (newest / "checksums.json").unlink(missing_ok=True)
        done = self.run_shoal(*train, "--resume", "--training.steps", 7)
        self.assertEqual(done.returncode, 1, done.stdout)
        said = done.stdout + done.stderr
        self.assertIn("exp_avg_sq.model.norm.weight", done.stderr)
        self.assertEqual(said.count("exp_avg_sq.model.norm.weight"), 1, said)
        self.assertIn("failed after step 5", done.stdout)

    def test_a_run_says_that_its_shoal_has_no_quorum_or_is_gone(self):
        nodes = self.nodes()
        run = self.start(
            "train", self.tiny_run(), "--name", "one", "--out", "out",
            "--data", self.write_text_files(), "--training.steps", 1000000,
            "--metrics.log_freq", 1)
        run.wait_line(lambda line: line.startswith("step 3/"))
        # At once: with a moment between, the others expel the first.
        for name in ("two", "three"):
            nodes[name].child.kill()
        for name in ("two", "three"):
            nodes[name].end()
        run.wait_line(lambda line: "no quorum" in line and "two" in line)
        self.assertIn("no quorum", self.jobs("one")[0]["waiting"])
        self.assertIn("no quorum", self.succeed("jobs", "--name", "one"))
        status = self.succeed("status", "--name", "one").splitlines()
        self.assertRegex(status[1], r"no quorum for view \d+: cannot reach .*two ")
        self.assertIn("shoal recover --force", status[1])
        told = json.loads(self.succeed("doctor", "--json", "--name", "one"))
        self.assertTrue(any(f["grade"] == "note" and "no quorum" in f["text"]
                            and "node one" in f["text"] for f in told), told)
        self.assertIn("waits: no quorum", status[-1])
        said = self.start("train", self.tiny_run(), "--name", "one",
                          "--detach", "--data", self.write_text_files())
        said.wait_line(lambda line: "no quorum" in line and "two" in line
                       and "Waiting" in line)
        self.assertEqual(said.end(signal.SIGKILL), -signal.SIGKILL)
        later = self.start("train", self.tiny_run(), "--name", "one",
                           "--out", "later", "--data", self.write_text_files())
        later.wait_line(lambda line: "Waiting" in line)
        said = self.start("cancel", self.jobs("one")[0]["id"], "--name", "one")
        said.wait_line(lambda line: "asked to end; waiting" in line
                       and "no quorum" in line)
        said.end(signal.SIGKILL)
        nodes["one"].end(signal.SIGKILL)
        later.wait_line(lambda line: "connection lost" in line
                        and "`shoal jobs` lists it" in line)
        self.assertEqual(later.end(), 1)
        run.wait_line(lambda line: "no other node does" in line)
        run.end(signal.SIGKILL)

    def test_a_run_that_lacks_its_text_says_so_and_can_be_ended(self):
        text = self.write_text_files()
        node = self.start("node", "--name", "one", "--threads", 1)
        node.wait_line(lambda line: line.startswith("ready:"))
        self.succeed("train", self.tiny_run(), "--name", "one", "--detach",
                     "--data", text, "--training.steps", 1000000)
        job = self.jobs("one")[0]["id"]
        run = self.start("attach", job, "--name", "one", "--out", "out")
        run.wait_line(lambda line: "checkpoint of step" in line)
        self.assertEqual(node.end(signal.SIGKILL), -signal.SIGKILL)
        run.end(signal.SIGKILL)
        data = self.folder / ".local/share/shoal/one"
        digest = (data / "jobs" / job / "blobs").read_text().split()[1]
        held = [f for f in (data / "blobs").rglob("*")
                if f.is_file() and digest in f"{f.parent.name}{f.name}"]
        self.assertEqual(len(held), 1)
        held[0].unlink()
        node = self.start("node", "--name", "one", "--threads", 1)
        node.wait_line(lambda line: "has the job's data" in line)
        self.assertIn("no peer that is here has the job's data",
                      self.jobs("one")[0]["waiting"])
        asks = self.start("cancel", job, "--name", "one")
        asks.wait_line(lambda line: "has the job's data" in line and
                       f"`shoal cancel {job} --name one --now` ends it" in line)
        self.succeed("cancel", job, "--now", "--name", "one")
        self.assertEqual(asks.end(), 0)
        self.assertEqual(self.jobs("one")[0]["state"], "cancelled")
        self.assertEqual(node.end(signal.SIGTERM), 0)


if __name__ == "__main__":
    main()
