# tests/apps/out_folder_test.py -- a folder of --out belongs to one run: what
# train, attach, --resume and --detach refuse, and what they leave as it is.
import hashlib
import json
import os
import shutil
import signal

from support import TINY_RUN, World, main

LONG = ["--training.steps", 100_000, "--validation.enable", "false"]


class OutFolder(World):
    def contents(self, name):
        """Path -> digest of all below a folder, but locks and what nodes
        keep."""
        top = self.folder / name
        return {path: file.is_file()
                and hashlib.sha256(file.read_bytes()).hexdigest()
                for file in top.rglob("*")
                if file.name != "run.lock" and not
                (path := str(file.relative_to(top))).startswith(".")}

    def arguments(self, out, *more, data=None):
        return ["train", self.tiny_run(), "--data",
                data or self.write_text_files(), "--out", out, "--threads", 1,
                *more]

    def metrics(self, out):
        file = self.folder / out / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()]

    def leaves(self, out, code, *arguments, names):
        """The command is refused, and changes nothing."""
        before = self.contents(".")
        said = self.refuse(code, *arguments, names=[str(out), *names])
        self.assertEqual(self.contents("."), before, said)
        return said

    # A model that somebody had trained elsewhere was overwritten.
    def test_what_is_not_the_runs_own_is_left_as_it_is(self):
        self.succeed("init", self.tiny_run(), "--out", "base")
        both = ["--overwrite", "another --out"]
        train = self.arguments("base")
        self.leaves("base", 1, *train, names=["config.json", *both])
        tune = self.write("tune.toml", '[model]\npath = "base"\n[training]\n'
                          "steps = 2\nseq_len = 32\n")
        for more in ([], ["--overwrite"]):
            self.leaves("base", 1, "train", tune, *train[2:], *more,
                        names=["model.path", "another --out"])
        # The results lay among the files of the model, or around them.
        shutil.copytree(self.folder / "base", self.folder / "around/base")
        (self.folder / "link").symlink_to("base")
        for start, out, lies in (
                ("base", "base/tuned", "base/tuned lies in base"),
                ("link", "base/tuned", "base/tuned lies in link"),
                ("base", "link/deep/tuned", "link/deep/tuned lies in base"),
                ("around/base", "around", "around holds around/base")):
            for command in (["train", tune, *train[2:4]], ["init", tune]):
                for more in ([], ["--overwrite"]):
                    self.leaves(out, 1, *command, "--model.path", start,
                                "--out", out, *more,
                                names=[lies, "model.path", "another --out"])
        for name in ["run.toml", "metrics.jsonl", "tokenizer.json",
                     "checkpoint/step-9/config.json", "run.json"]:
            with self.subTest(name=name):
                self.write(f"used {name[:3]}/{name}", "keep")
                self.leaves(f"used {name[:3]}", 1,
                            *self.arguments(f"used {name[:3]}"),
                            names=[name.split("/")[0], *both])
        self.write("file", "")
        self.leaves("file", 1, *self.arguments("file"), names=["not a folder"])

    # init wrote over any model, by the same name.
    def test_init_leaves_what_is_not_its_own(self):
        both = ["--overwrite", "another --out"]
        init = ["init", self.tiny_run(), "--out"]
        self.succeed(*init, "base")
        self.assertFalse((self.folder / "base/run.lock").exists())
        old = self.contents("base")
        seed = ["--training.seed", 3]
        said = self.leaves("base", 1, *init, "base", *seed,
                           names=["config.json", *both])
        self.assertNotIn("--resume", said)
        self.write("kept/model.safetensors", "important")
        self.leaves("kept", 1, *init, "kept",
                    names=["model.safetensors", *both])
        path = self.write("path.toml", '[model]\npath = "base"\n[training]\n'
                          "seq_len = 32\n")
        for more in ([], ["--overwrite"]):
            self.leaves("base", 1, "init", path, "--out", "base/", *more,
                        names=["model.path", "another --out"])
        self.write("file", "")
        self.leaves("file", 1, *init, "file", names=["not a folder"])
        said = self.succeed(*init, "base", *seed, "--overwrite")
        self.assertIn("base.old-1", said)
        self.assertEqual(self.contents("base.old-1"), old)
        self.assertNotEqual(self.contents("base"), old)
        self.write("notes/README", "mine")
        self.succeed(*init, "notes", "--overwrite")
        self.assertFalse((self.folder / "notes.old-1").exists())
        self.assertEqual((self.folder / "notes/README").read_text(), "mine")
        train = self.arguments("run")
        self.succeed(*train)
        said = self.leaves("run", 1, *init, "run", names=["run of job", *both])
        self.assertNotIn("--resume", said)

    def test_what_must_stay_is_not_moved(self):
        self.write("config.json", "{}")
        self.leaves("", 1, *self.arguments(self.folder, "--overwrite"),
                    names=["--overwrite", "text"])
        self.write("used/config.json", "{}")
        shutil.move(self.write_text_files(), self.folder / "used/text")
        for data in ("used/text", "used/*/*.txt", "used"):
            self.leaves("used", 1,
                        *self.arguments("used", "--overwrite", data=data),
                        names=["--overwrite", data])

    def test_the_folder_of_the_text_is_not_the_runs(self):
        self.write_text_files()
        self.leaves("text", 1, *self.arguments("text", data="text"),
                    names=["--data", "another --out"])

    # The other run writes there, removes old checkpoints and reads them again.
    def test_results_of_another_run_are_no_place(self):
        self.train("out")
        step = next((self.folder / "out/checkpoint").iterdir())
        step = str(step.relative_to(self.folder))
        for inner in ("out/checkpoint", "out/checkpoint/new", step, "out/tb/x"):
            for more in ([], ["--overwrite"]):
                self.leaves("out", 1, *self.arguments(inner, *more), names=[
                    inner + " lies in", "belongs to the run in",
                    str(self.folder / "out"), "another --out"])
        self.train("out/notes/second")

    def test_a_folder_with_notes_is_used_and_they_stay(self):
        self.write("out/README", "mine")
        self.train("out")
        self.assertEqual((self.folder / "out/README").read_text(), "mine")

    def test_what_fails_early_makes_no_folder(self):
        train = self.arguments("new/deep")
        self.leaves("new", 1, *self.arguments(  # before it reads any text
            "new/deep", "--resume", data="nowhere"), names=["no folder new"])
        self.leaves("", 2, *self.arguments(""), names=["--out"])
        self.leaves("", 1, *self.arguments("new/deep", data="nowhere"),
                    names=["nowhere"])
        self.write("used/config.json", "{}")
        self.leaves("", 1, *self.arguments("used", "--overwrite",
                                           data="nowhere"), names=["nowhere"])
        self.leaves("", 1, *train[:4], "--detach", names=["--detach"])
        self.leaves("new/deep", 2, *train, "--detach",
                    names=["--detach", "shoal attach JOB --out new/deep"])
        self.leaves("", 2, *train, "--resume", "--overwrite",
                    names=["--resume", "--overwrite"])

        # It named a file that there never was.
        gone = self.run_shoal(*train, "--peer", "127.0.0.1:9")
        self.assertEqual(gone.returncode, 1, gone.stderr)
        self.assertNotIn("run.toml", gone.stdout + gone.stderr)
        self.assertFalse((self.folder / "new/deep").exists())

    def test_a_new_run_leaves_the_old_one_whole(self):
        first = self.arguments("out")
        self.succeed(*first)
        old = self.contents("out")
        self.assertIn("run.json", old)
        self.leaves("out", 1, *first,
                    names=["belongs to", "--resume", "--overwrite",
                           "another --out"])
        # By a link, which stays, as the folder may be on another disk.
        (self.folder / "link").symlink_to("out")
        said = self.succeed("train", *first[1:4], "--out", "link/",
                            "--overwrite", "--training.seed", 7)
        self.assertIn(str(self.folder / "out.old-1"), said)
        self.assertEqual(self.contents("out.old-1"), old)
        self.assertTrue((self.folder / "link").is_symlink())
        steps = [e["step"] for e in self.metrics("out")
                 if e["event"] == "step"]
        self.assertEqual(steps, [1, 2, 3, 4, 5])
        self.assertEqual(len(list((self.folder / "out/tb").iterdir())), 1)
        # Not one around it: others may be written there, or be missed.
        (self.folder / "around").mkdir()
        (self.folder / "around/metrics.jsonl").write_text("")
        (self.folder / "out").rename(self.folder / "around/first")
        self.leaves("around", 1, *self.arguments("around", "--overwrite"),
                    names=["around holds around/first", "another --out"])
        (self.folder / "around/first").rename(self.folder / "out")
        self.succeed(*first, "--overwrite")
        self.assertTrue((self.folder / "out.old-2").exists())
        for folder in ("out", "out.old-1", "out.old-2"):
            self.succeed("audit", folder)
        # The run that was moved aside goes on there.
        shutil.rmtree(self.folder / "out")
        (self.folder / "out.old-1").rename(self.folder / "out")
        self.succeed(*first, "--resume", "--training.steps", 6)
        self.succeed("audit", "out")

    # A run that lies in its folder of text would read what it writes.
    def test_results_in_a_folder_of_text_are_no_text(self):
        self.write_text_files()
        for out in ("text/outputs", "text/more/second"):
            train = self.arguments(out, data="text")
            self.succeed(*train)
            said = self.succeed(*train, "--resume", "--training.steps", 6)
            self.assertIn("text: 12 files", said)
            self.succeed("audit", out)

    def test_lines_that_matter_come_first(self):
        lines = self.succeed(*self.arguments("out")).splitlines()
        self.assertLess(len([s for s in lines if s.startswith("[")]), 1, lines)
        self.assertRegex(lines[0], r"^run: llama of [\d.]+( thousand)? parameters, "
                         "5 steps of 8 sequences of 32 tokens$")
        self.assertRegex(lines[1], r"^text: 12 files, ")
        self.assertIn("all keys of the run: out/run.toml", lines)
        self.assertIn("[optimizer]",
                      (self.folder / "out/run.toml").read_text())

    def test_two_commands_do_not_write_one_folder(self):
        first = self.start(*self.arguments("out", *LONG))
        first.wait_line(lambda line: line.startswith("step 2/"))
        for more in ([], ["--overwrite"]):
            self.refuse(1, *self.arguments("out", *more), names=[
                "out is in use by process", str(first.child.pid),
                "another --out"])
        # Before the first checkpoint, too; there --overwrite was advised.
        for resume in (self.arguments("out", "--resume", *LONG),
                       ["train", "out", "--resume"]):
            said = self.refuse(1, *resume, names=[
                "out is in use by process", str(first.child.pid),
                "watch it with `shoal attach "])
            self.assertNotIn("--overwrite", said)
        watch = self.start(*said.split("`")[1].split()[1:])
        watch.wait_line(lambda line: line.startswith("step "))
        watch.end(signal.SIGINT)
        self.assertIn(first.end(signal.SIGINT), (0, 130))
        self.succeed(*self.arguments("out", "--resume", *LONG[2:]),
                     "--training.steps", 1 + max(
                         e["step"] for e in self.metrics("out")
                         if e["event"] == "step"))
        self.succeed("audit", "out")
        # A killed one leaves no lock.
        killed = self.start(*self.arguments("out", "--overwrite", *LONG))
        killed.wait_line(lambda line: line.startswith("step 2/"))
        killed.end(signal.SIGKILL)
        self.succeed(*self.arguments("out", "--overwrite"))

    # Its model and checkpoints replaced those of another run in the old place.
    def test_a_run_follows_its_folder(self):
        run = self.start(*self.arguments("out", *LONG))
        run.wait_line(lambda line: line.startswith("step 2/"))
        (self.folder / "out").rename(self.folder / "moved")
        self.succeed(*self.arguments("out"))
        other = self.contents("out")
        self.assertEqual(run.end(signal.SIGINT), 130)
        self.assertIn(f"out was moved to {self.folder}/moved",
                      "\n".join(run.said()))
        self.assertEqual(self.contents("out"), other)
        for folder in ("out", "moved"):
            found = json.loads(self.succeed("audit", folder, "--json"))
            self.assertTrue(found["proven"])
        run = self.start(*self.arguments("lockless", *LONG))
        run.wait_line(lambda line: line.startswith("step 2/"))
        (self.folder / "lockless/run.lock").unlink()
        self.assertEqual(run.end(signal.SIGINT), 130)
        self.assertTrue((self.folder / "lockless/run.lock").exists())
        self.succeed("audit", "lockless")
        run = self.start(*self.arguments("gone", *LONG))
        run.wait_line(lambda line: line.startswith("step 2/"))
        shutil.rmtree(self.folder / "gone")
        self.assertEqual(run.end(signal.SIGINT), 130)
        self.assertIn("was removed: it is made again", "\n".join(run.said()))
        (self.folder / "moved/run.json").unlink()
        self.leaves("moved", 1, "train", "moved", "--resume", names=[
            "moved/run.json, which names the run, does not exist"])

    def test_ctrl_c_and_cancel_say_the_command_that_goes_on(self):
        """The commands that are printed are run as they are."""
        def told(lines, command):
            return next(part.split()[1:] for part in "\n".join(lines).split("`")
                        if part.startswith(f"shoal {command} "))
        run = self.start(*self.arguments("out", *LONG))
        run.wait_line(lambda line: line.startswith("step 2/"))
        self.assertEqual(run.end(signal.SIGINT), 130)
        more = ["--training.steps", 100_000]
        again = self.start(*told(run.said(), "train"), *more)
        again.wait_line(lambda line: "resuming from" in line)
        again.end(signal.SIGTERM)
        node = self.start("node", "--threads", 1, "--name", "one")
        node.wait_line(lambda line: line.startswith("ready:"))
        job = self.submit(*LONG)
        planned = self.succeed("plan", self.tiny_run(), "--name", "one")
        self.assertIn(" on the shoal of node one: ", " ".join(planned.split()))
        second = self.succeed(
            "train", self.tiny_run(), "--data", self.write_text_files(),
            "--detach", "--name", "one", *LONG)
        self.assertIn('a job named "tiny" is running: this one is named '
                      '"tiny-2"\n', second)
        self.succeed("cancel", "tiny-2", "--now", "--name", "one")
        watch = self.start("attach", job, "--name", "one")
        watch.wait_line(lambda line: line.startswith("step "))
        done = self.run_shoal("cancel", job, "--name", "one")
        self.assertEqual(done.stdout, f"job {job} (tiny) is cancelled\n")
        fetch, go_on = ([word.replace("DIR", "fetched")
                         for word in told([done.stderr], command)]
                        for command in ("attach", "train"))
        self.assertEqual((watch.end(), told(watch.said(), "attach")[:2]),
                         (0, ["attach", job]))
        self.assertEqual(told([self.run_shoal(*fetch).stderr], "train"), go_on)
        again = self.start(*go_on)
        again.wait_line(lambda line: "resuming from fetched" in line)
        again.wait_line(lambda line: line.startswith("step "))
        # It was named like the folder, or like any run of its run file.
        jobs = json.loads(self.succeed("jobs", "--json", "--name", "one"))
        self.assertEqual([j["name"] for j in jobs if j["state"] == "running"],
                         ["tiny"])
        again.end(signal.SIGTERM)
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_a_run_that_goes_on_is_the_same_run(self):
        train = self.arguments("out")
        self.succeed(*train)
        more = ["--resume", "--training.steps", 7]
        again = [*train, *more]
        for key, was, now in [("training.seed", "0", "3"),
                              ("training.seq_len", "32", "16"),
                              ("training.local_batch_size", "2", "4"),
                              ("training.global_batch_size", "8", "16"),
                              ("model.hidden_size", "32", "64")]:
            self.leaves("out", 1, *again, f"--{key}", now, names=[
                "--resume", f"{key} was {was} and is {now}",
                "--overwrite", "another --out"])
        wide = self.write("wide.toml", TINY_RUN.replace("= 48", "= 64"))
        self.leaves("out", 1, "train", wide, *again[2:],
                    names=["model.intermediate_size was 48 and is 64"])
        self.write("other/a.txt", "another text " * 5000)
        self.leaves("out", 1, *self.arguments("out", *more, data="other"),
                    names=["the text is not that", "data.paths was", "other",
                           "--overwrite"])
        self.leaves("out", 1, *train, "--resume",
                    names=["step-5", "raise training.steps"])
        self.leaves("out", 1, *train, "--resume", "--model.hidden_size", 64,
                    names=["model.hidden_size was 32 and is 64"])
        (self.folder / "moved").symlink_to("text")  # the same text
        moved = self.arguments("out", *more, data="moved")
        said = self.succeed(*moved, "--optimizer.lr", "1e-3",
                            "--checkpoint.interval", 3,
                            "--parallelism.pipeline_parallel_degree", 1)
        self.assertIn("optimizer.lr was 0.01 and is 0.001", said)
        self.assertIn("training.steps was 5 and is 7", said)
        self.assertIn("decays until the new last step, 7", said)
        self.assertIn("--lr_scheduler.total_steps 5", said)
        self.assertNotIn("interval", said)
        found = json.loads(self.succeed("audit", "out", "--json"))
        self.assert_documented("audit", found)
        self.assertEqual((found["proven"], found["steps"]), (True, 7))
        # Another text, when it is known only by its bytes.
        (self.folder / "text/0.txt").write_text("new " * 999)
        self.leaves("out", 1, *moved[:-1], 9,
                    names=["its files have changed"])

    # It was taken, and written to run.toml, whatever model it was.
    def test_another_model_at_resume_is_compared(self):
        wide = self.write("wide.toml", TINY_RUN.replace("= 48", "= 64"))
        for name, run in ("base", self.tiny_run()), ("other", wide):
            self.succeed("init", run, "--out", name)
        tune = self.write("tune.toml", '[model]\npath = "base"\n[training]\n'
                          "steps = 2\nseq_len = 32\n")
        self.succeed("train", tune, "--data", self.write_text_files(), "--out",
                     "out", "--threads", 1)
        again = ["train", "out", "--resume", "--threads", 1,
                 "--training.steps", 3, "--model.path"]
        self.leaves("out", 1, *again, "other",
                    names=["model.intermediate_size was 48 and is 64"])
        self.refuse(2, *again, "nowhere", names=["model.path", "nowhere"])
        (self.folder / "base").rename(self.folder / "moved")
        self.succeed(*again, "moved")

    # All had to be said again: the run file, the text, each flag.
    def test_a_folder_alone_says_what_goes_on(self):
        train = self.arguments("out", "--optimizer.lr", "1e-3", data="text")
        self.write_text_files()
        self.succeed(*train)
        more = ["--resume", "--threads", 1, "--training.steps"]
        said = self.succeed("train", "out", *more, 6)
        self.assertIn("resuming from out/checkpoint/step-5", said)
        self.assertNotIn("optimizer.lr", said)
        self.succeed("train", "--out", "out", *more, 7)
        self.leaves("out", 1, "train", "out", "--resume",
                    names=["step-7", "raise training.steps"])
        self.leaves("out", 2, "train", "out", "--out", "text", *more, 8,
                    names=["out", "text", "two folders"])
        # From elsewhere: paths begin where the run was begun.
        there = self.folder
        self.folder = there / "else/where"
        self.folder.mkdir(parents=True)
        self.succeed("train", "../../out", *more, 8)
        found = json.loads(self.succeed("audit", "../../out", "--json"))
        self.assertEqual((found["proven"], found["steps"]), (True, 8))
        self.folder = there
        (there / "text").rename(there / "moved")
        self.leaves("out", 1, "train", "out", *more, 9,
                    names=["text", "the run in out", "--data PATH"])
        self.succeed("train", "out", *more, 9, "--data", "moved")
        (there / "moved/0.txt").write_text("new " * 999)
        self.leaves("out", 1, "train", "out", *more, 10,
                    names=["moved", "its files have changed"])
        self.leaves("out", 2, "train", "out",
                    names=["out is the folder of a run",
                           "`shoal train out --resume`"])
        for code, *wrong in ((2, "otu"), (1, "--out", "otu")):
            self.refuse(code, "train", *wrong, *more, 10,
                        names=["there is no", "otu"])
        # It has gone on since it left a model.
        (there / "out/checkpoint/step-5").rename(
            there / "out/checkpoint/step-12")
        asked = self.run_shoal("eval", "out", "--data", "text")
        self.assertIn("checkpoint/step-12", asked.stderr)

    # Moved back as told, it was no model, and --resume refused.
    def test_a_last_checkpoint_that_had_no_room_is_brought_back(self):
        self.succeed(*self.arguments("out"))
        out = self.folder / "out"
        kept = self.folder / "shoal-kept-Ab12cD/step-5"
        kept.parent.mkdir()
        (out / "checkpoint/step-5").rename(kept)
        job = json.loads((out / "run.json").read_text())["jobs"][-1]
        note = kept.parent / "out.txt"
        # That of a run that was there before is not this one's.
        note.write_text(f"{out.resolve()}\n{'5' * len(job)}\n")
        self.write("out/checkpoint/step-3/config.json", "{}")
        self.assertNotIn("shoal-kept", self.run_shoal(
            "train", "out", "--resume").stderr)
        shutil.rmtree(out / "checkpoint/step-3")
        note.write_text(f"{out.resolve()}\n{job}\n")
        for name in ("config.json", "model.safetensors"):
            (out / name).unlink()
        told = f"mv {kept} out/checkpoint/"
        for older in (False, True):
            if older:
                self.write("out/checkpoint/step-3/config.json", "{}")
            self.leaves("out", 1, "train", "out", "--resume",
                        names=[told, f"remove {kept.parent}"])
        kept.rename(out / "checkpoint/step-5")
        said = self.run_shoal("doctor", "--clean").stdout
        self.assertIn(f"empty folder {kept.parent} of a run that had no room "
                      "for its last checkpoint is removed", said)
        self.assertFalse(kept.parent.exists())
        judge = ["eval", "out", "--data", "text"]
        said = self.run_shoal(*judge).stderr
        self.assertIn("the run in out has ended", said)
        self.assertIn("`shoal train out --resume` makes one", said)
        self.write("shoal-kept-Ef34gH/out.txt", "")  # its user was killed
        # A run that has more steps has not ended, whatever is asked for.
        record = self.folder / "out/run.json"
        ended = record.read_text()
        more = json.loads(ended)
        self.assertEqual(more["run"]["training"]["steps"], 5)
        more["run"]["training"]["steps"] = more["steps_max"] = 9
        record.write_text(json.dumps(more))
        self.refuse(1, "train", "out", "--resume", "--training.steps", 3,
                    names=["step 5 of training.steps = 3", "raise"])
        record.write_text(ended)
        said = self.succeed("train", "out", "--resume")
        self.assertIn("model, of step 5, is now in out", said)
        self.assertEqual(list(self.folder.glob("shoal-kept-*")), [])
        self.assertNotIn("checkpoint", self.run_shoal(*judge).stderr)
        self.leaves("out", 1, "train", "out", "--resume",
                    names=["raise training.steps"])

    def submit(self, *more):
        """Detaches a job; its id."""
        events = self.events(self.succeed(
            "train", self.tiny_run(), "--data", self.write_text_files(),
            "--detach", "--json", "--name", "one", *more))
        return next(e["job"] for e in events if e["event"] == "submitted")

    def attach(self, job, out, *more):
        return self.succeed("attach", job, "--name", "one", "--out", out,
                            "--json", *more)

    # attach mixed two runs in a folder, and audit could not judge what it
    # brought; --detach moved a folder to which it wrote nothing.
    def test_attach_fetches_into_the_folder_of_its_job(self):
        node = self.start("node", "--threads", 1, "--name", "one")
        node.wait_line(lambda line: line.startswith("ready:"))
        self.write("outputs/checkpoint/step-3/config.json", "{}")
        before = self.contents("outputs")
        job = self.submit()
        self.submit()
        self.assertEqual(self.contents("outputs"), before)
        other = self.submit("--training.seed", 5)
        self.leaves("text", 1, "attach", job, "--name", "one", "--out", "text",
                    names=["text", "another --out"])
        self.attach(job, "out")
        self.assertTrue(json.loads(
            self.succeed("audit", "out", "--json"))["proven"])
        with open(self.folder / "out/run.toml", encoding="utf-8") as file:
            self.assertIn("seq_len = 32", file.read())
        self.leaves("out", 1, "attach", other, "--name", "one", "--out", "out",
                    names=[job, other, "training.seed was 0 and is 5",
                           "--overwrite", "another --out"])
        # The same job once more: what is there stays, each event once.
        events = [e for e in self.metrics("out") if e["event"] == "step"]
        self.attach(job, "out")
        self.assertEqual(events, [e for e in self.metrics("out")
                                  if e["event"] == "step"])
        self.attach(other, "out", "--overwrite")
        for folder in ("out", "out.old-1"):
            self.succeed("audit", folder)
        # Goes on, detached; the same folder takes what that makes.
        third = self.submit("--training.seed", 5, "--training.steps", 7,
                            "--resume", "--out", "out")
        self.succeed("attach", third, "--name", "one")
        # What it has made already is fetched, not trained again.
        self.leaves("out", 1, "train", "out", "--resume", "--name", "one",
                    "--training.steps", 9, names=[
                        third, "done", "step 7", "of step 5",
                        f"shoal attach {third} --name one --out out",
                        f"shoal jobs --rm {third} --name one"])
        self.attach(third, "out")
        found = json.loads(self.succeed("audit", "out", "--json"))
        self.assertEqual((found["proven"], found["steps"]), (True, 7))
        self.leaves("out", 1, "attach", job, "--name", "one", "--out", "out",
                    names=[job, third])
        # The older job's model replaced the newer one.
        self.leaves("out", 1, "attach", other, "--name", "one", "--out", "out",
                    names=[f"went on from job {other} with job {third}",
                           "`shoal train out --resume` goes on with that one",
                           "--overwrite", "another --out"])
        later = self.folder / "out/checkpoint/step-9"
        later.mkdir()
        model = self.folder / "out/model.safetensors"
        model.unlink()
        model.write_bytes(b"of step 9")
        os.link(model, later / "model.safetensors")
        said = self.attach(third, "out")
        self.assertIn("out keeps its model, which is of step 9", said)
        self.assertEqual(model.read_bytes(), b"of step 9")
        shutil.rmtree(later)
        self.attach(third, "out")
        # Nor beside a job of the run that is under way.
        endless = self.submit("--training.seed", 5, *LONG, "--resume", "--out",
                              "out", "--checkpoint.interval", 4000)
        self.refuse(1, *self.arguments("out", "--resume", *LONG), "--name",
                    "one", "--training.seed", 5, names=[
                        endless, "under way", "shoal attach", "shoal cancel"])
        self.attach_fetches_what_is_there(endless)
        self.succeed("cancel", endless, "--now", "--name", "one")
        self.assertEqual(node.end(signal.SIGTERM), 0)

    # It came only with the job's next one.
    def attach_fetches_what_is_there(self, job):
        """The newest checkpoint that a running job has, at once."""
        def newest():
            jobs = json.loads(self.succeed("jobs", "--json", "--name", "one"))
            return next(j for j in jobs if j["id"] == job).get(
                "checkpoint", {}).get("step", 0)

        for _ in range(5):  # another one may come just then
            had = newest()
            watch = self.start("attach", job, "--name", "one", "--out",
                               f"from-{had}", "--json")
            line = watch.wait_line(lambda line: "/checkpoint/step-" in line)
            watch.end(signal.SIGINT)
            if had > 7 and json.loads(line)["step"] == had:
                return
        self.fail("each came with the next checkpoint only")

    def test_a_folder_that_cannot_be_written_is_named(self):
        (self.folder / "file").write_text("")
        self.refuse(1, *self.arguments("file/out"), names=["file/out"])
        if os.geteuid() != 0:
            (self.folder / "closed").mkdir(mode=0o500)
            self.refuse(1, *self.arguments("closed/out"), names=["closed/out"])


if __name__ == "__main__":
    main()
