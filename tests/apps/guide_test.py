# tests/apps/guide_test.py -- what the README and the guide show, there is.
#
# Each command that a page shows is compared with the program's help, each key
# with the run file's, each path with the tree; the example of memory.md is
# planned. Nothing that a page shows is executed but that.
import functools
import json
import pathlib
import re
import shlex

from support import World, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "apps/guide"
# reference.md is not among them: the program writes it.
PAGES = [ROOT / "README.md", *(p for p in sorted(GUIDE.glob("*.md"))
                               if p.name != "reference.md")]
FOLDERS = "kernels|transport|runtime|actors|apps|tests|tools"


def blocks(text):
    """The indented blocks of a page, each as its lines."""
    for block in re.findall(r"(?:(?:^    .*|^)\n)+", text, re.M):
        lines = [line[4:] for line in block.strip("\n").splitlines()]
        if any(lines):
            yield lines


def spans(text):
    """Inline code of a page; it may be broken over two lines."""
    prose = re.sub(r"^    .*$", "", text, flags=re.M)
    return [" ".join(s.split()) for s in re.findall(r"`([^`]+)`", prose)]


def commands(text):
    """The command lines of a page, as words after `shoal`."""
    shown = [line for lines in blocks(text) for line in lines] + spans(text)
    for line in shown:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # an apostrophe: no command
            continue
        while words:
            end = next((i for i, w in enumerate(words) if w == "&&"),
                       len(words))
            one, words = words[:end], words[end + 1:]
            if one and (one[0] == "shoal" or one[0].endswith("/shoal")):
                yield one[1:]


class Guide(World):
    @functools.lru_cache(maxsize=None)
    def options(self, command=None):
        """Flags in a command's help; of all commands together for None."""
        if command is None:
            return set().union(*map(self.options, self.known_commands()),
                               self.options(""))
        text = self.succeed(*([command] if command else []), "--help")
        return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w.-]*", text))

    @functools.lru_cache(maxsize=None)
    def known_commands(self):
        listed = self.succeed("--help").split("Subcommands:")[1]
        return tuple(re.findall(r"^  ([a-z]+)", listed, re.M))

    def check_command(self, words):
        command = next((w for w in words if not w.startswith("-")), "")
        if words[:1] == ["..."] or command.isupper():
            return  # stands for any command
        if command:
            self.assertIn(command, self.known_commands())
        known = self.options(command) | self.options("")
        for word in words:
            if word.startswith("-"):
                self.assertIn(word.split("=")[0], known)

    def test_commands_and_flags_exist(self):
        found = 0
        for page in PAGES:
            for words in commands(page.read_text(encoding="utf-8")):
                found += 1
                with self.subTest(page=page.name, command=" ".join(words)):
                    self.check_command(words)
        self.assertGreater(found, 60)  # or this test looks past them

    def test_flags_and_keys_that_are_named_exist(self):
        keys = {f[2:] for f in self.options("train") | self.options("node")
                if "." in f}
        sections = {k.split(".")[0] for k in keys}
        files = r"\.(toml|json|jsonl|md|safetensors)$"
        for page in PAGES:
            for span in spans(page.read_text(encoding="utf-8")):
                with self.subTest(page=page.name, span=span):
                    flag = re.match(r"--[a-z][\w.-]*", span)
                    if flag:
                        self.assertIn(flag[0], self.options())
                    key = re.match(r"([a-z_]+)\.[a-z_0-9]+(?= =|$)", span)
                    if (key and key[1] in sections
                            and not re.search(files, key[0])):
                        self.assertTrue(key[0] in keys, key[0])

    def test_paths_exist_and_each_page_is_listed(self):
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            with self.subTest(page=page.name):
                for span in spans(text):
                    if re.fullmatch(rf"({FOLDERS})/[\w/.-]+", span):
                        self.assertTrue(
                            (ROOT / span).exists()
                            or list(ROOT.glob(span + ".*")), span)
                for link in re.findall(r"\]\(([^)#:]+)\)", text):
                    self.assertTrue((page.parent / link).exists(), link)
        listed = spans(PAGES[0].read_text(encoding="utf-8"))
        for page in PAGES[1:]:
            self.assertIn(page.name, listed)

    def test_the_example_of_memory_is_what_is_planned(self):
        text = (GUIDE / "memory.md").read_text(encoding="utf-8")
        named = {}
        for lines in blocks(text):
            if name := re.match(r"# (\w+\.toml)$", lines[0]):
                named[name[1]] = self.write(name[1], "\n".join(lines))
        command, = (words for words in commands(text)
                    if words[:2] == ["plan", "memory.toml"])
        plan = json.loads(self.succeed(*command, "--json"))
        peers = [stage["peer"] for stage in plan["replicas"][0]["stages"]]
        kinds = {m["peer"]: {**m["kinds"], "in all": m["needs_bytes"]}
                 for m in plan["memory"]}
        rows = re.findall(r"^\| ([a-z ]+) \| ([\d,]+) \| ([\d,]+) \|$", text,
                          re.M)
        self.assertEqual({r[0] for r in rows}, set(kinds[peers[0]]))
        for name, *cells in rows:
            for peer, cell in zip(peers, cells):
                self.assertEqual(int(cell.replace(",", "")),
                                 kinds[peer][name], (name, peer))
        # The formula itself, by its own numbers.
        d, q, k, heads, mlp = 256, 256, 256, 4, 704
        kept = (2 * d + 2 + 2 * q + 2 * k + heads + 3 * mlp
                + 4 * d + q + 2 * k)
        self.assertIn(f"A = {kept:,}", text)
        layer = 4 * d * d + 3 * mlp * d + 2 * d
        self.assertIn(f"{layer:,} parameters", text)
        for stage, (own, held) in enumerate([(256 * d, 2), (257 * d, 1)]):
            of = kinds[peers[stage]]
            self.assertEqual(of["parameters"], 4 * (2 * layer + own))
            self.assertEqual(of["activations"], 2 * 4 * kept * 1024 * held)


if __name__ == "__main__":
    main()
