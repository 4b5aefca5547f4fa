#!/usr/bin/env python3
"""Makes the golden tokenizers: tiny vocabularies, each family's own pipeline.

Needs tokenizers 0.23 from PyPI, in a virtual environment of your own; the
results are in the tree, so nobody needs it to build or test.

    python3 tests/golden/make_tokenizer_goldens.py [tests/golden]

tokenizers/texts.json         the samples, as hexadecimal bytes
tokenizers/NAME/tokenizer.json (and tokenizer_config.json)
tokenizers/trained/           texts.json, a list of texts, and the
                              tokenizer.json that BpeTrainer makes of them,
                              and qwen2.json by the rules of that family
tokenizers/NAME/golden.json   for each sample: "ids" (nothing added), "around"
                              (the first and last three with what the
                              post-processor adds), "text" (all of "around"
                              decoded), "all" (special tokens too, if that
                              differs); "broken": ids at random, decoded

Samples that are not UTF-8 go through bytes.decode(errors="replace") first.
"""
import json
import pathlib
import random
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

from other_tokenizers import FAMILIES

GPT4_STYLE = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s|"
              r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = GPT4_STYLE % r"\p{N}{1,3}"
QWEN2 = GPT4_STYLE % r"\p{N}"

TRAIN = """The quick brown fox jumps over the lazy dog. The dog sleeps; the fox
doesn't, and they've seen that it's better than what we'll ever do. I'm sure.
A shoal is a set of equal peers that train language models together: start one
program on each machine, the machines find each other, and you say what to train.
Der schnelle braune Fuchs springt über den faulen Hund. Größe, Straße, Äpfel.
Les élèves français étudient où ils étaient déjà allés à Noël; ça va très bien.
El niño comió piñas mañana por la mañana. Что такое осень? Это небо, плачущее
небо под ногами. В лужах разлетаются птицы с облаками. Η γρήγορη αλεπού πηδάει.
日本語の文章です。東京都に住んでいます。今日は天気がいいですね。中文句子没有空格,
我们喜欢学习语言模型。 한국어 문장입니다. 오늘 날씨가 좋네요. שלום עולם, מה שלומך?
مرحبا بالعالم، كيف حالك اليوم؟ नमस्ते दुनिया, आप कैसे हैं? สวัสดีชาวโลก
for (int i = 0; i < 10; ++i) { sum += values[i] * 2; }  // a loop
def main(argc, argv):\n    if argc > 1:\n        return argv[1]\n\treturn None
0 1 2 3 10 42 100 1234 2023 3.14159 1,000,000 0x7f 1e-9
😀 😃 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️ naïve café résumé coöperate
""" * 3

TEXTS = [
    "", " ", "  ", "\n", "a", "Hello, world!", " leading", "trailing ",
    "two  spaces   three    four", "\t\ttabs\tand \n\n\n newlines\r\n\r\nend\n",
    "   \n   \n  x", "x \u00a0\u2003\u3000 y", "\u180e\u200b\ufeff odd \u0085spaces",
    "it's we're I'VE they'LL 'd''s '\u017f 'S don\u2019t",
    "1 12 123 1234 12345 1234567890 3.14 1,000 \u0661\u0662\u0663 \u00bd\u2167\u00b2",
    "na\u00efve cafe\u0301 re\u0301sume\u0301 A\u030a \u212b \u1e9b\u0323 \ufb01 \u2460",
    "e\u0301\u0323\u0302 \u0344 \u1100\u1161\u11a8 \uac01 o\u0308\u0304",
    "\U0001f600 \U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 "
    "\U0001f1e9\U0001f1ea\U0001f44d\U0001f3fd \u2764\ufe0f\u200d\U0001f525",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002\u4e2d\u6587\u53e5"
    "\u5b50\uff0c\u6ca1\u6709\u7a7a\u683c\u3002\ud55c\uad6d\uc5b4",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd \u0645\u0631\u062d\u0628"
    "\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u202bRTL\u202c",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"
    "\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \U00010330\U00020000\U0001d400",
    "NUL\0inside \0\0 and \x01\x7f controls", "\0",
    "a" * 300 + "the" * 200, "\u00e9" * 130, "ab " * 150, " " * 200 + "x",
    "x" + "\n" * 40 + "y", "=" * 70 + "\n" + "-" * 33,
    "for (int i = 0; i < n; ++i) {\n\tx[i] += y->z(\"s\");\n}\n",
    "def f(x):\n    return x**2  # square\n\n\nclass A: pass\n",
    "http://example.com/a?b=c&d=%20#frag user@host.org C:\\dir\\file",
    "<s>in</s>side<unk> <s> a</s>", "<|endoftext|>x<|endoftext|> y ",
    "<|begin_of_text|>hi<|eot_id|> <|im_start|>user\nyo<|im_end|>",
    "word[MASK]word [MASK] and [MASK]s,  [MASK]  ", "  [CUT]  x  [CUT]y[CUT]",
    "[Norm] [norm] [NORM]x", "[A][AB][ABC][ABCD", "\u2581meta\u2581\u2581space \u2581",
    "<0x41><0xZZ> <bos><eos><start_of_turn>user\n<end_of_turn>\n",
    "\u0130stanbul \u01c5 STRASSE \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u1e9e",
    "\u4e00\u4e8c\u4e09\U0001f9ff\U0001fae0 \ue000\uffff\U0010ffff",
    "a\u200db \u2060word\u2060 soft\u00adhyphen _under_score__ -dash--",
    "(?!) [^\\s] $1 {} <> ~`^|\\ \u00bf\u00a1\u2026\u201c\u201d\u00ab\u00bb",
]
BROKEN = [b"\xff\xfe", b"ok \xc3 then", b"\xed\xa0\x80\xed\xb0\x80 surrogates",
          b"\xf0\x9f\x98", b"a\x80b\xbfc", b"\xe2\x82 \xf4\x90\x80\x80 \xc0\xaf",
          b"\xf0\x9f\x98\x80\xf0\x9f\x98 half"]


def mixture(seed, count):
    """Random texts: bits of all samples, so that borders fall anywhere."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        bits = []
        for _ in range(rng.randint(2, 6)):
            text = rng.choice(TEXTS)
            first = rng.randint(0, len(text))
            bits.append(text[first:first + rng.randint(1, 12)])
        out.append("".join(bits))
    return out


SAMPLES = ([t.encode() for t in TEXTS + mixture(7, 60)] + BROKEN)


def train(size, pre, specials=(), normalizer=None, alphabet=()):
    """@returns vocab and merges of a small BPE model."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator(TRAIN.splitlines(keepends=True), trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(specials), show_progress=False,
        initial_alphabet=list(alphabet), limit_alphabet=400))
    model = json.loads(t.to_str())["model"]
    return model["vocab"], [tuple(m) for m in model["merges"]]


def byte_level(**keys):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, **keys)


def template(*pieces, **ids):
    return processors.TemplateProcessing(
        single=" ".join(pieces), pair=" ".join(pieces) + " $B:1",
        special_tokens=list(ids.items()))


def gpt2():
    vocab, merges = train(480, byte_level(),
                          alphabet=pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab, merges))
    t.pre_tokenizer = byte_level()
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.add_special_tokens([AddedToken("<|endoftext|>", normalized=True)])
    return t, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
               "add_bos_token": False}


def llama3():
    split = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        byte_level(use_regex=False)])
    vocab, merges = train(520, split,
                          alphabet=pre_tokenizers.ByteLevel.alphabet())
    # ignore_merges: words of the vocabulary that no merges lead to.
    for word in ("\u0120train", "\u0120zebra", "qqq"):
        vocab.setdefault(word, len(vocab))
    t = Tokenizer(models.BPE(vocab, merges, ignore_merges=True))
    t.pre_tokenizer = split
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, normalized=False) for s in (
        "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>")])
    bos = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        template("<|begin_of_text|>", "$A", **{"<|begin_of_text|>": bos})])
    return t, {"bos_token": "<|begin_of_text|>",
               "eos_token": "<|end_of_text|>"}


def qwen2_words():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), "isolated"),
        byte_level(use_regex=False)])


def qwen2():
    split = qwen2_words()
    vocab, merges = train(500, split, normalizer=normalizers.NFC(),
                          alphabet=pre_tokenizers.ByteLevel.alphabet())
    t = Tokenizer(models.BPE(vocab, merges))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = split
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.add_special_tokens([AddedToken(s, normalized=False) for s in (
        "<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    # Qwen3 has such: added, but shown when decoded.
    t.add_tokens([AddedToken("<think>", normalized=False)])
    return t, {"bos_token": None, "eos_token": "<|im_end|>",
               "add_bos_token": False}


def sentencepiece(size, specials, metaspace):
    """A vocabulary as SentencePiece's: specials, bytes, pieces."""
    codes = ["<0x%02X>" % b for b in range(256)]
    if metaspace:
        pre, normalizer = pre_tokenizers.Metaspace(), None
    else:  # gemma's: words keep no mark before the first
        pre = pre_tokenizers.Split("\u2581", "merged_with_next")
        normalizer = normalizers.Replace(" ", "\u2581")
    return train(size, pre, list(specials) + codes, normalizer)


LLAMA_DECODER = decoders.Sequence([
    decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
    decoders.Strip(" ", 1, 0)])


def spm_model(vocab, merges):
    return Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True,
                                byte_fallback=True))


def llama2():
    vocab, merges = sentencepiece(960, ("<unk>", "<s>", "</s>"), True)
    # Runs of spaces, as Llama's own vocabulary has.
    for n in (2, 4, 8):
        vocab["\u2581" * n] = len(vocab)
        merges.append(("\u2581" * (n // 2),) * 2)
    t = spm_model(vocab, merges)
    t.normalizer = normalizers.Sequence([
        normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = LLAMA_DECODER
    t.add_special_tokens([AddedToken(s, normalized=False)
                          for s in ("<unk>", "<s>", "</s>")])
    t.post_processor = template("<s>", "$A", **{"<s>": 1})
    return t, {"bos_token": {"content": "<s>"}, "eos_token": "</s>",
               "add_bos_token": True, "add_eos_token": False}


def mistral():
    """Version 3 of its tokenizer: Metaspace instead of a normalizer."""
    vocab, merges = sentencepiece(900, ("<unk>", "<s>", "</s>", "[INST]"), True)
    t = spm_model(vocab, merges)
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first",
                                               split=False)
    t.decoder = LLAMA_DECODER
    t.add_special_tokens([AddedToken(s, normalized=False) for s in
                          ("<unk>", "<s>", "</s>", "[INST]")])
    return t, {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True,
               "add_eos_token": True}


def gemma2():
    specials = ("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>",
                "<end_of_turn>")
    breaks = ["\n" * n for n in range(1, 32)]
    spaces = ["\u2581" * n for n in range(2, 32)]
    vocab, merges = sentencepiece(
        980, specials + tuple(breaks) + tuple(spaces), False)
    t = spm_model(vocab, merges)
    t.normalizer = normalizers.Replace(" ", "\u2581")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "),
                                   decoders.ByteFallback(), decoders.Fuse()])
    t.add_special_tokens([AddedToken(s, normalized=False) for s in specials])
    t.add_tokens([AddedToken(s, normalized=False) for s in breaks + spaces])
    t.post_processor = template("<bos>", "$A", **{"<bos>": 2})
    return t, {"bos_token": "<bos>", "eos_token": "<eos>"}


def odd():
    """What the families leave out, in one: every option of added tokens."""
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                   pre_tokenizers.Digits(True),
                                   pre_tokenizers.Metaspace()])
    vocab, merges = train(450, pre, ("[UNK]", "[CLS]", "[SEP]"))
    t = Tokenizer(models.BPE(vocab, merges, unk_token="[UNK]"))
    t.normalizer = normalizers.Sequence([
        normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Replace(Regex(r"-+\s*"), "-")])
    t.pre_tokenizer = pre
    t.decoder = decoders.Metaspace()
    t.add_special_tokens([AddedToken(s, normalized=False)
                          for s in ("[UNK]", "[CLS]", "[SEP]")])
    t.add_tokens([AddedToken("[MASK]", single_word=True, normalized=False),
                  AddedToken("[CUT]", lstrip=True, rstrip=True,
                             normalized=False),
                  AddedToken("[Norm]", normalized=True),
                  AddedToken("[A]", normalized=False),
                  AddedToken("[AB]", normalized=False),
                  AddedToken("[ABC", normalized=False)])
    t.post_processor = processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1))
    return t, None


def unknowns():
    """Fused unknown tokens, NFKC, groups of digits, no decoder."""
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True),
        pre_tokenizers.Digits(False),
        pre_tokenizers.Split(".", "merged_with_previous"),
        pre_tokenizers.Split("e", "contiguous")])
    vocab, merges = train(480, pre, ("<unk>",))
    for gone in ("x", "\u00e9", "\u043e", "q"):
        if not any(gone in a + b for a, b in merges):
            vocab.pop(gone, None)
    vocab = {k: i for i, k in enumerate(sorted(vocab, key=vocab.get))}
    t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre
    t.post_processor = processors.BertProcessing(("<unk>", 0), ("<unk>", 0))
    return t, None


def trained(texts, size, count_min, words="gpt2"):
    """What `shoal train --tokenizer bpe` must make of texts."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = byte_level()
    if words == "qwen2":
        t.normalizer = normalizers.NFC()
        t.pre_tokenizer = qwen2_words()
    t.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size, min_frequency=count_min, show_progress=False,
        special_tokens=[end],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.TemplateProcessing(
        single=f"{end} $A", pair=f"{end} $A {end} $B:1",
        special_tokens=[(end, 0)])
    return t


def row(t, shown, **keys):
    """How ids decode; "all" is left out where it is "text"."""
    keys["text"] = t.decode(shown)
    if (all_of_it := t.decode(shown, skip_special_tokens=False)) != keys["text"]:
        keys["all"] = all_of_it
    return keys


def golden(t):
    limit = max(t.get_vocab(True).values()) + 1
    rows = []
    for sample in SAMPLES:
        text = sample.decode(errors="replace")
        ids = t.encode(text, add_special_tokens=False).ids
        around = t.encode(text).ids
        rows.append(row(t, around, ids=ids, around=around[:3] + around[-3:]))
    rng = random.Random(3)
    broken = [[rng.randrange(limit) for _ in range(rng.randint(1, 9))]
              for _ in range(60)]
    return {"samples": rows, "id_count": limit,
            "broken": [row(t, b, ids=b) for b in broken]}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/golden")
    root /= "tokenizers"
    root.mkdir(parents=True, exist_ok=True)

    def write(path, value):
        path.write_text(json.dumps(value, ensure_ascii=False,
                                   separators=(",", ":")) + "\n")

    write(root / "texts.json", [s.hex() for s in SAMPLES])
    folder = root / "trained"
    folder.mkdir(exist_ok=True)
    texts = TRAIN.splitlines(keepends=True) + [
        s.decode(errors="replace") for s in SAMPLES]
    write(folder / "texts.json", texts)
    write(folder / "tokenizer.json",
          json.loads(trained(texts, 700, 2).to_str()))
    write(folder / "qwen2.json",
          json.loads(trained(texts, 700, 2, "qwen2").to_str()))
    bpe = (gpt2, llama2, llama3, mistral, qwen2, gemma2, odd, unknowns)
    for make in bpe + FAMILIES:
        t, config = (make() if make in bpe else
                     (make(TRAIN.splitlines(keepends=True)), None))
        folder = root / make.__name__
        folder.mkdir(exist_ok=True)
        write(folder / "tokenizer.json", json.loads(t.to_str()))
        if config is not None:
            write(folder / "tokenizer_config.json", config)
        t = Tokenizer.from_file(str(folder / "tokenizer.json"))
        write(folder / "golden.json", golden(t))
        print(folder, t.get_vocab_size(), "tokens")


if __name__ == "__main__":
    main()
