# tests/tools/layers_test.py -- the rules of the house find what breaks them.
#
# Each case breaks one rule in a copy of the tree and looks for the line that
# names the place. The tree as it is breaks none.
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
TOOL = ROOT / "tools" / "check_layers.py"
FOLDERS = ("kernels", "transport", "runtime", "actors", "apps", "tests",
           "tools")


class Layers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="shoal-test-")
        cls.tree = pathlib.Path(cls.home.name) / "tree"
        for folder in FOLDERS:
            shutil.copytree(ROOT / folder, cls.tree / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "README.md", cls.tree)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def said(self):
        done = subprocess.run([sys.executable, TOOL, self.tree], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, int(done.stdout != "layers: ok\n"),
                         done.stderr)
        return done.stdout.splitlines()

    def finds(self, line, **files):
        """Writes or extends files ("+..."), and expects just this finding."""
        before = {}
        for name, text in files.items():
            path = self.tree / name
            before[path] = path.read_text("utf-8") if path.exists() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((before[path] or "") + text[1:]
                            if text.startswith("+") else text, "utf-8")
        try:
            self.assertIn(line, self.said())
        finally:
            for path, text in before.items():
                if text is None:
                    path.unlink()
                else:
                    path.write_text(text, "utf-8")

    def test_the_tree_keeps_all_rules(self):
        self.assertEqual(self.said(), ["layers: ok"])

    def test_an_include_that_climbs(self):
        name = "runtime/store/store.cpp"
        length = len((self.tree / name).read_text("utf-8").splitlines())
        self.finds(f"{name}:{length + 1}: runtime/store may not include "
                   "runtime/node, which is not on a lower floor",
                   **{name: '+#include "runtime/node/node.hpp"\n'})

    def test_a_cycle_of_rooms(self):
        with self.assertRaisesRegex(AssertionError, "closes a cycle of rooms: "
                                    ".*runtime/node -> .*runtime/store"):
            self.finds("", **{"runtime/store/store.cpp":
                              '+#include "runtime/node/node.hpp"\n'})

    def test_beast_outside_of_its_sources(self):
        header = "<boost/beast/http/basic_parser.hpp>"
        for name, finding in (
                ("runtime/http/request_reader.hpp", "a header may not include"),
                ("runtime/node/mesh.cpp", "may not include"),
                ("apps/shoal.cpp", "may not include")):
            with self.subTest(name=name):
                length = len((self.tree / name).read_text("utf-8").splitlines())
                self.finds(f"{name}:{length + 1}: {finding} {header}",
                           **{name: f"+#include {header}\n"})

    def test_a_layer_that_may_not_be_included(self):
        name = "runtime/core/ids.cpp"
        length = len((self.tree / name).read_text("utf-8").splitlines())
        for header in ('"kernels/common/tensor.hpp"', "<caf/all.hpp>"):
            with self.subTest(header=header):
                self.finds(f"{name}:{length + 1}: may not include {header}",
                           **{name: f"+#include {header}\n"})

    def test_a_room_with_too_many_files(self):
        count = len([path for path in (self.tree / "runtime/work").iterdir()
                     if path.suffix in (".hpp", ".cpp")])
        new = {f"runtime/work/x{i}.hpp": f"// runtime/work/x{i}.hpp -- x\n"
               for i in range(26 - count)}
        self.finds("runtime/work:1: 26 files, more than 25", **new)

    def test_a_room_without_a_floor_or_a_readme(self):
        new = {"runtime/attic/x.hpp": "// runtime/attic/x.hpp -- x\n"}
        self.finds("runtime/attic:1: has no floor in tools/check_layers.py",
                   **new)
        self.finds("runtime/attic:1: has no README.md", **new)

    def test_sources_that_are_not_listed_or_not_sorted(self):
        name = "runtime/work/meson.build"
        text = (self.tree / name).read_text("utf-8")
        self.finds(f"{name}:1: does not list serial.cpp",
                   **{name: text.replace("  'serial.cpp',\n", "")})
        moved = text.replace("  'serial.cpp',\n", "").replace(
            "files(\n", "files(\n  'serial.cpp',\n")
        self.finds(f"{name}:1: lists its files unsorted", **{name: moved})

    def test_files_and_readmes_that_are_too_long(self):
        self.finds("runtime/work/long.hpp:1: 601 lines, more than 600",
                   **{"runtime/work/long.hpp":
                      "// runtime/work/long.hpp -- x\n" + "\n" * 600})
        self.finds("runtime/work/README.md:1: 61 lines, more than 60",
                   **{"runtime/work/README.md": "x\n" * 61})

    def test_a_first_line_that_is_not_the_path(self):
        self.finds("runtime/work/x.hpp:1: the first line is not "
                   "'// runtime/work/x.hpp -- what it is'",
                   **{"runtime/work/x.hpp": "// x.hpp\n"})

    def test_json_outside_its_home_and_a_test_that_sleeps(self):
        name = "runtime/work/x.cpp"
        head = f"// {name} -- x\n"
        self.finds(f"{name}:2: JSON is parsed by runtime/files/json.hpp only",
                   **{name: head + "auto x = json::parse(text);\n"})
        self.finds(f"{name}:2: JSON is written by json_text() of "
                   "runtime/files/json.hpp only",
                   **{name: head + "auto x = object.dump();\n"})
        name = "tests/runtime/x_test.cpp"
        self.finds(f"{name}:2: a test sleeps",
                   **{name: f"// {name} -- x\n"
                      "std::this_thread::sleep_" "for(1s);\n"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
