# tests/apps/completion_test.py -- what shells complete: bash and fish by running
# them, zsh's script by its syntax; each against the commands' own help.
import json
import re
import shutil
import subprocess
import unittest

from serving import Serving
from support import DEADLINE_S, main

# Completes the words that it is given, the last one begun; a line for each.
BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shoal
printf '%s\\n' "${COMPREPLY[@]}"
"""


def have(shell):
    return unittest.skipUnless(shutil.which(shell), f"{shell} is not installed")


class Completion(Serving):
    def setUp(self):
        super(Serving, self).setUp()  # most tests need no model
        self.write("run.toml", "")
        (self.folder / "results").mkdir()

    def script(self, shell):
        return self.write(f"{shell}.script", self.succeed("completion", shell))

    def run_in(self, command, env=None):
        done = subprocess.run(
            [*map(str, command)], cwd=self.folder, env=env or self.env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout.splitlines()

    def bash(self, *words):
        told = self.run_in(["bash", "--norc", "-c", BASH, "bash",
                            self.folder / "bash.script", self.program, *words])
        return {word for word in told if word}

    def options(self, command=None):
        """What its help lists, with keys of run files."""
        text = self.succeed(*([command] if command else []), "--help")
        alike = " ".join(re.findall(
            r"as in config\.json, each with its default: (.*?)\n\n",
            text + "\n\n", re.S))
        return (set(re.findall(r"(?m)^  (?:-\w,|\S+,)?(--[\w.-]+)", text))
                | set(re.findall(r"--[\w.-]+", alike)))

    def commands(self):
        text = self.succeed("--help")
        below = text[text.index("\nSubcommands:"):]
        return set(re.findall(r"(?m)^  ([a-z]+)  ", below.split("\n\n")[0]))

    def test_bash_completes_all_that_the_help_lists(self):
        self.run_in(["bash", "-n", self.script("bash")])
        commands = self.commands()
        self.assertLess({"train", "serve", "completion"}, commands)
        self.assertEqual(self.bash(""), commands)
        self.assertEqual(self.bash("-"), self.options())
        for command in commands:
            options = self.options(command)
            self.assertIn("--help", options)
            self.assertEqual(self.bash(command, "--"), options, command)

    def test_bash_completes_values_as_the_table_says(self):
        self.script("bash")
        for words, expected in (
                (["tr"], {"train"}),
                (["train", "--training.ste"], {"--training.steps"}),
                (["bench", "gem"], {"gemm"}),
                (["bench", "gemm", ""], set()),  # one word at that place
                (["bench", "--type", "q"], {"q4", "q8"}),
                (["bench", "--type", "=", "q"], {"q4", "q8"}),
                (["bench", "--type", "="], {"f32", "bf16", "q4", "q8"}),
                (["bench", "--type", "q4", "q"], {"q4", "q8"}),  # several
                (["node", "--fabric.force", "t"], {"tls"}),
                (["train", "--checkpoint.enable", "t"], {"true"}),
                (["train", "--resume", "r"], {"run.toml", "results"}),
                (["train", "--data", "x", "r"], {"run.toml", "results"}),
                (["train", "--out", "r"], {"results"}),  # folders alone
                (["train", "--threads", ""], set()),
                (["serve", "--replicas", ""], {"auto"}),  # or a number
                (["--config", "ru"], {"run.toml"}),
                (["--config", "run.toml", "sta"], {"status"}),
                (["key", "show", "ru"], {"run.toml"}),
                (["swim", "r"], set()),
                (["cancel", ""], set())):  # no node runs here
            self.assertEqual(self.bash(*words), expected, words)

    def test_names_come_from_the_node_and_are_never_expanded(self):
        self.succeed("init", self.tiny_run(), "--out", "m")
        self.script("bash")
        nodes, at = {}, {}
        self.begin_node("first", nodes, at)
        for name in ("good-name", "$(touch expanded)"):
            self.succeed("serve", "m", "--as", name, "--detach")
        self.assertEqual(self.succeed("completion", "jobs"), "good-name\n")
        self.assertEqual(self.succeed("completion", "models"), "good-name\n")
        self.assertEqual(self.succeed("completion", "peers"), "first\n")
        self.assertEqual(self.bash("cancel", "g"), {"good-name"})
        self.assertEqual(self.bash("cancel", ""), {"good-name"})
        self.assertEqual(self.bash("chat", "g"), {"good-name"})
        self.assertEqual(self.bash("chat", "r"), {"run.toml", "results"})
        self.assertEqual(self.bash("revoke", ""), {"first"})
        self.assertFalse((self.folder / "expanded").exists())
        named = [job["name"] for job in
                 json.loads(self.succeed("jobs", "--json"))]
        self.assertIn("$(touch expanded)", named)

    @have("zsh")
    def test_the_script_for_zsh_is_one_to_zsh(self):
        self.run_in(["zsh", "-f", "-n", self.script("zsh")])

    def test_the_script_for_zsh_has_all_that_the_help_lists(self):
        text = self.script("zsh").read_text(encoding="utf-8")
        self.assertTrue(text.startswith("#compdef shoal\n"))
        parts = dict(re.findall(
            r"(?ms)^    ([a-z]+)\)\n      _arguments (.*?)&& return ;;", text))
        self.assertEqual(set(parts), self.commands())
        for command, part in parts.items():
            self.assertEqual(set(re.findall(r"(--[\w.-]+)[=\[]", part)),
                             self.options(command), command)
        self.assertIn(":(gemm", "".join(
            part.replace("link allreduce pipeline memory ", "")
            for part in parts["bench"].splitlines()))
        self.assertRegex(parts["node"], r"--data-dir=\[.*:DIR:_files -/")
        self.assertRegex(parts["cancel"], r"'1:JOB:_shoal_names jobs'")

    @have("fish")
    def test_fish_completes_as_bash_does(self):
        script = self.script("fish")
        self.run_in(["fish", "-n", script])

        def complete(line):
            told = self.run_in(
                ["fish", "--no-config", "-c",
                 'source $argv[1]; complete -C $argv[2]', script, line])
            return {word.split("\t")[0] for word in told}
        self.assertEqual(complete(f"{self.program} "), self.commands())
        for command in ("train", "status", "serve"):
            self.assertEqual(
                complete(f"{self.program} {command} --"), self.options(command))
        for line, expected in (("bench gem", {"gemm"}),
                               ("bench --type q", {"q4", "q8"}),
                               ("train --out r", {"results/"}),
                               ("train ru", {"run.toml"}),
                               ("train --resume ru", {"run.toml"}),
                               ("--config run.toml sta", {"status"}),
                               ("key show ru", {"run.toml"})):
            self.assertEqual(complete(f"{self.program} {line}"), expected, line)


if __name__ == "__main__":
    main()
