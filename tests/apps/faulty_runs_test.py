# tests/apps/faulty_runs_test.py -- run files with one mistake each.
#
# Whatever is wrong in a run file, the answer is exit code 2 and one line on
# stderr: the file, the key or line, what is wrong, and, where a known word is
# near, the word that was meant. An empty file is no mistake: each key has a
# default.
import os

from support import World, main

# What a run file holds, and what the line must say beside the file's name.
MISTAKES = {
    # Words.
    "a section misspelled": (
        "[trainnig]\nsteps = 5", "[trainnig]", "did you mean 'training'"),
    "a section that there is not": ("[wandb]\nproject = 'x'", "[wandb]",
                                    "unknown section"),
    "a key misspelled": ("[training]\nstesp = 5", "training.stesp",
                         "did you mean 'steps'"),
    "a key one letter away, as another section has": (
        "[data]\npath = ['texts']", "data.path", "did you mean 'paths'"),
    "a key that there is not": ("[training]\ndropout = 0.1",
                                "unknown key training.dropout"),
    "a model's key misspelled": ("[model]\nhidden_sise = 64",
                                 "model.hidden_sise",
                                 "did you mean 'hidden_size'"),
    "a model's key half known": ("[model]\nlayers = 3", "model.layers",
                                 "did you mean 'num_hidden_layers'"),
    "a slip in a family's own key": (
        "[model]\nmodel_type = 'gpt2'\nn_layers = 3", "model.n_layers",
        "did you mean 'n_layer'"),
    "a key in another section": ("[training]\nlr = 1e-3", "training.lr",
                                 "[optimizer]"),
    "a section in capitals": ("[Training]\nsteps = 5", "[Training]",
                              "did you mean 'training'"),
    "a key in capitals": ("[training]\nSteps = 5", "training.Steps",
                          "did you mean 'steps'"),
    "a key with hyphens": ("[training]\nseq-len = 64", "training.seq-len",
                           "did you mean 'seq_len'"),
    "another trainer's key": ("[training]\nmax_seq_length = 32",
                              "training.max_seq_length",
                              "did you mean 'seq_len'"),
    "another trainer's length": ("[training]\nnum_train_epochs = 3",
                                 "training.num_train_epochs",
                                 "training.steps says how long a run is"),
    "another trainer's section": ("[optimizer]\nmax_grad_norm = 1.0",
                                  "optimizer.max_grad_norm",
                                  "did you mean 'training.max_norm'"),
    "a key outside a section": ("steps = 5", "steps", "[training]"),
    "a dotted section outside": ("[training.more]\nsteps = 5",
                                 "unknown key training.more"),
    "a key with control characters": ('[training]\n"st\\u001b[2Jeps" = 5',
                                      "unknown key training.st"),
    # Types.
    "a text for a number": ('[training]\nsteps = "5"', "training.steps",
                            "whole number", '"5"'),
    "a fraction for a count": ("[training]\nsteps = 1.5", "training.steps",
                               "whole number", "1.5"),
    "a number for a truth": ("[checkpoint]\nenable = 1", "checkpoint.enable",
                             "true or false"),
    "a text for a truth": ('[validation]\nenable = "no"', "validation.enable",
                           "true or false", '"no"'),
    "a truth for a number": ("[optimizer]\nlr = true", "optimizer.lr",
                             "must be a number", "true"),
    "a number for a text": ("[optimizer]\nname = 5", "optimizer.name",
                            "must be a string"),
    "a list for a number": ("[training]\nsteps = [5]", "training.steps",
                            "whole number", "a list"),
    "a table for a number": ("[training.steps]\nvalue = 5", "training.steps",
                             "whole number"),
    "a date for a number": ("[training]\nsteps = 2026-01-01",
                            "training.steps", "whole number"),
    "a list of numbers for one of texts": (
        "[data]\npaths = [1, 2]", "data.paths", "list of strings"),
    "a text in a list of numbers": (
        '[parallelism]\npipeline_parallel_layers_per_stage = [1, "2"]',
        "pipeline_parallel_layers_per_stage", "list of whole numbers"),
    "a number for a section": ("training = 5", "[training]", "table"),
    "a list of tables for a section": ("[[training]]\nsteps = 5",
                                       "[training]", "table"),
    "a number for the model": ("model = 5", "[model]", "table"),
    "a text for a size": ('[model]\nhidden_size = "wide"', "hidden_size",
                          "whole number"),
    "a number for a path": ("[model]\npath = 5", "model.path", "string"),
    # Bounds.
    "zero steps": ("[training]\nsteps = 0", "training.steps is 0",
                   "between 1 and 1000000000000"),
    "negative steps": ("[training]\nsteps = -5", "training.steps is -5",
                       "between 1 and"),
    "too many steps": ("[training]\nsteps = 1000000000001",
                       "training.steps is 1000000000001"),
    "a rate below its range": ("[optimizer]\nlr = -1e-3",
                               "optimizer.lr is -0.001", "between 0 and 1000"),
    "a rate above its range": ("[optimizer]\nlr = 1e9", "optimizer.lr",
                               "between 0 and 1000"),
    "a share above one": ("[lr_scheduler]\ndecay_ratio = 1.5",
                          "lr_scheduler.decay_ratio is 1.5",
                          "between 0 and 1"),
    "no number": ("[optimizer]\nlr = nan", "optimizer.lr", "NaN"),
    "infinity": ("[training]\nmax_norm = inf", "training.max_norm",
                 "Infinity"),
    "minus infinity": ("[optimizer]\nweight_decay = -inf",
                       "optimizer.weight_decay", "-Infinity"),
    "no number for a count": ("[training]\nsteps = nan", "training.steps",
                              "whole number"),
    "the largest integer": ("[training]\nseed = 9223372036854775807",
                            "training.seed is 9223372036854775807"),
    "an integer beyond 64 bits": ("[training]\nseed = 9223372036854775808",
                                  ":2:"),
    "a number beyond doubles": ("[optimizer]\nlr = 1e999", ":2:"),
    "zero where -1 chooses": (
        "[parallelism]\npipeline_parallel_degree = 0",
        "pipeline_parallel_degree is 0", "-1 or between 1 and 64"),
    "too many copies": ("[fault_tolerance]\ncopies = 99",
                        "fault_tolerance.copies is 99"),
    "a priority out of range": ("[job]\npriority = 100000", "job.priority"),
    "no text at all": ("[data]\nbytes_max = 5", "data.bytes_max is 5",
                       "between 1024 and"),
    "a model without width": ("[model]\nhidden_size = 0", "hidden_size"),
    "a model with negative layers": ("[model]\nnum_hidden_layers = -2",
                                     "num_hidden_layers", "-2"),
    "a model that nothing can hold": ("[model]\nhidden_size = 99999999999",
                                      "hidden_size"),
    "no vocabulary": ("[model]\nvocab_size = 0", "vocab_size"),
    "an angle of nothing": ("[model]\nrope_theta = nan", "rope_theta"),
    "an endless epsilon": ("[model]\nrms_norm_eps = inf", "rms_norm_eps"),
    # Names that are not known.
    "another optimizer": ('[optimizer]\nname = "Adam"', "optimizer.name",
                          "'Adam'", "'AdamW'"),
    "another decay": ('[lr_scheduler]\ndecay_type = "cosin"',
                      "lr_scheduler.decay_type", "did you mean 'cosine'"),
    "another type": ('[training]\nmixed_precision_param = "float16"',
                     "training.mixed_precision_param", "'float16'",
                     "'bfloat16'"),
    "another tokenizer": ('[data]\ntokenizer = "byte"', "data.tokenizer",
                          "did you mean 'bytes'"),
    "another schedule": (
        '[parallelism]\npipeline_parallel_schedule = "zerobubble"',
        "pipeline_parallel_schedule", "did you mean 'zero_bubble'"),
    "another family": ('[model]\nmodel_type = "lama"', "model_type", "lama",
                       "did you mean 'llama'"),
    "another activation": ('[model]\nhidden_act = "sillu"', "hidden_act",
                           "sillu"),
    # Keys that do not go together.
    "heads that do not divide": (
        "[model]\nhidden_size = 33\nnum_attention_heads = 2",
        "num_attention_heads", "hidden_size"),
    "key heads that do not divide": (
        "[model]\nnum_attention_heads = 4\nnum_key_value_heads = 3",
        "num_key_value_heads"),
    "sequences longer than positions": (
        "[training]\nseq_len = 4096\n[model]\nmax_position_embeddings = 64",
        "training.seq_len (4096)", "max_position_embeddings (64)"),
    "batches that do not divide": (
        "[training]\nglobal_batch_size = 7\nlocal_batch_size = 2",
        "training.global_batch_size (7)", "training.local_batch_size (2)"),
    "too many microbatches": (
        "[training]\nglobal_batch_size = 8192\nlocal_batch_size = 1",
        "training.global_batch_size", "4096"),
    "more stages than layers": (
        "[model]\nnum_hidden_layers = 2\n[parallelism]\n"
        "pipeline_parallel_degree = 3", "pipeline_parallel_degree (3)",
        "num_hidden_layers (2)"),
    "more replicas than microbatches": (
        "[parallelism]\ndata_parallel_replicate_degree = 50",
        "data_parallel_replicate_degree (50)", "(4)"),
    "layers that do not add up": (
        "[model]\nnum_hidden_layers = 3\n[parallelism]\n"
        "pipeline_parallel_layers_per_stage = [1, 1]", "layers_per_stage",
        "2", "3"),
    "stages against their list": (
        "[model]\nnum_hidden_layers = 4\n[parallelism]\n"
        "pipeline_parallel_degree = 3\n"
        "pipeline_parallel_layers_per_stage = [2, 2]", "layers_per_stage",
        "pipeline_parallel_degree (3)"),
    "a schedule against its degree": (
        '[parallelism]\npipeline_parallel_schedule = "1f1b"\n'
        "pipeline_parallel_virtual_degree = 2",
        "pipeline_parallel_virtual_degree is 2", "1f1b"),
    "a model by path and by sizes": (
        '[model]\npath = "base"\nhidden_size = 64', "model.path",
        "hidden_size"),
    "a vocabulary too small for bytes": (
        "[model]\nvocab_size = 100", "vocab_size is 100", "256"),
    "a vocabulary too small for bpe": (
        '[data]\ntokenizer = "bpe"\n[model]\nvocab_size = 9',
        "vocab_size is 9"),
    "a model's tokenizer without a model": (
        '[data]\ntokenizer = "model"', "data.tokenizer", "model.path"),
    # [[roles]].
    "a role without a name": ('[[roles]]\nwhere = "every_peer"', "[[roles]]",
                              "name"),
    "a role with an empty place": ('[[roles]]\nname = "hello"\nwhere = ""',
                                   "[[roles]]", "where"),
    "a role placed by a number": ('[[roles]]\nname = "hello"\nwhere = 5',
                                  "[[roles]]", "where must be a string"),
    "a role placed almost": (
        '[[roles]]\nname = "hello"\nwhere = "every-stage"', "[[roles]]",
        "did you mean 'every_stage'"),
    "a role with another key": ('[[roles]]\nname = "hello"\ncount = 2',
                                "[[roles]]", "'count'"),
    "a role with a text of parameters": (
        '[[roles]]\nname = "hello"\nparameters = "a=1"', "[[roles]]",
        "parameters must be a table"),
    "a role twice": ('[[roles]]\nname = "a"\n[[roles]]\nname = "a"',
                     "[[roles]]", "twice"),
    "one table of roles": ('[roles]\nname = "hello"', "[[roles]]",
                           "list of tables"),
    "a role with a long name": ('[[roles]]\nname = "' + 99 * "n" + '"',
                                "[[roles]]", "32"),
    "too many roles": ("".join(f'[[roles]]\nname = "r{i}"\n'
                               for i in range(17)), "[[roles]]", "16"),
    # TOML itself.
    "a key twice": ("[training]\nsteps = 5\nsteps = 6", ":3:", "steps"),
    "a section twice": ("[training]\nsteps = 5\n[training]\nseed = 1", ":3:",
                        "training"),
    "a dotted key against a table": (
        "training.steps = 5\n[training]\nseed = 1", ":2:", "training"),
    "a value that is missing": ("[training]\nsteps =", ":2:"),
    "a section that does not end": ("[training\nsteps = 5", ":1:"),
    "a text that does not end": ('[model]\npath = "base\n', ":2:"),
    "a word without quotes": ("[optimizer]\nname = AdamW", ":2:"),
    "YAML": ("training:\n  steps: 5\n", ":1:"),
    "JSON": ('{"training": {"steps": 5}}', ":1:"),
    "a size with a unit": ("[data]\nbytes_max = 256MiB", ":2:"),
    "a quoted size with a unit": ('[data]\nbytes_max = "256MiB"',
                                  "data.bytes_max", '"256MiB"'),
    "deep brackets": ("a = " + 500 * "[" + 500 * "]", ":1:"),
    "not UTF-8": (b'[model]\nmodel_type = "ll\xe4ma"\n', ":2:"),
    "zeros": (b"\0" * 64, ":1:"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)), ":1:"),
    "a file of a megabyte": ("# words\n" * (1 << 17) + "#", "1 MiB"),
    "more roles than a job may carry": (
        "".join(f'[[roles]]\nname = "r{i}"\nparameters = '
                f'{{ text = "{"x" * 4200}" }}\n' for i in range(2)),
        "[[roles]]", "4096"),
    "a model's path that is empty": ('[model]\npath = ""', "model.path"),
}

# Files that a good run file names. They are no wrong use: as with a text that is
# not there, the exit code is 1.
OTHER_FILES = {
    "a model that is not there": ('[model]\npath = "nowhere"', "model.path",
                                  "nowhere", "no file or folder"),
    "a model without config.json": ('[model]\npath = "empty"', "model.path",
                                    "config.json"),
    "a model that is a file": ('[model]\npath = "file"', "model.path",
                               "file"),
    "a model with a bad config.json": ('[model]\npath = "bad"', "model.path",
                                       "config.json", "not valid JSON"),
}


class FaultyRuns(World):
    def one_line(self, *arguments, code=2):
        """The one line of a refusal."""
        said = self.run_shoal("plan", *arguments)
        self.assertEqual(said.returncode, code, said.stderr + said.stdout)
        self.assertEqual(said.stdout, "")
        self.assertEqual(said.stderr.count("\n"), 1, said.stderr)
        self.assertTrue(said.stderr.startswith("shoal: "), said.stderr)
        self.assertLess(len(said.stderr), 400, said.stderr)
        self.assertTrue(said.stderr[:-1].isprintable(), said.stderr)
        return said.stderr

    def test_each_is_named_in_one_line(self):
        self.assertGreaterEqual(len(MISTAKES), 45)
        (self.folder / "empty").mkdir()
        self.write("file", "")
        self.write("bad/config.json", "{")
        for mistake, (text, *names) in {**MISTAKES, **OTHER_FILES}.items():
            with self.subTest(mistake):
                run = self.folder / "wrong.toml"
                run.write_bytes(text if isinstance(text, bytes)
                                else text.encode())
                line = self.one_line("wrong.toml",
                                     code=1 if mistake in OTHER_FILES else 2)
                for name in ["wrong.toml", *names]:
                    self.assertIn(name, line)

    def test_all_mistakes_are_told_at_once(self):
        self.write("run.toml", """\
[trainnig]
steps = 5
[training]
stesp = 5
seq_len = "64"
[optimizer]
lr = -1
name = "Adam"
[model]
hidden_sise = 64
""")
        said = self.run_shoal("plan", "run.toml")
        self.assertEqual(said.returncode, 2, said.stderr)
        lines = said.stderr.removeprefix("shoal: ").splitlines()
        self.assertEqual(len(lines), 6, said.stderr)
        for line in lines:
            self.assertTrue(line.startswith("run.toml: "), line)
        for names in (("[trainnig]", "'training'"),
                      ("training.stesp", "'steps'"),
                      ("training.seq_len", '"64"', "whole number"),
                      ("optimizer.lr is -1",), ("optimizer.name", "'AdamW'"),
                      ("model.hidden_sise", "'hidden_size'")):
            self.assertEqual(
                sum(all(n in line for n in names) for line in lines), 1,
                (names, lines))
        # Keys that do not go together, once each is right by itself.
        self.write("run.toml", """\
[training]
seq_len = 4096
global_batch_size = 7
local_batch_size = 2
[model]
max_position_embeddings = 64
num_hidden_layers = 2
[parallelism]
pipeline_parallel_degree = 3
""")
        said = self.run_shoal("plan", "run.toml").stderr
        self.assertEqual(said.count("\n"), 3, said)
        for name in ("training.seq_len (4096)", "global_batch_size (7)",
                     "pipeline_parallel_degree (3)"):
            self.assertIn(name, said)
        self.write("run.toml", "[training]\n" + "".join(
            f"key{i} = 1\n" for i in range(30)))
        said = self.run_shoal("plan", "run.toml").stderr
        self.assertEqual(said.count("\n"), 21, said)
        self.assertIn("run.toml: and 10 more", said)

    def test_what_is_no_file_of_text_is_named(self):
        os.mkfifo(self.folder / "pipe")  # nobody writes: it would never end
        (self.folder / "folder").mkdir()
        for name, reason in (("none.toml", "No such file"),
                             ("folder", "is a folder"),
                             ("pipe", "not a regular file"),
                             ("/dev/zero", "not a regular file")):
            line = self.one_line(name)
            self.assertIn(name, line)
            self.assertIn(reason, line)

    def test_an_empty_file_is_a_run_by_defaults(self):
        self.write("empty.toml", "")
        for run, out in (["empty.toml"], "a"), ([], "b"):
            self.succeed("init", *run, "--out", out)
        self.assertEqual((self.folder / "a/config.json").read_bytes(),
                         (self.folder / "b/config.json").read_bytes())


if __name__ == "__main__":
    main()
