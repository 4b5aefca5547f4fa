#!/usr/bin/env python3
"""Checks that what we save loads in transformers with equal logits.

    python3 tests/golden/check_roundtrip.py \
      BUILD/tests/runtime/golden_roundtrip [BUILD/shoal]

Loads each golden directory with our program, which saves it again (whole and
in shards) and prints its own logits; then loads what it saved in transformers
and compares: the two directories must agree exactly, our logits within 1e-4
of the largest. With `shoal`, the same for what three steps of training publish,
begun with random models of the same kinds but for bytes. Needs torch and
transformers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoConfig, AutoModelForCausalLM, logging

RUN = """[model]
path = "{path}"
[training]
steps = 3
seq_len = 32
local_batch_size = 4
global_batch_size = 4
[optimizer]
lr = 1e-3
[validation]
enable = false
"""
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 53, 58, 97, 93, 123, 84, 62, 0]


def ids_of(path):
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    return [i % config["vocab_size"] for i in IDS]


@torch.no_grad()
def logits(path):
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager")
    return model(torch.tensor([ids_of(path)])).logits[0]


def check(program, source, shard_bytes, name=None):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "saved"
        text = subprocess.run(
            [program, source, out, str(shard_bytes), *map(str, ids_of(source))],
            check=True, capture_output=True, text=True).stdout
        ours = torch.tensor([json.loads(line) for line in text.splitlines()])
        before, after = logits(source), logits(out)
        files = len(list(out.glob("*.safetensors")))
    same = bool((before == after).all())
    error = float((ours - before).abs().max() / before.abs().max())
    print(f"{name or source.name}: {files} file(s), reloaded logits "
          f"{'equal' if same else 'DIFFER'}, ours differ by {error:.2e}")
    return same and error <= 1e-4


def check_trained(program, shoal, source):
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        torch.manual_seed(1)
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(
            source, vocab_size=256, dtype=torch.float32)).save_pretrained(
                here / "begun")
        run = here / "run.toml"
        run.write_text(RUN.format(path=here / "begun"), encoding="utf-8")
        subprocess.run(
            [shoal, "train", run, "--data", pathlib.Path(__file__).parent,
             "--out", here / "out"], check=True, stdout=subprocess.DEVNULL)
        before, after = logits(here / "begun"), logits(here / "out")
        moved = not bool((before == after).all())
        if not moved:
            print(f"{source.name}: training changed nothing")
        return moved & check(program, here / "out", 10**9,
                             f"{source.name}, trained")


def main():
    logging.disable_progress_bar()
    golden = pathlib.Path(__file__).parent
    good = [check(sys.argv[1], config.parent, size)
            for config in sorted(golden.glob("tiny_*/config.json"))
            for size in (10**9, 30000)]
    if len(sys.argv) > 2:
        good += [check_trained(sys.argv[1], sys.argv[2], config.parent)
                 for config in sorted(golden.glob("tiny_*/config.json"))]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
