# tests/runtime/openai/rules/grammars.py -- drawn grammars in GBNF, with what judges
# texts by them: all ends that a part can have from a place, found once for each.
LETTERS = "abcxyz019 ,:[]{}\"\\\n\t\u00e9\u4e16\U0001f41f"


class Literal:
    def __init__(self, text):
        self.text = text

    def ends(self, judge, at):
        good = judge.text.startswith(self.text, at)
        return frozenset([at + len(self.text)] if good else [])

    def draw(self, rng, depth):
        return self.text

    def shown(self, rng):
        return '"' + "".join(escaped(rng, c) for c in self.text) + '"'


class Set:
    def __init__(self, ranges, negated):
        self.ranges, self.negated = ranges, negated

    def has(self, c):
        return any(a <= c <= b for a, b in self.ranges) != self.negated

    def ends(self, judge, at):
        good = at < len(judge.text) and self.has(judge.text[at])
        return frozenset([at + 1] if good else [])

    def draw(self, rng, depth):
        return rng.choice([c for c in LETTERS + "mnq5~" if self.has(c)]
                          or [self.ranges[0][0]])

    def shown(self, rng):
        return "[" + "^" * self.negated + "".join(
            escaped(rng, a) + ("-" + escaped(rng, b) if b != a else "")
            for a, b in self.ranges) + "]"


class Rule:
    def __init__(self, grammar, index):
        self.grammar, self.index = grammar, index

    def ends(self, judge, at):
        return judge.ends(self.grammar.bodies[self.index], at)

    def draw(self, rng, depth):
        return self.grammar.bodies[self.index].draw(rng, depth + 1)

    def shown(self, rng):
        return self.grammar.name(self.index)


class Sequence:
    def __init__(self, parts):
        self.parts = parts

    def ends(self, judge, at):
        reached = {at}
        for part in self.parts:
            reached = {e for a in reached for e in judge.ends(part, a)}
        return frozenset(reached)

    def draw(self, rng, depth):
        return "".join(p.draw(rng, depth) for p in self.parts)

    def shown(self, rng):
        return rng.choice([" ", "  ", "\t"]).join(p.shown(rng)
                                                  for p in self.parts)


class Choice:
    """The first branch needs no other rule."""

    def __init__(self, parts):
        self.parts = parts

    def ends(self, judge, at):
        return frozenset(e for p in self.parts for e in judge.ends(p, at))

    def draw(self, rng, depth):
        return (self.parts[0] if depth > 4 else rng.choice(self.parts)).draw(
            rng, depth + 1)

    def shown(self, rng):
        return "(" + rng.choice([" | ", "|", "\n  | "]).join(
            p.shown(rng) for p in self.parts) + ")"


class Repetition:
    def __init__(self, part, least, most, sign):
        self.part, self.least, self.most, self.sign = part, least, most, sign

    def ends(self, judge, at):
        new, out = {at}, set()
        for n in range(self.most + 1 if self.most is not None else 10**6):
            if n >= self.least:
                out |= new
            new = {e for a in new for e in judge.ends(self.part, a)}
            if self.most is None and n >= self.least:
                new -= out
            if not new:
                break
        return frozenset(out)

    def draw(self, rng, depth):
        most = self.least + 2 if self.most is None else self.most
        count = self.least if depth > 4 else rng.randint(self.least, most)
        return "".join(self.part.draw(rng, depth + 1) for _ in range(count))

    def shown(self, rng):
        return self.part.shown(rng) + self.sign


def escaped(rng, c):
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"',
             "[": "\\[", "]": "\\]", "-": "\\x2d", "^": "\\^"}
    if c in known:
        return known[c]
    if rng.random() < 0.15:
        return (f"\\x{ord(c):02x}" if ord(c) < 0x80 else f"\\u{ord(c):04x}"
                if ord(c) < 0x10000 else f"\\U{ord(c):08x}")
    return c


class Grammar:
    def __init__(self, rng):
        self.rng, self.count = rng, rng.randrange(1, 6)
        self.bodies = [self.body(r) for r in range(self.count)]

    def name(self, index):
        return "root" if index == 0 else f"r-{index}"

    def body(self, index):
        return Choice([self.sequence(0, False)] + [
            self.sequence(0, True) for _ in range(self.rng.randrange(3))])

    def sequence(self, depth, with_rules):
        """A rule comes behind a character: none begins with itself."""
        parts = [self.terminal()]
        for _ in range(self.rng.randrange(3)):
            parts.append(self.part(depth, with_rules))
        return Sequence(parts)

    def terminal(self):
        rng = self.rng
        if rng.random() < 0.6:
            return Literal("".join(rng.choice(LETTERS)
                                   for _ in range(rng.randrange(1, 4))))
        ranges = [tuple(sorted(rng.sample("acgmxz0359\u00e0\u00f0\u4e00\u9fa5", 2)))
                  if rng.random() < 0.5 else (c := rng.choice(LETTERS), c)
                  for _ in range(rng.randrange(1, 3))]
        return Set(ranges, rng.random() < 0.2)

    def part(self, depth, with_rules):
        rng, kind = self.rng, self.rng.random()
        if with_rules and kind < 0.35:
            return Rule(self, rng.randrange(self.count))
        if kind < 0.55 and depth < 2:
            return Choice([self.sequence(depth + 1, False)] + [
                self.sequence(depth + 1, with_rules)
                for _ in range(rng.randrange(3))])
        if kind < 0.8:
            least, most, sign = rng.choice(
                [(0, None, "*"), (1, None, "+"), (0, 1, "?"), (2, 2, "{2}"),
                 (1, 3, "{1,3}"), (2, None, "{2,}"), (0, 2, "{0,2}")])
            inner = self.part(depth + 1, False) if depth < 2 else self.terminal()
            if isinstance(inner, Repetition):
                inner = self.terminal()
            return Repetition(inner, least, most, sign)
        return self.terminal()

    def shown(self):
        lines = []
        for r in range(self.count):
            if self.rng.random() < 0.2:
                lines.append("# a comment")
            lines.append(f"{self.name(r)} ::= {self.bodies[r].shown(self.rng)}")
        return "\n".join(lines) + "\n" * self.rng.randrange(2)

    def draw(self):
        return self.bodies[0].draw(self.rng, 0)

    def allows(self, text):
        return len(text) in Judge(text).ends(self.bodies[0], 0)


class Judge:
    def __init__(self, text):
        self.text, self.known = text, {}

    def ends(self, part, at):
        key = (id(part), at)
        if key not in self.known:
            self.known[key] = part.ends(self, at)
        return self.known[key]
