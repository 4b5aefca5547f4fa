# tests/apps/quantize_test.py -- what smaller weights cost a trained model.
#
# Usage: quantize_test.py SHOAL [--results FILE]
#
# A model is trained on part of Python's own library; the perplexity of 1 MB of
# the rest must rise by at most 0.1 % in 8 bits and 3 % in 4, over bf16, with no
# more bits for a weight than llama.cpp's Q8_0 and Q4_0 have. Each figure is a
# line; --results takes them as one of JSON (tests/cluster/targets.py).
import json
import os
import pathlib
import subprocess
import sys
import types
import zlib

from support import World, main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent
                       / "cluster"))
from targets import Targets  # noqa: E402

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


# How much perplexity may rise over bf16; bits of llama.cpp's weights: a block
# of 32 is 34 bytes in Q8_0 and 18 in Q4_0.
RISE = {"q8": 0.001, "q4": 0.03}
BITS = {"q8": 34 * 8 / 32, "q4": 18 * 8 / 32}
LEARNT = 12  # the perplexity of a model that has learnt something


class Quantize(World):
    results = None  # set by the command line

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
        found = {kind: json.loads(self.long(
            "eval", "o", "--data", "held", "--quantize", kind, "--json"))
            for kind in ("bf16", "q8", "q4")}
        targets = Targets(types.SimpleNamespace(
            script="quantize_test.py", targets=True, results=self.results))
        usual = found["bf16"]["perplexity"]
        targets.at_most("perplexity in bf16", usual, LEARNT, "")
        for kind, rise in RISE.items():
            targets.at_most(f"perplexity in {kind} over bf16",
                            found[kind]["perplexity"] / usual - 1, rise, "%")
            targets.at_most(f"bits of a weight in {kind}",
                            found[kind]["bits_per_weight"], BITS[kind], "")
        self.assertEqual(targets.finish(), 0, targets.missed)


if __name__ == "__main__":
    if "--results" in sys.argv:
        at = sys.argv.index("--results")
        Quantize.results = pathlib.Path(sys.argv[at + 1]).resolve()
        del sys.argv[at:at + 2]
    main()
