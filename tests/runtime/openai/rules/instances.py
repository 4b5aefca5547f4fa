# tests/runtime/openai/rules/instances.py -- values by a schema, and how a text under
# that schema's rule may write them (runtime/openai/rules/json_schema.hpp says how).
#
# A value is drawn as a function that writes it, with chance in white space and
# escapes, and that knows what it means.
import json
from decimal import Decimal

from schemas import FORMATS, PLAIN

DEPTH_MAX = 9


class Impossible(Exception):
    """No value was found."""


class Instances:
    def __init__(self, schema, patterns, rng):
        self.root, self.patterns, self.rng = schema, patterns, rng

    def draw(self):
        """@returns several texts of one value"""
        value = self.of(self.root, 0)
        return [value() for _ in range(3)]

    def gap(self):
        rng = self.rng
        return rng.choice(["", "", " ", "\n", "\n  ", "\n" + " " * 20, "\n\t"])

    # Each returns a function that writes the value.

    def exact(self, value):
        return lambda: json.dumps(value, ensure_ascii=False,
                                  separators=(",", ":"))

    def text(self, value, escapes):
        def write():
            out = ""
            for c in value:
                kind, code = self.rng.random(), ord(c)
                if c in '"\\' or code < 0x20 or (escapes and kind < 0.1):
                    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b",
                             "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
                    plain = c in short and (not escapes or kind < 0.07)
                    if plain and (escapes or c != "/"):
                        out += short[c]
                    elif code < 0x10000 and not 0xd800 <= code < 0xe000:
                        digits = f"{code:04x}"
                        if escapes and self.rng.random() < 0.5:
                            digits = digits.upper()
                        out += "\\u" + digits
                    else:
                        out += c
                else:
                    out += c
            return f'"{out}"'
        return write

    def number(self, s, whole):
        bounds = [Decimal(repr(s[k])) for k in (
            "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if k in s]
        low = max([Decimal(repr(s[k])) for k in ("minimum", "exclusiveMinimum")
                   if k in s] or [max(min(bounds or [0]) - 1000, Decimal(-10**6))])
        high = min([Decimal(repr(s[k])) for k in ("maximum", "exclusiveMaximum")
                    if k in s] or [low + 2000])
        digits = max([0] + [-b.as_tuple().exponent for b in bounds])
        digits = 0 if whole else min(digits + self.rng.randrange(2), 6)
        for _ in range(30):
            at = low + (high - low) * Decimal(self.rng.choice(
                [0, 1, self.rng.random()]))
            x = at.quantize(Decimal(1).scaleb(-digits))
            if (low <= x <= high and x != s.get("exclusiveMinimum")
                    and x != s.get("exclusiveMaximum")
                    and not any(k in s and (x <= Decimal(repr(s[k])) if
                                            k == "exclusiveMinimum" else
                                            x >= Decimal(repr(s[k])))
                                for k in ("exclusiveMinimum",
                                          "exclusiveMaximum"))):
                text = f"{x:f}"
                if "." in text:
                    text = text.rstrip("0").rstrip(".")
                if text == "-0":
                    text = "0"
                if not bounds and not whole and self.rng.random() < 0.3:
                    text += self.rng.choice(["e5", "E-12", "e+00", "E99"])
                return lambda: text
        raise Impossible

    def string(self, s):
        rng = self.rng
        if "pattern" in s:
            return self.text(self.patterns[s["pattern"]][1](), False)
        if s.get("format") in FORMATS:
            return self.text(rng.choice(FORMATS[s["format"]]),
                             s["format"] == "password")
        least = s.get("minLength", 0)
        length = rng.randint(least, min(s.get("maxLength", least + 8), least + 20))
        return self.text("".join(rng.choice("ab9 \"\\/\n\x01\u00e9\u4e16\U0001f41f{}[],:")
                                 for _ in range(length)), True)

    def any(self, depth):
        kind = self.rng.randrange(8 if depth < DEPTH_MAX - 2 else 5)
        if kind == 0:
            return self.number({}, False)
        if kind < 3:
            return self.string({})
        if kind < 5:
            return self.exact(self.rng.choice([None, True, False]))
        if kind == 5:
            return self.listed([self.any(depth + 2)
                                for _ in range(self.rng.randrange(3))])
        return self.mapped([(self.text(n, True), self.any(depth + 2)) for n in
                            self.rng.sample(PLAIN, self.rng.randrange(3))])

    def listed(self, items):
        def write():
            inside = "".join(("," + self.gap() if i else "") + item()
                             for i, item in enumerate(items))
            return "[" + self.gap() + inside + self.gap() + "]"
        return write

    def mapped(self, pairs):
        def write():
            inside = "".join(("," + self.gap() if i else "") + name() + ":"
                             + self.gap() + value()
                             for i, (name, value) in enumerate(pairs))
            return "{" + self.gap() + inside + self.gap() + "}"
        return write

    def array(self, s, depth):
        first = [self.of(item, depth + 1) for item in
                 s.get("prefixItems", [])[:s.get("maxItems", 99)]]
        rest = s.get("items", not first)
        least = max(s.get("minItems", 0) - len(first), 0)
        most = min(s.get("maxItems", len(first) + least + 2) - len(first),
                   least + 2)
        if depth > DEPTH_MAX - 3:
            most = least
        if rest is False:
            least, most = (0, 0) if least == 0 else (1, 0)
        if least > most:
            raise Impossible
        return self.listed(first + [self.of(rest, depth + 1) for _ in range(
            self.rng.randint(least, most))])

    def thing(self, s, depth):
        properties, required = s.get("properties", {}), s.get("required", [])
        others = s.get("additionalProperties", not properties and not required)
        pairs = []
        for name, inner in properties.items():
            if name in required or self.rng.random() < 0.5:
                try:
                    pairs.append((self.exact(name), self.of(inner, depth + 1)))
                except Impossible:
                    if name in required:
                        raise
        for name in dict.fromkeys(required):
            if name not in properties:
                if s.get("additionalProperties") is False:
                    raise Impossible
                pairs.append((self.exact(name), self.of(
                    s.get("additionalProperties", True), depth + 1)))
        if others is not False and depth < DEPTH_MAX - 2:
            named = properties or required
            free = [n for n in PLAIN + ["nam", "idx", "extras", "z"]
                    if n not in properties and n not in required]
            for name in self.rng.sample(free, self.rng.randrange(3)):
                try:
                    pairs.append((self.text(name, not named and others is True),
                                  self.of(others, depth + 1)))
                except Impossible:
                    break
        return self.mapped(pairs)

    def merged(self, a, b):
        """Of two schemas that allOf names: what both say, if that is simple."""
        if a is False or b is False:
            return False
        for s, other in ((a, b), (b, a)):
            if s is True or s == {}:
                return other
            if "$ref" in s:
                return self.merged(self.target(s), other)
        out = dict(a)
        for key, value in b.items():
            if key == "properties":
                out[key] = dict(out.get(key, {}))
                for name, inner in value.items():
                    out[key][name] = (self.merged(out[key][name], inner)
                                      if name in out[key] else inner)
            elif key == "required":
                out[key] = out.get(key, []) + value
            elif key == "type" and key in out and out[key] != value:
                lists = [t if isinstance(t, list) else [t] for t in (out[key], value)]
                both = [t for t in lists[0] if t in lists[1]]
                if not both:
                    raise Impossible
                out[key] = both
            elif key in out and out[key] != value:
                raise Impossible  # not simple
            else:
                out[key] = value
        return out

    def target(self, s):
        out = self.root
        for part in s["$ref"][2:].split("/"):
            out = out[part]
        rest = {k: v for k, v in s.items() if k not in ("$ref", "description")}
        return self.merged(rest, out) if rest else out

    def of(self, s, depth):
        if depth > DEPTH_MAX or s is False:
            raise Impossible
        if s is True:
            return self.any(depth)
        if "$ref" in s:
            return self.of(self.target(s), depth + 1)
        if "allOf" in s:
            out = {k: v for k, v in s.items() if k not in ("allOf", "description")}
            for part in s["allOf"]:
                out = self.merged(out, part)
            return self.of(out, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in s:
                around = {k: v for k, v in s.items()
                          if k not in (key, "description", "$defs")}
                for part in self.rng.sample(s[key], len(s[key])):
                    try:
                        return self.of(self.merged(around, part), depth + 1)
                    except Impossible:
                        pass
                raise Impossible
        if "const" in s:
            return self.exact(s["const"])
        if "enum" in s:
            return self.exact(self.rng.choice(s["enum"]))
        types = s.get("type", [])
        types = types if isinstance(types, list) else [types]
        if not types:
            about = {"minimum": "number", "maxLength": "string", "items": "array",
                     "properties": "object", "pattern": "string",
                     "required": "object"}
            types = list(dict.fromkeys(t for k, t in about.items() if k in s))
        if not types:
            return self.any(depth)
        kind = self.rng.choice(types)
        if kind == "null":
            return self.exact(None)
        if kind == "boolean":
            return self.exact(self.rng.random() < 0.5)
        if kind in ("integer", "number"):
            return self.number(s, kind == "integer")
        if kind == "string":
            return self.string(s)
        if kind == "array":
            return self.array(s, depth)
        return self.thing(s, depth)
