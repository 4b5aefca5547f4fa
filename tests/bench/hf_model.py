# tests/bench/hf_model.py -- a Hugging Face directory of random bf16 weights.
#
# Usage: hf_model.py OUT [tiny1b|tiny]
#
# The shape is that of gguf_model.py by the same name, and so are the values:
# one random block that is repeated. Needs nothing but Python.
import json
import pathlib
import random
import struct
import sys

from gguf_model import CONTEXT, SHAPES, TYPES, random_piece

ONE = struct.pack("<H", 0x3F80)  # in bf16
ALIGNMENT = 64  # of the data, so that rows begin on cache lines


def config(shape):
    layers, width, heads, kv_heads, hidden, vocabulary = shape
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "num_hidden_layers": layers, "hidden_size": width,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "intermediate_size": hidden, "vocab_size": vocabulary,
            "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0, "tie_word_embeddings": False,
            "bos_token_id": None, "eos_token_id": None, "dtype": "bfloat16"}


def tensors(shape):
    """(name, shape) in the order of the file."""
    layers, width, heads, kv_heads, hidden, vocabulary = shape
    kv = width // heads * kv_heads
    yield "model.embed_tokens", (vocabulary, width)
    for layer in range(layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm", (width,)
        yield at + "self_attn.q_proj", (width, width)
        yield at + "self_attn.k_proj", (kv, width)
        yield at + "self_attn.v_proj", (kv, width)
        yield at + "self_attn.o_proj", (width, width)
        yield at + "post_attention_layernorm", (width,)
        yield at + "mlp.gate_proj", (hidden, width)
        yield at + "mlp.up_proj", (hidden, width)
        yield at + "mlp.down_proj", (width, hidden)
    yield "model.norm", (width,)
    yield "lm_head", (vocabulary, width)


def byte_letters():
    """How byte-level BPE writes each byte as a letter."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain},
            **{b: chr(256 + i) for i, b in enumerate(rest)}}


def tokenizer(vocabulary):
    """A tokenizer.json of drawn words, for rules that look at the texts of
    tokens; it encodes byte by byte."""
    letters, rng = byte_letters(), random.Random(1)
    words = dict.fromkeys(letters[b] for b in range(256))
    for mark in ('{"', '":', '",', '"}', '},', '["', '"]', "],", ' "', ": ",
                 ', "', '": "', '", "', '": {"', '"},{"', "\n  ", "true",
                 "false", "null"):
        words["".join(letters[b] for b in mark.encode())] = None
    while len(words) < vocabulary:
        word = "".join(rng.choice("etaoinshrdlucmfwypvbgkqjxz")
                       for _ in range(min(12, 2 + int(rng.expovariate(0.4)))))
        kind = rng.randrange(10)
        if kind < 6:
            word = letters[32] + word
        elif kind == 6:
            word = word.title()
        elif kind == 7:
            word = str(rng.randrange(1000))
        words[word] = None
    return json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                          "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True,
                    "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "merges": [],
                  "vocab": {w: i for i, w in enumerate(list(words)[:vocabulary])}}})


def write_tokenizer(model, shape_name):
    (model / "tokenizer.json").write_text(
        tokenizer(SHAPES[shape_name][5]), encoding="utf-8")


def write(out, shape_name):
    """Makes the directory, which appears complete or not at all."""
    shape = SHAPES[shape_name]
    part = out.with_name(out.name + ".part")
    part.mkdir(parents=True, exist_ok=True)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, sizes in tensors(shape):
        size = 2 * sizes[0] * (sizes[1] if len(sizes) > 1 else 1)
        header[name + ".weight"] = {"dtype": "BF16", "shape": sizes,
                                    "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    matrix = random_piece(TYPES["BF16"])
    with open(part / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, sizes in tensors(shape):
            if len(sizes) == 1:
                file.write(ONE * sizes[0])
                continue
            left = 2 * sizes[0] * sizes[1]
            while left > 0:
                file.write(matrix[:left])
                left -= len(matrix)
    (part / "config.json").write_text(json.dumps(config(shape)),
                                      encoding="utf-8")
    part.rename(out)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]),
          sys.argv[2] if len(sys.argv) > 2 else "tiny1b")
