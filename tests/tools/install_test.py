# tests/tools/install_test.py -- what `meson install` lays out.
#
# Usage: install_test.py BUILD_DIR
# Installs the build into a folder of its own and looks at it: the program runs,
# a plug-in compiles with what pkg-config says and nothing of the sources, and
# no file names the machine it was built on.
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop())
UNIT = "lib/systemd/system/shoal.service"
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="shoal-install-")
        cls.root = pathlib.Path(cls.folder.name)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild",
                        "--quiet"], env=os.environ | {"DESTDIR": cls.root},
                       check=True)
        cls.program = next(cls.root.rglob("bin/shoal"))
        cls.prefix = cls.program.parents[1]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_program_runs(self):
        out = subprocess.run([self.program, "--version"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(out, r"^shoal \d+\.\d+\.\d+")

    def test_headers_include_only_headers_that_are_there(self):
        include = self.prefix / "include/shoal"
        headers = {str(p.relative_to(include))
                   for p in include.rglob("*") if p.is_file()}
        named = {name for header in headers
                 for name in INCLUDE.findall((include / header).read_text())}
        self.assertEqual(named - headers, set())
        # What runtime/plugin.hpp calls the public interface: nothing else is
        # installed but what that includes.
        needed, more = set(), {
            "runtime/" + name for name in (
                "plugin.hpp", "context.hpp", "links/links.hpp",
                "work/device_queue.hpp", "store/store.hpp",
                "jobs/job_log.hpp")}
        self.assertLessEqual(more, headers)
        while more:
            needed |= more
            more = {name for header in more for name in INCLUDE.findall(
                (include / header).read_text())} - needed
        self.assertEqual(needed, headers)

    def test_a_plug_in_compiles(self):
        configuration = next(self.root.rglob("shoal.pc"))
        flags = subprocess.run(
            ["pkg-config", "--cflags", "shoal"], check=True, text=True,
            env=os.environ | {"PKG_CONFIG_LIBDIR": configuration.parent,
                              "PKG_CONFIG_SYSROOT_DIR": self.root},
            stdout=subprocess.PIPE).stdout.split()
        self.assertEqual(flags, [f"-I{self.prefix}/include/shoal"])
        example = next(self.root.rglob("hello_plugin.cpp"))
        subprocess.run(["g++", "-std=c++20", "-fsyntax-only", *flags, example],
                       check=True, cwd=self.root)

    def test_the_guide_is_there_with_all_that_it_links_to(self):
        guide = self.prefix / "share/doc/shoal/guide"
        self.assertEqual({p.name for p in guide.iterdir()},
                         {p.name for p in (ROOT / "apps/guide").iterdir()})
        self.assertTrue((guide.parent / "README.md").exists())

    def test_each_shell_finds_its_completions(self):
        share = self.prefix / "share"
        for path, begin in (
                ("bash-completion/completions/shoal.bash", "# bash completion"),
                ("zsh/vendor-completions/_shoal", "#compdef shoal\n"),
                ("fish/vendor_completions.d/shoal.fish", "# fish completion")):
            text = (share / path).read_text()
            self.assertTrue(text.startswith(begin), path)
            self.assertTrue("training.steps" in text, path)

    def test_the_service_names_what_is_installed(self):
        unit = (self.prefix / UNIT).read_text()
        for path in re.findall(r"(?:ExecStart=|file:)(/\S+)", unit):
            self.assertTrue((self.root / path.lstrip("/")).exists(), path)
        self.assertNotRegex(unit, "[0-9a-f]{64}")  # a key

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd here")
    def test_the_service_is_one_to_systemd(self):
        unit = self.prefix / UNIT
        mine = self.root / "shoal.service"
        mine.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={self.program}",
                               unit.read_text()))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", mine],
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT)
        about = [line for line in done.stdout.splitlines() if "shoal" in line]
        self.assertEqual(about, [])

    def test_no_text_names_the_folder_that_it_was_built_in(self):
        # The program may, with debug information; tools/package looks at it.
        for path in self.root.rglob("*"):
            if path.is_file() and path != self.program:
                self.assertNotIn(str(ROOT).encode() + b"/", path.read_bytes(),
                                 path)


if __name__ == "__main__":
    unittest.main()
