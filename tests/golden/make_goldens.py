#!/usr/bin/env python3
"""Makes the golden files: small random Llamas and what PyTorch computes.

Needs torch and transformers from PyPI, in a virtual environment of your own;
the results are in the tree, so nobody needs it to build or test.

    python3 tests/golden/make_goldens.py [tests/golden]

Each directory is a Hugging Face directory as save_pretrained() writes it,
plus golden.safetensors (all F32, ids as numbers):
    ids [B,T], logits [B,T,V]        one forward pass
    prompt [P], greedy [64]          argmax, token after token
    train_ids [20,B,T+1], train_losses [20], train_norms [20]
                                     AdamW steps with clipping at norm 1
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

STEPS, BATCH, LENGTH, GREEDY = 20, 2, 24, 64

BASE = dict(vocab_size=256, max_position_embeddings=128, rms_norm_eps=1e-5,
            initializer_range=0.1, bos_token_id=None, eos_token_id=None,
            pad_token_id=None, attention_bias=False)


def make_model(seed, **keys):
    torch.manual_seed(seed)
    model = LlamaForCausalLM(LlamaConfig(**{**BASE, **keys})).float()
    with torch.no_grad():  # norms of 1 would hide a missing factor
        for name, p in model.named_parameters():
            if "norm" in name:
                p.add_(0.1 * torch.randn_like(p))
    return model


@torch.no_grad()
def forward_goldens(model):
    ids = torch.randint(0, 256, (BATCH, LENGTH))
    prompt = torch.randint(0, 256, (1, 5))
    out = prompt
    for _ in range(GREEDY):
        out = torch.cat([out, model(out).logits[:, -1:].argmax(-1)], 1)
    return {"ids": ids.float(), "logits": model(ids).logits,
            "prompt": prompt[0].float(), "greedy": out[0, 5:].float()}


def train_goldens(model):
    # Tokens with a pattern, so that the loss falls.
    ids = (torch.randint(0, 256, (STEPS, BATCH, 1))
           + 3 * torch.arange(LENGTH + 1)) % 256
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95),
                            eps=1e-8, weight_decay=0.1, foreach=False)
    losses, norms = [], []
    for batch in ids:
        logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, 256), batch[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        opt.step()
        losses.append(loss.detach())
    return {"train_ids": ids.float(), "train_losses": torch.stack(losses),
            "train_norms": torch.stack(norms)}


def write(path, model, dtype=torch.float32, train=True, **save):
    model = model.to(dtype)
    model.save_pretrained(path, **save)
    model = LlamaForCausalLM.from_pretrained(path, dtype=torch.float32)
    golden = forward_goldens(model)
    if train:
        golden |= train_goldens(model)
    save_file({k: v.contiguous() for k, v in golden.items()},
              path / "golden.safetensors")
    print(path, sum(p.numel() for p in model.parameters()), "parameters,",
          sum(f.stat().st_size for f in path.iterdir()), "bytes")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).parent)
    torch.set_num_threads(1)
    small = dict(hidden_size=32, intermediate_size=48, num_attention_heads=4,
                 num_key_value_heads=2)
    write(root / "tiny_llama", make_model(
        1, hidden_size=64, intermediate_size=128, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2))
    write(root / "tiny_tied", make_model(
        2, **small, num_hidden_layers=2, head_dim=12, rope_theta=500000.0,
        tie_word_embeddings=True), max_shard_size="40KB")
    half = make_model(3, **small, num_hidden_layers=1)
    write(root / "tiny_bf16", half, torch.bfloat16, train=False)
    half = make_model(4, **small, num_hidden_layers=1)
    write(root / "tiny_f16", half, torch.float16, train=False)


if __name__ == "__main__":
    main()
