# tests/runtime/openai/rules/rules_judge_test.py -- what is written under a rule is
# right by it, and what is right may be written, as others judge.
#
#   rules_judge_test.py RULE_TEXTS [COUNT [SEED [TOKENS]]]
#
# Draws COUNT rules from SEED: of ten, six JSON schemas, two regular expressions and
# two grammars in GBNF. RULE_TEXTS writes texts by each, and tries texts that are
# right or wrong. Judges: the jsonschema package by draft 2020-12, `re`, and
# grammars.py; of longer texts charts.py, which has to agree with these on shorter
# ones. A schema may be refused (no value is possible, parts cannot be merged),
# but most are not. TOKENS names a vocabulary, as in rule_texts.cpp.
import datetime
import ipaddress
import json
import random
import re
import subprocess
import sys
import threading
import uuid

import charts
import grammars
import instances
import jsonschema
import patterns
import schemas

TEXTS = 3
MISTAKES = 4  # texts with a mistake, of each rule
LONG = 100  # characters of texts that charts judge
CHANGES = "\"{}[],: 0129eE+-.abn\\\n\u00e9x/"
PART = r"[0-9A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?"
HOST = rf"{PART}(\.{PART})*"
POINTER = "(/([^~/]|~[01])*)*"


def matches(pattern):
    return lambda text: re.fullmatch(pattern, text)


FORMATS = {
    "date": datetime.date.fromisoformat,
    "time": lambda t: datetime.time.fromisoformat(
        re.fullmatch(r"(..:..:..(\.\d+)?)(Z|[+-]..:..)", t)[1][:8]),
    "date-time": lambda t: (FORMATS["date"](t[:10]), t[10] == "T" or 1 / 0,
                            FORMATS["time"](t[11:])),
    "duration": matches(r"P(?!$)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?"
                        r"|P\d+W"),
    "email": matches(rf"[A-Za-z0-9_+.-]+@{HOST}"),
    "idn-email": matches(rf"[A-Za-z0-9_+.-]+@{HOST}"),
    "hostname": matches(HOST), "idn-hostname": matches(HOST),
    "ipv4": ipaddress.IPv4Address, "ipv6": ipaddress.IPv6Address,
    "uuid": uuid.UUID, "regex": re.compile,
    "json-pointer": matches(POINTER),
    "relative-json-pointer": matches(rf"(0|[1-9]\d*)(#|{POINTER})"),
}
for _name in ("uri", "uri-reference", "iri", "iri-reference", "uri-template"):
    FORMATS[_name] = matches(
        rf"https?://{HOST}(:\d+)?(/[\w.~!$&'()*+,;=:@-]*)*(\?[\w.~!$&'()*+,;=:@/?-]*)?"
        rf"(#[\w.~!$&'()*+,;=:@/?-]*)?")


def check_format(_, name, value, __):
    if isinstance(value, str) and name in FORMATS:
        try:
            good = FORMATS[name](value) is not None
        except (ValueError, TypeError, ZeroDivisionError, re.error):
            good = False
        if not good:
            yield jsonschema.ValidationError(f"{value!r} is no {name}")


def judged(text, judge, chart):
    """By the one for short texts, or the one for long texts."""
    if len(text) > LONG:
        return chart(text)
    right = judge(text)
    if len(text) < LONG // 4:
        assert chart(text) == right, text
    return right


class Search:
    """Whether a part of a text matches a pattern."""

    def __init__(self, pattern):
        self.pattern, self.chart = pattern, charts.of_pattern(pattern)

    def finds(self, text):
        return judged(text, lambda t: self.pattern.search(t) is not None,
                      lambda t: self.chart.allows(t, anywhere=True))


def no_constant(name):
    raise ValueError(name)


class Schema:
    kind = "json_schema"

    def __init__(self, rng):
        drawn = schemas.Schemas(rng)
        self.schema = drawn.whole()
        known = drawn.patterns
        searches = {text: Search(of[0]) for text, of in known.items()}

        def check_pattern(_, pattern, value, __):
            if isinstance(value, str) and not searches[pattern].finds(value):
                yield jsonschema.ValidationError(f"{value!r}: no {pattern!r}")
        self.judge = jsonschema.validators.extend(
            jsonschema.Draft202012Validator,
            {"pattern": check_pattern, "format": check_format})(self.schema)
        self.text = json.dumps(self.schema, ensure_ascii=rng.random() < 0.5)
        self.drawn = instances.Instances(self.schema, known, rng)

    def is_right(self, text):
        try:
            value = json.loads(text, parse_constant=no_constant)
        except ValueError:
            return False
        return self.judge.is_valid(value)

    def right(self):
        try:
            texts = self.drawn.draw()
        except instances.Impossible:
            return []
        for text in texts:
            value = json.loads(text)
            error = next(self.judge.iter_errors(value), None)
            if error and "oneOf" in json.dumps(self.schema):
                return []  # branches that overlap, which may be refused
            assert error is None, (self.text, text, error.message)
        return texts


class Pattern:
    kind = "regex"

    def __init__(self, rng):
        self.text, self.judge, self.make = patterns.whole(rng)
        self.chart = charts.of_pattern(self.judge)

    def is_right(self, text):
        return judged(text, lambda t: self.judge.fullmatch(t) is not None,
                      self.chart.allows)

    def right(self):
        texts = [self.make() for _ in range(3)]
        assert all(map(self.is_right, texts)), (self.text, texts)
        return texts


class Grammar:
    kind = "grammar"

    def __init__(self, rng):
        self.judge = grammars.Grammar(rng)
        self.text = self.judge.shown()
        self.chart = charts.of_grammar(self.judge.bodies)

    def is_right(self, text):
        return judged(text, self.judge.allows, self.chart.allows)

    def right(self):
        texts = [t for t in (self.judge.draw() for _ in range(3)) if len(t) < 500]
        assert all(map(self.is_right, texts)), (self.text, texts)
        return texts


def with_mistakes(rng, rule, texts):
    out = []
    for _ in range(MISTAKES if texts else 0):
        text = rng.choice(texts)
        at = rng.randrange(len(text) + 1)
        wrong = (text[:at] + rng.choice(["", rng.choice(CHANGES)])
                 + text[at + rng.randrange(2):])
        if not rule.is_right(wrong):
            out.append(wrong)
    return out


def main():
    program, *more = sys.argv[1:]
    count = int(more[0]) if more else 500
    seed = more[1] if len(more) > 1 else "1"
    rng = random.Random(int(seed))
    made, lines, right, wrong = [], [], 0, 0
    for n in range(count):
        rule = (Schema, Schema, Pattern, Schema, Grammar)[n % 5](rng)
        valid = rule.right()
        invalid = with_mistakes(rng, rule, valid)
        right, wrong = right + len(valid), wrong + len(invalid)
        made.append(rule)
        lines.append(json.dumps({"kind": rule.kind, "text": rule.text,
                                 "valid": valid, "invalid": invalid}) + "\n")
    done = subprocess.run([program, seed, str(TEXTS), *more[2:]],
                          input="".join(lines), text=True,
                          stdout=subprocess.PIPE, timeout=6000)
    assert done.returncode == 0, done.returncode
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == count, len(told)
    refused, texts, unfinished, faults = {}, 0, 0, []
    for rule, answer in zip(made, told):
        if "error" in answer:
            why = rule.kind + ": " + re.sub(r"\d+", "N", answer["error"]).split(
                ": ", 1)[-1]
            refused[why] = refused.get(why, 0) + 1
            continue
        unfinished += answer["unfinished"]
        faults += [(rule.text, fault) for fault in answer["wrong"]]
        for text in answer["texts"]:
            texts += 1
            if not rule.is_right(text):
                faults.append((rule.text, "written: " + text))
    for rule, fault in faults[:20]:
        print(f"by {rule}\n  {fault}", file=sys.stderr)
    print(f"{texts} texts by {count} rules are right, {unfinished} were given up; "
          f"{right} right ones were allowed, {wrong} wrong ones refused")
    for why, times in sorted(refused.items(), key=lambda item: -item[1]):
        print(f"  {times} rules refused: {why}")
    assert not faults, f"{len(faults)} faults"
    # To be refused, or to have no end, is no way out: most are neither.
    assert sum(refused.values()) < count / 5, refused
    assert unfinished < count * TEXTS / 20, unfinished
    assert texts > count and right > count and wrong > count, (texts, right, wrong)


if __name__ == "__main__":
    sys.setrecursionlimit(10**5)
    threading.stack_size(512 << 20)  # judges go as deep as texts
    FAILED = []

    def run():
        try:
            main()
        except BaseException:
            FAILED.append(True)
            raise
    THREAD = threading.Thread(target=run)
    THREAD.start()
    THREAD.join()
    sys.exit(1 if FAILED else 0)
