# tests/runtime/openai/schema_judge_test.py -- whatever is written under a schema
# is valid by it.
#
#   schema_judge_test.py SCHEMA_TEXTS [COUNT [SEED]]
#
# Makes COUNT random schemas of the keywords that are understood; SCHEMA_TEXTS
# writes texts by each; the jsonschema package judges them. A schema may be
# refused (no value is possible, parts cannot be merged), but few are.
import json
import random
import subprocess
import sys

import jsonschema

TEXTS = 3
NAMES = ["id", "name", "value", "a b", "é", "x-y", "tags", "n", "\"q\"", ""]
PATTERNS = ["^[a-z]{2,5}$", "[0-9]+", "^(a|bc)*$", "x|^y", "^\\d{3}-\\d{4}$",
            "^[^\\n\"]{1,4}$", "^a.c$", "^\\w+@\\w+\\.com$", "^\\\\n?$"]
CONSTANTS = [None, True, False, 0, -7, 1.5, "", "red", "grün", "a\"b\\c\n",
             [], [1, "x"], {}, {"b": 1, "a": [True]}]


def number(rng):
    s = {}
    whole = rng.random() < 0.5
    s["type"] = "integer" if whole else "number"
    if rng.random() < 0.6:
        digits = 0 if whole and rng.random() < 0.8 else rng.randrange(0, 4)
        low = round(rng.uniform(-120, 120), digits)
        high = round(low + rng.choice([0, 1, 3.5, 20, 1000]), digits)
        if digits == 0:
            low, high = int(low), int(high)
        if rng.random() < 0.8:
            s[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if rng.random() < 0.8:
            s[rng.choice(["maximum", "exclusiveMaximum"])] = high
    return s


def text(rng):
    s = {"type": "string"}
    kind = rng.random()
    if kind < 0.25:
        s["minLength"] = rng.randrange(0, 4)
        s["maxLength"] = s["minLength"] + rng.randrange(0, 5)
    elif kind < 0.5:
        s["pattern"] = rng.choice(PATTERNS)
    elif kind < 0.65:
        s["format"] = rng.choice(["date", "time", "date-time", "uuid", "ipv4",
                                  "email"])
    return s


def values(rng):
    if rng.random() < 0.3:
        return {"const": rng.choice(CONSTANTS)}
    return {"enum": rng.sample(CONSTANTS, rng.randrange(1, 5))}


def array(rng, depth):
    s = {"type": "array"}
    if rng.random() < 0.3:
        s["prefixItems"] = [schema(rng, depth + 1)
                            for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.8:
        s["items"] = schema(rng, depth + 1)
    if rng.random() < 0.5:
        s["minItems"] = rng.randrange(0, 4)
    if rng.random() < 0.5:
        s["maxItems"] = s.get("minItems", 0) + rng.randrange(0, 4)
    return s


def thing(rng, depth):
    names = rng.sample(NAMES, rng.randrange(0, 5))
    s = {"type": "object",
         "properties": {n: schema(rng, depth + 1) for n in names}}
    s["required"] = [n for n in names if rng.random() < 0.5]
    if rng.random() < 0.2:
        s["required"].append("extra")
    if rng.random() < 0.5:
        s["additionalProperties"] = (rng.random() < 0.5
                                     or schema(rng, depth + 1))
        if rng.random() < 0.5:
            s["additionalProperties"] = False
            s["required"] = [n for n in s["required"] if n != "extra"]
    return s


def schema(rng, depth=0):
    kind = rng.random()
    if depth > 3 or kind < 0.2:
        return number(rng) if rng.random() < 0.5 else text(rng)
    if kind < 0.3:
        return values(rng)
    if kind < 0.35:
        return {"type": rng.sample(["null", "boolean", "integer", "string",
                                    "array", "object"], 2)}
    if kind < 0.45:
        return {"anyOf": [schema(rng, depth + 1)
                          for _ in range(rng.randrange(1, 4))]}
    if kind < 0.5:
        return {"oneOf": [{"type": "object", "required": ["kind"],
                           "properties": {"kind": {"const": k},
                                          k: schema(rng, depth + 1)}}
                          for k in ("cat", "dog")]}
    if kind < 0.55:
        a, b = thing(rng, depth + 1), thing(rng, depth + 1)
        return {"allOf": [a, b], "description": "both"}
    if kind < 0.6:
        return {"$ref": "#/$defs/node"}
    if kind < 0.62:
        return {}
    if kind < 0.8:
        return array(rng, depth)
    return thing(rng, depth)


def whole(rng):
    s = schema(rng)
    s["$defs"] = {"node": {
        "type": "object", "required": ["n"], "additionalProperties": False,
        "properties": {"n": {"type": "integer"},
                       "next": {"anyOf": [{"$ref": "#/$defs/node"},
                                          {"type": "null"}]},
                       "all": {"type": "array", "maxItems": 2,
                               "items": {"$ref": "#/$defs/node"}}}}}
    if "$ref" in s:
        del s["$defs"]
        s = {"$defs": {"node": text(rng)}, **s}
    return s


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1500
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    schemas = [whole(rng) for _ in range(count)]
    lines = "".join(json.dumps(s) + "\n" for s in schemas)
    done = subprocess.run([program, str(TEXTS)], input=lines, text=True,
                          stdout=subprocess.PIPE, timeout=3000)
    assert done.returncode == 0, done.returncode
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == count, len(told)
    refused, texts = {}, 0
    for s, answer in zip(schemas, told):
        if isinstance(answer, dict):
            why = answer["error"].split(": ", 1)[-1]
            refused[why] = refused.get(why, 0) + 1
            continue
        judge = jsonschema.Draft202012Validator(s)
        for t in answer:
            value = json.loads(t)
            error = next(judge.iter_errors(value), None)
            assert error is None, (json.dumps(s), t, error.message)
            texts += 1
    print(f"{texts} texts by {count} schemas are valid; refused: {refused}")
    # What is not understood is no way out: most are.
    assert sum(refused.values()) < count / 5, refused
    assert texts > count, texts


if __name__ == "__main__":
    main()
