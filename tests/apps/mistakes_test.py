# tests/apps/mistakes_test.py -- what is given wrongly, and the line that says so:
# files that are not what their names say, options that do not go together.
import json
import shlex
import shutil
import signal
import subprocess

from node_test import free_users
from support import TINY_RUN, World, main

POINTER = ("version https://git-lfs.github.com/spec/v1\n"
           "oid sha256:" + 64 * "a" + "\nsize 987654321\n")


class Mistakes(World):
    def model(self):
        """A model whose tokenizer was trained."""
        self.succeed("train", self.tiny_run(), "--data",
                     self.write_text_files(), "--out", "out",
                     "--training.steps", 1, "--tokenizer", "bpe",
                     "--vocab-size", 300)
        folder = self.folder / "model"
        folder.mkdir()
        for name in ("config.json", "model.safetensors", "tokenizer.json",
                     "tokenizer_config.json"):
            (self.folder / "out" / name).rename(folder / name)
        return folder

    def refuse_eval(self, *names):
        self.refuse(1, "eval", "model", "--data", "text", names=names)

    def refuse_tuning(self, *names):
        self.refuse(1, "train", "--model.path", "model", "--data", "text",
                    "--out", "tuned", "--training.seq_len", 32, names=names)

    def test_files_of_a_model_that_are_not_what_they_are_called(self):
        folder = self.model()
        for name in ("tokenizer.json", "config.json", "model.safetensors"):
            file = folder / name
            good = file.read_bytes()
            file.write_text(POINTER)
            for refuse in (self.refuse_eval, self.refuse_tuning):
                refuse(f"model/{name}", "git lfs pull")
            file.write_bytes(good)
        file = folder / "tokenizer.json"
        good = file.read_text("utf-8")
        file.write_text(good[:500], "utf-8")
        for refuse in (self.refuse_eval, self.refuse_tuning):
            refuse("model/tokenizer.json", "cut off at byte 501")
        # It said that there was none, and called that wrong use.
        for command in (["generate", "model", "--prompt", "The"],
                        ["eval", "model", "--data", "text"]):
            said = self.refuse(1, *command, names=["cut off at byte 501",
                                                   "cannot be used"])
            self.assertNotIn("has no tokenizer", said)
        lines = good.splitlines(keepends=True)
        lines[2] = lines[2].replace(":", ";")
        file.write_text("".join(lines), "utf-8")
        for refuse in (self.refuse_eval, self.refuse_tuning):
            refuse("model/tokenizer.json", "not valid JSON: line 3, byte ")

    # It said "flags", also where there were none.
    def test_a_value_may_come_from_a_variable(self):
        text = self.write_text_files()
        for env, more in (({"SHOAL_TRAINING_STEPS": "-1"}, []),
                          ({}, ["--training.steps", "-1"])):
            self.refuse(2, "train", "--data", text, "--out", "out", *more,
                        env=env, names=["options (flags, SHOAL_ variables, "
                                        "configuration file): training.steps"])

    # No shell replaces the ~ of a variable or a file.
    def test_a_path_of_a_variable_may_begin_at_home(self):
        self.refuse(1, "status", "--peer", "127.0.0.1",
                    env={"SHOAL_CLUSTER_KEY": "~/none.key"},
                    names=[str(self.folder / "none.key")])
        self.write("shoal.toml", '[train]\ndata = "~/none"\n')
        for given in ({}, {"SHOAL_CONFIG": "~/shoal.toml"}):
            arguments = [] if given else ["--config", "shoal.toml"]
            self.refuse(1, *arguments, "train", self.tiny_run(), "--out", "m",
                        env=given, names=[f"data: {self.folder / 'none'}: no"])

    # It named the options alone, and the other key is in the run file.
    def test_keys_of_a_file_and_an_option_may_contradict(self):
        said = self.refuse(2, "train", self.tiny_run(), "--data",
                           self.write_text_files(), "--out", "out",
                           "--model.path", "base",
                           names=["model.path and model.", " with options ("])
        self.assertIn("tiny.toml with options", said)

    def test_an_unset_variable_of_a_script_is_no_value(self):
        for option in ("--name", "--data-dir", "--cluster-key"):
            for command in ("node", "status"):
                self.refuse(2, command, option, "",
                            names=[option, "is empty: leave it out"])
        # What was asked for was left out without a word.
        for command in (["train", "--data", "text", "--out"],
                        ["attach", "1", "--out"], ["init", "--out"],
                        ["invite", "--out"], ["node", "--api-keys"],
                        ["node", "--disk"], ["node", "--join-token-file"],
                        ["eval", "m", "--data"],
                        ["generate", "m", "--prompt", "a", "--json-schema"]):
            self.refuse(2, *command, "",
                        names=[command[-1] + " is empty; give it "])
        self.refuse(2, "key", "new", "", names=["FILE is empty"])
        self.refuse(2, "node", "--memory", "", names=["--memory", "is empty"])

    # They were checked before variables and the file were looked at.
    def test_other_sources_keep_the_rules_of_options(self):
        self.succeed("init", self.tiny_run(), "--out", "m")
        text = self.write_text_files()
        self.succeed("eval", "m", env={"SHOAL_DATA": str(text)})
        file = self.write("c.toml", f'[eval]\ndata = "{text}"\n'
                          '[chaos]\nminutes = 5\n'
                          '[plan]\nvocab-size = 300\n'
                          '[generate]\nregex = "a"\n')
        self.succeed("--config", file, "eval", "m")
        self.refuse(2, "eval", "m", names=["needs --data"])
        schema = {"SHOAL_JSON_SCHEMA": "none.json"}
        both = {**schema, "SHOAL_REGEX": "a"}
        asked = ["generate", "m", "--prompt", "a", "--max-tokens", 2]
        self.refuse(2, *asked, env=both, names=[
            "takes --json-schema or --regex, not both",
            "SHOAL_JSON_SCHEMA (--json-schema), SHOAL_REGEX (--regex)"])
        # The command line comes first, then variables.
        self.succeed(*asked, "--regex", "a+", env=schema)
        self.refuse(2, "--config", file, *asked, env=schema,
                    names=["none.json: cannot open"])
        self.refuse(1, "train", "--detach", "--data", text,
                    env={"SHOAL_OUT": "out"}, names=["needs a running node"])
        # Neither a false flag nor a run file's name stands in the way.
        flags = self.write("f.toml", "[status]\ntraffic = true\n")
        said = self.refuse(1, "--config", flags, "status", names=["no node"],
                           env={"SHOAL_LINKS": "false"})
        self.assertNotIn("not both", said)
        self.refuse(2, "--config", flags, "status",
                    env={"SHOAL_TRAFFIC": "maybe"}, names=["SHOAL_TRAFFIC"])
        self.refuse(2, "chaos", "none.toml", env={"SHOAL_RUN": "other.toml"},
                    names=["none.toml"])
        self.refuse(2, "generate", "m", "--prompt", "a", "--quantize", "--",
                    env={"SHOAL_SEED": "5"}, names=["--quantize: --"])
        # The real mistake, not that of a file that is not needed.
        self.refuse(2, "--config", self.write("bad.toml", "="), "statsu",
                    names=["no command 'statsu'"])

    # What it planned, or trained, was not what the run file says.
    def test_keys_of_a_run_file_that_others_change_are_named(self):
        run = self.tiny_run()
        done = self.run_shoal("plan", run, env={"SHOAL_TRAINING_STEPS": "7"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"training.steps is 5 in {run}, but SHOAL_TRAINING_STEPS "
                      "comes before it: 7", done.stderr)
        self.assertIn("7 steps", done.stdout)
        done = self.run_shoal("plan", run, "--training.steps", 8)
        self.assertEqual(done.stderr, "")
        self.train("out")
        self.refuse(1, "train", "out", "--resume", "--training.steps", 9,
                    env={"SHOAL_TRAINING_SEQ_LEN": "16"},
                    names=["training.seq_len was 32 and is 16",
                           "SHOAL_TRAINING_SEQ_LEN sets training.seq_len"])

    # The one for which there is a short name won, wherever it came from.
    def test_both_names_of_an_option(self):
        self.refuse(1, "plan", "--data.paths", '["none"]',
                    env={"SHOAL_DATA": str(self.write_text_files())},
                    names=["none: no such file"])
        for pair in (["--data", "a", "--data.paths", "b"],
                     ["--tokenizer", "bytes", "--data.tokenizer", "bpe"],
                     ["--vocab-size", 300, "--model.vocab_size", 400]):
            said = self.refuse(2, "plan", *pair, names=["not both"])
            self.assertIn(pair[0] + " ", said.replace(",", " "))
        self.refuse(2, "train", "--priority", 1, "--job.priority", 2,
                    names=["takes --", "not both"])

    def test_what_cannot_be_done_is_not_left_out(self):
        # It planned for this machine alone.
        self.refuse(1, "plan", "--cluster-key", "none.key", names=["none.key"])
        self.refuse(2, "bench", "train", "--type", "q8",
                    names=["measures f32 and bf16"])
        # It advised what it refused.
        said = self.refuse(2, "node", "--disk", "50%", names=["8GiB"])
        self.assertNotIn("or 50%", said)
        view = self.write("view.toml", "")
        self.refuse(2, "plan", "--view", view, "--name", "one",
                    names=["--name or --view, not both"])
        for command in (["attach", "1", "--overwrite"],
                        ["invite", "--overwrite"]):
            self.refuse(2, *command, names=["--overwrite", "--out"])
        self.refuse(2, "serve", "m", "--grow-after", 5,
                    names=["--grow-after", "--replicas"])
        self.refuse(2, "generate", "m", "--prompt", "a", "--seed", "-1",
                    names=["--seed"])
        # Before the text is read.
        self.refuse(1, "train", "--detach", "--data", "none",
                    names=["start `shoal node`"])
        out = self.succeed("train", self.tiny_run(), "--data",
                           self.write_text_files(), "--out", "out",
                           "--training.steps", 1, "--tokenizer", "bpe",
                           "--vocab-size", 300, "--bigram")
        self.assertIn("no loss of a byte-bigram model", out)

    # It said that the run had not ended.
    def test_a_run_whose_config_is_lost(self):
        self.train("out")
        text = ["--data", "text"]
        (self.folder / "out/config.json").unlink()
        done = self.run_shoal("eval", "out", *text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the model in out cannot be read, as its config.json is "
                      "missing: this is the newest checkpoint, "
                      "out/checkpoint/step-", done.stderr)
        for config in (self.folder / "out/checkpoint").glob("*/config.json"):
            config.unlink()
        said = self.refuse(1, "eval", "out", *text, names=[
            "out has a model's weights, but no config.json"])
        self.assertNotIn("has not reached", said)
        (self.folder / "out/model.safetensors").unlink()
        self.refuse(1, "eval", "out", *text, names=[
            "out has checkpoints, but no config.json"])

    # Where little text is left, the files that were left out are why.
    def test_too_little_text_names_what_was_left_out(self):
        self.write("few/a.txt", "abcde")
        (self.folder / "few/picture.png").write_bytes(b"\x89PNG\0\xff" * 99)
        self.refuse(1, "train", self.tiny_run(), "--data", "few", "--out", "o",
                    names=["tokens to train on", "picture.png", "is not text"])

    def test_data_that_is_no_text(self):
        self.succeed("init", self.tiny_run(), "--out", "m")
        self.write("text/good.txt", "some text\n" * 50)
        self.write("text/pointer.txt", POINTER)
        self.write("lines.jsonl", '{"text": "good"}\n{"text": 5}\n{"text": '
                                  'null}\n{"txt": ""}\n')
        for command in (["eval", "m"], ["train", self.tiny_run(), "--out",
                                        "out"]):
            self.refuse(1, *command, "--data", "text",
                        names=["text/pointer.txt", "git lfs pull"])
            self.refuse(1, *command, "--data", "lines.jsonl",
                        names=["lines.jsonl:2: \"text\" is 5, must be a "
                               "string", "lines.jsonl:3: \"text\" is null",
                               "lines.jsonl:4: has no \"text\""])
        said = self.refuse(1, "eval", "m", "--data", "lines.jsonl", names=[])
        self.assertEqual(said.count("each line of a .jsonl"), 1)

    # It was left out without a word.
    def test_a_head_that_is_not_the_embeddings(self):
        self.succeed("init", self.tiny_run(), "--out", "m")
        config = self.folder / "m/config.json"
        ask = ["eval", "m", "--data", self.write_text_files()]
        self.assertNotIn("lm_head", self.run_shoal(*ask).stderr)
        config.write_text(config.read_text().replace(
            '"tie_word_embeddings": false', '"tie_word_embeddings": true'))
        self.assertIn("lm_head.weight of its files is not used",
                      self.run_shoal(*ask).stderr)

    def test_text_where_a_run_file_belongs(self):
        self.write("text/a b.jsonl", '{"text": "good"}\n')
        for given in ("text", "text/a b.jsonl"):
            self.refuse(2, "train", given, "--out", "m", names=[
                given + ":", "; a run file is TOML", f"--data {shlex.quote(given)}"])
        run = self.tiny_run()
        for command in (["train", "--out", "m"], ["plan"]):
            self.refuse(2, *command, "--data", "text", run, names=[
                "--data takes all words", f"{run} is a run file: put it before"])
        self.refuse(2, "eval", "--data", "text", "model", "--chunks", 3, names=[
            "('model' was taken by --data: put MODEL_DIR first)"])
        self.refuse(2, "init", run, "--out", "m", "--data", "text",
                    names=["`shoal init` has no option --data"])
        self.refuse(2, "init", "--model.layers", 3, "--out", "m",
                    names=["did you mean '--model.num_hidden_layers'?"])
        self.refuse(2, "init", run, "--out", "m", "--data.tokenizer", "bpe",
                    names=["`init` reads none", "`shoal train --tokenizer bpe`"])
        for told, meant in (("max-steps", "training.steps"),
                            ("training.learning_rate", "optimizer.lr")):
            self.refuse(2, "train", run, "--out", "m", f"--{told}", 3,
                        names=[f"has no option --{told}",
                               f"did you mean '--{meant}'?"])
        said = self.refuse(2, "train", "none.toml", "--out", "m")
        self.assertNotIn("TOML", said)
        self.refuse(1, "train", self.tiny_run(), "--out", "text/a b.jsonl/m",
                    "--data", "text", names=["Not a directory"])

    def test_a_vocabulary_is_of_a_tokenizer_that_is_trained(self):
        data = self.write_text_files()
        for command in (["train", self.tiny_run(), "--data", data, "--out",
                         "out"], ["plan", self.tiny_run()]):
            for tokenizer in ([], ["--tokenizer", "bytes"]):
                self.refuse(2, *command, "--vocab-size", 300, *tokenizer,
                            names=["model.vocab_size is 300",
                                   "--tokenizer bpe"])
        self.assertFalse((self.folder / "out").exists())

    def test_a_key_without_its_section_is_told_which(self):
        for flag, meant in (("--model", "'--model.path'"),
                            ("--steps", "'--training.steps' or "
                                        "'--validation.steps'"),
                            ("--lr", "'--optimizer.lr'")):
            self.refuse(2, "train", flag, "x", names=[meant])

    def test_an_address_that_cannot_be(self):
        for command in ("status", "jobs"):
            self.refuse(2, command, "--peer", "localhost:1,HOST:999999",
                        names=["--peer", "HOST:999999", "1 to 65535"])
        # It joined others, and told them an address where they cannot reach it.
        self.refuse(2, "node", "--join", "192.0.2.1", names=[
            "--join 192.0.2.1", "another machine", "--cluster-key"])
        name = 64 * "n"  # no resolver has to be asked
        self.succeed("key", "new", "key")
        node = self.start("node", "--threads", 1, "--no-discovery",
                          "--cluster-key", "key", "--join", name)
        node.wait_line(lambda line: f"no address is known of {name}:" in line)
        self.assertEqual(node.end(signal.SIGTERM), 0)

    # It got no work, and said nothing.
    def test_a_node_says_that_its_memory_is_for_hardly_any_model(self):
        node = self.start("node", "--threads", 1, "--no-discovery", "--memory",
                          "1MiB")
        node.wait_line(lambda line: "--memory is 1.0 MiB: " in line)
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_eval_reads_only_so_much(self):
        self.write("tiny.toml", TINY_RUN)
        self.succeed("init", "tiny.toml", "--out", "m")
        self.write("a.jsonl", "".join(
            json.dumps({"text": chr(97 + i) * 100}) + "\n"
            for i in range(9)))
        self.write("two.jsonl", "".join(
            json.dumps({"text": chr(97 + i) * 100}) + "\n"
            for i in range(2)))
        self.write("cut.jsonl", json.dumps({"text": 100 * "a"}) + "\n"
                   + json.dumps({"text": 32 * "b"}) + "\n")

        def found(data, *flags):
            return json.loads(self.succeed(
                "eval", "m", "--json", "--window", 32, "--data", data, *flags))
        self.assertEqual(found("a.jsonl", "--limit", 2), found("two.jsonl"))
        # The first document has four windows, the last of four tokens.
        self.assertEqual(found("a.jsonl", "--chunks", 5), found("cut.jsonl"))
        self.assertEqual(found("a.jsonl", "--limit", 100), found("a.jsonl"))
        self.refuse(2, "eval", "m", "--data", "a.jsonl", "--limit", 0,
                    names=["--limit"])

    # Users who had set no length were told of one.
    def test_a_short_context_shortens_the_sequences(self):
        run = self.write("short.toml", TINY_RUN.replace("seq_len = 32\n", "")
                         .replace("position_embeddings = 256",
                                  "position_embeddings = 128"))
        self.succeed("init", run, "--out", "short")
        self.succeed("init", "--model.max_position_embeddings", 128,
                     "--model.hidden_size", 64, "--out", "shorter")
        self.succeed("plan", "--serve", run)
        self.refuse(2, "init", run, "--training.seq_len", 129, "--out", "long",
                    names=["training.seq_len (129)",
                           "model.max_position_embeddings (128)"])

    def test_a_learning_rate_of_zero_is_said(self):
        said = self.succeed("train", self.tiny_run(), "--data",
                            self.write_text_files(), "--out", "still",
                            "--threads", 1, "--optimizer.lr", 0)
        self.assertEqual(said.count("optimizer.lr is 0: "), 1, said)

    def test_a_value_that_cannot_be_read(self):
        self.refuse(2, "generate", "model", "--prompt", "The", "--temperature",
                    "abc", names=["--temperature is 'abc', must be a number"])

    # "is accessible to other users: Read-only file system", it said.
    def test_a_data_directory_that_cannot_be_made_private_is_refused(self):
        folder = self.folder / "ro"
        folder.mkdir()
        folder.chmod(0o755)
        mount = ["unshare", "--mount", "sh", "-c",
                 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" '
                 '&& exec "$@"', str(folder)]
        if subprocess.run([*mount, "true"], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        node = self.start(*mount[1:], self.program, "node", "--data-dir",
                          folder, program="unshare")
        line = node.wait_line(lambda line: line.startswith("shoal: "))
        for says in (str(folder), "accessible to other users",
                     "cannot be made private: Read-only file system",
                     "choose another --data-dir"):
            self.assertIn(says, line)
        self.assertEqual(node.end(), 1)

    # It was said to be absent, with the advice to start it.
    def test_the_node_of_another_user_cannot_be_asked(self):
        users = free_users(1)
        if users is None:
            self.skipTest("needs root, setpriv and a user without processes")
        self.folder.chmod(0o755)
        self.program_of_all = self.folder / "shoal"
        shutil.copy(self.program, self.program_of_all)
        (self.folder / "theirs").mkdir(mode=0o700)
        done = subprocess.run(
            ["setpriv", f"--reuid={users[0]}", f"--regid={users[0]}",
             "--clear-groups", self.program_of_all, "status", "--data-dir",
             self.folder / "theirs"],
            env=self.env, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("theirs: Permission denied", done.stderr)
        self.assertNotIn("start one", done.stderr)


if __name__ == "__main__":
    main()
