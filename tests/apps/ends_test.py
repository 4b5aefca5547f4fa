# tests/apps/ends_test.py -- what is kept and said when a node ends.
import json
import signal
import subprocess
import time

from support import DEADLINE_S, World, main


class Ends(World):
    def ready(self, *arguments):
        node = self.start("node", "--threads", 1, *arguments)
        node.wait_line(lambda line: line.startswith("ready:"))
        return node

    def test_logs_follow_a_node_that_is_started_again(self):
        node = self.ready("--name", "one")
        follow = self.start("logs", "--name", "one", "--follow")
        follow.wait_line(lambda line: "ready:" in line)
        node.end(signal.SIGKILL)
        follow.wait_line(lambda line: "until it answers again" in line)
        node = self.ready("--name", "one")
        follow.wait_line(lambda line: "it answers again" in line)
        follow.wait_line(lambda line: "ready:" in line)
        self.assertEqual(follow.end(signal.SIGINT), 130)
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_a_directory_without_its_key_makes_a_new_peer(self):
        """It waited for its former self, which could not come back."""
        nodes = [self.start("node", "--threads", 1, "--name", name)
                 for name in ("one", "two")]
        for node in nodes:
            node.wait_line(lambda line: "2 peers" in line)
        for node in nodes:
            node.end(signal.SIGKILL)
        folder = self.folder / ".local/share/shoal/two"
        (folder / "identity.key").write_text("")
        self.refuse(1, "node", "--name", "two", names=["identity.key", "or "
                    "remove it: the node is a new peer then"])
        (folder / "identity.key").unlink()
        again = self.start("node", "--threads", 1, "--name", "two")
        again.wait_line(lambda line: "has no identity.key: this is a new peer"
                        in line)
        again.wait_line(lambda line: line.startswith("ready:"))
        again.end(signal.SIGINT)
        self.assertTrue((folder / "view.record.former").exists())

    def test_a_data_directory_that_was_moved_is_not_made_again(self):
        """A node with work wrote lines of its job there, so that the directory
        could not be moved back."""
        other = self.ready("--name", "other")
        node = self.ready("--name", "one")
        other.wait_line(lambda line: "2 peers" in line)
        peer = json.loads(self.succeed("status", "--json", "--name", "one"))[
            "self"]
        run = self.start("train", self.tiny_run(), "--training.steps", 10 ** 6,
                         "--data", self.write_text_files(), "--out", "out",
                         "--name", "other")
        run.wait_line(lambda line: line.startswith("step "))
        data = self.folder / ".local/share/shoal/one"
        data.rename(self.folder / "moved")
        node.wait_line(lambda line: "removed or moved" in line)
        node.end()
        self.assertFalse(data.exists(), list(data.rglob("*")))
        (self.folder / "moved").rename(data)
        self.ready("--name", "one")
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        self.assertEqual(status["self"], peer)
        run.end(signal.SIGINT)

    def test_a_run_that_is_to_end_does_not_wait_for_a_node_that_is_gone(self):
        """It waited a minute, and then for another answer."""
        node = self.ready("--name", "one")
        text = self.write_text_files()
        train = self.start(
            "train", "--data", text, "--out", "out", "--name", "one",
            "--training.seq_len", 32, "--training.steps", 1000,
            "--model.hidden_size", 768, "--model.num_hidden_layers", 8)
        train.wait_line(lambda line: line.startswith("step 1/"))
        train.child.send_signal(signal.SIGINT)
        train.wait_line(lambda line: "ends after the step" in line)
        node.end(signal.SIGKILL)
        began = time.monotonic()
        self.assertEqual(train.end(), 130)
        self.assertLess(time.monotonic() - began, 30)
        said = [line for line in train.said() if "node is gone" in line]
        self.assertEqual(len(said), 1, train.said())
        self.assertIn("`shoal attach ", said[0])

    def test_a_node_that_is_gone_is_not_named_as_the_way_out(self):
        """The advice named its address, where nobody answered."""
        self.succeed("key", "new", "key")
        node = self.ready("--cluster-key", "key", "--listen", "127.0.0.1:0",
                          "--name", "one")
        run = self.start("train", self.tiny_run(), "--training.steps", 10 ** 6,
                         "--data", self.write_text_files(), "--out", "out")
        for _ in range(30):  # by then it has learnt the node's address
            run.wait_line(lambda line: line.startswith("step "))
        node.end(signal.SIGKILL)
        run.wait_line(lambda line: "trying for" in line)
        self.assertEqual(run.end(signal.SIGINT), 130)
        self.assertIn("`shoal jobs`, and `shoal cancel ", run.said()[-1])

    def test_a_detached_run_that_waits_can_be_interrupted(self):
        """It went on waiting, and then told that all was well."""
        self.ready("--name", "one", "--memory", "1800KiB")
        train = ["train", self.tiny_run(), "--data", self.write_text_files()]
        first = self.start(*train, "--out", "out", "--training.steps", 10 ** 6)
        first.wait_line(lambda line: line.startswith("step "))
        run = self.start(*train, "--detach", "--threads", 1,
                         "--job.name", "other")
        run.wait_line(lambda line: "--threads: without effect" in line)
        run.wait_line(lambda line: "waiting for its first step" in line)
        self.assertEqual(run.end(signal.SIGINT), 130)
        job = next(j["id"] for j in json.loads(self.succeed("jobs", "--json"))
                   if j["name"] == "other")
        self.assertIn(f"job {job} may go on: `shoal cancel {job}` ends it. "
                      f"`shoal attach {job} --out DIR` fetches",
                      run.said()[-1])
        self.succeed("cancel", job, "--now")
        run = self.start(*train, "--detach", "--job.name", "again")
        run.wait_line(lambda line: "waiting for its first step" in line)
        self.succeed("cancel", "again", "--now")
        self.assertEqual(run.end(), 1)  # it told that all was well
        self.assertIn("was cancelled before its first step", run.said()[-1])
        self.assertEqual(first.end(signal.SIGINT), 130)

    def test_what_nobody_reads_any_more_ends(self):
        """`| head` waited for ever."""
        self.ready("--name", "one")
        for command in (["logs", "--follow"], ["status", "--watch", "0.1"],
                        ["status", "--watch", "0.1", "--json"]):
            with subprocess.Popen(
                    [self.program, *command], env=self.env, cwd=self.folder,
                    stdout=subprocess.PIPE) as child:
                self.assertTrue(child.stdout.readline())
                child.stdout.close()
                self.assertEqual(child.wait(DEADLINE_S), 0, command)

    def test_the_last_node_leaves_when_its_last_checkpoint_is_fetched(self):
        """The command waited a minute, and --resume repeated the steps."""
        text = self.write_text_files()
        train = ["train", self.tiny_run(), "--data", text, "--out", "out",
                 "--training.steps", 10 ** 6, "--validation.freq", 10 ** 6]
        node = self.ready("--name", "one")
        run = self.start(*train)
        for _ in range(3):
            run.wait_line(lambda line: line.startswith("step "))
        began = time.monotonic()
        node.child.send_signal(signal.SIGTERM)
        self.assertEqual(run.end(), 1)
        self.assertEqual(node.end(), 0)
        self.assertLess(time.monotonic() - began, 20)
        said = run.said()[-1]
        step = int(said.split(" after step ")[1].split()[0])
        self.assertIn(f"--resume` goes on from out/checkpoint/step-{step}",
                      said)
        self.ready("--name", "one")
        again = self.start("train", "out", "--resume")
        again.wait_line(lambda line: line.startswith(f"step {step + 1}/"))
        again.child.send_signal(signal.SIGINT)
        self.assertEqual(again.end(), 130)

    def test_serve_says_that_its_node_is_gone(self):
        """It was silent for a minute, and named a node that never was."""
        self.succeed("init", self.tiny_run(), "--out", "base")
        node = self.ready("--name", "one")
        serve = self.start("serve", "base", "--as", "it")
        serve.wait_line(lambda line: "is served at" in line)
        node.end(signal.SIGKILL)
        said = serve.wait_line(lambda line: "trying for" in line)
        self.assertIn("/one does not answer", said)
        self.assertEqual(serve.end(signal.SIGINT), 130)
        said = serve.said()[-1]
        self.assertIn("no node has taken the request", said)
        self.assertIn("`shoal cancel it` ends it", said)

    def test_the_peer_that_is_left_saves_the_state_when_it_leaves(self):
        """Of two, the one with the lower id is a quorum: that one dies."""
        nodes = {name: self.ready("--name", name) for name in ("one", "two")}
        for node in nodes.values():
            node.wait_line(lambda line: "2 peers" in line)
        peers = json.loads(self.succeed("status", "--name", "one", "--json"))
        dies, stays = [p["name"] for p in
                       sorted(peers["peers"], key=lambda p: p["id"])]
        run = self.start(
            "train", self.tiny_run(), "--training.steps", 10 ** 6, "--data",
            self.write_text_files(), "--out", "out", "--name", stays,
            "--validation.freq", 10 ** 6, "--checkpoint.interval", 10 ** 6,
            "--parallelism.pipeline_parallel_degree", 2,
            "--fault_tolerance.copy_every", 1)
        for _ in range(3):
            run.wait_line(lambda line: line.startswith("step "))
        run.end(signal.SIGKILL)
        nodes[dies].end(signal.SIGKILL)
        nodes[stays].wait_line(lambda line: "no quorum" in line)
        said = self.refuse(1, "leave", "--name", stays, names=[
            "were not told", "is saved on this node as a checkpoint"])
        self.assertNotIn("jobs go on there.", said)
        step = int(said.split(": step ")[1].split()[0])
        self.assertGreater(step, 0)
        nodes[stays].end()
        away_ms = time.time() * 1000
        nodes = [self.ready("--name", name) for name in (dies, stays)]
        watch = self.start("attach", "out", "--name", stays, "--out", "again",
                           "--json")
        line = watch.wait_line(lambda line: '"event":"step"' in line
                               and json.loads(line)["unix_ms"] > away_ms)
        self.assertEqual(json.loads(line)["step"], step + 1)
        self.succeed("cancel", "out", "--now", "--name", stays)
        watch.end()
        for node in nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)

    # It said that the loss was 0.
    def test_a_node_that_came_after_a_run_says_what_it_lacks(self):
        first = self.ready("--name", "first")
        self.succeed("train", self.tiny_run(), "--data",
                     self.write_text_files(), "--detach", "--job.name", "early",
                     "--name", "first")
        attach = ["attach", "early", "--json", "--name"]
        end = self.events(self.succeed(*attach, "first"))[-1]
        self.assertLess(end["loss"], 5.5)
        late = self.ready("--name", "late")
        late.wait_line(lambda line: "2 peers" in line)
        attach += ["late", "--out", "out"]
        # The others know.
        self.assertEqual(self.events(self.succeed(*attach))[-1]["loss"],
                         end["loss"])
        first.child.send_signal(signal.SIGSTOP)
        alone = self.run_shoal(*attach)
        first.child.send_signal(signal.SIGCONT)
        self.assertEqual(alone.returncode, 1, alone.stderr)
        events = self.events(alone.stdout)
        self.assertIsNone(events[-1]["loss"])
        self.assertTrue(any("its log has no steps" in e.get("text", "")
                            for e in events), events)
        self.assertTrue((self.folder / "out/model.safetensors").exists())


if __name__ == "__main__":
    main()
