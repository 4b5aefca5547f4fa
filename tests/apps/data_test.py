# tests/apps/data_test.py -- what train and eval make of the files of --data.
import gzip
import json

from support import World, main


class Data(World):
    def corpus(self, *data, more=()):
        """Trains a step; returns what was said of the text, and notices."""
        events = self.events(self.succeed(
            "train", self.tiny_run(), "--out", "out", "--json", "--training.steps",
            1, *more, *(a for d in data for a in ("--data", d))))
        said = [e["text"] for e in events if e["event"] == "corpus"]
        return said[0], [e["text"] for e in events if e["event"] == "notice"]

    def refused(self, code, *arguments, names=()):
        return self.refuse(code, "train", self.tiny_run(), "--out", "out",
                           *arguments, names=names)

    # The braces of a .jsonl file were learned as text, and eval read "text".
    def test_lines_of_json_are_learned_as_they_are_judged(self):
        texts = [f"document {i} of a few\n" * 4 for i in range(50)]
        lines = "".join(json.dumps({"text": t, "id": 7}) + "\n" for t in texts)
        bytes_ = sum(map(len, texts))
        self.write("d/a.jsonl", lines)
        (self.folder / "d/b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        line, notices = self.corpus("d")
        # Of each of two files the last documents are held out: 5 % of it.
        held, last = 0, 0
        while held < bytes_ * 50 // 1000:
            last += 1
            held += len(texts[-last])
        self.assertEqual(line, f"text: 2 files, {2 * (bytes_ - held)} tokens "
                               f"to train on, {2 * held} held out")
        self.assertIn("the held-out loss is measured on 4 of "
                      f"{(2 * held - 1) // 32} windows of 32 tokens, spread "
                      "over what is held out", notices)
        self.assertNotIn("skipped", " ".join(notices))
        judged = json.loads(self.succeed("eval", "out", "--json", "--data",
                                         "d/a.jsonl"))
        self.assertEqual(judged["tokens"], bytes_ - sum(
            -(-len(t) // judged["window"]) for t in texts))
        self.succeed("audit", "out")

    # The run learned braces and keys, and nothing said so.
    def test_documents_under_another_name_are_told_of(self):
        self.write("data.txt", "".join(
            json.dumps({"text": f"document {i} of a few\n" * 4}) + "\n"
            for i in range(50)))
        _, notices = self.corpus("data.txt")
        told = [n for n in notices if "data.txt" in n]
        self.assertEqual(len(told), 1, notices)
        for part in ("objects of JSON", "plain text", "NAME.jsonl"):
            self.assertIn(part, told[0])
        done = self.run_shoal("eval", "out", "--data", "data.txt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("NAME.jsonl", done.stderr)

    def test_a_line_that_cannot_be_used_is_named(self):
        good = json.dumps({"text": "x" * 90}) + "\n"
        self.write("d/a.jsonl", good + '{"text": "x"\n')
        self.refused(1, "--data", "d", names=["d/a.jsonl:2", "JSON"])
        self.write("d/a.jsonl", good + '{"messages": []}\n')
        self.refused(1, "--data", "d", names=["d/a.jsonl:2", "messages",
                                              "chat template", '"text"',
                                              "input_ids"])
        # They were told one at a time.
        bad = [f'{{"txt": {i}}}\n' for i in range(9)]
        self.write("d/a.jsonl", good + "".join(bad[:3]) + good)
        said = self.refuse(1, "train", self.tiny_run(), "--data", "d", "--out",
                           "out", names=[f"d/a.jsonl:{i}: has no" for i in
                                         (2, 3, 4)])
        self.assertNotIn("more", said)
        self.write("d/a.jsonl", good + "".join(bad) + good)
        self.refused(1, "--data", "d", names=[
            "d/a.jsonl:2: ", "d/a.jsonl:6: ",
            "and 4 more lines of d/a.jsonl\n"])
        (self.folder / "d/b.txt.gz").write_bytes(
            gzip.compress(b"text " * 9000)[:-9])
        (self.folder / "d/a.jsonl").unlink()
        self.refused(1, "--data", "d", names=["d/b.txt.gz", "damaged"])

    # They were skipped without a word.
    def test_files_that_are_left_out_are_counted_and_named(self):
        folder = self.write_text_files()
        for i in range(4):
            (folder / f"{i}.o").write_bytes(b"\x7fELF\0\0")
        said = "skipped 4 files: 4 are not text (first: text/0.o"
        line, notices = self.corpus("text")
        self.assertIn("text: 12 files,", line)
        self.assertEqual(len([n for n in notices if n.startswith(said)]), 1,
                         notices)
        done = self.run_shoal("eval", "out", "--data", "text")
        self.assertEqual(done.returncode, 0)
        self.assertIn(said, done.stderr)
        self.refused(1, "--data", "text", "--data", "text/0.o", "--overwrite",
                     names=["text/0.o: is not text"])
        self.refuse(1, "eval", "out", "--data", "text/0.o",
                    names=["text/0.o: is not text"])

    # A user who named a checkout trained on .git and .env.
    def test_what_is_hidden_in_a_folder_is_not_read(self):
        self.write_text_files()
        self.write("text/.secret", "the key " * 999)
        self.write("text/.git/words.md", "a branch " * 999)
        line, notices = self.corpus("text")
        self.assertIn("text: 12 files, ", line)
        told = [n for n in notices if "hidden" in n]
        self.assertEqual(len(told), 1, notices)
        for part in ("skipped 2 hidden files and folders", "text/.git",
                     "text/.secret", "name one by itself"):
            self.assertIn(part, told[0])
        done = self.run_shoal("eval", "out", "--data", "text")
        self.assertIn(told[0], done.stderr)
        done = self.run_shoal("eval", "out", "--data", "text/.git", "--data",
                              "text/.secret")
        self.assertEqual((done.returncode, "hidden" in done.stderr),
                         (0, False), done.stderr)

    # A run of an earlier version had read what is hidden, and goes on with it.
    def test_what_is_hidden_is_read_if_asked_for(self):
        self.write_text_files()
        self.write("text/.notes", "the words " * 999)
        line, notices = self.corpus("text", more=("--data.hidden", "true"))
        self.assertIn("text: 13 files, ", line)
        self.assertEqual([n for n in notices if "hidden" in n], [])
        self.succeed("audit", "out")
        record = self.folder / "out/run.json"
        old = json.loads(record.read_text())
        for key in ("hidden", "end_of_text"):
            old["run"]["data"].pop(key, None)
        record.write_text(json.dumps(old))
        self.succeed("audit", "out")
        self.succeed("train", "out", "--resume", "--training.steps", 2)

    # There was no held-out loss, and nothing said so.
    def test_too_little_that_is_held_out_is_told_of(self):
        self.write("d/a.txt", "The cod is a fish.\n" * 25)
        self.write("d/note.txt", "a short note\n")
        _, notices = self.corpus("d")
        said = [n for n in notices if n.startswith("no held-out loss")]
        self.assertEqual(len(said), 1, notices)
        self.assertIn("data.validation_permille", said[0])

    def test_the_limit_of_the_text_is_named_by_its_key(self):
        self.refused(1, "--data", self.write_text_files(), "--data.bytes_max",
                     2000, names=["2000 bytes", "data.bytes_max", "raise"])

    # Its ids were taken for bytes.
    def test_a_vocabulary_without_a_tokenizer_is_not_trained_on_bytes(self):
        self.succeed("init", self.tiny_run(), "--model.vocab_size", 525,
                     "--out", "m")
        for file in (self.folder / "m").glob("tokenizer*"):
            file.unlink()
        run = self.write("r.toml", '[model]\npath = "m"\n[training]\n'
                         "seq_len = 32\nsteps = 1\n")
        train = ["train", run, "--data", self.write_text_files(), "--out", "o"]
        self.refuse(1, *train, names=["m has no tokenizer", "525",
                                      "--data.tokenizer bytes"])
        self.refuse(1, "plan", run, names=["m has no tokenizer"])
        (self.folder / "m/tokenizer_config.json").write_text(
            '{"tokenizer_class": "GPT2Tokenizer"}')
        self.refuse(1, *train, names=["GPT2Tokenizer", "tokenizer.json",
                                      "--data.tokenizer bytes"])
        self.succeed(*train, "--data.tokenizer", "bytes")


if __name__ == "__main__":
    main()
