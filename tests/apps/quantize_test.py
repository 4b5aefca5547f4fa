# tests/apps/quantize_test.py -- what smaller weights cost a trained model.
#
# A model is trained on part of Python's own library; the perplexity of 1 MB of
# the rest must rise by at most 0.1 % in 8 bits and 3 % in 4, over bf16.
import json
import os
import pathlib
import subprocess
import zlib

from support import World, main

RUN = """[model]
hidden_size = 256
intermediate_size = 704
num_hidden_layers = 4
num_attention_heads = 8
num_key_value_heads = 4
max_position_embeddings = 128
[training]
steps = 400
seq_len = 128
local_batch_size = 16
global_batch_size = 16
[optimizer]
lr = 2e-3
[validation]
enable = false
[checkpoint]
enable = false
"""
HELD_OUT_BYTES = 1 << 20
DEADLINE_S = 1800  # met by a broken program only


class Quantize(World):
    def copy_texts(self):
        """Folders of text to train on and of 1 MB that is held out."""
        library = pathlib.Path(os.__file__).parent
        held = 0
        for path in sorted(library.rglob("*.py")):
            name = str(path.relative_to(library)).replace("/", "_")
            text = path.read_bytes()
            out = "train"
            if zlib.crc32(name.encode()) % 4 == 0 and held < HELD_OUT_BYTES:
                out, text = "held", text[:HELD_OUT_BYTES - held]
                held += len(text)
            self.write(f"{out}/{name}.txt", text.decode("utf-8", "replace"))
        self.assertEqual(held, HELD_OUT_BYTES)

    def long(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments], cwd=self.folder, env=self.env,
            capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_perplexity_of_held_out_text_hardly_rises(self):
        for name in "train", "held":
            (self.folder / name).mkdir()
        self.copy_texts()
        self.write("run.toml", RUN)
        self.long("train", "run.toml", "--data", "train", "--out", "o")
        found = {}
        for kind in "bf16", "q8", "q4":
            found[kind] = json.loads(self.long(
                "eval", "o", "--data", "held", "--quantize", kind,
                "--json"))["perplexity"]
        print(found)
        self.assertLess(found["bf16"], 12)  # it has learnt something
        self.assertLessEqual(found["q8"], 1.001 * found["bf16"])
        self.assertLessEqual(found["q4"], 1.03 * found["bf16"])


if __name__ == "__main__":
    main()
