#!/usr/bin/env python3
"""Checks that what we save loads in transformers with equal logits.

    python3 tests/golden/check_roundtrip.py BUILD/tests/runtime/model/golden_roundtrip

Loads each golden directory with our program, which saves it again (whole and
in shards) and prints its own logits; then loads what it saved in transformers
and compares: the two directories must agree exactly, our logits within 1e-4
of the largest. Needs torch and transformers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 53, 58, 97, 93, 123, 84, 62, 0]


@torch.no_grad()
def logits(path):
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager")
    return model(torch.tensor([IDS])).logits[0]


def check(program, source, shard_bytes):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "saved"
        text = subprocess.run(
            [program, source, out, str(shard_bytes), *map(str, IDS)],
            check=True, capture_output=True, text=True).stdout
        ours = torch.tensor([json.loads(line) for line in text.splitlines()])
        before, after = logits(source), logits(out)
        files = len(list(out.glob("*.safetensors")))
    same = bool((before == after).all())
    error = float((ours - before).abs().max() / before.abs().max())
    print(f"{source.name}: {files} file(s), reloaded logits "
          f"{'equal' if same else 'DIFFER'}, ours differ by {error:.2e}")
    return same and error <= 1e-4


def main():
    golden = pathlib.Path(__file__).parent
    good = [check(sys.argv[1], config.parent, size)
            for config in sorted(golden.glob("tiny_*/config.json"))
            for size in (10**9, 30000)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
