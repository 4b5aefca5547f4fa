# tests/runtime/model/text/compare_test.py -- the same ids and texts as the
# package `tokenizers`, on random texts.
#
#   compare_test.py TOKENIZER_IDS [COUNT [SEED [TABLE]]]
#
# Trains a tiny tokenizer of each family (tests/golden/other_tokenizers.py), and
# compares COUNT random texts and as many lists of ids for each: all planes,
# combining marks, CJK, emoji with joiners, control characters, long runs. TABLE:
# a file with a precompiled_charsmap of SentencePiece's, instead of a small one.
# Without the package there is nothing to compare with: skipped.
import importlib.util
import inspect
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "golden"
SKIPPED = 77
OLD = unicodedata.ucd_3_2_0
# Characters newer than Unicode 14 are none for us (README of the room), and this
# Python may know them: then only old ones.
KNOWS_14 = int(unicodedata.unidata_version.split(".")[0]) <= 14
KNOWN = [c for c in map(chr, range(0x110000))
         if unicodedata.category(c) not in ("Cn", "Cs")
         and (KNOWS_14 or OLD.category(c) != "Cn")]
MARKS = [c for c in KNOWN if OLD.combining(c)]
# The package has older tables for normal forms and for marks.
AGES = {c for c in KNOWN if OLD.category(c) == "Cn"
        and (unicodedata.category(c)[0] == "M" or unicodedata.decomposition(c))}
PLANES = [c for c in KNOWN if c not in AGES]
BLOCKS = [(0x20, 0x7f), (0xa0, 0x180), (0x370, 0x530), (0x590, 0x700),
          (0x900, 0xa00), (0xe00, 0xe80), (0x1100, 0x1200), (0x2000, 0x2070),
          (0x2100, 0x2200), (0x2460, 0x2500), (0x3040, 0x3100),
          (0x4e00, 0x4f00), (0xac00, 0xad00), (0xf900, 0xfb10),
          (0xff00, 0xfff0), (0x1d400, 0x1d500), (0x1f300, 0x1f700),
          (0x20000, 0x20100), (0xe0000, 0xe0080), (0xfff0, 0x10000)]
BLOCKS = [[c for c in map(chr, range(*b)) if c not in AGES
           and (OLD if not KNOWS_14 else unicodedata).category(c) != "Cn"]
          for b in BLOCKS]
EMOJI = ["\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f",
         "\U0001f44d\U0001f3fd", "\u00a9\u200d\u00ae", "1\ufe0f\u20e3"]
ODD = ["\0", "\ufffd", "\ufeff", "\uffff", "\U0010ffff", "\x1b", "\x7f", "\x85",
       "\u2028", "\r\n", "\u200b", "\u2581", "\u00ad", "\ue000", "\u180e",
       "##", "@@", "=", "``", "''", "<unk>", "</s>", "[UNK]", "[MASK]", "<mask>",
       " [CLS] ", "<pad>", "<extra_id_1>", "[Norm]", "[norm]", "<0x41>", "[U]",
       "do not", " n't", " 's", "can't", " , ", " ."]


def bit(rng, words):
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(words) + rng.choice(["", " ", " ", "  ", ", ", ".\n"])
    if kind < 0.5:
        block = rng.choice(BLOCKS)
        return "".join(rng.choice(block) for _ in range(rng.randint(1, 6)))
    if kind < 0.6:
        return (rng.choice(rng.choice(BLOCKS))
                + "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 4))))
    if kind < 0.7:
        return "".join(rng.choice(PLANES) for _ in range(rng.randint(1, 4)))
    if kind < 0.78:
        return rng.choice(EMOJI)
    if kind < 0.9:
        return rng.choice(ODD)
    if kind < 0.95:
        return rng.choice([" ", "a", "=", "\u00e9", "\u65e5", "ab", "-", "\t"]
                          ) * rng.randint(2, 40)
    return chr(rng.choice([c for c in (rng.randrange(0x80), 0x301, 0x200d)]))


def sample(rng, words):
    text = "".join(bit(rng, words) for _ in range(rng.randint(0, 9)))
    return text * rng.randint(20, 90) if rng.random() < 0.01 else text


def theirs(t, line):
    if isinstance(line, list):
        ids, out = line, {}
    else:
        ids = t.encode(line).ids
        out = {"ids": t.encode(line, add_special_tokens=False).ids,
               "around": ids}
    out["text"] = t.decode(ids)
    out["all"] = t.decode(ids, skip_special_tokens=False)
    return out


def differences(t, lines, answers):
    """What is not the same; where bytes break, a stream may show others."""
    for line, answer in zip(lines, answers):
        ours = json.loads(answer)
        for key, value in theirs(t, line).items():
            if ours.get(key) != value:
                yield line, key, ours.get(key, ours), value
        for key in ("stream", "bytes"):
            value = ours.get(key, "\ufffd")
            if "\ufffd" not in value + ours["text"] and value != ours["text"]:
                yield line, key, value, ours["text"]


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    table = pathlib.Path(sys.argv[4]).read_bytes() if len(sys.argv) > 4 else None
    if not importlib.util.find_spec("tokenizers"):
        print("tokenizers is not installed")
        sys.exit(SKIPPED)
    sys.path.insert(0, str(GOLDEN))
    import other_tokenizers
    from make_tokenizer_goldens import SAMPLES, TRAIN
    lines = TRAIN.splitlines(keepends=True)
    words = TRAIN.split()
    failed = compared = 0
    for make in other_tokenizers.ALL:
        takes_table = "table" in inspect.signature(make).parameters
        t = make(lines, **({"table": table} if takes_table else {}))
        rng = random.Random(f"{seed} {make.__name__}")
        limit = t.get_vocab_size()
        given = [s.decode(errors="replace") for s in SAMPLES]
        given += [sample(rng, words) for _ in range(count)]
        given += [[rng.randrange(limit) for _ in range(rng.randint(1, 12))]
                  for _ in range(count)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(t.to_str())
            file.flush()
            t = type(t).from_file(file.name)
            done = subprocess.run(
                [program, file.name], check=True, stdout=subprocess.PIPE,
                input="".join(json.dumps(g) + "\n" for g in given).encode())
        answers = done.stdout.decode().splitlines()
        assert len(answers) == len(given)
        wrong = list(differences(t, given, answers))
        for line, key, ours, value in wrong[:5]:
            print(f"{make.__name__} {ascii(line)}: {key}: {ascii(ours)}, not "
                  f"{ascii(value)}")
        compared += len(given)
        failed += len(wrong)
        print(f"{make.__name__}: {len(given)} compared, {len(wrong)} differ")
    print(f"seed {seed}: {compared} compared, {failed} differ")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
