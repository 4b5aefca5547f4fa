# tests/runtime/openai/rules/schemas.py -- drawn JSON schemas of all keywords that
# runtime/openai/rules understands, in any nesting.
import patterns

NAMES = ["id", "name", "names", "value", "a b", "\u00e9", "x-y", "tags", "n",
         "\"q\"", "", "back\\slash", "\u4e16\u754c", "\U0001f41f", "tab\t", "$ref",
         "type", "na", "a/b~c"]
PLAIN = [n for n in NAMES if not set(n) & set("\"\\\t")]
CONSTANTS = [None, True, False, 0, -7, 1.5, 1, "", "red", "gr\u00fcn", "a\"b\\c\n",
             [], [1, "x"], {}, {"b": 1, "a": [True]}, 12345678901234, "\u0007",
             "\U0001f41f", -0.25, [[]], {"": None}]
FORMATS = {
    "date": ["2024-02-28", "1999-12-31"],
    "time": ["00:00:00Z", "23:59:59.123+05:30"],
    "date-time": ["2024-02-28T00:00:00Z", "1999-12-31T23:59:59.5-01:00"],
    "duration": ["P1Y2M3DT4H5M6S", "PT0S", "P3W", "P10D", "P1MT5M"],
    "email": ["a@b.cd", "first.last+tag@sub.example.org"],
    "idn-email": ["a@b.cd"],
    "hostname": ["example.org", "a", "a-b.c1"],
    "idn-hostname": ["example.org"],
    "ipv4": ["0.0.0.0", "255.249.10.1"],
    "ipv6": ["::", "::1", "fe80::1:2", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::"],
    "uri": ["https://example.org", "http://a.b:80/x/y?q=1#f"],
    "uri-reference": ["https://example.org/"], "iri": ["http://a"],
    "iri-reference": ["http://a/"], "uri-template": ["http://a/b"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
    "json-pointer": ["", "/a/0/~01", "/a b"],
    "relative-json-pointer": ["0", "12#", "1/a"],
    "regex": ["", "ab 1"],
    "password": ["anything \u00e9"],
}


class Schemas:
    """Draws a schema; patterns are kept as `re` reads them."""

    def __init__(self, rng):
        self.rng, self.patterns = rng, {}

    def chance(self, share):
        return self.rng.random() < share

    def number(self):
        rng, s = self.rng, {}
        whole = self.chance(0.5)
        s["type"] = "integer" if whole else "number"
        if self.chance(0.65):
            digits = 0 if whole and self.chance(0.8) else rng.randrange(0, 4)
            size = rng.choice([1, 120, 120, 10**5])
            low = round(rng.uniform(-size, size), digits)
            high = round(low + rng.choice([0, 1, 0.01, 3.5, 20, 1000]), digits)
            if self.chance(0.1):
                low, high = rng.choice([(0, 0), (-1, 1), (9, 10), (99, 100),
                                        (-99999999, 99999999), (0.1, 0.9),
                                        (-0.001, 0.001), (0, 1)])
            if digits == 0:
                low, high = (int(x) if x == int(x) else x for x in (low, high))
            if self.chance(0.8):
                s[rng.choice(["minimum", "exclusiveMinimum"])] = low
            if self.chance(0.8):
                s[rng.choice(["maximum", "exclusiveMaximum"])] = high
        return s

    def text(self):
        rng, s, kind = self.rng, {"type": "string"}, self.rng.random()
        if kind < 0.3:
            if self.chance(0.8):
                s["minLength"] = rng.randrange(0, 4)
            if self.chance(0.8):
                s["maxLength"] = s.get("minLength", 0) + rng.choice([0, 1, 5, 40])
        elif kind < 0.6:
            ecma, python, make = patterns.searched(rng)
            self.patterns[ecma] = (python, make)
            s["pattern"] = ecma
        elif kind < 0.8:
            s["format"] = rng.choice(list(FORMATS))
        return s

    def values(self):
        if self.chance(0.3):
            return {"const": self.rng.choice(CONSTANTS)}
        s = {"enum": self.rng.sample(CONSTANTS, self.rng.randrange(1, 6))}
        if self.chance(0.2):
            s["type"] = ["string", "integer", "null", "object"]
            s["enum"].append("of this type")
        return s

    def array(self, depth):
        s, rng = {"type": "array"}, self.rng
        if self.chance(0.3):
            s["prefixItems"] = [self.schema(depth + 1)
                                for _ in range(rng.randrange(1, 4))]
        if self.chance(0.8):
            s["items"] = (False if self.chance(0.1) and "prefixItems" in s
                          else self.schema(depth + 1))
        if self.chance(0.5):
            s["minItems"] = rng.randrange(0, 4)
        if self.chance(0.5):
            s["maxItems"] = s.get("minItems", 0) + rng.randrange(0, 4)
        return s

    def thing(self, depth, most=5):
        rng = self.rng
        names = rng.sample(NAMES, rng.randrange(0, most))
        s = {"type": "object",
             "properties": {n: self.schema(depth + 1) for n in names}}
        s["required"] = [n for n in names if self.chance(0.5)]
        if self.chance(0.2):
            s["required"].append("extra")
        if self.chance(0.6):
            s["additionalProperties"] = (self.chance(0.5)
                                         or self.schema(depth + 1))
            if self.chance(0.5):
                s["additionalProperties"] = False
                s["required"] = [n for n in s["required"] if n != "extra"]
        if self.chance(0.1):
            del s["type"]
        return s

    def one_of(self, depth):
        kind = self.rng.random()
        if kind < 0.4:
            branches = [{"type": "object", "required": ["kind"],
                         "properties": {"kind": {"const": k},
                                        k: self.schema(depth + 1)}}
                        for k in ("cat", "dog", "eel")[:self.rng.randrange(1, 4)]]
            s = {"oneOf": branches}
            if self.chance(0.3):
                for b in branches:
                    del b["type"]
                s["type"] = "object"
            return s
        if kind < 0.8:
            makers = [self.number, self.text, lambda: {"type": "null"},
                      lambda: self.array(depth + 1), lambda: self.thing(depth + 1),
                      lambda: {"enum": [True]}]
            return {"oneOf": [m() for m in self.rng.sample(makers, 3)]}
        # These may overlap: then they must be refused.
        return {"oneOf": [self.schema(depth + 1), self.schema(depth + 1)]}

    def all_of(self, depth):
        kind = self.rng.random()
        if kind < 0.5:
            return {"allOf": [self.thing(depth + 1), self.thing(depth + 1)],
                    "description": "both"}
        if kind < 0.8:
            a, b = self.number(), self.number()
            a["type"] = b["type"] = "number"
            return {"allOf": [a, b, True]}
        return {"type": "object", "allOf": [{"$ref": "#/$defs/node"},
                                            {"properties": {"n": {}}}]}

    def reference(self):
        target = self.rng.choice(["node", "list", "tree", "short", "one", "two"])
        s = {"$ref": f"#/$defs/{target}"}
        if self.chance(0.2):
            s["description"] = "a reference"
        elif self.chance(0.2) and target == "short":
            s["minLength"] = 2
        return s

    def schema(self, depth=0):
        kind, rng = self.rng.random(), self.rng
        if depth > 4 or kind < 0.2:
            return self.number() if self.chance(0.5) else self.text()
        if kind < 0.3:
            return self.values()
        if kind < 0.34:
            return {"type": rng.sample(["null", "boolean", "integer", "string",
                                        "number", "array", "object"],
                                       rng.randrange(1, 4))}
        if kind < 0.42:
            s = {"anyOf": [self.schema(depth + 1)
                           for _ in range(rng.randrange(1, 4))]}
            if self.chance(0.2):
                s["type"] = ["object", "string", "number", "array"]
            return s
        if kind < 0.5:
            return self.one_of(depth)
        if kind < 0.56:
            return self.all_of(depth)
        if kind < 0.63:
            return self.reference()
        if kind < 0.65:
            return rng.choice([{}, True, {"title": "any"}, False, {"minimum": 3},
                               {"maxLength": 3}, {"items": {"type": "null"}}])
        if kind < 0.8:
            return self.array(depth)
        return self.thing(depth)

    def whole(self):
        s = self.schema()
        while isinstance(s, bool):
            s = self.schema()
        nothing = {"type": "null"}
        ref = {k: {"$ref": f"#/$defs/{k}"} for k in ("node", "tree", "one", "two")}
        s["$defs"] = {
            "node": {"type": "object", "required": ["n"],
                     "additionalProperties": False,
                     "properties": {"n": {"type": "integer"},
                                    "next": {"anyOf": [ref["node"], nothing]},
                                    "all": {"type": "array", "maxItems": 2,
                                            "items": ref["node"]}}},
            "list": {"oneOf": [nothing, {
                "type": "array", "minItems": 2, "maxItems": 2,
                "prefixItems": [self.text(), {"$ref": "#/$defs/list"}]}]},
            "tree": {"type": ["object", "null"], "additionalProperties": ref["tree"]},
            "short": {"type": "string", "maxLength": 5},
            "one": {"type": "array", "items": ref["two"], "maxItems": 2},
            "two": {"anyOf": [ref["one"], {"const": "leaf"}]}}
        return s
