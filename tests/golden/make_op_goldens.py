#!/usr/bin/env python3
"""Makes the golden file of operations: inputs and what PyTorch makes of them.

Needs torch and transformers from PyPI, in a virtual environment of your own;
the result is in the tree, so nobody needs it to build or test.

    python3 tests/golden/make_op_goldens.py [tests/golden]

ops.safetensors has the tensors of each case as CASE/TENSOR, all F32, ids and
options as numbers. A case is OPERATION or OPERATION.VARIANT of kernels/*/*.hpp;
"dx" is the gradient of sum(dy * y) by x. All is computed in double from inputs
that float holds, so that a test may be as strict as the operation is exact.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import (LogitsProcessorList, MinPLogitsWarper,
                          RepetitionPenaltyLogitsProcessor,
                          TemperatureLogitsWarper, TopKLogitsWarper,
                          TopPLogitsWarper)
from transformers.models.mixtral.modeling_mixtral import (
    load_balancing_loss_func)


def values(*shape, scale=1.0, kind=torch.float32):
    """Random, in double, and rounded to what `kind` holds."""
    return (scale * torch.randn(*shape)).to(kind).double().requires_grad_()


def option(value):
    """A number that the C++ side gets as a float."""
    return torch.tensor([value], dtype=torch.float32)


def float_of(value):
    """The double that is the float next to `value`."""
    return option(value).double().item()


def gradients(loss, **of):
    """Of `loss` by each of the tensors, as d<name>."""
    return {"d" + name: g for name, g in
            zip(of, torch.autograd.grad(loss, list(of.values())))}


def matmul(bias=False, in_out=False, kind=torch.float32):
    x, dy = values(5, 7, kind=kind), values(5, 6, kind=kind)
    w = values(*((7, 6) if in_out else (6, 7)), kind=kind)
    b = values(6)
    y = x @ w if in_out else F.linear(x, w)
    if bias:
        y = y + b
    of = dict(x=x, w=w, **(dict(b=b) if bias else {}))
    return dict(of, dy=dy, y=y, **gradients((y * dy).sum(), **of))


def embedding():
    ids = torch.tensor([3, 0, 5, 3, 3, 1, 0, 5, 2])
    w, dy, before = values(6, 5), values(9, 5), values(9, 5)
    y = F.embedding(ids, w)
    return dict(ids=ids, w=w, dy=dy, before=before, y=y, added=before + y,
                **gradients((y * dy).sum(), w=w))


def rmsnorm(offset=0.0):
    eps = float_of(1e-2)  # large enough for its place to matter
    x, w, dy = values(4, 9), values(9), values(4, 9)
    with torch.no_grad():
        x[1] *= 0.05
    y = F.rms_norm(x, (9,), w + offset, eps)
    return dict(x=x, w=w, dy=dy, eps=option(eps), offset=option(offset), y=y,
                **gradients((y * dy).sum(), x=x, w=w))


def layernorm():
    eps = float_of(1e-2)
    x, w, b, dy = values(4, 9), values(9), values(9), values(4, 9)
    with torch.no_grad():
        x[1] = 0.05 * x[1] + 2
    y, mean, r = torch.native_layer_norm(x, (9,), w, b, eps)
    return dict(x=x, w=w, b=b, dy=dy, eps=option(eps), y=y,
                stats=torch.stack([mean[:, 0], r[:, 0]]),
                **gradients((y * dy).sum(), x=x, w=w, b=b))


def rope(heads=3, size=8, theta=100.0):
    """Pairs (i, i + size/2) as complex numbers, turned by the angle."""
    positions = torch.tensor([0, 1, 5, 17, 30, 49])
    x, dy = values(6, heads, size), values(6, heads, size)
    frequency = theta ** (-torch.arange(0, size, 2).double() / size)
    angle = (positions[:, None] * frequency)[:, None, :]
    pairs = torch.complex(x[..., :size // 2], x[..., size // 2:])
    turned = pairs * torch.polar(torch.ones_like(angle), angle)
    y = torch.cat([turned.real, turned.imag], -1)
    rows = {"dy": dy, "x": x, "y": y, **gradients((y * dy).sum(), x=x)}
    return dict({k: v.flatten(1) for k, v in rows.items()},
                positions=positions, theta=option(theta), size=option(size))


def attention(batch, tokens, heads, kv_heads, size, window=0, softcap=0.0):
    scale = float_of(0.9 / math.sqrt(size))  # not the usual one
    q, do = values(batch, tokens, heads, size), values(
        batch, tokens, heads, size)
    k, v = (values(batch, tokens, kv_heads, size) for _ in "kv")
    i, j = torch.arange(tokens)[:, None], torch.arange(tokens)[None]
    seen = (j <= i) & ((j > i - window) if window else (j <= i))
    Q, K, V = (t.transpose(1, 2) for t in (q, k, v))
    K, V = (t.repeat_interleave(heads // kv_heads, 1) for t in (K, V))
    scores = scale * Q @ K.transpose(2, 3)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~seen, -math.inf)
    o = (scores.softmax(-1) @ V).transpose(1, 2)
    if not softcap:  # PyTorch's own has none
        own = F.scaled_dot_product_attention(Q, K, V, seen, scale=scale)
        assert torch.allclose(o, own.transpose(1, 2), rtol=1e-12, atol=1e-13)
    rows = dict(q=q, k=k, v=v, do=do, o=o, lse=torch.logsumexp(scores, -1),
                **gradients((o * do).sum(), q=q, k=k, v=v))
    shape = dict(batch=batch, tokens=tokens, heads=heads, kv_heads=kv_heads,
                 size=size, scale=scale, window=window, softcap=softcap)
    return ({k: v.reshape(batch * (heads if k == "lse" else tokens), -1)
             for k, v in rows.items()}
            | {k: option(v) for k, v in shape.items()})


def gate(function):
    """function(gate) * up."""
    gate, up, dy = values(4, 9, scale=2.5), values(4, 9), values(4, 9)
    y = function(gate) * up
    return dict(gate=gate, up=up, dy=dy, y=y,
                **gradients((y * dy).sum(), gate=gate, up=up))


def gelu(form):
    x, dy = values(6, 9, scale=2.5), values(6, 9)
    y = F.gelu(x, approximate=form)
    return dict(x=x, dy=dy, y=y, **gradients((y * dy).sum(), x=x))


def routing(normalised, tokens=11, experts=5, per_token=2, width=6):
    """Outputs x of all experts for all tokens; the chosen ones are summed."""
    balance_scale = 0.5
    logits, dy = values(tokens, experts, scale=1.5), values(tokens, width)
    x = values(experts, tokens, width)
    p = logits.softmax(-1)
    top, chosen = p.topk(per_token)
    weight = top / top.sum(-1, keepdim=True) if normalised else top
    outputs = x[chosen, torch.arange(tokens)[:, None]]  # [T, k, D]
    y = (weight[..., None] * outputs).sum(1)
    balance = load_balancing_loss_func((logits,), experts, per_token)
    found = gradients((y * dy).sum() + balance_scale * balance, logits=logits,
                      x=x, weight=weight)
    return dict(logits=logits, x=x.flatten(0, 1), dy=dy, p=p, y=y,
                weight=weight, chosen=chosen, plain=outputs.sum(1),
                normalised=option(normalised),
                balance_scale=option(balance_scale), dlogits=found["dlogits"],
                dweight=found["dweight"], dx=found["dx"].flatten(0, 1))


def cross_entropy(softcap=0.0, tokens=5, words=13):
    scale = float_of(0.3)
    logits = values(tokens, words, scale=3)
    targets = torch.tensor([12, 0, -1, 7, 3])
    x = softcap * torch.tanh(logits / softcap) if softcap else logits
    loss = F.cross_entropy(x, targets, reduction="none", ignore_index=-1)
    return dict(logits=logits, targets=targets, scale=option(scale),
                softcap=option(softcap), loss=loss,
                **gradients(scale * loss.sum(), logits=logits))


def add():
    a, b = values(3, 7), values(3, 7)
    return dict(a=a, b=b, y=torch.add(a, b))


def scale():
    x, factor = values(3, 7), float_of(0.37)
    return dict(x=x, factor=option(factor), y=torch.mul(x, factor))


def softcap():
    x, cap = values(3, 7, scale=4), 3.0
    return dict(x=x, cap=option(cap), y=cap * torch.tanh(x / cap))


def adamw(steps=6, count=24):
    """Small gradients and a large eps: its place matters then."""
    how = dict(lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.3)
    clip = 0.5
    start, g = values(count), values(steps, count)
    with torch.no_grad():
        g *= 2.0 ** -(torch.arange(count) % 12)
    w = torch.nn.Parameter(start.detach().clone())
    optimizer = torch.optim.AdamW([w], foreach=False, **how)
    for one in g.detach():
        w.grad = clip * one
        optimizer.step()
    state = optimizer.state[w]
    return dict(start=start, g=g, w=w, m=state["exp_avg"],
                v=state["exp_avg_sq"], lr=option(how["lr"]),
                beta1=option(how["betas"][0]), beta2=option(how["betas"][1]),
                eps=option(how["eps"]), decay=option(how["weight_decay"]),
                clip=option(clip))


def sum_of_squares():
    g = values(4500)  # more than one chunk of the sum
    return dict(g=g, sum=torch.linalg.vector_norm(g).square().reshape(1))


def sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, penalty=1.0):
    """The probabilities of the next token, as transformers filters them."""
    logits = values(24, scale=2)
    seen = torch.tensor([4, 1, 4, 20, 11, 1])
    steps = LogitsProcessorList()
    if penalty != 1:
        steps.append(RepetitionPenaltyLogitsProcessor(float_of(penalty)))
    if temperature != 1:
        steps.append(TemperatureLogitsWarper(float_of(temperature)))
    if top_k:
        steps.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        steps.append(TopPLogitsWarper(float_of(top_p)))
    if min_p:
        steps.append(MinPLogitsWarper(float_of(min_p)))
    left = steps(seen[None], logits.detach()[None].clone())[0]
    return dict(logits=logits, seen=seen.unique(), p=left.softmax(-1),
                logprob=logits.log_softmax(-1), temperature=option(temperature),
                top_k=option(top_k), top_p=option(top_p), min_p=option(min_p),
                penalty=option(penalty))


CASES = {
    "matmul": matmul,
    "matmul.bias": lambda: matmul(bias=True),
    "matmul.in_out": lambda: matmul(bias=True, in_out=True),
    "matmul.bf16": lambda: matmul(kind=torch.bfloat16),
    "embedding": embedding,
    "rmsnorm": rmsnorm,
    "rmsnorm.offset": lambda: rmsnorm(1.0),
    "layernorm": layernorm,
    "rope": rope,
    "attention": lambda: attention(2, 7, 3, 3, 6),
    "attention.grouped": lambda: attention(1, 9, 6, 2, 4),
    "attention.window": lambda: attention(2, 11, 2, 1, 5, window=4),
    "attention.softcap": lambda: attention(1, 8, 2, 2, 6, softcap=0.75),
    # More than one block of rows of the fast one.
    "attention.all": lambda: attention(1, 70, 2, 1, 8, 20, 1.5),
    "swiglu": lambda: gate(F.silu),
    "gelu.exact": lambda: gelu("none"),
    "gelu.tanh": lambda: gelu("tanh"),
    "geglu.exact": lambda: gate(F.gelu),
    "geglu.tanh": lambda: gate(lambda x: F.gelu(x, approximate="tanh")),
    "routing": lambda: routing(False),
    "routing.normalised": lambda: routing(True),
    "cross_entropy": cross_entropy,
    "cross_entropy.softcap": lambda: cross_entropy(2.5),
    "add": add,
    "scale": scale,
    "softcap": softcap,
    "adamw": adamw,
    "sum_of_squares": sum_of_squares,
    "sampling": sampling,
    "sampling.temperature": lambda: sampling(temperature=0.6),
    "sampling.top_k": lambda: sampling(top_k=5),
    "sampling.top_p": lambda: sampling(top_p=0.8),
    "sampling.min_p": lambda: sampling(min_p=0.1),
    "sampling.penalty": lambda: sampling(penalty=1.7),
    "sampling.all": lambda: sampling(1.5, 12, 0.9, 0.06, 1.3),
}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).parent)
    torch.set_num_threads(1)
    golden = {}
    for seed, (name, make) in enumerate(CASES.items(), 1):
        torch.manual_seed(seed)
        golden |= {f"{name}/{tensor}": value.detach().float().contiguous()
                   for tensor, value in make().items()}
    path = root / "ops.safetensors"
    save_file(golden, path)
    print(path, len(CASES), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
