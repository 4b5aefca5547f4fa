# tests/apps/audit_test.py -- `shoal audit` of runs that did as they should, and
# of metrics that somebody has changed.
import json

from support import World, main


class Audit(World):
    def change(self, out, change):
        """Rewrites the steps of a run's metrics."""
        file = self.folder / out / "metrics.jsonl"
        events = [json.loads(line) for line in file.read_text().splitlines()]
        steps = [e for e in events if e["event"] == "step"]
        rest = [e for e in events if e["event"] != "step"]
        file.write_text("".join(json.dumps(e) + "\n"
                                for e in rest + change(steps)))

    def audit(self, code, *arguments):
        result = self.run_shoal("audit", *arguments, "--json")
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def test_a_run_is_proven(self):
        self.train("out")
        found = self.audit(0, "out")
        self.assertEqual((found["first_step"], found["steps"],
                          found["samples"]), (1, 5, 5 * 8))
        self.assertTrue(found["proven"])
        self.assertIn("proven: each step", self.succeed("audit", "out"))

    def test_stages_use_the_samples_of_one_process(self):
        def data(events):
            return [e["data"] for e in events if e["event"] == "step"]
        one = data(self.train("a"))
        split = self.train(
            "b", "--parallelism.pipeline_parallel_layers_per_stage", "1,2")
        self.assertEqual(one, data(split))
        self.assertEqual(len(set(one)), 5)

    def test_what_is_wrong_is_named(self):
        self.train("out")

        def wrong(steps):
            steps[1]["data"] = steps[0]["data"]
            steps[2].pop("data")
            return steps[:3] + steps[4:]
        self.change("out", wrong)
        found = self.audit(1, "out")
        self.assertEqual((found["other"], found["unknown"], found["missing"]),
                         ([2], [3], [4]))
        text = self.run_shoal("audit", "out").stdout
        self.assertIn("other samples than their own: 2", text)
        self.assertIn("not proven", text)

    def test_other_text_is_another_run(self):
        self.train("out")
        (self.folder / "other").mkdir()
        (self.folder / "other" / "a.txt").write_text("another text " * 5000)
        found = self.audit(1, "out", "--data", "other")
        self.assertEqual(found["other"], [1, 2, 3, 4, 5])

    def test_bad_input_is_named(self):
        self.refuse(2, "audit", "nowhere", names=["nowhere"])
        self.train("out")
        (self.folder / "out" / "metrics.jsonl").write_text("nonsense\n")
        self.refuse(2, "audit", "out", names=["metrics.jsonl"])


if __name__ == "__main__":
    main()
