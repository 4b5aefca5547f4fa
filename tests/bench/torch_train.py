# tests/bench/torch_train.py -- training steps of a Llama by PyTorch, in fp32.
#
# Usage: torch_train.py --shape NAME [--threads N] [--steps N]
# The shapes are those of `shoal bench train`: 4 sequences of 256 tokens, AdamW.
# Prints {"tokens_per_s": median}.
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

# layers, width, heads, hidden, vocabulary
SHAPES = {"gpt2-124m": (12, 768, 12, 2048, 50257),
          "llama-30m": (8, 512, 8, 1376, 8192)}
SEQUENCES, LENGTH = 4, 256


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([Norm(width), Norm(width)])
        self.qkv = nn.ModuleList(
            [nn.Linear(width, width, bias=False) for _ in range(3)])
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, turn):
        b, t, width = x.shape
        h = self.norms[0](x)
        q, k, v = (w(h).view(b, t, self.heads, -1).transpose(1, 2)
                   for w in self.qkv)
        q, k = turn(q), turn(k)
        if hasattr(F, "scaled_dot_product_attention"):
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            s = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            seen = torch.ones(t, t, dtype=torch.bool).tril()
            a = s.masked_fill(~seen, float("-inf")).softmax(-1) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, t, width))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, layers, width, heads, hidden, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(
            [Block(width, heads, hidden) for _ in range(layers)])
        self.norm = Norm(width)
        half = width // heads // 2
        speed = 10000.0 ** (-torch.arange(half) / half)
        angle = torch.arange(LENGTH)[:, None] * speed
        self.cos, self.sin = angle.cos(), angle.sin()

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * self.cos - b * self.sin,
                          b * self.cos + a * self.sin], -1)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, self.turn)
        return F.linear(self.norm(x), self.embedding.weight)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = Model(*SHAPES[options.shape])
    vocabulary = SHAPES[options.shape][-1]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, vocabulary, (SEQUENCES, LENGTH))
    took = []
    for _ in range(options.steps + 1):  # the first warms up
        start = time.perf_counter()
        loss = F.cross_entropy(model(ids).view(-1, vocabulary), ids.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        took.append(time.perf_counter() - start)
    print(json.dumps({"tokens_per_s":
                      SEQUENCES * LENGTH / statistics.median(took[1:])}))


if __name__ == "__main__":
    main()
