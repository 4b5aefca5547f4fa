# tests/apps/train_test.py -- `shoal train` in one process, and its bits.
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

from support import GUIDE, World, main, numbers


def scalar_tags(data):
    """Of a file of TensorBoard's, without its protocol: a tag is what follows
    its field's number and length, in a value's message."""
    return {m.group(2).decode() for m in
            re.finditer(rb"\n(.)([!-~]+)\x15", data, re.S)
            if len(m.group(2)) == m.group(1)[0]}


def on_a_terminal(columns, command, folder, env):
    """What a command writes to a terminal of this width, which must succeed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(list(map(str, command)), cwd=folder, env=env,
                          stdin=theirs, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # its end
            while more := os.read(ours, 65536):
                shown += more
        os.close(ours)
        assert child.wait() == 0, shown
    return shown.decode(errors="replace")


class Train(World):
    def test_events_and_files_of_a_run(self):
        events = self.train("out")
        self.assert_documented("train", *events)
        kinds = [e["event"] for e in events]
        self.assertEqual(kinds[-1], "done")
        self.assertEqual(events[-1]["state"], "done")
        self.assertIn("view", kinds)
        steps = [e for e in events if e["event"] == "step"]
        self.assertEqual([e["step"] for e in steps], [1, 2, 3, 4, 5])
        self.assertEqual([e["tokens"] for e in steps],
                         [8 * 32 * n for n in range(1, 6)])
        self.assertLess(steps[-1]["loss"], steps[0]["loss"])
        evals = [e for e in events if e["event"] == "eval"]
        self.assertEqual([e["step"] for e in evals], [0, 5])
        for e in evals:
            self.assertNotIn("tokens_per_s", e)  # nobody measures it
        for e in events:
            if e["event"] != "config":
                self.assertGreater(e["unix_ms"], 0, e)
        out = self.folder / "out"
        for name in ["config.json", "model.safetensors", "metrics.jsonl",
                     "run.toml", "checkpoint/step-5"]:
            self.assertTrue((out / name).exists(), name)
        self.assertTrue(list((out / "tb").iterdir()))
        kept = [json.loads(line) for line in
                (out / "metrics.jsonl").read_text().splitlines()]
        self.assert_documented("train", *kept)
        self.assertEqual(numbers(kept), numbers(events))
        # Each tag that the reference names is in the file, and no other.
        file, = (out / "tb").iterdir()
        tags = re.findall(r"^\| `(\S+)` \| .*each (?:step|evaluation) \|",
                          (GUIDE / "reference.md").read_text("utf-8"), re.M)
        self.assertEqual(len(tags), 8)
        self.assertEqual(scalar_tags(file.read_bytes()) | {"bubble(%)"},
                         set(tags))  # a peer alone may have no bubble

    # The weights that such a step would have made are in no checkpoint.
    def test_a_run_that_diverges_fails_at_the_last_good_checkpoint(self):
        done = self.run_shoal(
            "train", self.tiny_run(), "--data", self.write_text_files(), "--out",
            "out", "--json", "--training.steps", 40, "--optimizer.lr", 1000,
            "--training.max_norm", 0, "--training.max_bad_steps", 4,
            "--checkpoint.interval", 2)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stdout, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        end = events[-1]
        self.assertEqual(end["state"], "failed")
        self.assertIn("diverged", end["cause"])
        self.assertIn("training.max_bad_steps", done.stderr)
        steps = {e["step"]: e for e in events if e["event"] == "step"}
        bad = [n for n, e in sorted(steps.items())
               if None in (e["loss"], e["grad_norm"])]
        self.assertEqual(bad[-4:], list(range(end["step"] - 3,
                                              end["step"] + 1)))
        # It may diverge before the first checkpoint is written.
        kept = [int(folder.name.split("-")[1]) for folder in
                (self.folder / "out").glob("checkpoint/step-*")]
        self.assertFalse(set(kept) & set(bad))
        told = " ".join(e.get("text", "") for e in events)
        self.assertIn("is not applied", told)
        self.assertIn(f"the newest checkpoint, of step {max(kept)}," if kept
                      else "there is no checkpoint to go on from", told)

    # A line that is wider than the terminal left one behind at each step.
    def test_a_line_of_progress_fits_its_terminal(self):
        data, run = self.write_text_files(), self.tiny_run()
        for columns in (100, 40, 20):
            shown = on_a_terminal(
                columns, [self.program, "train", run, "--data", data, "--out",
                          f"at-{columns}"], self.folder, self.env)
            steps = re.findall(r"\r\x1b\[K(step \d+/[^\r\n]*)", shown)
            self.assertEqual(len(steps), 5, shown)
            for line in steps:
                self.assertLess(len(line), columns)
            self.assertEqual("grad_norm" in steps[-1], columns == 100)

    # It replaced weights that a user had changed.
    def test_a_changed_model_is_not_replaced(self):
        self.train("out")
        model = self.folder / "out/model.safetensors"
        mine = bytearray(model.read_bytes())
        mine[-1] ^= 1
        model.unlink()  # the checkpoint has it, too
        model.write_bytes(mine)
        more = ["train", "out", "--resume", "--training.steps", 6]
        checksums = self.folder / "out/checksums.json"
        for _ in ("listed", "as the file of a user who removed the list"):
            said = self.refuse(1, *more, names=["the model in out, which this run "
                                                "is to replace", "move its files"])
            self.assertNotIn("remove checksums.json", said)
            self.assertEqual(model.read_bytes(), mine)
            checksums.unlink(missing_ok=True)
        model.rename(self.folder / "mine.safetensors")
        template = self.write("out/chat_template.jinja", "mine")
        said = self.succeed(*more)
        self.assertIn("chat_template.jinja in out stays as it is", said)
        self.assertEqual(template.read_text(), "mine")
        self.assertTrue(model.exists())
        checksums.unlink()  # that model is of the run nevertheless
        self.succeed(*more[:-1], 7)

    def test_the_folder_of_a_model_is_no_run_file(self):
        self.succeed("init", self.tiny_run(), "--out", "base")
        self.refuse(2, "train", "base", "--data", "text",
                    names=["`shoal train --model.path base --data"])

    # It took the folder that a user is in for the run, whose name was empty.
    def test_a_new_run_begins_in_the_folder_of_another(self):
        self.train("out")
        done = subprocess.run(
            [self.program, "train", "--data", "../text", "--out", "../new",
             "--model.hidden_size", "32", "--model.num_hidden_layers", "1",
             "--training.seq_len", "32", "--training.steps", "1"],
            cwd=self.folder / "out", env=self.env, capture_output=True,
            text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "new/model.safetensors").exists())

    # The model's own files were learnt, and only their number told of it.
    def test_a_model_beside_the_text_is_no_text(self):
        self.succeed("init", self.tiny_run(), "--out", "text/base")
        self.write_text_files()
        def text():
            return re.search("^text: .*", self.succeed(
                "plan", self.tiny_run(), "--data", "text"), re.M)[0]
        beside = text()
        shutil.rmtree(self.folder / "text/base")
        self.assertEqual(beside, text())

    # It looked for the model, which it does not need, on the hub.
    def test_a_run_goes_on_without_the_model_that_it_began_with(self):
        self.succeed("init", self.tiny_run(), "--out", "models/base")
        self.succeed("train", "--model.path", "models/base", "--data",
                     self.write_text_files(), "--out", "out",
                     "--training.seq_len", 32, "--training.steps", 2,
                     "--training.local_batch_size", 2,
                     "--training.global_batch_size", 2)
        shutil.rmtree(self.folder / "models")
        self.succeed("train", "out", "--resume", "--training.steps", 3)

    def test_the_saved_model_evaluates_and_generates(self):
        self.train("out")
        self.succeed("init", self.tiny_run(), "--out", "raw")
        def loss(model):
            return json.loads(self.succeed(
                "eval", model, "--data", self.folder / "text", "--json"))[
                    "loss"]
        self.assertLess(loss("out"), loss("raw"))
        self.succeed("generate", "out", "--prompt", "The", "--max-tokens", 4)

    def test_what_hides_the_saved_model_is_removed(self):
        stale = ["model.safetensors.index.json",
                 "model-00001-of-00001.safetensors"]
        self.train("out")
        for name in stale:
            self.write("out/" + name, "{}")
        self.train("out", "--resume", "--training.steps", 6)
        for name in stale:
            self.assertFalse((self.folder / "out" / name).exists(), name)
        self.succeed("generate", "out", "--prompt", "The", "--max-tokens", 4)

    def test_threads_and_repetition_do_not_change_a_bit(self):
        first = numbers(self.train("a"))
        self.assertEqual(first, numbers(self.train("b")))
        self.assertEqual(first, numbers(self.train("c", "--threads", "2")))
        model = "model.safetensors"
        self.assertEqual((self.folder / "a" / model).read_bytes(),
                         (self.folder / "b" / model).read_bytes())

    def test_stages_do_not_change_a_bit(self):
        one = numbers(self.train(
            "a", "--parallelism.pipeline_parallel_degree", "1"))
        for name, layers in [("b", "1,2"), ("c", "2,1"), ("d", "1,1,1")]:
            with self.subTest(layers=layers):
                split = self.train(
                    name, "--parallelism.pipeline_parallel_layers_per_stage",
                    layers)
                self.assertEqual(one, numbers(split))

    def test_resumed_runs_have_the_bits_of_uninterrupted_ones(self):
        whole = numbers(self.train("a", "--checkpoint.interval", "3",
                                   "--validation.freq", "3"))
        # As if the run had ended after the checkpoint before the last.
        shutil.rmtree(self.folder / "a/checkpoint/step-5")
        saved = [int(f.name.removeprefix("step-"))
                 for f in (self.folder / "a/checkpoint").iterdir()]
        self.assertIn(max(saved), range(1, 4 + 1))
        last = max(saved)
        rest = numbers(self.train("a", "--resume", "--checkpoint.interval",
                                  "3", "--validation.freq", "3"))
        self.assertEqual([s for s in whole[0] if s[0] > last], rest[0])
        self.assertEqual([e for e in whole[1] if e[0] > last],
                         [e for e in rest[1] if e[0] > last])

    # It trained at the highest rate for a tenth of all steps, as if it were warming up.
    def test_a_curve_that_has_ended_stays_at_its_end(self):
        first = numbers(self.train("out", "--training.steps", "20"))[0]
        more = numbers(self.train("out", "--resume", "--training.steps", "230",
                                  "--lr_scheduler.total_steps", "20"))[0]
        self.assertEqual([s[0] for s in more], list(range(21, 231)))
        self.assertEqual({s[3] for s in more}, {first[-1][3]})
        self.assertLess(first[-1][3], first[1][3] / 5)

    # The folder of the checkpoint is written to after its config.json: so each
    # model that took longer than a moment seemed to be older.
    def test_a_run_that_has_ended_has_left_its_model(self):
        self.train("out")
        newest = self.folder / "out/checkpoint/step-5"
        generate = ["generate", "out", "--prompt", "The", "--max-tokens", 4]
        now = newest.stat().st_mtime
        os.utime(newest, (now, now + 60))
        self.assertNotIn("went on", self.run_shoal(*generate).stderr)
        # So did each in a copy that does not keep the times of its files.
        self.train("more", "--training.seed", "1")
        later = self.folder / "out/checkpoint/step-6"
        shutil.copytree(self.folder / "more/checkpoint/step-5", later)
        for seconds in (-60, 60):
            os.utime(later / "config.json", (now, now + seconds))
            self.assertIn("went on after it had left a model: this is its "
                          "newest checkpoint, out/checkpoint/step-6",
                          self.run_shoal(*generate).stderr)

    # A copy whose times were new lost the user's weights to the checkpoint's.
    def test_weights_that_the_user_has_changed_are_the_model(self):
        self.train("out")
        copy = self.folder / "copy"
        shutil.copytree(self.folder / "out", copy)
        self.succeed("init", self.tiny_run(), "--out", "other")
        shutil.copy(self.folder / "other/model.safetensors", copy)
        (copy / "checksums.json").unlink()
        os.utime(copy / "config.json", (1, 1))
        generate = ["generate", "copy", "--prompt", "The", "--max-tokens", 4]
        self.assertNotIn("checkpoint", self.run_shoal(*generate).stderr)
        (copy / "model.safetensors").unlink()
        self.assertIn("has ended, but has left no model there",
                      self.run_shoal(*generate).stderr)

    # UCX caught the signal, printed its stack and went on: the run was left
    # over, and nobody saw it.
    def test_a_closed_terminal_ends_a_run_in_order(self):
        endless = ["train", self.tiny_run(), "--data", self.write_text_files(),
                   "--threads", 1, "--training.steps", 10 ** 6,
                   "--checkpoint.interval", 10 ** 6]
        run = self.start(*endless, "--out", "out")
        run.wait_line(lambda line: line.startswith("step 2/"))
        self.assertEqual(run.end(signal.SIGHUP), 130)
        self.assertIn("`shoal train out --resume`", "".join(run.said()))
        self.assertTrue(list((self.folder / "out/checkpoint").glob("step-*")))
        kept = self.start(self.program, *endless, "--out", "kept",
                          program=shutil.which("nohup"))
        kept.wait_line(lambda line: line.startswith("step 2/"))
        status = pathlib.Path(f"/proc/{kept.child.pid}/status").read_text()
        ignored = int(re.search(r"SigIgn:\s*(\w+)", status).group(1), 16)
        self.assertTrue(ignored & 1 << signal.SIGHUP - 1)
        self.assertEqual(kept.end(signal.SIGINT), 130)

    def test_a_temporary_folder_that_takes_no_files_is_named(self):
        self.env["TMPDIR"] = "/proc"
        done = self.run_shoal("train", self.tiny_run(), "--data",
                              self.write_text_files(), "--out", "out")
        self.assertEqual(done.returncode, 1)
        for part in ("/proc/shoal-train-", "TMPDIR names another folder"):
            self.assertIn(part, done.stderr)

    def test_another_users_folder_for_temporary_files_is_left_alone(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to make a folder of another user")
        made = ('d="$TMPDIR/shoal-train-$$" && mkdir "$d" && : >"$d/theirs" && '
                'chown -R 64999 "$d" && exec "$@"')
        run = self.start("-c", made, "sh", self.program, "train",
                         self.tiny_run(), "--data", self.write_text_files(),
                         "--out", "out", program="sh")
        run.wait_line(lambda line: "File exists" in line and "TMPDIR" in line)
        self.assertEqual(run.end(), 1)
        self.assertEqual(len(list(self.folder.glob("shoal-train-*/theirs"))), 1)

    # As in a container: it wanted to write a key there that nobody else needs.
    def test_a_run_without_a_node_needs_no_home(self):
        for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            self.env.pop(variable, None)
        self.env["HOME"] = "/proc"
        self.succeed("train", self.tiny_run(), "--data", self.write_text_files(),
                     "--out", "out", "--training.steps", 1)
        self.assertTrue((self.folder / "out/model.safetensors").exists())

    # It went on for ever, and only advised to cancel the job.
    def test_a_run_whose_temporary_folder_is_full_goes_on_beside_out(self):
        small = self.folder / "small"
        small.mkdir()
        mount = ["-m", "sh", "-c", 'mount -t tmpfs -o size=400k none "$0" && '
                                   'exec "$@"', small]
        tried = subprocess.run(["unshare", *mount, "true"], check=False,
                               capture_output=True)
        if tried.returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        self.env["TMPDIR"] = str(small)
        run = self.start(*mount, self.program, "train", self.tiny_run(),
                         "--data", self.write_text_files(), "--threads", 1,
                         "--model.intermediate_size", 1024, "--out", "out",
                         program="unshare")
        run.wait_line(lambda line: "No space left on device" in line)
        line = run.wait_line(lambda line: "is full" in line)
        for part in (f"{small} is full", "on the disk of out", "TMPDIR"):
            self.assertIn(part, line)
        self.assertFalse([t for t in run.said() if "shoal cancel" in t])
        while run.child.poll() is None:
            run.child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.child.wait(0.5)
        self.assertIn(run.end(), (1, 130))

    # The store that had the checkpoint was deleted: all steps since the one
    # before were lost.
    def test_a_checkpoint_that_cannot_be_written_is_kept(self):
        def refused(out):
            """A run that has ended, and whose checkpoint has no place."""
            run = self.start("train", self.tiny_run(), "--data",
                             self.write_text_files(), "--threads", 1,
                             "--training.steps", 10 ** 6, "--out", out,
                             "--checkpoint.interval", 10 ** 6)
            run.wait_line(lambda line: line.startswith("step 2/"))
            self.write(f"{out}/checkpoint", "no folder")
            run.child.send_signal(signal.SIGINT)
            run.wait_line(lambda line: "is not in" in line)
            line = run.wait_line(lambda line: "trying again until" in line)
            self.assertIn(f"{out}/checkpoint", line)
            self.assertIn("Not a directory", line)
            return run, self.folder / line.rpartition("kept in ")[2]

        run, kept = refused("out")
        self.assertTrue((kept / "model.safetensors").exists())
        (self.folder / "out/checkpoint").unlink()
        run.wait_line(lambda line: "model saved in out" in line)
        self.assertEqual(run.end(), 130)
        self.assertFalse(kept.parent.exists())

        run, kept = refused("b")
        while run.child.poll() is None:  # what follows soon does not count
            run.child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.child.wait(0.1)
        self.assertEqual(run.end(), 130)
        told = [w for line in run.said() if "is kept in" in line
                for w in line.split("`")[1::2]]
        self.train("c")  # it removes what killed commands have left
        (self.folder / "b/checkpoint").unlink()
        self.refuse(1, "train", "b", "--resume", names=[told[0]])
        self.refuse(1, "generate", "b", "--prompt", "a", names=[told[0]])
        subprocess.run(told[0], shell=True, cwd=self.folder, check=True)
        self.assertEqual(told[1], "shoal train b --resume")
        step = int(kept.name.removeprefix("step-"))
        self.succeed("train", "b", "--resume", "--training.steps", step + 1)

    # config.json could not be opened, and nothing said why.
    def test_the_folder_of_a_run_under_way_is_its_newest_checkpoint(self):
        run = self.start("train", self.tiny_run(), "--data",
                         self.write_text_files(), "--out", "out", "--threads",
                         1, "--training.steps", 10 ** 6,
                         "--checkpoint.interval", 10 ** 6)
        run.wait_line(lambda line: line.startswith("step 2/"))
        eval_ = ["eval", "out", "--data", self.folder / "text"]
        generate = ["generate", "out", "--prompt", "The", "--max-tokens", 4]
        for command in (eval_, generate):
            self.refuse(1, *command, names=["out has no model yet",
                                            "checkpoint.interval"])
        self.assertIn(run.end(signal.SIGINT), (0, 130))
        (self.folder / "out/config.json").unlink()
        step = max((self.folder / "out/checkpoint").iterdir()).name
        for command in (eval_, generate):
            done = self.run_shoal(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"out/checkpoint/{step}", done.stderr)
            self.assertEqual(done.stdout, self.succeed(
                command[0], f"out/checkpoint/{step}", *command[2:]))

    def test_resuming_without_a_checkpoint_is_refused(self):
        self.write("new/README", "mine")
        self.refuse(1, "train", self.tiny_run(), "--resume", "--out", "new",
                    "--data", self.write_text_files(),
                    names=["--resume", "checkpoint", "--out DIR`"])
        # It proposed to start anew, with --overwrite.
        self.write("outputs/README", "mine")
        said = self.refuse(1, "train", "--resume", names=[
            "no folder is named", "outputs", "`shoal train DIR --resume`"])
        self.assertNotIn("--overwrite", said)

    def test_a_checkpoint_that_is_no_file_is_refused(self):
        self.train("out")
        weights = self.folder / "out/checkpoint/step-5/model.safetensors"
        weights.unlink()
        again = ["train", self.tiny_run(), "--training.steps", 9, "--resume",
                 "--out", "out", "--data", self.folder / "text"]
        os.mkfifo(weights)
        self.refuse(1, *again, names=[weights.name, "not a regular file"])
        weights.unlink()
        weights.symlink_to("/dev/zero")
        self.refuse(1, *again, names=[weights.name, "not a regular file"])
        weights.unlink()
        self.refuse(1, *again, names=["holds no model"])

    # The text was read first; then each part of the job said it, too.
    def test_damaged_weights_are_told_before_the_text_is_read(self):
        self.succeed("init", self.tiny_run(), "--out", "base")
        weights = self.folder / "base/model.safetensors"
        whole = weights.read_bytes()
        run = self.write("tune.toml", '[model]\npath = "base"\n[training]\n'
                         "steps = 1\nseq_len = 32\n")
        train = ["train", run, "--data", self.write_text_files(), "--out",
                 "out", "--threads", 1]
        for damaged, *says in (
                (whole[:-99], "lie outside"),
                (whole[:-4] + b"\0\0\xc0\x7f", "no finite number", "tensor "),
                (whole[:50], "model.safetensors")):
            weights.write_bytes(damaged)
            done = self.run_shoal(*train)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            for part in ("model.path: base", "get them again", *says):
                self.assertIn(part, done.stderr)
        self.assertFalse((self.folder / "out").exists())

    # A flipped bit is another weight, and nothing said so.
    def test_weights_that_were_damaged_on_disk_are_told_by_their_checksum(self):
        self.train("out")
        checkpoint = self.folder / "out/checkpoint/step-5"
        tune = self.write("tune.toml", '[model]\npath = "out"\n[training]\n'
                          "steps = 1\nseq_len = 32\n")
        resume = ["train", "out", "--resume", "--training.steps", 9,
                  "--data", "nowhere"]
        reads = {
            "out/model.safetensors": (
                ["generate", "out", "--prompt", "The", "--max-tokens", 4],
                ["eval", "out", "--data", "nowhere"],
                ["eval", "out", "--data", "nowhere", "--quantize", "q8"],
                ["train", tune, "--data", "nowhere", "--out", "b"]),
            "out/checkpoint/step-5/model.safetensors": (
                ["generate", checkpoint, "--prompt", "The"], resume),
            f"out/checkpoint/step-5/"
            f"{min(f.name for f in checkpoint.glob('optimizer-*'))}": (
                resume,)}
        for name, commands in reads.items():
            file = self.folder / name
            whole = file.read_bytes()
            listed = json.loads(
                (file.parent / "checksums.json").read_text("utf-8"))
            self.assertEqual(listed["algorithm"], "xxh3-64")
            # Where the model is a link to the checkpoint's, it stays whole.
            file.unlink()
            file.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
            for command in commands:
                with self.subTest(name=name, command=command[0]):
                    said = self.refuse(1, *command, names=[
                        file.name, listed["files"][file.name],
                        "checksums.json"])
                    self.assertEqual(said.count("\n"), 1, said)
                    self.assertNotIn("nowhere", said)
                    sums = re.findall(r"\b[0-9a-f]{16}\b", said)
                    self.assertEqual(len(set(sums)), 2, said)
            file.write_bytes(whole)
        self.succeed(*resume[:-1], self.folder / "text")
        self.assertFalse((self.folder / "b").exists())

    def test_a_saved_model_is_a_start(self):
        self.train("a")
        run = self.write("more.toml", "[model]\npath = \"a\"\n[training]\n"
                         "steps = 1\nseq_len = 32\n")
        events = self.events(self.succeed(
            "train", run, "--data", self.folder / "text", "--out", "b",
            "--json", "--threads", 1))
        evals = [e for e in events if e["event"] == "eval"]
        self.assertEqual(evals[0]["step"], 0)
        self.assertLess(evals[0]["loss"], 5)
        # What it saved is a run file, too.
        self.succeed("train", "b/run.toml", "--out", "b", "--resume",
                     "--training.steps", 2, "--threads", 1)
        self.succeed("audit", "b")

    def test_a_run_starts_with_the_weights_of_a_checkpoint_alone(self):
        self.train("out", "--checkpoint.interval", 5)
        step = self.folder / "out" / "checkpoint" / "step-5"
        alone = self.folder / "alone"
        shutil.copytree(step, alone)
        moments = list(alone.glob("optimizer*"))
        self.assertTrue(moments)
        for file in moments:
            file.unlink()
        run = self.write("more.toml", "[training]\nsteps = 2\nseq_len = 32\n")
        losses = [[e["loss"] for e in self.events(self.succeed(
            "train", run, "--model.path", path, "--data", self.folder / "text",
            "--out", f"from-{path.name}", "--json", "--threads", 1))
            if e["event"] == "step"] for path in (step, alone)]
        self.assertEqual(len(losses[0]), 2)
        self.assertEqual(*losses)


if __name__ == "__main__":
    main()
