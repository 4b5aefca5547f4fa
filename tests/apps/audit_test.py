# tests/apps/audit_test.py -- `shoal audit` of runs that did as they should, and
# of metrics that somebody has changed.
import json
import os
import random
import shutil
import signal

from support import World, main

SEED = int(os.environ.get("SHOAL_SEED", "1"))
CHANGED_FILES = 150
# What no step is, and what a parser may stumble over.
STRANGE = [0, -1, 1, 6, 2 ** 53, 2 ** 63, 2 ** 64 - 1, 2 ** 64, 10 ** 12, 1e300,
           3.5, None, True, "3", "x" * 5000, [], [[[[1]]]], {}, {"a": {}},
           "d8fd84daa3b02436", "\u0000", "\ud800"]


def changed(rng, text):
    """The metrics of a run with one to three changes."""
    lines = text.splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        kind = rng.randrange(7)
        if kind == 0:
            lines.insert(at, rng.choice(lines))
        elif kind == 1:
            lines[at] = lines[at][:rng.randrange(len(lines[at]) + 1)]
        elif kind == 2:
            lines.pop(at)
            lines = lines or [""]
        elif kind == 3:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 4 and lines[at]:
            byte = rng.randrange(len(lines[at]))
            lines[at] = (lines[at][:byte] + chr(rng.randrange(1, 256))
                         + lines[at][byte + 1:])
        else:
            try:
                event = json.loads(lines[at])
                event[rng.choice([*event, "step", "data"])] = (
                    rng.choice(STRANGE))
                lines[at] = json.dumps(event)
            except (ValueError, TypeError, AttributeError):
                pass
    end = rng.choice(["\n", "\n", ""])
    return ("\n".join(lines) + end).encode("latin-1", errors="replace")


class Audit(World):
    # "has no tokenizer", it said, with advice that did not help.
    def test_an_unfinished_run_has_its_tokenizer_in_its_checkpoints(self):
        text = self.write_text_files()
        self.succeed("train", self.tiny_run(), "--data", text, "--out", "base",
                     "--training.steps", 1, "--tokenizer", "bpe",
                     "--vocab-size", 300)
        tune = self.write("tune.toml", '[model]\npath = "base"\n[training]\n'
                          "steps = 1000000\nseq_len = 32\n[checkpoint]\n"
                          "interval = 5\n")
        run = self.start("train", tune, "--data", text, "--out", "tuned",
                         "--threads", 1)
        run.wait_line(lambda line: "checkpoint of step" in line)
        run.end(signal.SIGKILL)
        self.assertFalse((self.folder / "tuned/tokenizer.json").exists())
        self.assertIn("proven", self.succeed("audit", "tuned"))

    def change(self, out, change):
        """Rewrites the steps of a run's metrics."""
        file = self.folder / out / "metrics.jsonl"
        events = [json.loads(line) for line in file.read_text().splitlines()]
        steps = [e for e in events if e["event"] == "step"]
        rest = [e for e in events if e["event"] != "step"]
        file.write_text("".join(json.dumps(e) + "\n"
                                for e in rest + change(steps)))

    def audit(self, code, *arguments):
        result = self.run_shoal("audit", *arguments, "--json")
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def test_a_run_is_proven(self):
        self.train("out")
        found = self.audit(0, "out")
        self.assertEqual((found["first_step"], found["steps"],
                          found["samples"]), (1, 5, 5 * 8))
        self.assertTrue(found["proven"])
        said = self.succeed("audit", "out")
        self.assertIn("5 steps (1 to 5) of 8 sequences of 32 tokens: "
                      "40 samples, 0 data epochs complete\n", said)
        self.assertIn("proven: each step", said)

    def test_stages_use_the_samples_of_one_process(self):
        def data(events):
            return [e["data"] for e in events if e["event"] == "step"]
        one = data(self.train("a"))
        split = self.train(
            "b", "--parallelism.pipeline_parallel_layers_per_stage", "1,2")
        self.assertEqual(one, data(split))
        self.assertEqual(len(set(one)), 5)

    def test_what_is_wrong_is_named(self):
        self.train("out")

        def wrong(steps):
            steps[1]["data"] = steps[0]["data"]
            steps[2].pop("data")
            return steps[:3] + steps[4:]
        self.change("out", wrong)
        found = self.audit(1, "out")
        self.assertEqual((found["other"], found["unknown"], found["missing"]),
                         ([2], [3], [4]))
        text = self.run_shoal("audit", "out").stdout
        self.assertIn("other samples than their own: 2", text)
        self.assertIn("not proven: step 4 is missing", text)

    # 36 steps, from 23 to 58, were all of a run that had 58.
    def test_a_log_without_its_beginning_or_end_proves_nothing(self):
        self.train("out")
        file = self.folder / "out/metrics.jsonl"
        whole = file.read_text()
        for cut, missing in ((lambda steps: steps[2:], "steps 1 to 2"),
                             (lambda steps: steps[:3], "steps 4 to 5"),
                             (lambda steps: steps[1:4], "steps 1, 5")):
            self.change("out", cut)
            self.assertFalse(self.audit(1, "out")["proven"])
            self.assertIn(f"not proven: {missing} are missing",
                          self.run_shoal("audit", "out").stdout)
            file.write_text(whole)
        self.audit(0, "out")

    # It named the newest job alone, which never had them.
    def test_missing_steps_of_an_earlier_job_are_looked_for_there(self):
        self.train("out")
        self.change("out", lambda steps: steps[2:])
        record = self.folder / "out/run.json"
        run = json.loads(record.read_text())
        newest, = run["jobs"]
        only = self.run_shoal("audit", "out").stdout
        self.assertIn(f"`shoal attach {newest} --peer ADDRESS --out out` adds "
                      "those that it has", only)
        run["jobs"] = ["00000000000000ab", newest]
        record.write_text(json.dumps(run))
        said = self.run_shoal("audit", "out").stdout
        self.assertIn("those of the newest job. Steps of an earlier one "
                      "(00000000000000ab) cannot be added here any more: "
                      "`shoal attach JOB --peer ADDRESS --out DIR`", said)

    # Steps that were given up counted as if the model had seen their samples.
    def test_steps_that_were_given_up_are_not_counted(self):
        self.train("out", "--checkpoint.interval", 2)
        checkpoints = self.folder / "out/checkpoint"
        first = min(int(f.name[5:]) for f in checkpoints.iterdir())
        self.assertLess(first, 4)
        for later in checkpoints.iterdir():
            if later.name != f"step-{first}":
                shutil.rmtree(later)
        found = self.audit(0, "out")
        self.assertEqual((found["steps"], found["later"]), (first, 5 - first))
        # Run again up to one step less: what came after that is void.

        def again(steps):
            """From the checkpoint on, at another time, but for the last."""
            return steps + [dict(s, unix_ms=s["unix_ms"] + 9)
                            for s in steps[first:-1]]
        shutil.copytree(checkpoints / f"step-{first}", checkpoints / "step-5")
        self.change("out", again)
        self.assertEqual(self.audit(1, "out")["missing"], [5])

    # After `recover --force` both halves of a shoal had run the same steps; those
    # of the half that gave way, fetched last, counted as if run again.
    def test_a_branch_that_was_abandoned_takes_no_steps_away(self):
        self.train("out")

        def both(steps):
            """The abandoned branch ended at step 4."""
            return [dict(s, epoch=1_000_001) for s in steps] + [
                dict(s, epoch=2, unix_ms=s["unix_ms"] + 9) for s in steps[1:4]]
        self.change("out", both)
        self.assertEqual(self.audit(0, "out")["steps"], 5)

    # A run may go on in a shoal that has had fewer views than its first one.
    def test_a_resumed_job_is_newer_whatever_its_epochs(self):
        self.train("out")
        self.number_higher("out")
        resume = ("train", "out", "--resume", "--training.steps")
        self.succeed(*resume, 7)
        self.assertEqual(self.audit(0, "out")["steps"], 7)
        self.number_higher("out")
        self.member("one")
        self.succeed(*resume, 9, "--detach", "--name", "one")
        job, = json.loads(self.succeed("jobs", "--json", "--name", "one"))
        for folder in ("out", "new"):
            self.succeed("attach", job["id"], "--out", folder, "--name", "one")
        self.assertEqual(self.audit(0, "out")["steps"], 9)
        begins = "7 steps before step 8: this folder does not have them"
        self.assertNotIn(begins, self.succeed("audit", "out"))
        self.assertIn(begins, self.succeed("audit", "new"))
        # What it goes on with does not make the earlier steps missing.
        self.succeed("train", "new", "--resume", "--training.steps", 11,
                     "--data", "text", "--name", "one")
        said = self.succeed("audit", "new")
        self.assertIn("4 steps (8 to 11)", said)
        self.assertIn(begins, said)

    def number_higher(self, out):
        """As if the shoal of these jobs had had 50 more views."""
        file = self.folder / out / "metrics.jsonl"
        events = [json.loads(line) for line in file.read_text().splitlines()]
        for event in events:
            if "epoch" in event:
                event["epoch"] += 50
        file.write_text("".join(json.dumps(e) + "\n" for e in events))

    # A node that was cut off during a run lacked steps, and nobody said so.
    def test_steps_that_one_log_lacks_come_from_another_peer(self):
        self.succeed("key", "new", "key")
        two = self.member("two", "--cluster-key", "key")
        job = self.job_with_a_gap("--cluster-key", "key")
        attach = ["attach", job, "--out", "got", "--name"]
        # Nobody else answers.
        two.child.send_signal(signal.SIGSTOP)
        said = self.run_shoal(*attach, "one")
        two.child.send_signal(signal.SIGCONT)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("the log of the node that was asked lacks steps 3 to 5: "
                      "to have them, attach again", said.stdout + said.stderr)
        found = self.run_shoal("audit", "got")
        self.assertEqual(found.returncode, 1)
        self.assertIn("not proven: steps 3 to 5 are missing", found.stdout)
        self.assertIn(f"`shoal attach {job} --peer ADDRESS --out got`",
                      found.stdout)
        # That one may have been taken for dead, and joins again.
        for _ in range(60):
            if "lacks" not in self.succeed(*attach, "one"):
                break
        self.audit(0, "got")

    # The command had no key to ask the others by.
    def test_the_key_of_an_invite_brings_the_steps_that_a_log_lacks(self):
        self.succeed("key", "new", "key")
        self.member("two", "--cluster-key", "key")
        self.succeed("invite", "--name", "two", "--out", "token")
        # A node that joins during a job lacks its first steps.
        job = self.job_with_a_gap("--join-token-file", "token", first=1)
        self.assertNotIn("lacks", self.succeed("attach", job, "--out", "got",
                                               "--name", "one"))
        self.assertEqual(self.audit(0, "got")["steps"], 9)

    def member(self, name, *flags):
        node = self.start("node", "--threads", 1, "--name", name, "--listen",
                          "127.0.0.1:0", *flags)
        node.wait_line(lambda line: line.startswith("ready:"))
        return node

    def job_with_a_gap(self, *flags, first=3):
        """The id of a job of node two and a node one, whose log then lacks the
        steps from `first` to 5."""
        one = self.member("one", *flags)
        one.wait_line(lambda line: "2 peers" in line)
        self.succeed("train", self.tiny_run(), "--data",
                     self.write_text_files(), "--out", "out",
                     "--training.steps", 9, "--name", "one")
        job, = json.loads(self.succeed("jobs", "--json", "--name", "two"))
        self.assertEqual(one.end(signal.SIGTERM), 0)
        log, = self.folder.glob(f".local/share/shoal/one/jobs/{job['id']}/"
                                "events.jsonl")
        lines = [(json.loads(line), line)
                 for line in log.read_text().splitlines(keepends=True)]
        log.write_text("".join(
            line for event, line in lines
            if event.get("event") != "step" or not first <= event["step"] <= 5))
        self.member("one", *flags).wait_line(lambda line: "2 peers" in line)
        return job["id"]

    def test_other_text_is_another_run(self):
        self.train("out")
        (self.folder / "other").mkdir()
        (self.folder / "other" / "a.txt").write_text("another text " * 5000)
        found = self.audit(1, "out", "--data", "other")
        self.assertEqual(found["other"], [1, 2, 3, 4, 5])
        self.assertFalse(found["same_text"])
        self.assertIn("the text is not the one", self.run_shoal(
            "audit", "out", "--data", "other").stdout)
        self.assertTrue(self.audit(0, "out")["same_text"])

    # A step of 0 ended the audit by an assertion; one of 2^63 had it make a
    # list until the memory was full.
    def test_a_line_that_no_run_writes_is_a_finding(self):
        self.train("out")
        file = self.folder / "out" / "metrics.jsonl"
        whole = file.read_text()
        number = len(whole.splitlines()) + 1
        for step in ("0", "-1", "null", '"3"', "3.5", "6", "1e30",
                     str(2 ** 63), str(2 ** 64)):
            with self.subTest(step=step):
                file.write_text(
                    whole + '{"event":"step","step":' + step
                    + ',"loss":1,"data":"d8fd84daa3b02436"}\n')
                found = self.audit(1, "out")
                self.assertEqual(found["impossible_lines"], [number])
                self.assertEqual(found["findings"], 1)
                self.assertFalse(found["proven"])
        for line in ("nonsense", "", '{"event":"other"}', "[" * 500_000,
                     "x" * 3_000_000, '{"event":"step","st'):
            file.write_text(whole + line + "\n" + whole)
            self.assertEqual(self.audit(1, "out")["impossible_lines"],
                             [number], line[:40])
        text = self.run_shoal("audit", "out").stdout
        self.assertIn(f"cannot have written: {number}\n", text)
        self.assertIn("not proven", text)

    def test_no_change_of_the_metrics_ends_the_audit(self):
        self.train("out")
        file = self.folder / "out" / "metrics.jsonl"
        whole = file.read_text()
        for n in range(CHANGED_FILES):
            seed = f"{SEED}.{n}"
            file.write_bytes(changed(random.Random(seed), whole))
            with self.subTest(seed=seed):
                done = self.run_shoal("audit", "out", "--json")
                self.assertIn(done.returncode, (0, 1), done.stderr)
                if not done.stdout:
                    self.assertIn("has no steps", done.stderr)
                else:
                    found = json.loads(done.stdout)
                    self.assertEqual(found["proven"], done.returncode == 0)

    def test_bad_input_is_named(self):
        self.refuse(1, "audit", "nowhere", names=["nowhere/run.json",
                                                  "shoal attach"])
        self.train("out")
        (self.folder / "out" / "metrics.jsonl").write_text("nonsense\n")
        self.refuse(1, "audit", "out", names=["metrics.jsonl"])
        (self.folder / "out" / "metrics.jsonl").unlink()
        self.refuse(1, "audit", "out", names=["no out/metrics.jsonl",
                                              "shoal attach"])


if __name__ == "__main__":
    main()
