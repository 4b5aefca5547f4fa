#!/usr/bin/env python3
"""Makes small GGUF files from the golden models and tokenizers.

Needs gguf, numpy and safetensors from PyPI, in a virtual environment of your
own; the results are in the tree, so nobody needs it to build or test.

    python3 tests/golden/make_gguf_goldens.py [tests/golden]

Last run: 2026-11-26, gguf 0.19.0, numpy 2.4.6, safetensors 0.8.0.

gguf/NAME.gguf            the weights of NAME, F32; llama's q and k in the order
                          of llama.cpp's convert_hf_to_gguf.py
gguf/scaled.gguf          llama 3's scaling of frequencies
gguf/blocks.gguf          random blocks, a tensor for each type
gguf/blocks.safetensors   their values by gguf.dequantize
gguf/words_NAME.gguf      tokenizers/NAME as keys, without weights
"""
import json
import math
import pathlib
import sys

import gguf
import numpy
from safetensors.numpy import load_file, save_file

NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm",
         "lm_head": "output", "input_layernorm": "attn_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
TYPES = ("Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K", "F16", "BF16", "F32")


def writer(path, family):
    return gguf.GGUFWriter(path, family)


def finish(out):
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def renamed(name):
    own, kind = name.rsplit(".", 1)
    if own.startswith("model.layers."):
        _, _, layer, inner = own.split(".", 3)
        return f"blk.{layer}.{NAMES[inner]}.{kind}"
    return f"{NAMES[own]}.{kind}"


def in_pairs(values, heads):
    """convert_hf_to_gguf.py's LlamaModel.permute."""
    return (values.reshape(heads, 2, values.shape[0] // heads // 2,
                           *values.shape[1:]).swapaxes(1, 2)
            .reshape(values.shape))


def keys(out, config):
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    if "head_dim" in config:
        out.add_key_length(config["head_dim"])
        out.add_value_length(config["head_dim"])


def model(folder, name, family):
    config = json.loads((folder / name / "config.json").read_text())
    out = writer(folder / "gguf" / f"{name}.gguf", family)
    keys(out, config)
    for key, value in load_file(folder / name / "model.safetensors").items():
        value = value.astype(numpy.float32)
        if family == "llama" and "self_attn.q_proj" in key:
            value = in_pairs(value, config["num_attention_heads"])
        if family == "llama" and "self_attn.k_proj" in key:
            value = in_pairs(value, config["num_key_value_heads"])
        out.add_tensor(renamed(key), value)
    finish(out)


def scaled(folder):
    """Llama 3's scaling, as convert_hf_to_gguf.py writes it."""
    config = json.loads((folder / "tiny_llama" / "config.json").read_text())
    out = writer(folder / "gguf" / "scaled.gguf", "llama")
    keys(out, config)
    size, factor = config["head_dim"], 32
    factors = []
    for i in range(0, size, 2):
        wave = 2 * math.pi * config["rope_parameters"]["rope_theta"] ** (i / size)
        smooth = (8192 / wave - 1) / (4 - 1)
        factors.append(1 if wave < 8192 / 4 else factor if wave > 8192 else
                       1 / ((1 - smooth) / factor + smooth))
    out.add_tensor("rope_freqs.weight", numpy.array(factors, numpy.float32))
    out.add_tensor("token_embd.weight", numpy.zeros((256, 64), numpy.float16))
    finish(out)


def blocks(folder):
    random = numpy.random.default_rng(7)
    out, expected = writer(folder / "gguf" / "blocks.gguf", "blocks"), {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        _, size = gguf.GGML_QUANT_SIZES[kind]
        if name in ("F16", "BF16", "F32"):
            bits = random.standard_normal((4, 256)).astype(numpy.float32)
            data = (bits if name == "F32" else gguf.quantize(bits, kind))
        else:
            values, _ = gguf.GGML_QUANT_SIZES[kind]
            data = random.integers(0, 256, (4, 256 // values * size),
                                   dtype=numpy.uint8)
            # Scales are F16: small numbers.
            places = {"Q8_0": [0], "Q4_0": [0], "Q4_K": [0, 2],
                      "Q5_K": [0, 2], "Q6_K": [208]}[name]
            rows = data.reshape(-1, size)
            for at in places:
                rows[:, at:at + 2] = random.standard_normal(
                    (len(rows), 1)).astype(numpy.float16).view(numpy.uint8)
        out.add_tensor(name, data, raw_dtype=kind)
        expected[name] = gguf.dequantize(data, kind).astype(numpy.float32)
    finish(out)
    save_file(expected, folder / "gguf" / "blocks.safetensors")


def words(folder, name, pre):
    source = json.loads((folder / "tokenizers" / name / "tokenizer.json")
                        .read_text())
    vocabulary = dict(source["model"]["vocab"])
    added = {t["content"]: t for t in source["added_tokens"]}
    vocabulary.update({text: t["id"] for text, t in added.items()})
    tokens = [f"[PAD{i}]" for i in range(max(vocabulary.values()) + 1)]
    kinds = [5] * len(tokens)
    for text, at in vocabulary.items():
        tokens[at] = text
        is_byte = len(text) == 6 and text.startswith("<0x")
        kinds[at] = 6 if is_byte and not pre else 1
        if text in added:
            kinds[at] = 3 if added[text]["special"] else 4
    out = writer(folder / "gguf" / f"words_{name}.gguf", "words")
    out.add_tokenizer_model("gpt2" if pre else "llama")
    out.add_token_list(tokens)
    if pre:
        out.add_tokenizer_pre(pre)
        out.add_token_merges([" ".join(m) for m in source["model"]["merges"]])
    else:
        # As SentencePiece numbers its pieces: the later, the less likely.
        rank = {l + r: -float(i) for i, (l, r) in
                reversed(list(enumerate(source["model"]["merges"])))}
        out.add_token_scores([rank.get(t, -1e6) for t in tokens])
        kinds[vocabulary["<unk>"]] = 2
    out.add_token_types(kinds)
    for key, text in (("bos", "<s>"), ("bos", "<|begin_of_text|>")):
        if text in added:
            out.add_bos_token_id(added[text]["id"])
    finish(out)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/golden")
    (folder / "gguf").mkdir(exist_ok=True)
    model(folder, "tiny_llama", "llama")
    model(folder, "tiny_qwen2", "qwen2")
    model(folder, "tiny_qwen3", "qwen3")  # without its scaling
    scaled(folder)
    blocks(folder)
    for name, pre in (("llama3", "llama-bpe"), ("qwen2", "qwen2"),
                      ("gpt2", "gpt-2"), ("llama2", "")):
        words(folder, name, pre)


main()
