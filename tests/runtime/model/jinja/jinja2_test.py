# tests/runtime/model/jinja/jinja2_test.py -- the same templates by jinja2, with
# the settings of Hugging Face's transformers, and by runtime/model/jinja.
#
#   jinja2_test.py JINJA_RENDER
import datetime
import json
import pathlib
import subprocess
import sys
import unittest

import constructs
import conversations
import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

RENDER = None
NOW = datetime.datetime(2026, 11, 26, 15, 4)
TEMPLATES = pathlib.Path(__file__).parent / "templates"
CONVERSATIONS = 1000  # of each template


class Raised(Exception):
    pass


class Generation(jinja2.ext.Extension):
    """{% generation %}: as a call of the body, as transformers has it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"],
                                       drop_needle=True)
        call = self.call_method("_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    @staticmethod
    def _body(caller):
        return caller()


def environment():
    def tojson(value, ensure_ascii=False, indent=None, separators=None,
               sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent,
                          separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise Raised(message)

    out = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols])
    out.filters["tojson"] = tojson
    out.globals["raise_exception"] = raise_exception
    out.globals["strftime_now"] = NOW.strftime
    return out


def by_jinja2(template, variables):
    try:
        return "text", environment_of(template).render(**variables)
    except Raised as raised:
        return "raised", str(raised)
    except Exception as fault:
        return "fault", f"{type(fault).__name__}: {fault}"


PARSED = {}


def environment_of(template):
    if template not in PARSED:
        PARSED[template] = environment().from_string(template)
    return PARSED[template]


def by_shoal(cases):
    """Cases are pairs of a template and its variables, or triples with those of
    the model."""
    lines, last = [], None
    for template, variables, *own in cases:
        if template != last:
            lines.append(json.dumps({"template": template}))
            last = template
        lines.append(json.dumps({"vars": variables,
                                 "own": own[0] if own else {}}))
    done = subprocess.run([RENDER], input="\n".join(lines) + "\n", text=True,
                          stdout=subprocess.PIPE, check=True)
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        if "text" in answer:
            yield "text", answer["text"]
        else:
            yield ("raised" if answer["raised"] else "fault"), answer["error"]


class Jinja(unittest.TestCase):
    maxDiff = None

    def same(self, cases, alike=()):
        """@param alike kinds of results that need not have the same text"""
        kinds = {}
        for (template, variables, *own), ours in zip(
                cases, by_shoal(cases), strict=True):
            theirs = by_jinja2(template, variables | (own[0] if own else {}))
            kinds[theirs[0]] = kinds.get(theirs[0], 0) + 1
            if theirs[0] in alike:
                ours, theirs = (ours[0], ours[1]), (theirs[0], ours[1])
            if ours != theirs:
                with self.subTest(template=template):
                    self.assertEqual(ours, theirs)
        return kinds

    def test_every_construct(self):
        cases = [("{{ " + e + " }}", constructs.VARIABLES)
                 for e in constructs.EXPRESSIONS]
        self.assertEqual(self.same(cases), {"text": len(cases)})
        cases = [("{{ " + e + " }}", constructs.VARIABLES)
                 for e in constructs.FAULTS]
        kinds = self.same(cases, alike=("fault",))
        self.assertEqual(kinds, {"raised": 1, "fault": len(cases) - 1})
        cases = [(t, constructs.VARIABLES) for t in constructs.TEMPLATES]
        kinds = self.same(cases, alike=("fault",))
        self.assertEqual(kinds["raised"], 2)

    def test_drawn_conversations(self):
        files = sorted(TEMPLATES.glob("*.jinja"))
        self.assertGreaterEqual(len(files), 8)
        for file in files:
            template = file.read_text(encoding="utf-8")
            drawn = conversations.draw(file.stem, CONVERSATIONS)
            with self.subTest(template=file.name):
                kinds = self.same([(template, v, conversations.OWN)
                                   for v in drawn], alike=("fault",))
                # Most conversations are right, but not all.
                self.assertGreater(kinds["text"], CONVERSATIONS // 2, kinds)
                self.assertEqual(kinds.get("fault", 0), 0, kinds)


if __name__ == "__main__":
    RENDER = sys.argv.pop(1)
    unittest.main()
