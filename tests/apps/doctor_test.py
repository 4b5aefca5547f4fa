# tests/apps/doctor_test.py -- what killed nodes leave, and who clears it away.
import json
import os
import re
import shutil
import signal

from support import World, main


class Doctor(World):
    def nodes(self, count, *flags):
        """Nodes below the default folder, in one shoal."""
        started = [self.start("node", "--name", f"n{n}", "--json", "--threads",
                              "1", *flags) for n in range(1, count + 1)]
        for node in started:  # together: one alone may be no quorum
            node.wait_line(lambda line: '"ready"' in line)
            self.assert_documented("node", *map(json.loads, node.lines))
        return started

    def doctor(self, *flags):
        found = json.loads(self.succeed("doctor", "--json", *flags))
        return [f["text"] for f in found]

    def test_instructions_and_libraries_are_named(self):
        kernels = next(t for t in self.doctor() if t.startswith("kernels: "))
        self.assertRegex(kernels, r"cpu \w+.* \(oneDNN \d+\.\d+\.\d+, "
                                  r"Highway \d+\.\d+\.\d+\)")

    def test_where_no_folder_is_temporary_a_node_has_none_to_clear(self):
        self.env["TMPDIR"] = "/no/such"
        node, = self.nodes(1)
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_a_new_data_directory_is_private(self):
        folder = self.folder / "data" / "new"
        self.doctor("--data-dir", folder)
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)

    def left(self):
        """What it finds in this test's folder; the machine may have more."""
        return [t for t in self.doctor() if str(self.folder) in t
                and t.startswith(("socket", "folder", "process"))]

    def sockets(self):
        return [p for p in self.folder.rglob("*") if p.is_socket()]

    def memory(self):
        """Of this machine, by this user; other tests may add some."""
        return {n for n in os.listdir("/dev/shm") if n.startswith("shoal")
                and os.path.isfile("/dev/shm/" + n)}

    def killed_during_a_run(self, count):
        before = self.memory()
        nodes = self.nodes(count)
        run = self.start(
            "train", self.tiny_run(), "--training.steps", "100000", "--data",
            self.write_text_files(), "--out", "out", "--json", "--name", "n1",
            "--parallelism.data_parallel_replicate_degree", str(count))
        run.wait_line(lambda line: '"step":3,' in line)
        for node in nodes:
            node.child.send_signal(signal.SIGKILL)
        for node in nodes:
            node.end()
        run.end(signal.SIGKILL)
        self.assertEqual(self.memory(), before)
        self.assertEqual(len(self.sockets()), count)

    def test_the_sockets_of_killed_nodes_are_told_and_removed(self):
        self.assertEqual(self.left(), [])
        self.killed_during_a_run(2)
        told = self.doctor()
        for socket in self.sockets():
            self.assertTrue(any(str(socket) in t and "--clean" in t
                                for t in told), told)
        self.doctor("--clean")
        self.assertEqual(self.sockets(), [])
        self.assertEqual(self.left(), [])

    def test_killed_nodes_that_start_again_and_end_leave_nothing(self):
        self.killed_during_a_run(2)
        again = self.nodes(2)
        self.assertEqual(self.left(), [])
        self.doctor("--clean")  # takes nothing from those that run
        self.succeed("status", "--name", "n1")
        for node in again:
            self.assertEqual(node.end(signal.SIGTERM), 0)
        self.assertEqual(self.sockets(), [])
        self.assertEqual(self.left(), [])

    def test_the_folder_of_a_killed_run_is_told_and_removed(self):
        run = self.start("train", self.tiny_run(), "--training.steps",
                         "100000", "--data", self.write_text_files(), "--out",
                         "out", "--json")
        run.wait_line(lambda line: '"step":3,' in line)
        run.end(signal.SIGKILL)
        [left] = self.folder.glob("shoal-train-*")
        self.assertTrue(any(str(left) in t for t in self.doctor()))
        self.doctor("--clean")
        self.assertFalse(left.exists())

    def test_a_node_whose_data_was_deleted_is_told_with_its_port(self):
        [node] = self.nodes(1, "--data-dir", str(self.folder / "gone"))
        port = re.search(r" at \S+:(\d+),", node.lines[-1])[1]
        node.child.send_signal(signal.SIGSTOP)  # else it notices, and ends
        shutil.rmtree(self.folder / "gone")
        told = self.doctor()
        self.assertTrue(any(f"kill {node.child.pid}" in t
                            and re.search(rf"at port [\d, ]*\b{port}\b", t)
                            for t in told), told)
        node.end(signal.SIGKILL)
        self.assertFalse(any(str(node.child.pid) in t for t in self.doctor()))

    def test_a_keeper_of_memory_that_stays_is_told(self):
        [node] = self.nodes(1, "--data-dir", str(self.folder / "mine"))
        keepers = self.processes(keepers=True)
        if not keepers:
            self.skipTest("no memory keeper here")
        [keeper] = keepers
        os.kill(keeper, signal.SIGSTOP)
        self.assertFalse(any(f"kill -9 {keeper}" in t
                             for t in self.doctor()))
        node.end(signal.SIGKILL)
        told = self.doctor()
        self.assertTrue(any(f"kill -9 {keeper}" in t for t in told), told)
        os.kill(keeper, signal.SIGCONT)
        self.assert_ending([keeper])
        self.assertFalse(any(f"kill -9 {keeper}" in t
                             for t in self.doctor()))


if __name__ == "__main__":
    main()
