# tests/bench/torch_train.py -- training steps of a model by PyTorch.
#
# Usage: torch_train.py --shape NAME [--threads N] [--steps N] [--type bf16]
#                       [--compile]
# The shapes are those of `shoal bench train`: 4 sequences of 256 tokens, AdamW
# (fused where PyTorch has it for processors). bf16 is autocast, with weights in
# fp32. Prints {"tokens_per_s": median, "processor_s": of a step, all threads,
# "peak_mib": of the process}.
import argparse
import contextlib
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

# GPT-2's block?, layers, width, heads, hidden, vocabulary
SHAPES = {"gpt2-124m": (True, 12, 768, 12, 3072, 50257),
          "llama-30m": (False, 8, 512, 8, 1376, 8192)}
SEQUENCES, LENGTH = 4, 256


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6)
        return x * torch.rsqrt(x.square().mean(-1, True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, gpt2, width, heads, hidden):
        super().__init__()
        self.heads, self.gpt2 = heads, gpt2
        self.norms = nn.ModuleList(
            [nn.LayerNorm(width) if gpt2 else Norm(width) for _ in range(2)])
        self.qkv = nn.Linear(width, 3 * width, bias=gpt2)
        self.out = nn.Linear(width, width, bias=gpt2)
        if not gpt2:
            self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=gpt2)
        self.down = nn.Linear(hidden, width, bias=gpt2)

    def forward(self, x, turn):
        b, t, width = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2)
                   for y in self.qkv(self.norms[0](x)).split(width, -1))
        if not self.gpt2:
            q, k = turn(q), turn(k)
        if hasattr(F, "scaled_dot_product_attention"):
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            s = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            seen = torch.ones(t, t, dtype=torch.bool).tril()
            a = s.masked_fill(~seen, float("-inf")).softmax(-1) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, t, width))
        h = self.norms[1](x)
        if self.gpt2:
            return x + self.down(F.gelu(self.up(h), approximate="tanh"))
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, gpt2, layers, width, heads, hidden, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.positions = nn.Embedding(1024, width) if gpt2 else None
        self.blocks = nn.ModuleList(
            [Block(gpt2, width, heads, hidden) for _ in range(layers)])
        self.norm = nn.LayerNorm(width) if gpt2 else Norm(width)
        half = width // heads // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = torch.arange(LENGTH)[:, None] * speed
        self.cos, self.sin = angle.cos(), angle.sin()

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * self.cos - b * self.sin,
                          b * self.cos + a * self.sin], -1).to(x.dtype)

    def forward(self, ids):
        x = self.embedding(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, self.turn)
        return F.linear(self.norm(x), self.embedding.weight)


def make_optimizer(model):
    try:
        return torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    except (RuntimeError, TypeError):
        return torch.optim.AdamW(model.parameters(), lr=1e-5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--type", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = Model(*SHAPES[options.shape])
    vocabulary = SHAPES[options.shape][-1]
    optimizer = make_optimizer(model)
    ids = torch.randint(0, vocabulary, (SEQUENCES, LENGTH))

    def loss_of(batch):
        with (torch.autocast("cpu", dtype=torch.bfloat16)
              if options.type == "bf16" else contextlib.nullcontext()):
            logits = model(batch).view(-1, vocabulary)
            return F.cross_entropy(logits, batch.view(-1))

    run = torch.compile(loss_of) if options.compile else loss_of
    took, processor = [], []
    for step in range(options.steps + 2):
        start, used = time.perf_counter(), time.process_time()
        run(ids).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= 2:  # the first ones warm up
            took.append(time.perf_counter() - start)
            processor.append(time.process_time() - used)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"tokens_per_s": SEQUENCES * LENGTH
                      / statistics.median(took),
                      "processor_s": statistics.median(processor),
                      "peak_mib": round(peak)}))


if __name__ == "__main__":
    main()
