# tests/apps/cli_test.py -- flags, files, variables, errors and exit codes.
import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

from support import DEADLINE_S, GUIDE, TINY_RUN, World, main

COMMANDS = ["node", "status", "recover", "doctor", "bench", "chaos", "invite",
            "revoke", "key", "jobs", "logs", "cancel", "attach", "leave",
            "train", "plan", "init", "generate", "eval", "pull", "audit",
            "reference", "completion", "chat"]


ROOT = pathlib.Path(__file__).resolve().parents[2]


class Cli(World):
    def plan(self, *arguments, env=None):
        return self.succeed("plan", *arguments, env=env)

    def steps(self, out):
        with open(self.folder / out / "run.toml", "rb") as file:
            return tomllib.load(file)["training"]["steps"]

    def test_help_and_version_succeed(self):
        self.assertIn("train", self.succeed("--help"))
        self.assertIn("--validation.freq", self.succeed("train", "--help"))
        # The commit is there if git knew it when the program was built.
        checkout = (ROOT / ".git").exists() and shutil.which("git") is not None
        self.assertRegex(
            self.succeed("--version"), r"^shoal \d+\.\d+\.\d+"
            + (r" \([0-9a-f]{12}(-dirty)?\)$" if checkout else ""))

    # A file of half a page was left, with exit code 0.
    def test_output_that_cannot_be_written_is_a_failure(self):
        for command in (["--help"], ["train", "--example"],
                        ["plan", self.tiny_run()], ["reference"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(
                    [self.program, *map(str, command)], cwd=self.folder,
                    env=self.env, stdout=full, stderr=subprocess.PIPE,
                    text=True, timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("cannot write to stdout: ", done.stderr)

    def test_each_option_tells_its_default_in_lines_that_fit(self):
        for command in COMMANDS:
            text = self.succeed(command, "--help")
            said = re.search(r"a variable \(\S+\s+for\s+--([a-z-]+)\)", text)
            if said:  # it was --out, which not every command has
                self.assertRegex(text, rf"(?m)^  (-\w,)?--{said[1]}\b")
            self.assertNotIn("(SHOAL_ for", text)  # of one without options
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
            # An entry begins at two columns; what follows is indented more.
            for entry in re.split(r"\n(?=  -)", text)[1:]:
                entry = " ".join(entry.split("\n\n")[0].split())
                name, _, rest = entry.partition(" ")
                flag = re.match(r"[a-z]", rest)  # values are in capitals, a|b
                if flag and not re.match(r"[a-z0-9_|-]+(\|)", rest):
                    continue
                with self.subTest(command=command, option=name):
                    self.assertRegex(entry, r"default|required")
        keys = self.succeed("train", "--help")
        for part in ("(0 to 1024; default: 0)", "--training.steps N",
                     "(default: 1000)", "hidden_size (",
                     "--checkpoint.enable true|false"):
            self.assertIn(part, keys)
        self.assertIn("; head_dim h/heads; ", " ".join(keys.split()))
        self.assertIn("--replicas N|auto ", self.succeed("serve", "--help"))

    def test_exit_codes_are_in_the_help(self):
        text = self.succeed("--help")
        for code in ("0 done", "1 failed", "2 wrong use", "130 interrupted"):
            self.assertIn(code, text)

    def test_a_mistyped_word_is_named_with_what_was_meant(self):
        for words, *says in (
                (["tarin"], "'tarin'", "'train'"),
                (["--config", "none", "tarin"], "'tarin'", "'train'"),
                (["train", "--training.stpes", "5"], "--training.stpes",
                 "'--training.steps'"),
                (["status", "--nmae=x"], "--nmae", "'--name'"),
                (["--verison"], "--verison", "'--version'"),
                (["frobnicate"], "'frobnicate'; `shoal --help` lists")):
            said = self.refuse(2, *words, names=says)
            self.assertEqual(said.count("\n"), 1, said)
        # As docker and git have it.
        for words, *says in (
                (["jobs", "rm", "0a1b"], "'shoal jobs --rm 0a1b'"),
                (["jobs", "0a1b"], "'0a1b'", "`shoal jobs --help`"),
                (["jobs", "--rm", "--json"], "'--json' is an option"),
                (["status", "links"], "'shoal status --links'"),
                (["logs", "-f"], "option -f: ", "mean '--follow'?"),
                (["train", "run.toml", "-o", "x"], "'--out' or '--overwrite'?"),
                (["jobs", "-a"], "option -a: ", "`shoal jobs --help`"),
                (["jobs", "rm", "0a1b", "--name", "a b"],
                 "'shoal jobs --rm 0a1b'")):
            said = self.refuse(2, *words, names=says)
            self.assertEqual(said.count("\n"), 1, said)
        self.refuse(2, "status", env={"SHOAL_NMAE": "x"},
                    names=["SHOAL_NMAE", "'SHOAL_NAME'"])
        file = self.write("c.toml", "[nodee]\nname = 'x'\n")
        self.refuse(2, "--config", file, "doctor",
                    names=["c.toml", "[nodee]", "'node'"])
        file = self.write("c.toml", "[train]\ntraining.stpes = 5\n")
        self.refuse(2, "--config", file, "doctor",  # of another command
                    names=["c.toml", "training.stpes", "'training.steps'"])

    def test_variables_of_others_are_left_alone_and_told_by_doctor(self):
        # As Kubernetes sets them for a service that is called shoal.
        others = {"SHOAL_PORT": "tcp://10.0.0.1:18372",
                  "SHOAL_SERVICE_HOST": "10.0.0.1"}
        told = self.succeed("doctor", env={**others, "SHOAL_THREADS": "1"})
        for part in ("memory: ", "limits: ", "network: ", "port 18372", "GiB"):
            self.assertIn(part, told)
        line = next(x for x in told.splitlines() if "SHOAL_PORT" in x)
        self.assertIn("mean nothing", line)
        self.assertIn("SHOAL_SERVICE_HOST", line)
        self.assertNotIn("SHOAL_THREADS", line)

    def test_wrong_use_is_2_and_names_the_flag(self):
        self.refuse(2)
        self.refuse(2, "swim")
        self.refuse(2, "train", "--colour", "red", names=["--colour"])
        self.refuse(2, "node", "--threads", "many", names=["--threads"])
        for text, names in [("8X", ["8X", "unit"]), ("8", ["no unit", "8GiB"]),
                            ("900T", ["this machine has"]),
                            ("0G", ["no memory"]), ("-1G", ["not a number"]),
                            ("101%", ["this machine has"])]:
            self.refuse(2, "node", "--memory", text,
                        names=["--memory", "'" + text + "'", *names])
        self.refuse(2, "train", "none.toml", names=["none.toml"])
        self.refuse(2, "recover", names=["--force"])
        # The library's words were "--run: 1 required FILE missing".
        for words, *names in (
                (["bench"], "needs WHAT: one of link, allreduce, "),
                (["chaos", "--run"], "--run` needs a value: FILE (run file)"),
                (["chaos", "--only"], "one of kill, stop, slow, cut"),
                (["node", "--threads"], "needs a value: N (0 to 1024)"),
                (["init"], "needs --out DIR ("),
                (["cancel"], "needs JOB: id, "),
                (["train", "--training.steps"], "training.steps` needs")):
            said = self.refuse(2, *words, names=names)
            self.assertIn(f"`shoal {words[0]} --help`", said)

    def test_wrong_run_files_are_2_and_name_file_and_key(self):
        for text, names in [
                ("[training]\nstesp = 5\n",
                 ["training.stesp", "did you mean 'steps'"]),
                ("[trainnig]\nsteps = 5\n",
                 ["[trainnig]", "did you mean 'training'"]),
                ("[model]\nhidden_sise = 5\n",
                 ["model.hidden_sise", "did you mean 'hidden_size'"]),
                ("[training]\nsteps = 0\n",
                 ["training.steps", "between 1 and 1000000000000"]),
                ("[parallelism]\npipeline_parallel_degree = 0\n",
                 ["degree is 0", "must be -1 or between 1 and 64"]),
                ("[data]\nvalidation_permille = 1000\n",
                 ["between 0 and 900"]),
                ("[training]\nseed = 9223372036854775807\n",
                 ["seed is 9223372036854775807"]),
                ("[training]\nsteps = 1.5\n",
                 ["training.steps", "whole number"]),
                ("[training]\nsteps = \"5\"\n", ["training.steps"]),
                ("[training]\nglobal_batch_size = 7\n",
                 ["training.global_batch_size", "multiple"]),
                ("[training]\nseq_len = 4096\n[model]\n"
                 "max_position_embeddings = 64\n",
                 ["training.seq_len", "max_position_embeddings"]),
                ("[model]\nmodel_type = \"parrot\"\n", ["parrot"]),
                ("[model]\nhidden_size = 33\nnum_attention_heads = 2\n",
                 ["hidden_size"]),
                ("[model]\nvocab_size = 100\n", ["vocab_size"]),
                ("[data]\ntokenizer = \"words\"\n",
                 ["data.tokenizer", "words"]),
                ("[parallelism]\npipeline_parallel_layers_per_stage = [1, 1]\n"
                 "[model]\nnum_hidden_layers = 3\n", ["layers_per_stage"]),
                ("[parallelism]\npipeline_parallel_schedule = \"2F2B\"\n",
                 ["pipeline_parallel_schedule", "2F2B", "zero_bubble"]),
                ("[model]\nnum_hidden_layers = 2\n[parallelism]\n"
                 "pipeline_parallel_degree = 3\n",
                 ["pipeline_parallel_degree (3)", "num_hidden_layers (2)"]),
                ("[parallelism]\ndata_parallel_replicate_degree = 50\n",
                 ["data_parallel_replicate_degree (50)", "microbatches",
                  "(4)"]),
                ("[parallelism]\npipeline_parallel_schedule = \"1f1b\"\n"
                 "pipeline_parallel_virtual_degree = 2\n",
                 ["pipeline_parallel_virtual_degree", "1f1b"]),
                ("steps = \n", [":1:"]),
                ("steps = 5\n", ["steps"])]:
            run = self.write("wrong.toml", text)
            with self.subTest(text=text):
                self.refuse(2, "plan", run, names=["wrong.toml", *names])
                self.refuse(2, "init", run, "--out", "m", names=names)

    def test_wrong_values_of_run_flags_are_2(self):
        self.refuse(2, "plan", "--training.steps", "few",
                    names=["training.steps"])
        self.refuse(2, "plan", "--training.stesp", "5", names=["stesp"])

    def test_no_text_is_refused_before_anything_starts(self):
        run = self.tiny_run()
        self.refuse(2, "train", run, "--out", "o", names=["--data"])
        self.refuse(1, "train", run, "--out", "o", "--data", "nowhere",
                    names=["nowhere"])

    def test_missing_models_and_wrong_prompts_are_refused(self):
        run = self.tiny_run()
        self.succeed("init", run, "--out", "m")
        self.refuse(1, "generate", "nowhere", "--prompt", "a",
                    names=["nowhere"])
        self.refuse(1, "eval", "nowhere", "--data", run, names=["nowhere"])
        self.refuse(1, "eval", "m", "--data", "nowhere", names=["nowhere"])
        self.refuse(2, "generate", "m", names=["--prompt"])
        self.refuse(2, "generate", "m", "--prompt", "a", "--prompt-ids", "5",
                    names=["--prompt-ids"])
        self.refuse(2, "generate", "m", "--prompt", "",
                    names=["--prompt is empty"])
        self.refuse(2, "generate", "m", "--prompt-ids", "5,256",
                    names=["256"])
        self.refuse(2, "generate", "m", "--prompt-ids", "5,x",
                    names=["--prompt-ids"])
        self.refuse(2, "generate", "m", "--prompt-ids", "-1",
                    names=["--prompt-ids"])
        (self.folder / "m" / "model.safetensors").write_bytes(b"short")
        self.refuse(1, "generate", "m", "--prompt", "a",
                    names=["model.safetensors"])

    def test_a_new_key_is_private_and_never_overwritten(self):
        made = self.succeed("key", "new", "k").split()
        file = self.folder / "k"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertRegex(file.read_text(), r"^[0-9a-f]{64}\n$")
        self.assertNotIn(made[0], file.read_text())
        self.assertEqual(self.succeed("key", "show", "k").split(), made)
        before = file.read_text()
        self.refuse(1, "key", "new", "k", names=["k", "exists"])
        self.assertEqual(file.read_text(), before)
        self.assertNotEqual(self.succeed("key", "new").split()[0], made[0])
        file.chmod(0o644)
        self.refuse(1, "key", "show", "k", names=["k", "chmod 600"])
        self.refuse(2, "key", "old", "k", names=["old"])

    def test_no_node_is_1_and_says_what_to_do(self):
        self.refuse(1, "status", names=["shoal node"])
        self.refuse(1, "status", "--name", "none", names=["none"])
        self.refuse(1, "recover", "--force", names=["shoal node"])

    def test_flag_over_variable_over_file_over_default(self):
        file = self.write("config.toml", "[eval]\nthreads = 1\n"
                          "[generate]\nmax-tokens = 3\nseed = 9\n")
        self.succeed("init", self.tiny_run(), "--out", "m")

        def tokens(*arguments, env=None):
            out = self.succeed(*arguments, "generate", "m", "--prompt", "a",
                               "--json", *self.last, env=env)
            return json.loads(out.splitlines()[-1])["tokens"]

        self.last = []
        self.assertEqual(tokens(), 128)
        self.assertEqual(tokens("--config", file), 3)
        variable = {"SHOAL_MAX_TOKENS": "4"}
        self.assertEqual(tokens("--config", file, env=variable), 4)
        self.last = ["--max-tokens", "5"]
        self.assertEqual(tokens("--config", file, env=variable), 5)

    def test_the_default_configuration_file_is_read(self):
        self.write(".config/shoal/shoal.toml", "[generate]\nmax-tokens = 2\n")
        self.succeed("init", self.tiny_run(), "--out", "m")
        out = self.succeed("generate", "m", "--prompt", "a", "--json")
        self.assertEqual(json.loads(out.splitlines()[-1])["tokens"], 2)

    def test_wrong_variables_and_configuration_files_are_2_and_named(self):
        self.refuse(2, "status", env={"SHOAL_CONFIG": "none.toml"},
                    names=["none.toml"])
        # They were called by the flag, which nobody had typed.
        for name, value, *says in (
                ("SHOAL_THREADS", "many"), ("SHOAL_THREADS", "99999", "1024"),
                ("SHOAL_JSON", "maybe", "true or false"),
                ("SHOAL_PEER", "a:999999", "host[:port]")):
            command = "node" if name != "SHOAL_PEER" else "status"
            said = self.refuse(2, command, env={name: value},
                               names=[name, value, *says])
            self.assertNotIn("--", said)
        self.refuse(2, "generate", "m", "--prompt", "x",
                    env={"SHOAL_TEMPERATURE": "warm"},
                    names=["SHOAL_TEMPERATURE is 'warm'", "a number"])
        # A value that only the command judges.
        for name, value, command in (
                ("SHOAL_LISTEN", "here", ["node"]),
                ("SHOAL_MEMORY", "much", ["node"]),
                ("SHOAL_TRAINING_STEPS", "many", ["plan"])):
            said = self.refuse(2, *command, env={name: value},
                               names=[value, f"{name} (--"])
            self.assertEqual(said.count("\n"), 2, said)
        file = self.write("c.toml", "[node]\nlisten = \"here\"\n")
        self.refuse(2, "--config", file, "node", names=["c.toml: listen (--"])
        file = self.write("c.toml", "[node]\ncolour = \"red\"\n")
        self.refuse(2, "--config", file, "node", names=["c.toml", "colour"])

    def test_run_keys_come_from_flag_variable_file_default(self):
        text = TINY_RUN.replace("steps = 5", "steps = 6", 1)
        run = self.write("six.toml", text)

        def planned(*arguments, env=None):
            # init keeps nothing of [training]; the seed shows in the weights.
            self.succeed("init", *arguments, "--out", "m", "--overwrite",
                         env=env)
            return (self.folder / "m" / "model.safetensors").read_bytes()

        default = planned(run)
        seed = {"SHOAL_TRAINING_SEED": "1"}
        variable = planned(run, env=seed)
        flag = planned(run, "--training.seed", "2", env=seed)
        self.assertEqual(len({default, variable, flag}), 3)
        self.assertEqual(default, planned(run, "--training.seed", "0",
                                          env=seed))

    def test_json_is_all_there_is_on_stdout(self):
        run = self.tiny_run()
        self.succeed("init", run, "--out", "m")
        for command, *more in (["plan", run], ["eval", "m", "--data", run]):
            self.assert_documented(command, json.loads(self.succeed(
                command, *more, "--json")))
        self.assert_documented("doctor", *json.loads(self.succeed(
            "doctor", "--json")))
        links = json.loads(self.succeed("bench", "link", "--runs", 1,
                                        "--json"))
        self.assertIn("tls", [row["fabric"] for row in links])
        self.assert_documented("bench link", *links)
        sums = json.loads(self.succeed(
            "bench", "allreduce", "--runs", 1, "--mib", 1, 2, "--processes", 2,
            3, "--json"))
        self.assertEqual([(row["processes"], row["bytes"]) for row in sums],
                         [(n, m << 20) for n in (2, 3) for m in (1, 2)])
        self.assert_documented("bench allreduce", *sums)
        found = json.loads(self.succeed(  # 32 steps of a model, sanitized too
            "bench", "pipeline", "--runs", 1, "--json",
            within=5 * DEADLINE_S))
        self.assertEqual([row["schedule"] for row in found["schedules"]],
                         ["1f1b", "zero_bubble"])
        self.assert_documented("bench pipeline", found)

    def test_the_reference_is_what_the_program_says(self):
        kept = (GUIDE / "reference.md").read_text(encoding="utf-8")
        self.assertTrue(
            kept == self.succeed("reference"),
            "apps/guide/reference.md is of another version: renew it by "
            "`build/shoal reference > apps/guide/reference.md`")
        for command in COMMANDS:
            self.assertIn(f"\n### shoal {command}\n", kept)

    def test_the_man_page_has_no_faults(self):
        page = self.write("shoal.1", self.succeed("reference", "--man"))
        self.assertIn("\n.SH EXIT CODES\n", page.read_text(encoding="utf-8"))
        for tool, *arguments in (["groff", "-man", "-ww", "-z"],
                                 ["mandoc", "-Tlint", "-Wwarning"]):
            if shutil.which(tool):
                done = subprocess.run([tool, *arguments, page], check=False,
                                      capture_output=True, text=True)
                said = (done.stdout + done.stderr).splitlines()
                # It has no date: a build of the same tree is the same file.
                self.assertEqual([line for line in said
                                  if "missing date" not in line], [])

    def test_bench_tells_each_figure_with_its_limit(self):
        for what, rows in (("gemm", 4), ("prefill", 2), ("decode", 2),
                           ("train", 1)):
            found = json.loads(self.succeed(
                "bench", what, "--shape", "llama-30m", "--type", "f32,q4",
                "--runs", 1, "--prompt", 16, "--tokens", 2, "--threads", 1,
                "--json"))
            self.assertEqual(len(found), rows)
            self.assert_documented(f"bench {what}", *found)
            for row in found:
                self.assertGreater(row["value"], 0)
                self.assertGreater(row["limit"], 0)
                self.assertAlmostEqual(
                    row["percent"], 100 * row["value"] / row["limit"])
        self.succeed("init", self.tiny_run(), "--out", "m")
        for what in "prefill", "decode":
            arguments = ("bench", what, "--model", "m", "--prompt", 16,
                         "--tokens", 2, "--runs", 1, "--threads", 1, "--json")
            row, = json.loads(self.succeed(*arguments))
            self.assertIn("m f32", row["what"])  # as the file has them
            self.assertGreater(row["percent"], 0)
            found = json.loads(self.succeed(*arguments, "--type", "bf16,q8"))
            self.assertEqual(len(found), 2)
            self.refuse(1, "bench", what, "--model", "m", "--prompt", 300,
                        "--tokens", 300, "--runs", 1,
                        names=("m f32", "256 positions", "300"))
        self.refuse(2, "bench", "gemm", "--model", "m", names=("--model",))
        found = json.loads(self.succeed("bench", "memory", "--runs", 1,
                                        "--json"))
        self.assertIn("read, 1 thread", [row["what"] for row in found])
        for row in found:
            self.assertGreater(row["value"], 0)
            if row["what"] == "read, 1 thread":
                self.assertEqual(row["threads"], 1)

    def test_plan_says_what_runs_where(self):
        text = self.plan(self.tiny_run())
        self.assertRegex(text, r"(?i)replica|stage")
        self.assertRegex(text, r"tokens/s; .* for 5 steps")
        self.assertRegex(text, r"MFU \d+ %")
        # The default of one copy was told of as a wish.
        self.assertNotIn("not as asked", text)
        self.assertIn("a death costs the steps", text)
        asked = self.plan(self.tiny_run(), "--fault_tolerance.copies", 1)
        self.assertIn("not as asked: copies = 1: no copy in memory, as there "
                      "is no other peer", " ".join(asked.split()))
        for kind in ("parameters", "gradients", "optimizer", "activations",
                     "copies"):
            self.assertIn(kind, text)
        self.assertNotIn("bubble", text)  # there are no stages

    def test_the_example_is_a_run_file_that_can_be_planned(self):
        run = self.write("run.toml", self.succeed("train", "--example"))
        found = json.loads(self.plan(run, "--json"))
        self.assertLess(found["parameters"], 2_000_000)
        self.assertEqual(found["wanted_copies"], 1)
        self.assertEqual(found["unheld"], [])
        found = json.loads(self.plan(run, "--json", "--fault_tolerance.copies",
                                     2))
        self.assertEqual([w["key"] for w in found["unheld"]],
                         ["fault_tolerance.copies"])

    # A text that is not there was found only by `train`.
    def test_plan_looks_at_the_text_as_train_does(self):
        run, text = self.tiny_run(), self.write_text_files()
        found = json.loads(self.plan(run, "--data", text, "--json"))
        self.assert_documented("plan", found)
        line = next(e["text"] for e in self.train("out")
                    if e["event"] == "corpus")
        self.assertIn(line, self.plan(run, "--data", text))
        self.assertIn(f"{found['text']['train_tokens']} tokens", line)
        self.assertIsNone(json.loads(self.plan(run, "--json"))["text"])
        learned = json.loads(self.plan(run, "--data", text, "--json",
                                       "--tokenizer", "bpe"))["text"]
        self.assertIsNone(learned["train_tokens"])
        self.assertEqual(learned["bytes"], found["text"]["bytes"])
        self.write("short.txt", "too little")
        self.write("bad.jsonl", '{"text": 5}\n')
        self.write("empty/binary", "\0")
        for data in ("nowhere", "short.txt", "bad.jsonl", "empty"):
            planned = self.refuse(1, "plan", run, "--data", data,
                                  names=["data: "])
            self.assertEqual(planned, self.refuse(
                1, "train", run, "--data", data, "--out", "other"))
        with open(self.folder / "large", "wb") as file:
            file.truncate(20 << 20)  # it is no text, but is not read
        self.assertIn("text: 1 file, 20 MiB", self.plan(
            run, "--data", "large"))
        view = self.write("two.toml", "[[members]]\ncount = 2\n"
                          "tflops = 0.05\nmemory_gib = 4\n")
        self.plan(run, "--data", "nowhere", "--view", view)

    def test_plan_says_what_a_death_costs_on_a_slow_network(self):
        for latency, rate, every in ((1, 100, 1), (5000, 0.005, 2)):
            view = self.write("slow.toml", f"""[[members]]
                count = 3\ntflops = 0.05\nmemory_gib = 4
                networks = [{{latency_us = {latency}, gb_per_s = {rate}, name = "x"}}]
                """)
            words = [self.tiny_run(), "--view", view,
                     "--parallelism.data_parallel_replicate_degree", 1]
            found = json.loads(self.plan(*words, "--json"))
            self.assertEqual(found["copies"], 1)
            self.assertEqual(min(found["copy_every"], 2), every)
            said = " ".join(self.plan(*words).split())
            self.assertIn("without losing a step" if every == 1 else
                          f"up to {found['copy_every']} steps are run again", said)

    def test_a_run_without_a_file_is_small(self):
        found = json.loads(self.plan("--json"))
        self.assertLess(found["parameters"], 10_000_000)

    def test_plan_for_a_described_shoal(self):
        """The example of 128 GPUs: each holds a block of the model."""
        examples = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "apps", "examples")
        found = json.loads(self.plan(
            os.path.join(examples, "model_700b.toml"), "--view",
            os.path.join(examples, "gpus_128.toml"), "--json"))
        self.assertGreater(found["parameters"], 650_000_000_000)
        self.assertEqual(len(found["memory"]), 128)
        self.assert_documented("plan", found)
        for peer in found["memory"]:
            self.assertLessEqual(peer["needs_bytes"], peer["has_bytes"])
            self.assertEqual(sum(peer["kinds"].values()), peer["needs_bytes"])
        # First and last include both ends: no layer and no microbatch is left
        # out or there twice.
        batches = 0
        for replica in found["replicas"]:
            self.assertEqual(replica["first_microbatch"], batches)
            batches = replica["last_microbatch"] + 1
            layers = 0
            for stage in replica["stages"]:
                self.assertEqual(stage["first_layer"], layers)
                layers = stage["last_layer"] + 1
                self.assertNotIn("last_block", stage)
            self.assertEqual(layers, 128)
        self.assertEqual(batches, 1024)  # a sequence each
        self.assertAlmostEqual(found["run_seconds"],
                               found["step_seconds"] * found["steps"])
        table = self.plan(os.path.join(examples, "model_700b.toml"), "--view",
                          os.path.join(examples, "gpus_128.toml"))
        self.assertLess(len(table.splitlines()), 30, table)
        self.assertLessEqual(max(map(len, table.splitlines())), 80, table)
        small = self.write("small.toml", "[[members]]\ntflops = 1\n"
                           "memory_gib = 8\ncount = 2\n")
        self.refuse(1, "plan", os.path.join(examples, "model_700b.toml"),
                    "--view", small, names=["needs at least", "has 16.0 GiB"])

    def test_plan_for_a_model_that_is_served(self):
        """The example of 70 billion parameters over eight unlike GPUs; no file
        has a weight."""
        examples = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "apps", "examples")
        model = os.path.join(examples, "model_70b.toml")
        gpus = ("--view", os.path.join(examples, "gpus_8.toml"))

        def planned(*flags):
            found = json.loads(self.plan("--serve", model, *flags, "--json"))
            self.assert_documented("plan --serve", found)
            for pipeline in found["pipelines"]:
                layers, weights = 0, 0
                for stage in pipeline["stages"]:
                    self.assertEqual(stage["first_layer"], layers)
                    layers = stage["last_layer"] + 1
                    weights += stage["weights_bytes"]
                    self.assertLessEqual(stage["needs_bytes"],
                                         stage["has_bytes"])
                    self.assertGreater(
                        stage["needs_bytes"],
                        stage["weights_bytes"] + stage["cache_bytes"])
                self.assertEqual(layers, 80)
                yield found, pipeline, weights

        (found, whole, weights), = planned(*gpus, "--context", 8192)
        self.assertGreater(found["parameters"], 70_000_000_000)
        self.assertAlmostEqual(weights, 2 * found["parameters"], delta=weights / 50)
        # A stream reads all weights for each token: 300 to 1008 GB/s.
        self.assertLess(whole["stream_tokens_per_s"], 1008e9 / weights)
        self.assertGreater(whole["stream_tokens_per_s"], 300e9 / weights)
        self.assertGreater(whole["tokens_per_s"],
                           4 * whole["stream_tokens_per_s"])
        # A prompt of 512 tokens takes 512 times the arithmetic, not the time.
        self.assertLess(whole["first_token_seconds"],
                        100 / whole["stream_tokens_per_s"])
        speeds = {stage["peer"]: stage["last_layer"] - stage["first_layer"]
                  for stage in whole["stages"]}
        self.assertLess(speeds["titan"], speeds["4090-0"])
        two = [pipeline for _, pipeline, _ in planned(
            *gpus, "--context", 8192, "--quantize", "q4", "--replicas", 2)]
        self.assertEqual(len(two), 2)
        self.assertGreater(two[0]["stream_tokens_per_s"],
                           2 * whole["stream_tokens_per_s"])
        table = self.plan("--serve", model, *gpus, "--context", 8192)
        self.assertLessEqual(max(map(len, table.splitlines())), 80, table)
        self.refuse(1, "plan", "--serve", model, *gpus, "--replicas", 2,
                    names=["needs at least", "has 96.0 GiB on 4 members",
                           "24.0 GiB: 4090-0", "pipeline 1 of 2"])
        self.refuse(1, "plan", "--serve", model, *gpus, "--stages", 3,
                    names=["it does not fit in 3 stages"])
        self.refuse(2, "plan", model, "--serve", model, names=["--serve"])
        self.refuse(2, "plan", "--replicas", 2, names=["--serve"])

    def test_a_wrong_view_file_is_refused_by_key(self):
        for text, *names in [
                ("[[members]]\nmemory_gib = 8\n", "members[0].tflops"),
                ("[[members]]\ntflops = 1\nmemory_gib = -2\n",
                 "members[0].memory_gib"),
                ("[[members]]\ntflop = 1\n", "members[0].tflop", "tflops"),
                ("[[members]]\ntflops = 1\nmemory_gib = 1\n"
                 "networks = [{ name = \"x\" }]\n",
                 "members[0].networks[0].latency_us"),
                ("members = 3\n", "members must be a list"),
                ("[[members]\n", "view.toml:1")]:
            view = self.write("view.toml", text)
            self.refuse(2, "plan", self.tiny_run(), "--view", view,
                        names=["view.toml", *names])


if __name__ == "__main__":
    main()
