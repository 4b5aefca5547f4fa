#!/usr/bin/env python3
"""Makes the golden files: small random models and what PyTorch computes.

Needs torch and transformers from PyPI, in a virtual environment of your own;
the results are in the tree, so nobody needs it to build or test.

    python3 tests/golden/make_goldens.py [tests/golden [NAME...]]

Last run: 2026-11-23, torch 2.15.0, transformers 5.23.0, safetensors 0.8.0,
numpy 2.4.6, Python 3.11, one thread.

Each directory is a Hugging Face directory as save_pretrained() writes it,
plus golden.safetensors (all F32, ids as numbers):
    ids [B,T], logits [B,T,V]        one forward pass
    prompt [P], greedy [64]          argmax, token after token
    train_ids [20,B,T+1], train_losses [20], train_norms [20]
                                     AdamW steps with clipping at norm 1; the
                                     losses leave out what pulls at routers
    norm.TENSOR [20]                 of each gradient in each step, unclipped
and rope.safetensors: cos.RULE and sin.RULE [P, H/2] for each way of scaling.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.mixtral.modeling_mixtral import (
    load_balancing_loss_func)

STEPS, BATCH, LENGTH, GREEDY = 20, 2, 24, 64

BASE = dict(vocab_size=256, max_position_embeddings=128, rms_norm_eps=1e-5,
            initializer_range=0.1, bos_token_id=None, eos_token_id=None,
            pad_token_id=None, attention_bias=False)


SMALL = dict(BASE, vocab_size=128, hidden_size=32, intermediate_size=40,
             num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, rope_parameters=None)
# What each family has and a Llama has not. Windows are shorter than the
# texts, caps near the values, so that leaving one out would show.
FAMILIES = {
    "tiny_llama3": dict(SMALL, model_type="llama", attention_bias=True,
                        mlp_bias=True, rope_parameters=dict(
                            rope_type="llama3", rope_theta=10000.0, factor=8.0,
                            low_freq_factor=1.0, high_freq_factor=4.0,
                            original_max_position_embeddings=64)),
    "tiny_mistral": dict(SMALL, model_type="mistral", sliding_window=7,
                         head_dim=12),
    "tiny_qwen2": dict(SMALL, model_type="qwen2", tie_word_embeddings=True,
                       use_sliding_window=True, sliding_window=9,
                       max_window_layers=1),
    "tiny_qwen3": dict(SMALL, model_type="qwen3", head_dim=16,
                       rope_parameters=dict(
                           rope_type="yarn", rope_theta=10000.0, factor=4.0,
                           original_max_position_embeddings=32)),
    "tiny_gpt2": dict(model_type="gpt2", vocab_size=128, n_positions=96,
                      n_embd=32, n_layer=2, n_head=4, initializer_range=0.1,
                      bos_token_id=None, eos_token_id=None),
    "tiny_gemma2": dict(SMALL, model_type="gemma2", num_hidden_layers=3,
                        head_dim=8, sliding_window=6, query_pre_attn_scalar=10,
                        attn_logit_softcapping=2.0,
                        final_logit_softcapping=4.0, tie_word_embeddings=True),
    "tiny_mixtral": dict(SMALL, model_type="mixtral", num_local_experts=4,
                         num_experts_per_tok=2, intermediate_size=24,
                         router_aux_loss_coef=0.05, sliding_window=None),
    "tiny_qwen3_moe": dict(SMALL, model_type="qwen3_moe", head_dim=8,
                           num_experts=5, num_experts_per_tok=2,
                           moe_intermediate_size=24, norm_topk_prob=False,
                           router_aux_loss_coef=0.05,
                           tie_word_embeddings=True),
}


def make_model(seed, **keys):
    torch.manual_seed(seed)
    keys = {"model_type": "llama", **BASE, **keys}
    if keys["model_type"] == "gpt2":
        keys = {k: v for k, v in keys.items() if k in FAMILIES["tiny_gpt2"]}
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**keys), attn_implementation="eager").float()
    with torch.no_grad():  # norms of 1 and biases of 0 would hide much
        for name, p in model.named_parameters():
            if "norm" in name or "ln_" in name or "bias" in name:
                p.add_(0.1 * torch.randn_like(p))
    return model.eval()


@torch.no_grad()
def forward_goldens(model, length):
    words = model.config.vocab_size
    ids = torch.randint(0, words, (BATCH, length))
    prompt = torch.randint(0, words, (1, 5))
    out = prompt
    for _ in range(GREEDY):
        out = torch.cat([out, model(out).logits[:, -1:].argmax(-1)], 1)
    return {"ids": ids.float(), "logits": model(ids).logits,
            "prompt": prompt[0].float(), "greedy": out[0, 5:].float()}


def balance(config, router_logits):
    """The balance of each block's experts, averaged over the blocks.

    transformers takes the product of averages over all blocks instead, which
    peers that have different blocks could not compute on their own.
    """
    experts = getattr(config, "num_local_experts", None) or config.num_experts
    return torch.stack([load_balancing_loss_func(
        (one,), experts, config.num_experts_per_tok)
        for one in router_logits]).mean()


def by_file_names(model):
    """Gradients by the names of the files, which have experts apart."""
    mixtral = model.config.model_type == "mixtral"
    for name, p in model.named_parameters():
        if ".experts." not in name:
            if mixtral:
                name = name.replace(".mlp.gate.", ".block_sparse_moe.gate.")
            yield name, p.grad
            continue
        stem = name[:name.index(".experts.")] + ".experts."
        parts = ["gate_proj", "up_proj", "down_proj"]
        if mixtral:
            stem = stem.replace(".mlp.", ".block_sparse_moe.")
            parts = ["w1", "w3", "w2"]
        for e, grad in enumerate(p.grad):
            if name.endswith("down_proj"):
                yield f"{stem}{e}.{parts[2]}.weight", grad
            else:
                for part, half in zip(parts, grad.chunk(2)):
                    yield f"{stem}{e}.{part}.weight", half


def train_goldens(model, length):
    # Tokens with a pattern, so that the loss falls.
    words = model.config.vocab_size
    ids = (torch.randint(0, words, (STEPS, BATCH, 1))
           + 3 * torch.arange(length + 1)) % words
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95),
                            eps=1e-8, weight_decay=0.1, foreach=False)
    losses, norms, each = [], [], {}
    for batch in ids:
        experts = hasattr(model.config, "num_experts_per_tok")
        keys = dict(output_router_logits=True) if experts else {}
        out = model(batch[:, :-1], **keys)
        logits = out.logits
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, words), batch[:, 1:].reshape(-1))
        opt.zero_grad()
        total = loss
        if experts:
            total = loss + model.config.router_aux_loss_coef * balance(
                model.config, out.router_logits)
        total.backward()
        for name, grad in by_file_names(model):
            each.setdefault("norm." + name, []).append(grad.norm())
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        opt.step()
        losses.append(loss.detach())
    return {"train_ids": ids.float(), "train_losses": torch.stack(losses),
            "train_norms": torch.stack(norms)} | {
                name: torch.stack(of) for name, of in each.items()}


def write(path, model, dtype=torch.float32, train=True, length=LENGTH,
          **save):
    model = model.to(dtype)
    model.save_pretrained(path, **save)
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager")
    golden = forward_goldens(model, length)
    if train:
        golden |= train_goldens(model, length)
    save_file({k: v.contiguous() for k, v in golden.items()},
              path / "golden.safetensors")
    print(path, sum(p.numel() for p in model.parameters()), "parameters,",
          sum(f.stat().st_size for f in path.iterdir()), "bytes")


def write_rope(path):
    rules = {
        "linear": dict(factor=3.0),
        "dynamic": dict(factor=2.0),
        "llama3": dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                       original_max_position_embeddings=256),
        "yarn": dict(factor=4.0, original_max_position_embeddings=512),
    }
    golden = {}
    for rule, keys in rules.items():
        config = LlamaConfig(hidden_size=16, num_attention_heads=1,
                             max_position_embeddings=2048, rope_parameters=dict(
                                 rope_type=rule, rope_theta=10000.0, **keys))
        positions = torch.arange(0, 2048, 41)
        cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1), positions[None])
        golden["cos." + rule] = cos[0, :, :8].contiguous()
        golden["sin." + rule] = sin[0, :, :8].contiguous()
    save_file(golden, path)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).parent)
    only = sys.argv[2:]
    torch.set_num_threads(1)
    small = dict(hidden_size=32, intermediate_size=48, num_attention_heads=4,
                 num_key_value_heads=2)

    def make(name, seed, *dtype, train=True, length=LENGTH, save={}, **keys):
        if not only or name in only:
            write(root / name, make_model(seed, **keys), *dtype, train=train,
                  length=length, **save)

    make("tiny_llama", 1, hidden_size=64, intermediate_size=128,
         num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2)
    make("tiny_tied", 2, **small, num_hidden_layers=2, head_dim=12,
         rope_theta=500000.0, tie_word_embeddings=True,
         save=dict(max_shard_size="40KB"))
    make("tiny_bf16", 3, torch.bfloat16, train=False, **small,
         num_hidden_layers=1)
    make("tiny_f16", 4, torch.float16, train=False, **small,
         num_hidden_layers=1)
    for seed, (name, keys) in enumerate(FAMILIES.items(), 5):
        make(name, seed, **keys)
    # More tokens than a block of tiled attention and of tiled products has.
    make("tiny_long", 13, **small, num_hidden_layers=2, vocab_size=64,
         length=75)
    if not only or "rope" in only:
        write_rope(root / "rope.safetensors")


if __name__ == "__main__":
    main()
