# tests/runtime/openai/rules/charts.py -- which texts drawn grammars and regular
# expressions allow, by a chart of all that each part may be (J. Earley, 1970). Other
# judges go back and try again, or keep all ends of a part from each place: texts of
# thousands of characters take them for ever.
import re._constants as sre
import re._parser as sre_parser

import grammars


class Chart:
    """Rules as automata: moves by a character, by a rule, or by nothing."""

    def __init__(self, count):
        self.moves = []
        self.begins = [self.state() for _ in range(count)]
        self.ends = [self.state() for _ in range(count)]

    def state(self):
        self.moves.append([])
        return len(self.moves) - 1

    def add(self, begin, kind, what, end):
        self.moves[begin].append((kind, what, end))

    def repeat(self, begin, end, least, most, add):
        at = self.state()
        self.add(begin, "nothing", None, at)
        for _ in range(least):
            at = add(at)
        if most is None:
            self.add(at, "nothing", None, end)
            self.add(add(at), "nothing", None, at)
            return
        for _ in range(least, most):
            self.add(at, "nothing", None, end)
            at = add(at)
        self.add(at, "nothing", None, end)

    def allows(self, text, anywhere=False):
        """Whether the first rule is the text, or a part of it."""
        callers = []  # of each place: of rules, where they go on
        now = set()
        for at in range(len(text) + 1):
            if at == 0 or anywhere:
                now.add((self.begins[0], 0, 0))
            callers.append({})
            found, now = self.next(text, at, callers, now)
            if found and (anywhere or at == len(text)):
                return True
            if not now and not anywhere:
                return False
        return False

    def next(self, text, at, callers, items):
        """What may come behind a character; whether the first rule ends before it."""
        seen, todo, after, nothing = set(items), list(items), set(), set()
        found = False

        def reach(item):
            if item not in seen:
                seen.add(item)
                todo.append(item)
        while todo:
            state, rule, begin = todo.pop()
            if state == self.ends[rule]:
                found = found or (rule == 0 and begin == 0)
                for item in callers[begin].get(rule, ()):
                    reach(item)
                if begin == at:
                    nothing.add(rule)
            for kind, what, end in self.moves[state]:
                item = end, rule, begin
                if kind == "nothing" or (kind == "at" and at == (
                        0 if what == "begin" else len(text))):
                    reach(item)
                elif kind == "character" and at < len(text) and what(text[at]):
                    after.add(item)
                elif kind == "rule":
                    callers[at].setdefault(what, []).append(item)
                    reach((self.begins[what], what, at))
                    if what in nothing:
                        reach(item)
        return found, after


def of_grammar(bodies):
    out = Chart(len(bodies))

    def add(part, begin, end):
        if isinstance(part, (grammars.Literal, grammars.Sequence)):
            parts = part.text if isinstance(part, grammars.Literal) else part.parts
            for inner in parts:
                to = out.state()
                if isinstance(inner, str):
                    out.add(begin, "character", inner.__eq__, to)
                else:
                    add(inner, begin, to)
                begin = to
            out.add(begin, "nothing", None, end)
        elif isinstance(part, grammars.Set):
            out.add(begin, "character", part.has, end)
        elif isinstance(part, grammars.Rule):
            out.add(begin, "rule", part.index, end)
        elif isinstance(part, grammars.Choice):
            for inner in part.parts:
                add(inner, begin, end)
        else:
            out.repeat(begin, end, part.least, part.most,
                       lambda at: added(part.part, at))

    def added(part, begin):
        end = out.state()
        add(part, begin, end)
        return end
    for body, begin, end in zip(bodies, out.begins, out.ends):
        add(body, begin, end)
    return out


def in_class(members):
    negated = members[0][0] is sre.NEGATE
    singles = {chr(m[1]) for m in members if m[0] is sre.LITERAL}
    ranges = [(chr(m[1][0]), chr(m[1][1])) for m in members if m[0] is sre.RANGE]
    assert len(members) == negated + len(ranges) + sum(
        m[0] is sre.LITERAL for m in members), members
    return lambda c: (c in singles or any(a <= c <= b for a, b in ranges)) != negated


def of_pattern(pattern):
    """Of the part of Python's patterns that patterns.py draws."""
    out = Chart(1)

    def add_all(items, begin):
        for item in items:
            begin = added(item, begin)
        return begin

    def added(item, begin):
        kind, what = item
        end = out.state()
        if kind is sre.LITERAL:
            out.add(begin, "character", chr(what).__eq__, end)
        elif kind is sre.NOT_LITERAL:
            out.add(begin, "character", chr(what).__ne__, end)
        elif kind is sre.IN:
            out.add(begin, "character", in_class(what), end)
        elif kind is sre.BRANCH:
            for way in what[1]:
                out.add(add_all(way, begin), "nothing", None, end)
        elif kind is sre.SUBPATTERN:
            out.add(add_all(what[3], begin), "nothing", None, end)
        elif kind is sre.AT:
            out.add(begin, "at", "begin" if what is sre.AT_BEGINNING_STRING
                    else "end", end)
        else:
            assert kind in (sre.MAX_REPEAT, sre.MIN_REPEAT), kind
            least, most, inner = what
            out.repeat(begin, end, least, None if most is sre.MAXREPEAT else most,
                       lambda at: add_all(inner, at))
        return end
    out.add(add_all(sre_parser.parse(pattern.pattern), out.begins[0]), "nothing",
            None, out.ends[0])
    return out
