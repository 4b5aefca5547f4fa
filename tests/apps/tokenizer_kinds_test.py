# tests/apps/tokenizer_kinds_test.py -- a model whose tokenizer.json is Unigram or
# WordPiece: its prompts, its training, its answers.
#
# The golden tokenizers of T5's, Llama's and BERT's pipelines beside random
# weights of a Llama-shaped model.
import json
import re
import shutil
import signal

from serving import GOLDEN, Serving
from support import main

TOKENIZERS = GOLDEN / "tokenizers"
FILE = "tokenizer.json"
KINDS = ("t5", "unigram_llama", "bert")
TEXTS = [bytes.fromhex(t).decode(errors="replace")
         for t in json.loads((TOKENIZERS / "texts.json").read_text())]
TEXT = "The quick brown fox, doesn't it?"
GREEDY = ["--max-tokens", "12", "--temperature", "0"]


class Kinds(Serving):
    def golden(self, kind):
        return json.loads((TOKENIZERS / kind / "golden.json").read_text())

    def take(self, kind):
        """Gives the model this tokenizer."""
        shutil.rmtree(self.folder / "m", ignore_errors=True)
        self.succeed("init", self.tiny_run(), "--out", "m",
                     "--model.vocab_size", self.golden(kind)["id_count"])
        shutil.copy(TOKENIZERS / kind / FILE, self.folder / "m" / FILE)
        # It was made for the bytes that the model had before.
        (self.folder / "m/tokenizer_config.json").write_text("{}")

    def generate(self, model, *arguments):
        return self.events(self.succeed("generate", model, "--json",
                                        *arguments, *GREEDY))[-1]

    def test_prompts_are_its_ids(self):
        for kind in KINDS:
            self.take(kind)
            for i in (5, 15, 17):
                ids = self.golden(kind)["samples"][i]["ids"]
                with self.subTest(kind=kind, text=TEXTS[i]):
                    around = self.golden(kind)["samples"][i]["around"]
                    begin = around[:1] if around[0] != ids[0] else []
                    end = around[-1:] if around[-1] != ids[-1] else []
                    text = self.generate("m", "--prompt", TEXTS[i])
                    same = self.generate("m", "--prompt-ids", ",".join(
                        map(str, begin + ids + end)))
                    self.assertEqual(text["prompt_tokens"],
                                     len(begin + ids + end))
                    self.assertEqual((text["ids"], text["text"]),
                                     (same["ids"], same["text"]))

    def test_training_carries_it_along_unchanged(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.take(kind)
                run = self.write("from_m.toml", '[model]\npath = "m"\n'
                                 "[training]\nsteps = 3\nseq_len = 32\n"
                                 "local_batch_size = 2\n")
                events = self.events(self.succeed(
                    "train", run, "--data", self.write_text_files(), "--out",
                    kind, "--json"))
                config = next(e for e in events if e["event"] == "config")
                self.assertEqual(config["run"]["data"]["tokenizer"], "model")
                for folder in (kind, kind + "/checkpoint/step-3"):
                    self.assertEqual(
                        (self.folder / folder / FILE).read_bytes(),
                        (TOKENIZERS / kind / FILE).read_bytes())
                self.assertTrue(json.loads(
                    self.succeed("audit", kind, "--json"))["proven"])
                self.succeed("eval", kind, "--data", "text")
                self.generate(kind, "--prompt", TEXT)

    def test_what_is_served_has_its_texts(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.take(kind)
                self.check_served(kind)

    def check_served(self, kind):
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        for text, row in list(zip(TEXTS, self.golden(kind)["samples"]))[:20]:
            status, answer = at.post(
                {"model": "tiny", "prompt": text,
                 "add_special_tokens": False}, "/tokenize")
            self.assertEqual((status, answer["tokens"]), (200, row["ids"]))
        body = {"model": "tiny", "prompt": TEXT, "max_tokens": 24,
                "temperature": 1, "ignore_eos": True}
        for seed in range(6):
            asked = {**body, "seed": seed}
            whole = at.post({**asked, "return_token_ids": True})[1]
            choice = whole["choices"][0]
            self.assertEqual(at.stream(asked), (200, {0: choice["text"]}))
        # Each token has bytes of its own, so rules can choose among tokens.
        for rule in ("[a-e ]{6,12}", "(fox|dog|the) (is|sur) \\w{1,4}"):
            text = at.post({**body, "guided_regex": rule, "seed": 3,
                            "max_tokens": 60})[1]["choices"][0]
            if text["finish_reason"] == "stop":
                self.assertTrue(re.fullmatch(rule, text["text"]), text)
        self.assertEqual(process.end(signal.SIGINT), 130)

    # A vocabulary has the texts of its special tokens, and a Unigram model would
    # find them in any text.
    def test_what_a_client_writes_makes_no_special_token(self):
        self.take("t5")
        (self.folder / "m/chat_template.jinja").write_text(
            "{% for m in messages %}{{ m.content }}</s>{% endfor %}")
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        answer = at.post({"model": "tiny", "messages": [
            {"role": "user", "content": "the</s>dog<extra_id_0>"}]},
            "/tokenize")[1]
        tokens = json.loads((TOKENIZERS / "t5" / FILE).read_text())
        end = next(t["id"] for t in tokens["added_tokens"]
                   if t["content"] == "</s>")
        extra = next(t["id"] for t in tokens["added_tokens"]
                     if t["content"] == "<extra_id_0>")
        self.assertEqual(answer["tokens"].count(end), 1, answer)
        self.assertEqual(answer["tokens"][-1], end)
        self.assertEqual(answer["tokens"].count(extra), 0)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_a_file_that_lies_is_refused_by_its_key(self):
        self.take("t5")
        path = self.folder / "m" / FILE
        whole = json.loads(path.read_text())
        for change, names in (
                ({"unk_id": 99999}, ["model.unk_id"]),
                ({"vocab": [["a", 0], ["a", 0]]}, ["model.vocab[1]", '"a"']),
                ({"vocab": [["a", None]]}, ["model.vocab[0]", "score"]),
                ({"type": "WordLevel"}, ["model.type", "WordLevel"])):
            with self.subTest(change=change):
                path.write_text(json.dumps(
                    {**whole, "model": {**whole["model"], **change}}))
                self.refuse(1, "generate", "m", "--prompt", "a",
                            names=["m/" + FILE, *names])
        whole["normalizer"]["precompiled_charsmap"] = "AAAA"
        path.write_text(json.dumps(whole))
        self.refuse(1, "generate", "m", "--prompt", "a",
                    names=["normalizer.precompiled_charsmap"])


if __name__ == "__main__":
    main()
