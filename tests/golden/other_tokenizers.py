"""Tokenizers beside BPE for tests: Unigram and WordPiece, as families have them.

Each function trains a tiny vocabulary on `lines` with the package `tokenizers`
and returns a Tokenizer. FAMILIES: those that have golden files. ALL: more, for
tests/runtime/model/text/compare_test.py.
"""
import json
import struct

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

MARK = "\u2581"
# Some of what SentencePiece's nmt_nfkc does, and some that only tests need: an
# entry that begins another, an empty one, one of several characters.
RULES = {
    "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ",
    "\u2003": " ", "\ufeff": " ", "\u200b": " ", "\u2581": " ", "\x01": "",
    "\x7f": "", "\u00ad": "", "\ufb01": "fi", "\u2460": "1", "\u00bd": "1\u20442",
    "\u212b": "\u00c5", "A\u030a": "\u00c5", "e\u0301": "\u00e9",
    "e\u0301\u0323": "\u1eb9\u0301", "a\u0308": "\u00e4", "\u0130": "i\u0307",
    "\uff21": "A", "\uff22": "B", "\uff0c": ",", "\u2026": "...",
    "\u00b2": "2", "\u2167": "VIII", "\u0344": "\u0308\u0301",
    "\u1e9b\u0323": "\u1e69", "\U0001d400": "A",
}


def charsmap(rules):
    """The bytes of a "Precompiled" table: a double array, then the texts."""
    root, texts = {}, b""
    for key, text in rules.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = len(texts)
        texts += text.encode() + b"\0"
    units, taken, bases = [0] * 256, {0}, set()
    waiting = [(root, 0)]
    while waiting:
        node, at = waiting.pop(0)
        base = 1
        while base in bases or any(base ^ c in taken for c in node):
            base += 1
        bases.add(base)
        if (base | 255) >= len(units):
            units += [0] * ((base | 255) + 1 - len(units))
        units[at] |= (at ^ base) << 10
        for label, below in node.items():
            taken.add(base ^ label)
            if label == 0:
                units[at] |= 1 << 8
                units[base] = 1 << 31 | below
            else:
                units[base ^ label] = label
                waiting.append((below, base ^ label))
    return (struct.pack("<I", 4 * len(units))
            + b"".join(struct.pack("<I", u) for u in units) + texts)


def precompiled(table=None):
    return normalizers.Precompiled(table or charsmap(RULES))


def unigram(lines, size, pre, normalizer, first, unk, last=(), bytes_too=False,
            decimals=None):
    """A Unigram model: special tokens, pieces, special tokens."""
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre
    t.normalizer = normalizer
    t.train_from_iterator(lines, trainers.UnigramTrainer(
        vocab_size=size, show_progress=False, special_tokens=list(first),
        unk_token=unk))
    vocab = [tuple(v) for v in json.loads(t.to_str())["model"]["vocab"]]
    if decimals is not None:  # equal sums, and sums that are almost equal
        vocab = [(token, round(score, decimals)) for token, score in vocab]
    if bytes_too:
        vocab += [("<0x%02X>" % b, 0.0) for b in range(256)]
    vocab += [(token, 0.0) for token in last]
    unk_id = [token for token, _ in vocab].index(unk)
    t = Tokenizer(models.Unigram(vocab, unk_id, bytes_too))
    t.pre_tokenizer = pre
    t.normalizer = normalizer
    return t


def special(*tokens):
    return [AddedToken(token, normalized=False) for token in tokens]


def around(t, single):
    names = [p for p in single.split() if p != "$A"]
    t.post_processor = processors.TemplateProcessing(
        single=single, pair=single + " $B:1",
        special_tokens=[(n, t.token_to_id(n)) for n in dict.fromkeys(names)])


def t5(lines, table=None):
    more = ["<extra_id_%d>" % i for i in (2, 1, 0)]
    t = unigram(lines, 420, pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
        precompiled(table), ("<pad>", "</s>", "<unk>"), "<unk>", more)
    t.decoder = decoders.Metaspace()
    t.add_special_tokens(special("<pad>", "</s>", "<unk>", *more))
    around(t, "$A </s>")
    return t


def t5_new(lines, table=None, split=False):
    """As newer converters write it: one mark, before the first word only."""
    t = unigram(lines, 420, pre_tokenizers.Metaspace(prepend_scheme="first",
                                                     split=split),
                normalizers.Sequence([
                    precompiled(table),
                    normalizers.Replace(Regex(" {2,}"), MARK)]),
                ("<pad>", "</s>", "<unk>"), "<unk>")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.add_special_tokens(special("<pad>", "</s>", "<unk>"))
    around(t, "$A </s>")
    return t


def mt5(lines, table=None):
    """Bytes of what has no token."""
    t = unigram(lines, 400, pre_tokenizers.Metaspace(),
                normalizers.Sequence([
                    precompiled(table),
                    normalizers.Replace(Regex(" {2,}"), MARK)]),
                ("<pad>", "</s>", "<unk>"), "<unk>", bytes_too=True)
    t.decoder = decoders.Sequence([decoders.ByteFallback(),
                                   decoders.Metaspace()])
    t.add_special_tokens(special("<pad>", "</s>", "<unk>"))
    around(t, "$A </s>")
    return t


def xlm_roberta(lines, table=None):
    t = unigram(lines, 420, pre_tokenizers.Metaspace(),
                normalizers.Sequence([
                    normalizers.Strip(left=False, right=True),
                    precompiled(table),
                    normalizers.Replace(Regex(" {2,}"), MARK)]),
                ("<s>", "<pad>", "</s>", "<unk>"), "<unk>", ("<mask>",))
    t.decoder = decoders.Metaspace()
    t.add_special_tokens(special("<s>", "<pad>", "</s>", "<unk>"))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    around(t, "<s> $A </s>")
    return t


def albert(lines, table=None):
    t = unigram(lines, 400, pre_tokenizers.Metaspace(),
                normalizers.Sequence([
                    normalizers.Replace("``", "\""),
                    normalizers.Replace("''", "\""), normalizers.NFKD(),
                    normalizers.StripAccents(), normalizers.Lowercase(),
                    precompiled(table),
                    normalizers.Replace(Regex(" {2,}"), " ")]),
                ("<pad>", "<unk>", "[CLS]", "[SEP]"), "<unk>", ("[MASK]",),
                decimals=2)
    t.decoder = decoders.Metaspace()
    t.add_special_tokens(special("<pad>", "<unk>", "[CLS]", "[SEP]"))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False)])
    around(t, "[CLS] $A [SEP]")
    return t


def unigram_llama(lines):
    """Llama's pipeline around a Unigram model."""
    t = unigram(lines, 380, pre_tokenizers.Split(MARK, "merged_with_next"),
                normalizers.Sequence([normalizers.Prepend(MARK),
                                      normalizers.Replace(" ", MARK)]),
                ("<unk>", "<s>", "</s>"), "<unk>", bytes_too=True, decimals=1)
    t.pre_tokenizer = None
    t.decoder = decoders.Sequence([
        decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    t.add_special_tokens(special("<unk>", "<s>", "</s>"))
    around(t, "<s> $A")
    return t


def odd_unigram(lines):
    """Nmt, no pre-tokenizer at first, marks never added, some bytes only."""
    t = unigram(lines, 350, pre_tokenizers.Metaspace(prepend_scheme="never"),
                normalizers.Sequence([normalizers.Nmt(), normalizers.NFC()]),
                ("[U]",), "[U]", ("<0xC3>", "<0xA9>", "<0xF0>"), decimals=0)
    vocab = [tuple(v) for v in json.loads(t.to_str())["model"]["vocab"]]
    pipeline = (t.normalizer, t.pre_tokenizer)
    t = Tokenizer(models.Unigram(vocab, 0, True))
    t.normalizer, t.pre_tokenizer = pipeline
    t.decoder = decoders.Metaspace(prepend_scheme="never")
    t.add_tokens([AddedToken("[Norm]", normalized=True)])
    return t


def word_piece(lines, size, pre, normalizer, specials, **keys):
    prefix = keys.get("continuing_subword_prefix", "##")
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.pre_tokenizer = pre
    t.normalizer = normalizer
    t.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, special_tokens=list(specials),
        continuing_subword_prefix=prefix, limit_alphabet=180))
    vocab = json.loads(t.to_str())["model"]["vocab"]
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", **{
        "max_input_chars_per_word": 100, **keys}))
    t.pre_tokenizer = pre
    t.normalizer = normalizer
    t.decoder = decoders.WordPiece(prefix=prefix)
    t.add_special_tokens(special(*specials))
    return t


BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def bert(lines, lowercase=True):
    t = word_piece(lines, 480, pre_tokenizers.BertPreTokenizer(),
                   normalizers.BertNormalizer(lowercase=lowercase), BERT)
    around(t, "[CLS] $A [SEP]")
    return t


def bert_cased(lines):
    return bert(lines, False)


def bert_japanese(lines):
    """Accents stay, Chinese characters are not cut apart."""
    t = word_piece(lines, 480, pre_tokenizers.BertPreTokenizer(),
                   normalizers.BertNormalizer(
                       clean_text=False, handle_chinese_chars=False,
                       strip_accents=True, lowercase=False), BERT)
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def words(lines):
    """What BERT leaves out: another prefix, short words, no clean-up."""
    t = word_piece(lines, 420, pre_tokenizers.Sequence([
        pre_tokenizers.CharDelimiterSplit("="), pre_tokenizers.Whitespace(),
        pre_tokenizers.Punctuation("merged_with_previous"),
        pre_tokenizers.Digits(True)]),
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]),
        BERT, continuing_subword_prefix="@@", max_input_chars_per_word=7)
    t.decoder = decoders.WordPiece(prefix="@@", cleanup=False)
    t.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def spaced(lines):
    """No prefix at all, punctuation in runs, ids joined by the decoder."""
    t = word_piece(lines, 380, pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Punctuation("contiguous")]),
        normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(),
                              normalizers.StripAccents()]),
        BERT[:2], continuing_subword_prefix="")
    t.decoder = decoders.WordPiece(prefix="", cleanup=True)
    return t


FAMILIES = (t5, mt5, albert, unigram_llama, bert, words)
ALL = FAMILIES + (t5_new, xlm_roberta, odd_unigram, bert_cased, bert_japanese,
                  spaced)
