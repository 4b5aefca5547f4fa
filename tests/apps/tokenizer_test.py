# tests/apps/tokenizer_test.py -- a model whose directory has a tokenizer.json.
#
# The golden tokenizer of Llama 3's pipeline beside random weights: prompts and
# training text become its ids, and what is trained carries it along.
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import unicodedata
import unittest

from support import World, main, numbers

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/tokenizers"
FILES = ("tokenizer.json", "tokenizer_config.json")
IDS = 525  # of that tokenizer
# Of all that a configuration may have.
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gpt2", "gemma2", "mixtral",
            "qwen3_moe")
DIGITS = "In 2024, 12345  \u4f60\u597d\U0001f600 of 3.14159\n\n\tIT'S 1,000"
GREEDY = ["--max-tokens", "12", "--temperature", "0"]


class Tokenizer(World):
    def setUp(self):
        super().setUp()
        self.succeed("init", self.tiny_run(), "--model.vocab_size", str(IDS),
                     "--out", "m")
        for name in FILES:
            shutil.copy(GOLDEN / "llama3" / name, self.folder / "m" / name)

    def generate(self, model, *arguments):
        return self.events(self.succeed("generate", model, "--json",
                                        *arguments, *GREEDY))[-1]

    def train(self, out, *arguments):
        run = self.write("from_m.toml", '[model]\npath = "m"\n[training]\n'
                         "steps = 3\nseq_len = 32\nlocal_batch_size = 2\n")
        return self.events(self.succeed(
            "train", run, *([] if "--data" in arguments else
                            ["--data", self.write_text_files()]),
            "--out", out, "--json", *arguments))

    def test_prompts_are_its_ids(self):
        golden = json.loads((GOLDEN / "llama3/golden.json").read_text())
        texts = json.loads((GOLDEN / "texts.json").read_text())
        at = texts.index(b"Hello, world!".hex())
        ids = golden["samples"][at]["ids"]
        bos = golden["samples"][at]["around"][0]
        text = self.generate("m", "--prompt", "Hello, world!")
        same = self.generate("m", "--prompt-ids",
                             ",".join(str(i) for i in [bos] + ids))
        self.assertEqual(text["prompt_tokens"], len(ids) + 1)
        self.assertEqual(text["ids"], same["ids"])
        self.assertEqual(text["text"], same["text"])

    def test_training_text_is_its_ids_and_the_model_carries_it(self):
        (self.folder / "m/generation_config.json").write_text(
            '{"do_sample": true, "temperature": 0.7}\n')
        events = self.train("out")
        config = next(e for e in events if e["event"] == "config")
        self.assertEqual(config["run"]["data"]["tokenizer"], "model")
        for name in FILES + ("generation_config.json",):
            for folder in ("out", "out/checkpoint/step-3"):
                self.assertEqual((self.folder / folder / name).read_text(),
                                 (self.folder / "m" / name).read_text())
        audit = json.loads(self.succeed("audit", "out", "--json"))
        self.assertTrue(audit["proven"])
        self.generate("out", "--prompt", "The ")

    # A tuned model never learned to stop: documents ran into each other.
    def test_documents_end_with_the_end_of_text_token(self):
        texts = [f"document {i} of a few" for i in range(40)]
        lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
        self.write("d/a.jsonl", lines)
        self.write("ended/a.jsonl", lines.replace(' few"', ' few<|eot_id|>"'))
        self.write("plain/a.txt", "\n".join(texts))

        def count(out, data, *more):
            events = self.train(out, "--data", data, "--training.steps", "1",
                                *more)
            said = next(e["text"] for e in events if e["event"] == "corpus")
            return sum(int(n) for n in re.findall(
                r"(\d+) (?:tokens|held out)", said))

        def judged(model, data="d"):
            return json.loads(self.succeed("eval", model, "--data", data,
                                           "--json"))["tokens"]

        no = ["--data.end_of_text", "false"]
        without = count("no", "d", *no)
        self.assertEqual(count("yes", "d"), without + len(texts))
        # As many are predicted: the first of each is not.
        self.assertEqual(judged("no"), without - len(texts))
        self.assertEqual([judged("yes"), judged("m")], [without] * 2)
        self.assertEqual(count("p", "plain"), count("q", "plain", *no))
        config = self.folder / "m/config.json"
        before = config.read_text()
        config.write_text(json.dumps({**json.loads(before),
                                      "eos_token_id": [523, 524]}))
        self.assertEqual(count("e", "ended"), count("f", "ended", *no))
        config.write_text(before)
        self.succeed("audit", "yes")
        # A run of an earlier version goes on with its text.
        record = self.folder / "no/run.json"
        old = json.loads(record.read_text())
        del old["run"]["data"]["end_of_text"]
        record.write_text(json.dumps(old))
        self.succeed("audit", "no")
        for begin in ([], [self.folder / "from_m.toml", "--out"]):
            self.succeed("train", *begin, "no", "--resume", "--data", "d",
                         "--training.steps", 2 + len(begin))

    def test_bytes_are_there_for_the_asking(self):
        events = self.train("out", "--data.tokenizer", "bytes")
        self.assertTrue(any("m has a tokenizer of its own" in e.get("text", "")
                            for e in events))
        self.check_bytes("out")

    def check_bytes(self, folder):
        """Ids are bytes, for other programs too."""
        file = json.loads((self.folder / folder / FILES[0]).read_text())
        self.assertEqual(sorted(file["model"]["vocab"].values()),
                         list(range(256)))
        self.assertEqual(file["model"]["vocab"]["A"], 65)
        self.assertEqual(file["model"]["merges"], [])
        config = json.loads((self.folder / folder / FILES[1]).read_text())
        self.assertEqual(config["tokenizer_class"], "PreTrainedTokenizerFast")

    def test_a_model_of_bytes_says_so_to_other_programs(self):
        self.succeed("init", self.tiny_run(), "--out", "b")
        self.check_bytes("b")
        run = self.write("b.toml", '[model]\npath = "b"\n[training]\n'
                         "steps = 1\nseq_len = 32\n")
        events = self.events(self.succeed(
            "train", run, "--data", self.write_text_files(), "--out", "out",
            "--json"))
        config = next(e for e in events if e["event"] == "config")
        self.assertEqual(config["run"]["data"]["tokenizer"], "bytes")
        self.check_bytes("out")
        # Broken characters are ids of their own, as in training.
        done = self.generate("out", "--prompt", os.fsdecode(b"\xe9A\xff"))
        self.assertEqual(done["prompt_tokens"], 3)

    def auto_tokenizer(self, folder):
        from transformers import AutoTokenizer
        return AutoTokenizer.from_pretrained(str(self.folder / folder))

    def init_family(self, family, out, *arguments):
        self.succeed("init", self.tiny_run(), "--out", out,
                     "--model.model_type", family, *arguments)

    @unittest.skipUnless(importlib.util.find_spec("transformers"),
                         "transformers is not installed")
    def test_transformers_has_the_same_bytes(self):
        texts = json.loads((GOLDEN / "texts.json").read_text())
        for family in FAMILIES:
            self.init_family(family, family)
            theirs = self.auto_tokenizer(family)
            self.assertEqual(len(theirs), 256)
            for text in map(bytes.fromhex, texts):
                text = text.decode(errors="replace")
                if family == "qwen2":  # its class in transformers 5 does so
                    text = unicodedata.normalize("NFC", text)
                ids = theirs(text)["input_ids"]
                self.assertEqual(ids, list(text.encode()), family)
                self.assertEqual(theirs.decode(ids), text)
        theirs = self.auto_tokenizer("llama")
        theirs.save_pretrained(str(self.folder / "again"))
        for name in self.folder.joinpath("again").iterdir():
            shutil.copy(name, self.folder / "llama")
        self.assertEqual(self.generate("llama", "--prompt", "\u00e9")
                         ["prompt_tokens"], 2)

    @unittest.skipUnless(importlib.util.find_spec("transformers"),
                         "transformers is not installed")
    def test_transformers_has_the_ids_of_a_trained_tokenizer(self):
        from tokenizers import Tokenizer
        samples = [bytes.fromhex(t).decode(errors="replace") for t in
                   json.loads((GOLDEN / "texts.json").read_text())]
        for family in FAMILIES:
            self.train_bpe(family, "--model.model_type", family,
                           "--training.steps", 1)
            theirs = self.auto_tokenizer(family)
            ours = Tokenizer.from_file(str(self.folder / family / FILES[0]))
            for text in samples:
                self.assertEqual(theirs(text)["input_ids"],
                                 ours.encode(text).ids, family)
            self.assertEqual(
                self.generate(family, "--prompt", DIGITS)["prompt_tokens"],
                len(theirs(DIGITS)["input_ids"]), family)

    def train_bpe(self, out, *arguments):
        return self.events(self.succeed(
            "train", self.tiny_run(), "--data", self.write_text_files(), "--out",
            out, "--json", "--tokenizer", "bpe", "--vocab-size", 290,
            *arguments))

    def test_a_tokenizer_is_trained_on_the_data(self):
        events = self.train_bpe("out", "--checkpoint.interval", 3)
        said = [e["text"] for e in events if e["event"] == "notice"]
        self.assertEqual(len([t for t in said if "trained 290 tokens" in t]), 1,
                         said)
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual([config[k] for k in ("vocab_size", "bos_token_id",
                                              "eos_token_id")], [290, 0, 0])
        for name in FILES:
            self.assertEqual((self.folder / "out" / name).read_text(),
                             (self.folder / "out/checkpoint/step-5" / name)
                             .read_text())
        file = (self.folder / "out" / FILES[0]).read_text()
        self.assertTrue(json.loads(
            self.succeed("audit", "out", "--json"))["proven"])
        done = self.generate("out", "--prompt", "The cod of file 3")
        self.assertLess(done["prompt_tokens"], 12)
        self.check_trained("out")
        # Going on needs the same ids: the tokenizer is not trained again.
        go_on = ["train", self.tiny_run(), "--data", "text", "--out", "out",
                 "--json", "--tokenizer", "bpe", "--resume",
                 "--training.steps", 8]
        # It named five keys, all of which follow from one.
        other = [a for a in go_on if a not in ("--tokenizer", "bpe")]
        said = self.refuse(1, *other, names=[
            "data.tokenizer = bpe", "--tokenizer bpe",
            "leave out the run file"])
        self.assertNotIn("vocab_size", said)
        first = self.folder / "text/0.txt"
        text = first.read_text()
        first.write_text("other text " * 400)
        self.refuse(1, *go_on, names=["not that of the run in out"])
        first.write_text(text)
        again = self.events(self.succeed(*go_on))
        self.assertEqual([e["step"] for e in again if e["event"] == "step"],
                         [6, 7, 8])
        self.assertEqual((self.folder / "out" / FILES[0]).read_text(), file)
        self.assertIn("vocab_size = 290\n",
                      (self.folder / "out/run.toml").read_text())
        self.succeed("train", "out", "--resume", "--training.steps", 9)

    def test_a_run_that_is_killed_leaves_no_tokenizer(self):
        train = self.start("train", self.tiny_run(), "--data",
                           self.write_text_files(), "--out", "out", "--json",
                           "--tokenizer", "bpe", "--vocab-size", 290,
                           "--training.steps", 100000)
        train.wait_line(lambda line: '"event":"step"' in line)
        train.end(signal.SIGKILL)
        # The folder of its node is removed by the next one.
        self.assertEqual([f.name for f in self.folder.glob("shoal-*")
                          if not f.name.startswith("shoal-train-")], [])

    def check_trained(self, out):
        """As the package makes it, where that is installed."""
        if not importlib.util.find_spec("transformers"):
            return
        sys.path.insert(0, str(GOLDEN.parent))
        from make_tokenizer_goldens import trained
        from transformers import AutoTokenizer
        # Of the files that are not held out; which are, the run does not say.
        texts = [f.read_text() for f in sorted((self.folder / "text").iterdir())]
        made = json.loads((self.folder / out / FILES[0]).read_text())
        self.assertTrue(any(
            made == json.loads(trained(texts[:i] + texts[i + 1:], 290, 2)
                               .to_str()) for i in range(len(texts))))
        theirs = AutoTokenizer.from_pretrained(str(self.folder / out))
        self.assertEqual(theirs.eos_token_id, 0)
        text = "The herring of file 7 is 12."
        ids = theirs(text)["input_ids"]
        self.assertEqual(theirs.decode(ids, skip_special_tokens=True), text)
        self.assertEqual(
            self.generate(out, "--prompt", text)["ids"],
            self.generate(out, "--prompt-ids",
                          ",".join(map(str, ids)))["ids"])

    def test_a_shoal_trains_with_it_from_random_weights(self):
        for name in "ab":
            node = self.start("node", "--threads", 1, "--name", name, "--json")
            node.wait_line(lambda line: '"event":"ready"' in line)
        node.wait_line(lambda line: '"peers":2' in line
                       and '"member":true' in line)
        whole = self.train_bpe(
            "out", "--name", "b",
            "--parallelism.pipeline_parallel_degree", 2,
            "--parallelism.data_parallel_replicate_degree", 1)
        self.assertEqual((self.folder / "out" / FILES[0]).read_text(),
                         (self.folder / "out/checkpoint/step-5" / FILES[0])
                         .read_text())
        for process in self._processes:
            self.assertEqual(process.end(signal.SIGTERM), 0)
        alone = self.train_bpe("alone")
        self.assertEqual(numbers(whole), numbers(alone))

    def test_a_tokenizer_that_cannot_be_trained_is_refused(self):
        train = ["train", self.tiny_run(), "--out", "out", "--tokenizer", "bpe"]
        text = self.write_text_files()
        self.refuse(2, *train, "--data", text, "--vocab-size", 256,
                    names=["model.vocab_size is 256", "257"])
        run = self.write("m.toml", '[model]\npath = "m"\n[training]\n'
                         "seq_len = 32\n")
        self.refuse(2, "train", run, "--tokenizer", "bpe", "--data", text,
                    names=["model.path", "'bpe'"])
        lines = self.write("a.jsonl", '{"input_ids": [1, 2]}\n')
        self.refuse(1, *train, "--data", text, "--data", lines,
                    names=["a.jsonl:1", "input_ids"])
        self.refuse(1, *train, "--data", text, "--resume",
                    names=["--resume", "no folder"])
        # Little text has few tokens: the model has as many as there are.
        self.write("little.txt", "to be or not to be " * 9)
        self.succeed(*train, "--data", "little.txt", "--training.steps", 1,
                     "--training.seq_len", 8)
        config = json.loads((self.folder / "out/config.json").read_text())
        file = json.loads((self.folder / "out/tokenizer.json").read_text())
        self.assertLess(config["vocab_size"], 300)
        self.assertEqual(config["vocab_size"], len(file["model"]["vocab"]))

    def test_what_the_maker_says_of_sampling_is_carried(self):
        name = "generation_config.json"
        said = json.dumps({"do_sample": False, "max_new_tokens": 7,
                           "_of": "the maker"})
        (self.folder / "m" / name).write_text(said)
        for out, tokenizer in ("out", "model"), ("raw", "bytes"):
            self.train(out, "--data.tokenizer", tokenizer)
            for folder in (out, out + "/checkpoint/step-3"):
                self.assertEqual((self.folder / folder / name).read_text(),
                                 said)
        events = self.events(self.succeed("generate", "out", "--json",
                                          "--prompt", "a"))
        self.assertEqual(events[-1]["tokens"], 7)

    def test_what_of_it_is_not_followed_is_said(self):
        path = self.folder / "m/tokenizer.json"
        file = json.loads(path.read_text())
        file["model"]["dropout"] = 0.1
        file["padding"] = {"strategy": "BatchLongest"}
        file["truncation"] = {"max_length": 3}
        path.write_text(json.dumps(file))
        keys = [f"m/tokenizer.json.{key}"
                for key in ("model.dropout", "padding", "truncation")]
        data = self.write_text_files()
        for command in (["generate", "m", "--prompt", "a", *GREEDY],
                        ["eval", "m", "--data", data],
                        ["eval", "m", "--data", data, "--quantize", "q8"]):
            done = self.run_shoal(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
            for key in keys:
                self.assertEqual(done.stderr.count(key), 1, done.stderr)
        said = [e["text"] for e in self.train("out")
                if e["event"] == "notice"]
        for key in keys:
            self.assertEqual(len([t for t in said if key in t]), 1, said)

    def test_a_tokenizer_that_does_not_fit_is_named(self):
        shutil.copy(GOLDEN / "llama2/tokenizer.json", self.folder / "m")
        (self.folder / "m" / FILES[1]).unlink()
        self.refuse(1, "generate", "m", "--prompt", "a",
                    names=["vocab_size", "963"])
        run = self.write("r.toml", '[model]\npath = "m"\n'
                         "[training]\nseq_len = 32\n")
        self.refuse(1, "train", run, "--data", self.write_text_files(),
                    "--out", "out", names=["vocab_size", "963"])
        (self.folder / "m/tokenizer.json").write_text("{}")
        self.refuse(1, "train", run, "--data", self.write_text_files(),
                    "--out", "out", names=["m/tokenizer.json", "vocab"])


if __name__ == "__main__":
    main()
