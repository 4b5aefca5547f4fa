# tests/bench/gguf_model.py -- a GGUF file of random weights, for llama.cpp.
#
# Usage: gguf_model.py OUT {BF16|Q8_0|Q4_0} [tiny1b|tiny]
#
# The shape is that of `shoal bench` by the same name (tiny is for trying this
# out). All matrices are of the type that is asked for, the head as well. The
# values come from one random block that is repeated: speed does not depend on
# them. Written from the format's description, version 3.
import os
import pathlib
import struct
import sys

SHAPES = {  # layers, width, heads, key-value heads, hidden, vocabulary
    "tiny1b": (22, 2048, 32, 4, 5632, 32000),
    "tiny": (2, 256, 4, 2, 512, 512),
}
# Number of the type, values in a block, bytes of a block, file type.
F32 = (0, 1, 4)
TYPES = {"BF16": (30, 1, 2, 32), "Q8_0": (8, 32, 34, 7), "Q4_0": (2, 32, 18, 2)}
ALIGNMENT = 32
CONTEXT = 4608
U32, I32, FLOAT, TEXT, ARRAY = 4, 5, 6, 8, 9
PIECE = 1 << 20  # blocks that are repeated


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    if kind == ARRAY:
        inner, values = value
        body = struct.pack("<IQ", inner, len(values)) + b"".join(
            text(v) if inner == TEXT else struct.pack(
                {I32: "<i", FLOAT: "<f"}[inner], v) for v in values)
    elif kind == TEXT:
        body = text(value)
    else:
        body = struct.pack({U32: "<I", FLOAT: "<f"}[kind], value)
    return text(key) + struct.pack("<I", kind) + body


def entries(name, shape, file_type):
    layers, width, heads, kv_heads, hidden, vocabulary = shape
    special = [b"<unk>", b"<s>", b"</s>"]
    bytewise = [b"<0x%02X>" % i for i in range(256)]
    tokens = special + bytewise
    tokens += [b"\xe2\x96\x81t%d" % i for i in range(vocabulary - len(tokens))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259)
    scores = [-float(i) for i in range(vocabulary)]
    return [
        entry("general.architecture", TEXT, "llama"),
        entry("general.name", TEXT, name),
        entry("general.file_type", U32, file_type),
        entry("llama.context_length", U32, CONTEXT),
        entry("llama.embedding_length", U32, width),
        entry("llama.block_count", U32, layers),
        entry("llama.feed_forward_length", U32, hidden),
        entry("llama.attention.head_count", U32, heads),
        entry("llama.attention.head_count_kv", U32, kv_heads),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT, 1e-5),
        entry("llama.rope.dimension_count", U32, width // heads),
        entry("llama.rope.freq_base", FLOAT, 10000.0),
        entry("llama.vocab_size", U32, vocabulary),
        entry("tokenizer.ggml.model", TEXT, "llama"),
        entry("tokenizer.ggml.tokens", ARRAY, (TEXT, tokens)),
        entry("tokenizer.ggml.scores", ARRAY, (FLOAT, scores)),
        entry("tokenizer.ggml.token_type", ARRAY, (I32, kinds)),
        entry("tokenizer.ggml.bos_token_id", U32, 1),
        entry("tokenizer.ggml.eos_token_id", U32, 2),
        entry("tokenizer.ggml.unknown_token_id", U32, 0),
    ]


def tensors(shape, kind):
    """(name, rows, columns, type) in the order of the file."""
    layers, width, heads, kv_heads, hidden, vocabulary = shape
    kv = width // heads * kv_heads
    yield "token_embd", vocabulary, width, kind
    yield "output_norm", 1, width, F32
    yield "output", vocabulary, width, kind
    for layer in range(layers):
        at = f"blk.{layer}."
        yield at + "attn_norm", 1, width, F32
        yield at + "attn_q", width, width, kind
        yield at + "attn_k", kv, width, kind
        yield at + "attn_v", kv, width, kind
        yield at + "attn_output", width, width, kind
        yield at + "ffn_norm", 1, width, F32
        yield at + "ffn_gate", hidden, width, kind
        yield at + "ffn_up", hidden, width, kind
        yield at + "ffn_down", width, hidden, kind


def size_of(rows, columns, kind):
    return rows * columns // kind[1] * kind[2]


def random_piece(kind):
    """Whole blocks of numbers of some 0.02."""
    if kind == F32:
        return struct.pack("<f", 1.0) * 4096
    if kind[1] == 1:  # bf16: a random sign and fraction, an exponent of 2^-6
        piece = bytearray(os.urandom(PIECE * 2))
        signs = bytes(0x3C | i & 0x80 for i in range(256))
        piece[1::2] = piece[1::2].translate(signs)
        return bytes(piece)
    piece = bytearray(os.urandom(PIECE // 32 * kind[2]))
    scale = struct.pack("<e", 0.02 / (64 if kind[2] == 34 else 4))
    piece[0::kind[2]] = scale[:1] * (PIECE // 32)
    piece[1::kind[2]] = scale[1:] * (PIECE // 32)
    return bytes(piece)


def padded(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def write(out, kind_name, shape_name):
    shape, kind = SHAPES[shape_name], TYPES[kind_name]
    rows = list(tensors(shape, kind))
    about = entries(f"{shape_name} {kind_name}", shape, kind[3])
    head = struct.pack("<IIQQ", 0x46554747, 3, len(rows), len(about))
    head += b"".join(about)
    offset = 0
    for name, height, width, of in rows:
        sizes = (width,) if of == F32 else (width, height)
        head += text(name + ".weight") + struct.pack("<I", len(sizes))
        head += struct.pack(f"<{len(sizes)}QIQ", *sizes, of[0], offset)
        offset += padded(size_of(height, width, of))
    pieces = {F32: random_piece(F32), kind: random_piece(kind)}
    with open(out, "wb") as file:
        file.write(head + bytes(padded(len(head)) - len(head)))
        for _, height, width, of in rows:
            size = left = size_of(height, width, of)
            while left > 0:
                file.write(pieces[of][:left])
                left -= len(pieces[of])
            file.write(bytes(padded(size) - size))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), sys.argv[2],
          sys.argv[3] if len(sys.argv) > 3 else "tiny1b")
