# tests/apps/foreign_text_test.py -- names that others have chosen: not UTF-8,
# sequences that steer a terminal, tokenizers that multiply a text.
#
# What a command says is looked at as bytes: no C0 but line ends, no C1, no
# bidirectional control, and always UTF-8.
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

from support import DEADLINE_S, World, main

LATIN = os.fsdecode(b"Jos\xe9")
NO_TEXT = os.fsdecode(b"\xff\xfe")
STEERS = "\x1b]0;title\x07\x1b[2J\u009b31m\u202e\u2066"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f"
                      "\u2028-\u202e\u2066-\u2069]")


class ForeignText(World):
    def said(self, code, *arguments):
        """Runs; what it says must be fit for a terminal. Returns stderr."""
        done = subprocess.run(
            [self.program, *map(str, arguments)], cwd=self.folder,
            env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=DEADLINE_S, check=False)
        for stream in (done.stdout, done.stderr):
            self.assertIsNone(CONTROLS.search(stream.decode("utf-8")), stream)
        text = done.stderr.decode("utf-8")
        self.assertEqual(done.returncode, code, text)
        self.assertNotIn("json.exception", text)
        return text

    def model(self):
        self.succeed("init", self.tiny_run(), "--out", "m", "--overwrite")
        return self.folder / "m"

    def tokenizer(self, **changed):
        """A model with the smallest tokenizer, and what is changed in it."""
        folder = self.model()
        file = {"version": "1.0", "added_tokens": [], "normalizer": None,
                "pre_tokenizer": None, "post_processor": None, "decoder": None,
                "model": {"type": "BPE", "vocab": {"a": 0, "b": 1},
                          "merges": []}}
        file.update(changed)
        (folder / "tokenizer.json").write_text(json.dumps(file))
        return folder

    def node(self, name):
        node = self.start("node", "--threads", 1, "--name", name, "--json")
        node.wait_line(lambda line: '"event":"ready"' in line)
        return node

    # A node whose lines are JSON died at the name of another, and its process
    # stayed: it held its seat, but never voted again.
    def test_a_name_that_is_not_utf8_ends_no_node(self):
        first, second = self.node("first"), self.node("second")
        third = self.start("node", "--threads", 1, "--name", LATIN)
        for node in (first, second):
            for _ in range(2): # it joins, and then has a seat
                line = node.wait_line(lambda line: '"peers":3' in line)
            self.assertIn("Jos\ufffd", json.loads(line)["names"])
        third.wait_line(lambda line: line.startswith("ready:"))
        for node in (first, third): # both before the others can agree
            node.child.kill()
        for node in (first, third):
            node.end()
        second.wait_line(lambda line: '"event":"waiting"' in line
                         and "Jos" in line)
        first = self.node("first")
        first.wait_line(lambda line: '"peers":2' in line
                        and '"member":true' in line)
        third = self.start("node", "--threads", 1, "--name", LATIN, "--json")
        for node in (first, second, third):
            node.wait_line(lambda line: '"peers":3' in line
                           and '"member":true' in line)
        self.assertIn("Jos\ufffd", self.succeed("status", "--name", "first"))
        for node in (first, second, third):
            self.assertEqual(node.end(signal.SIGTERM), 0)

    # Views were believed whatever their number: none could follow the highest,
    # and no node could read its own records after a restart.
    def test_a_key_holder_that_lies_stops_no_node(self):
        names = ("first", "second")
        nodes = {name: self.node(name) for name in names}
        for node in nodes.values():
            node.wait_line(lambda line: '"peers":2' in line)
        peers = json.loads(self.succeed("status", "--name", "first",
                                        "--json"))["peers"]
        for peer in peers:
            said = subprocess.run(
                [LIAR, self.folder / ".config/shoal/cluster.key",
                 peer["addresses"][0]], env=self.env, capture_output=True,
                text=True, timeout=DEADLINE_S, check=False)
            self.assertEqual(said.returncode, 0, said.stderr + said.stdout)
            lies = [json.loads(line) for line in said.stdout.splitlines()]
            self.assertEqual(len(lies), 5)
            for lie in lies:
                self.assertLess(lie["view"], 1000, lie)
        third = self.node("third")  # views go on
        for node in (*nodes.values(), third):
            node.wait_line(lambda line: '"peers":3' in line)
        self.assertEqual(third.end(signal.SIGTERM), 0)
        for node in nodes.values():
            node.end(signal.SIGKILL)
        # And can read what they wrote. Of two, one may need the other to be
        # ready or a member, so both start before either is waited for, and both
        # are members before either ends.
        nodes = {name: self.start("node", "--threads", 1, "--name", name,
                                  "--json") for name in names}
        for node in nodes.values():
            node.wait_line(lambda line: '"peers":2' in line
                           and '"member":true' in line)
        for node in nodes.values():
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_names_of_shoals_and_peers_are_checked(self):
        self.assertIn("--cluster", self.said(2, "node", "--cluster", LATIN))
        for wrong in ("a\u009b2J", "a\u202eb", "a\x1b[2J"):
            self.assertIn("--name has a control character",
                          self.said(2, "node", "--name", wrong))
        self.assertIn("not host:port",
                      self.said(2, "node", "--join", "a\u202eb:1"))

    def test_paths_that_are_not_utf8_are_refused_or_work(self):
        run = self.tiny_run()
        text = self.write_text_files()
        text.rename(self.folder / LATIN)
        (self.folder / LATIN / NO_TEXT).write_text("more text\n" * 9)
        for command in (["plan"], ["train", "--out", "o"]):
            self.assertIn("--data: 'Jos\ufffd' is not UTF-8",
                          self.said(2, *command, run, "--data", LATIN))
            self.assertIn("--model.path: '\ufffd\ufffd' is not UTF-8",
                          self.said(2, *command, "--model.path", NO_TEXT))
            self.said(2, *command, self.folder / NO_TEXT)
        (self.folder / "link").symlink_to(self.folder / LATIN)
        self.said(0, "train", run, "--data", "link", "--out", NO_TEXT, "--json")
        self.said(0, "audit", NO_TEXT)
        self.said(0, "generate", NO_TEXT, "--prompt", "a", "--json")
        self.said(0, "eval", NO_TEXT, "--data", "link")
        self.said(2, "audit", NO_TEXT, "--data", LATIN)

    def test_names_in_a_tokenizer_do_not_steer_the_terminal(self):
        for changed in (
                {"normalizer": {"type": STEERS}},
                {"pre_tokenizer": {"type": "x\n" + STEERS}},
                {"decoder": {"type": STEERS}},
                {"model": {"type": STEERS}},
                {"model": {"type": "BPE", "merges": [],
                           "vocab": {STEERS: 0, STEERS + "a": 0}}},
                {"model": {"type": "BPE", "merges": [[STEERS, "a"]],
                           "vocab": {"a": 0}}},
                {"added_tokens": [{"id": 9, "content": STEERS}]},
                {"normalizer": {"type": "Replace", "content": "",
                                "pattern": {"Regex": STEERS + "("}}}):
            with self.subTest(changed=changed):
                said = self.said(1, "generate", self.tokenizer(**changed),
                                 "--prompt", "a")
                self.assertEqual(said.count("\n"), 1, said)
                self.assertIn("tokenizer.json", said)

    def test_names_of_tensors_and_files_do_not_steer_the_terminal(self):
        folder = self.model()
        (folder / "model.safetensors").rename(folder / "part")
        index = folder / "model.safetensors.index.json"
        for weights in ({STEERS: 3}, {STEERS: "../part"},
                        {"a": "part" + STEERS}, {STEERS: "part"}):
            with self.subTest(weights=weights):
                index.write_text(json.dumps({"weight_map": weights}))
                said = self.said(1, "generate", folder, "--prompt", "a")
                self.assertEqual(said.count("\n"), 1, said)

    # Ten steps that each make eight letters of one: 1 GiB of a prompt of one
    # letter, and 8 GiB with one more.
    def test_a_tokenizer_that_multiplies_a_text_is_refused(self):
        grow = {"type": "Replace", "pattern": {"String": "a"},
                "content": "a" * 8}
        folder = self.tokenizer(normalizer={"type": "Sequence",
                                            "normalizers": [grow] * 40})
        self.assertIn("grown_bytes_max",
                      self.said(2, "generate", folder, "--prompt", "a"))
        folder = self.tokenizer(
            pre_tokenizer={"type": "Sequence", "pretokenizers": [
                {"type": "ByteLevel", "add_prefix_space": False,
                 "use_regex": False}] * 40})
        self.assertIn("grown_bytes_max",
                      self.said(2, "generate", folder, "--prompt", "\u00e9"))
        # A decoder has no way to refuse: it leaves the text as it is.
        folder = self.tokenizer(decoder={"type": "Sequence",
                                         "decoders": [grow] * 40})
        self.said(0, "generate", folder, "--prompt", "a", "--json",
                  "--max-tokens", 9)


if __name__ == "__main__":
    LIAR = pathlib.Path(sys.argv.pop(2)).resolve()
    main()
