# tests/apps/plugin_test.py -- roles from shared libraries, on real nodes.
#
# Usage: plugin_test.py SHOAL HELLO OTHER_ABI OTHER_LAYOUT NAME_TAKEN THROWING,
# the last five plug-ins; see plugins/.
import os
import pathlib
import shutil
import signal
import sys

from support import TINY_RUN, World, main

HELLO = OTHER_ABI = OTHER_LAYOUT = NAME_TAKEN = THROWING = None


class Plugin(World):
    def node(self, name, *arguments):
        node = self.start("node", "--threads", 1, "--name", name, *arguments)
        node.wait_line(lambda line: line.startswith("ready:"))
        return node

    def test_a_role_runs_on_each_node_that_loads_it(self):
        nodes = [self.start("node", "--threads", 1, "--name", name, "--plugin",
                            HELLO) for name in ("one", "two")]
        for node in nodes:
            node.wait_line(lambda line: "plug-in hello" in line)
            node.wait_line(lambda line: "[hello] 2 peers" in line)
        for node in nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_a_run_file_places_roles(self):
        nodes = [self.node(name, "--plugin", HELLO) for name in ("one", "two")]
        for node in nodes:
            node.wait_line(lambda line: "2 peers" in line)
        run = self.write("placed.toml", TINY_RUN + """
[parallelism]
pipeline_parallel_degree = 2

[[roles]]
name = "hello"
where = "every_stage"
parameters = { greeting = "ahoy", times = 3 }

[[roles]]
name = "hello"
where = "two"
""")
        self.events(self.succeed(
            "train", run, "--name", "one", "--out", "out", "--json",
            "--data", self.write_text_files()))
        for node in nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)
        said = [[line for line in node.lines + node.come()
                 if "[hello] hello@" in line] for node in nodes]
        stages = [line for lines in said for line in lines if ":0." in line]
        self.assertEqual(sorted({line.split(":0.")[1][0] for line in stages}),
                         ["0", "1"], said)
        for line in stages:
            self.assertIn('"greeting":"ahoy"', line)
        self.assertFalse([line for line in said[0] if "=1 " in line], said)
        self.assertTrue([line for line in said[1] if "=1 " in line], said)
        # What was run can be run again from what was written.
        self.assertIn("[[roles]]", (self.folder / "out/run.toml").read_text())
        self.succeed("plan", self.folder / "out/run.toml", "--data",
                     self.write_text_files())

    def test_a_node_without_the_role_says_so_and_goes_on(self):
        node = self.node("plain")
        run = self.write("placed.toml", TINY_RUN + """
[[roles]]
name = "hello"
where = "every_peer"

[[roles]]
name = "hello"
where = "nobody"
""")
        events = self.events(self.succeed(
            "train", run, "--name", "plain", "--out", "out", "--json",
            "--data", self.write_text_files()))
        self.assertEqual(events[-1].get("state", "done"), "done")
        said = [e.get("text", "") for e in events]
        for text in ("'hello' on every_peer: not started, as no peer there has "
                     "it: start nodes with `shoal node --plugin FILE`",
                     "'hello' on nobody: not started, as no active peer is "
                     "called 'nobody'"):
            self.assertEqual(len([s for s in said if text in s]), 1, said)
        self.assertEqual(node.end(signal.SIGTERM), 0)

    # Without its actor a process would answer and hold its seat, but do
    # nothing: it must end, with a line, and the others go on.
    def test_an_exception_that_nobody_catches_ends_the_process(self):
        for where, thrower in (("role", "the role throwing"),
                               ("child", r"the actor child \(\d+\)"),
                               ("thread", "the thread thrower")):
            with self.subTest(where=where):
                other = self.node(f"other-{where}")
                self.env["SHOAL_TEST_THROWS_IN"] = where
                node = self.start("node", "--threads", 1, "--name", where,
                                  "--plugin", THROWING, "--json")
                line = node.wait_line(lambda line: "internal error" in line)
                self.assertRegex(
                    line, thrower + r" threw std::out_of_range: no  \[2J such "
                    "\ufffd place")
                self.assertIn("start it again", line)
                self.assertNotEqual(node.end(), 0)
                other.wait_line(lambda line: line.startswith("alone so far")
                                or ": 1 peer (" in line)
                self.assertEqual(other.end(signal.SIGTERM), 0)

    def refuse_plugin(self, file, *names):
        return self.refuse(1, "node", "--name", "none", "--plugin", file,
                           names=names)

    def test_what_is_no_plugin_is_refused_with_a_reason(self):
        self.refuse_plugin(self.folder / "none.so", "none.so", "No such file")
        text = self.write("text.so", "no library\n")
        self.refuse_plugin(text, "text.so", "cannot be loaded")
        self.refuse_plugin(self.folder, "is no file")
        library = "/usr/lib/x86_64-linux-gnu/libcaf_core.so"
        self.refuse_plugin(library, "shoal_plugin", "no shoal plug-in")
        self.refuse_plugin(OTHER_ABI, "ABI 44", "compile it")
        self.refuse_plugin(OTHER_LAYOUT, "other headers", "compile it again")
        self.refuse_plugin(NAME_TAKEN, "'supervisor'", "there already")
        mine = pathlib.Path(shutil.copy(HELLO, self.folder))
        os.chmod(mine, 0o777)
        self.refuse_plugin(mine, "written by everybody")

    def test_roles_of_a_run_file_are_checked(self):
        for text, name in (("[roles]\nname = 1\n", "list of tables"),
                           ("[[roles]]\nwhere = 'two'\n", "needs a name"),
                           ("[[roles]]\nname = 'a'\nplace = 'x'\n", "place"),
                           ("[[roles]]\nname = 'a'\n[[roles]]\nname = 'a'\n",
                            "twice")):
            run = self.write("bad.toml", TINY_RUN + text)
            self.refuse(2, "plan", run, "--data", self.folder, names=[name])


if __name__ == "__main__":
    HELLO, OTHER_ABI, OTHER_LAYOUT, NAME_TAKEN, THROWING = (
        str(pathlib.Path(sys.argv.pop(2)).resolve()) for _ in range(5))
    main()
