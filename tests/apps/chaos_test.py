# tests/apps/chaos_test.py -- `shoal chaos`: the run survives, nothing is left.
#
# Only outcomes are judged: what was done, that no committed step was lost,
# that processes and folders are gone. No time is.
import signal

from support import TINY_RUN, World, main

# Its first round, of whatever kinds there are, takes seven seconds: stops and
# cuts that are long enough for a peer to be missed, and a death.
SEED = "111145"
KINDS = {"kill", "stop", "slow", "cut"}


class Chaos(World):
    def folders(self):
        return list(self.folder.glob("shoal-chaos-*"))

    def test_a_harmed_run_loses_no_committed_step(self):
        events = self.events(self.succeed(
            "chaos", "--minutes", "0.5", "--every", "0.3", "--calm", "1",
            "--seed", SEED, "--json"))
        report = events[-1]
        self.assertEqual(report["event"], "report")
        self.assert_documented("chaos", *events)
        self.assertEqual((report["good"], report["state"]), (True, "done"))
        self.assertEqual((report["repeated"], report["missing"],
                          report["forks"]), (0, 0, 0))
        done = [e["kind"] for e in events if e["event"] == "fault"]
        without = [e["text"] for e in events if e["event"] == "notice"
                   and e["text"].startswith("no cuts")]
        wanted = KINDS - {"cut"} if without else KINDS
        self.assertEqual(set(done), wanted, without)
        for kind in KINDS:
            self.assertEqual(report["faults"][kind], done.count(kind))
            self.assertLessEqual(report["pauses_s"][kind]["median"],
                                 report["pauses_s"]["all"]["longest"])
        self.assertGreater(report["goodput"], 0)
        self.assertGreater(report["capacity_tokens_per_s"], 0)
        self.assertEqual(self.processes(), [])
        self.assert_ending(self.processes(keepers=True))
        self.assertEqual(self.folders(), [])

    def begun(self, *arguments):
        """A session whose first fault is under way."""
        process = self.start("chaos", "--steps", "100000", "--every", "0",
                             "--calm", "0", "--only", "stop,kill", "--peers",
                             "3", *arguments)
        process.wait_line(lambda line: "stop peer" in line)
        self.assertEqual(len(self.folders()), 1)
        self.assertEqual(len(self.processes()), 3)
        return process

    def test_ctrl_c_leaves_nothing(self):
        process = self.begun()
        self.assertEqual(process.end(signal.SIGINT), 130)
        self.assertEqual(self.processes(), [])
        self.assert_ending(self.processes(keepers=True))
        self.assertEqual(self.folders(), [])

    def test_after_sigkill_the_nodes_end_and_the_next_removes_the_folder(self):
        process = self.begun()
        left = self.folders()
        nodes = self.processes()
        process.end(signal.SIGKILL)
        self.assert_ending(nodes)
        self.assertEqual(self.processes(), [])
        self.assert_ending(self.processes(keepers=True))
        self.assertEqual(self.folders(), left)
        again = self.begun_after(left)
        self.assertEqual(again.end(signal.SIGINT), 130)
        self.assertEqual(self.folders(), [])

    def begun_after(self, left):
        process = self.start("chaos", "--steps", "100000", "--only", "stop",
                             "--peers", "2")
        process.wait_line(lambda line: "2 peers" in line)
        self.assertNotIn(left[0], self.folders())
        return process

    def test_wrong_use_is_refused(self):
        self.refuse(2, "chaos", "--only", "burn", names=["--only"])
        self.refuse(2, "chaos", "--peers", "1", names=["--peers"])
        self.refuse(2, "chaos", "--steps", "5", "--minutes", "1",
                    names=["--minutes"])
        self.refuse(2, "chaos", "--run", self.write("bad.toml", "[training]\n"
                                                    "stepz = 5\n"),
                    names=["bad.toml", "stepz"])

    # It was good, with exit code 0, and nothing had been tried.
    def unharmed(self, run):
        """Events of a run that ends before any fault, which is a failure."""
        done = self.run_shoal(
            "chaos", run, "--data", self.write_text_files(), "--peers", "2",
            "--only", "slow", "--calm", "0", "--every", 86400, "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no fault was tried", done.stderr)
        return self.events(done.stdout)

    def test_a_run_file_is_trained_as_it_says(self):
        events = self.unharmed(self.tiny_run())
        self.assertEqual(events[-1]["steps"], 5)
        self.assertEqual(events[-1]["good"], True)

    def test_that_steps_will_be_lost_is_said_without_any_copies(self):
        for copies in (0, 1):
            run = self.write("alone.toml", TINY_RUN + (
                "[parallelism]\ndata_parallel_replicate_degree = 1\n"
                f"[fault_tolerance]\ncopies = {copies}\n"))
            events = self.unharmed(run)
            told = [e for e in events if e["event"] == "notice"
                    and "steps will be lost" in e["text"]]
            self.assertEqual(len(told), 1 - copies, events)


if __name__ == "__main__":
    main()
