# tests/runtime/openai/rules/patterns.py -- drawn regular expressions: as ECMA-262
# writes them, as Python's `re` does, and texts that they match.
import re

SPACE = ("\\t\\n\\x0b\\x0c\\r \\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f"
         "\\u205f\\u3000\\ufeff")
# Name in ECMA: members for Python, some examples.
CLASSES = {"\\d": ("0-9", "0579"), "\\w": ("0-9A-Za-z_", "aZ_4"),
           "\\s": (SPACE, " \t\n\u2003")}
NEGATED = {"\\D": ("0-9", "ax-\n"), "\\W": ("0-9A-Za-z_", "- \u00e9\""),
           "\\S": (SPACE, "a\"\\7\u00df"), ".": ("\\n\\r\\u2028\\u2029", "a.\"\\\u00e9")}
LETTERS = "abcxyz019 -_@,:{}[]()\"\\/^$.|*+?\u00e9\u00df\u4e16\U0001f41f\n\t"
SPECIAL = "^$\\.*+?()[]{}|/"
ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def ecma_letter(rng, c):
    if c in ESCAPES:
        return ESCAPES[c]
    if c in SPECIAL:
        return "\\" + c
    if ord(c) < 0x80 and rng.random() < 0.05:
        return f"\\x{ord(c):02x}"
    if 0x80 <= ord(c) < 0xd800 and rng.random() < 0.3:
        return f"\\u{ord(c):04x}"
    return c


def letter(rng, c):
    return ecma_letter(rng, c), re.escape(c), lambda: c


def one_of(rng):
    """A class in brackets."""
    ecma, python, inside = "", "", []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.random()
        if kind < 0.4:
            a, b = sorted(rng.sample("acgmxz0359\u00e0\u00f0\u4e00\u9fa5", 2))
            ecma, python = ecma + a + "-" + b, python + a + "-" + b
            inside += [a, b]
        elif kind < 0.6:
            name = rng.choice(list(CLASSES))
            ecma, python = ecma + name, python + CLASSES[name][0]
            inside += CLASSES[name][1]
        else:
            c = rng.choice("abx19_ .*+?\"\u00e9\n")
            ecma += "\\n" if c == "\n" else c
            python += "\\n" if c == "\n" else re.escape(c)
            inside.append(c)
    if rng.random() < 0.25:
        test = re.compile(f"[^{python}]")
        outside = [c for c in LETTERS + "qQ8\u0416~" if test.fullmatch(c)]
        if outside:
            return (f"[^{ecma}]", f"[^{python}]", lambda: rng.choice(outside))
    return f"[{ecma}]", f"[{python}]", lambda: rng.choice(inside)


def part(rng, depth):
    kind = rng.random()
    if kind < 0.45:
        return letter(rng, rng.choice(LETTERS))
    if kind < 0.6:
        return one_of(rng)
    if kind < 0.7:
        name = rng.choice(list(CLASSES))
        python, some = CLASSES[name]
        return name, f"[{python}]", lambda: rng.choice(some)
    if kind < 0.78 or depth > 2:
        name = rng.choice(list(NEGATED))
        python, some = NEGATED[name]
        return name, f"[^{python}]", lambda: rng.choice(some)
    ecma, python, make, _ = branches(rng, depth + 1)
    opening = rng.choice(["(", "(?:", "(?<n>"])
    return (opening.replace("n", f"n{rng.randrange(10**9)}") + ecma + ")",
            f"(?:{python})", make)


def sequence(rng, depth):
    """@returns also whether it repeats something without an end"""
    ecma, python, makers, loops = "", "", [], False
    for _ in range(rng.randrange(0 if depth else 1, 4)):
        e, p, make = part(rng, depth)
        inner_loops = "*" in p or "+" in p or "{" in p
        if rng.random() < 0.35:
            least, most, sign = rng.choice(
                [(0, 3, "*"), (1, 4, "+"), (0, 1, "?"), (2, 2, "{2}"),
                 (1, 3, "{1,3}"), (2, 4, "{2,}"), (0, 0, "{0}")])
            if inner_loops and sign in ("*", "+", "{2,}"):
                least, most, sign = 0, 2, "{0,2}" # `re` would take for ever
            loops = loops or sign in ("*", "+", "{2,}")
            e, p = e + sign, p + sign
            if rng.random() < 0.1:
                e += "?"
            make = repeated(rng, make, least, most)
        ecma, python = ecma + e, python + p
        makers.append(make)
    return ecma, python, lambda: "".join(m() for m in makers), loops


def repeated(rng, make, least, most):
    return lambda: "".join(make() for _ in range(rng.randint(least, most)))


def branches(rng, depth):
    all_ = [sequence(rng, depth) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return ("|".join(b[0] for b in all_), "|".join(b[1] for b in all_),
            lambda: rng.choice(all_)[2](), any(b[3] for b in all_))


def whole(rng):
    """A pattern of whole texts: in ECMA, for re.fullmatch, and what draws texts."""
    ecma, python, make, _ = branches(rng, 0)
    return ecma, re.compile(python), make


def searched(rng):
    """The same, found anywhere unless it is anchored; for re.search."""
    ecma, python, makers = [], [], []
    for _ in range(rng.choice([1, 1, 2])):
        e, p, make, _ = sequence(rng, 0)
        start, end = rng.random() < 0.6, rng.random() < 0.6
        ecma.append("^" * start + e + "$" * end)
        python.append("\\A" * start + p + "\\Z" * end)
        makers.append((make, start, end))

    def text():
        make, start, end = rng.choice(makers)
        some = ["", "", "a", " \"x", "\u00e9\n"]
        return ("" if start else rng.choice(some)) + make() + (
            "" if end else rng.choice(some))
    return "|".join(ecma), re.compile("|".join(python)), text
