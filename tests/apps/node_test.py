# tests/apps/node_test.py -- `shoal node` and its data directory.
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time

from support import World, main


def free_users(count):
    """Numbers of users who have no process and no name; None if these cannot
    be found, or become them."""
    tools = all(map(shutil.which, ("setpriv", "prlimit")))
    if os.geteuid() != 0 or not tools:
        return None
    taken = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            taken.add(process.stat().st_uid)
    users = [u for u in range(64000, 65000) if u not in taken][:count]
    tried = subprocess.run(
        ["setpriv", f"--reuid={users[0]}", f"--regid={users[0]}",
         "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "true"],
        capture_output=True, check=False)
    return users if tried.returncode == 0 else None


class Node(World):
    def ready(self, *arguments):
        node = self.start("node", "--threads", 1, *arguments)
        node.wait_line(lambda line: line.startswith("ready:"))
        return node

    def test_a_data_directory_has_one_node(self):
        node = self.ready("--name", "one")
        second = self.refuse(1, "node", "--name", "one",
                             names=[str(node.child.pid)])
        self.assertIn("one", second)
        self.assertEqual(node.end(signal.SIGTERM), 0)
        again = self.ready("--name", "one")  # free again
        # `timeout` and other wrappers signal their child and then its group.
        again.child.send_signal(signal.SIGINT)
        self.assertEqual(again.end(signal.SIGTERM), 0, again.lines)
        self.assertFalse(list(self.folder.rglob("control.sock")))

    def test_a_killed_node_leaves_its_directory_usable(self):
        self.ready("--name", "one").end(signal.SIGKILL)
        self.assertEqual(self.ready("--name", "one").end(signal.SIGTERM), 0)

    def test_a_node_whose_data_directory_is_removed_says_so_and_leaves(self):
        other = self.ready("--name", "other")
        node = self.ready("--name", "one")
        other.wait_line(lambda line: "2 peers" in line)
        data = self.folder / ".local/share/shoal/one"
        shutil.rmtree(data)
        line = node.wait_line(lambda line: "removed or moved" in line)
        self.assertIn(f"{data} was", line)
        self.assertEqual(node.end(), 1, node.lines)
        said = node.said()
        self.assertEqual(said[-1], "left")
        self.assertFalse([t for t in said if "are written to" in t], said)
        other.wait_line(lambda line: "1 peer (other)" in line)
        self.assertFalse(data.exists())
        self.assertEqual(other.end(signal.SIGTERM), 0)

    def test_status_shows_the_node(self):
        node = self.ready("--name", "one")
        status = json.loads(self.succeed("status", "--name", "one", "--json"))
        self.assertEqual([p["name"] for p in status["peers"]], ["one"])
        self.assertEqual((status["jobs"], status["local_only"]), ([], True))
        self.assertRegex(self.succeed("status"), "(?s)one.*without --cluster-key")
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def refuse_others_in_place_of_a_name(self):
        """Nodes one and two run: no command takes one of them for another."""
        for command in ("status", "jobs", "leave", "invite", "plan"):
            self.refuse(1, command, "--name", "typo",
                        names=["'typo'", "one, two"])
        self.refuse(1, "train", self.tiny_run(), "--name", "typo", "--out",
                    "typo", "--data", self.write_text_files(),
                    names=["'typo'", "one, two"])
        for command in (["leave"], ["revoke", "one"], ["recover", "--force"],
                        ["recover", "job"]):
            self.refuse(2, *command, names=["one, two", "--name"])
        self.refuse(1, "leave", "typo",
                    names=["no peer is called 'typo'", "one, two"])
        self.assertIn("two", self.succeed("status"))  # asking may take any

    def remove_jobs(self, jobs):
        """Two that have ended are listed; then none."""
        for job in jobs:
            self.assertRegex(job["user"], ".@.")
            self.assertLess(0, job["submitted_unix_ms"])
            self.assertLessEqual(job["submitted_unix_ms"], time.time() * 1000)
        self.assertIn(jobs[0]["user"][:16], self.succeed("jobs"))
        self.refuse(1, "jobs", "--rm", jobs[0]["id"], "nothing",
                    names=["'nothing'"])
        self.assertEqual(len(json.loads(self.succeed("jobs", "--json"))), 2)
        ids = [j["id"] for j in jobs]
        said = self.refuse(2, "jobs", "--name", "one", "--rm", *ids,
                           names=["shoal attach", "--yes --rm"])
        script = said.split("run `shoal ")[1].split("`")[0].split()
        said, code = self.answer_on_terminal("n", "jobs", "--rm", *ids)
        self.assertEqual(code, 1, said)
        for name in [*ids, "nothing was changed"]:
            self.assertIn(name, said)
        self.assertEqual(len(json.loads(self.succeed("jobs", "--json"))), 2)
        said, code = self.answer_on_terminal("y", "jobs", "--rm", ids[0])
        self.assertEqual(code, 0, said)
        self.refuse(1, *script, names=[ids[0]])  # it names both
        said = self.succeed("jobs", "--name", "one", "--yes", "--rm", ids[1])
        self.assertEqual(said.count("is removed"), 1, said)
        self.assertEqual(
            json.loads(self.succeed("jobs", "--name", "one", "--json")), [])

    def read_lines_of_both(self):
        """The last lines of a node, from itself and through the other."""
        own = self.succeed("logs", "--name", "two", "--lines", 1000)
        self.assertRegex(own, r"\d\d:\d\d:\d\d  ready: peer \w+ \(two\)")
        far = self.succeed("logs", "two", "--name", "one", "--lines", 1000)
        self.assertTrue(far.startswith(own), far)
        last = self.succeed("logs", "two", "--name", "one", "--lines", 1,
                            "--json")
        self.assertEqual(json.loads(last)["peer"], "two")
        self.assertEqual(len(last.splitlines()), 1)
        self.assertIn(json.loads(last)["text"] + "\n",
                      self.succeed("logs", "--name", "two"))
        self.refuse(1, "logs", "three", "--name", "one", names=["'three'"])
        self.refuse(2, "logs", "--lines", 0, names=["--lines"])
        follow = self.start("logs", "--name", "one", "--follow")
        follow.wait_line(lambda line: "2 peers" in line)
        self.assertEqual(follow.end(signal.SIGINT), 130)

    def watch_status(self):
        """Blocks or JSON lines in a pipe, and one page on a terminal."""
        for flags, says in (([], "NAME"), (["--json"], '"epoch"')):
            watch = self.start("status", "--watch", 0.1, "--name", "one",
                               *flags)
            for _ in range(2):
                watch.wait_line(lambda line: says in line)
            self.assertEqual(watch.end(signal.SIGINT), 130)
        self.refuse(2, "status", "--watch", "often", names=["'often'"])
        ours, theirs = os.openpty()
        with os.fdopen(ours, "rb", buffering=0) as screen:
            child = subprocess.Popen(
                [self.program, "status", "--name", "one", "--watch"],
                env=self.env, cwd=self.folder, stdout=theirs)
            os.close(theirs)
            seen = b""
            while seen.count(b"\x1b[H") < 2 or not seen.endswith(b"\x1b[J"):
                seen += screen.read(4096)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(), 130)
        self.assertIn(b"Ctrl-C ends this", seen)

    def test_nodes_of_one_user_find_each_other_and_train(self):
        nodes = [self.ready("--name", name) for name in ("one", "two")]
        for node in nodes:
            node.wait_line(lambda line: "2 peers" in line)
        said = [[line for line in node.lines if line.startswith(
            ("alone", "found", "joined", "view"))] for node in nodes]
        for lines in said:
            self.assertTrue(lines[0].startswith(
                "alone so far: looking for other peers"), lines)
        joins = [line for lines in said for line in lines
                 if line.startswith("joined shoal ")]
        self.assertEqual(len(joins), 1, said)
        self.refuse_others_in_place_of_a_name()
        events = self.events(self.succeed(
            "train", self.tiny_run(), "--name", "two", "--out", "out",
            "--data", self.write_text_files(), "--json", "--job.name", "tiny",
            "--parallelism.pipeline_parallel_degree", 2,
            "--parallelism.data_parallel_replicate_degree", 3))
        self.assertEqual(events[-1]["state"], "done")
        plans = [e["plan"] for e in events if e["event"] == "view"]
        self.assertIn("data_parallel_replicate_degree = 3: ", plans[-1])
        self.assertIn("only 2 peers compute", plans[-1])
        # Both have what jobs may use of this machine, together.
        status = json.loads(self.succeed("status", "--name", "two", "--json"))
        self.assert_documented("train", *events)
        self.assert_documented("status", status)
        devices = [peer["devices"][0] for peer in status["peers"]]
        self.assertLessEqual(
            sum(d["memory_for_jobs_bytes"] for d in devices),
            max(d["memory_bytes"] for d in devices))
        self.assertTrue((self.folder / "out/model.safetensors").exists())
        # A name that fits two jobs picks neither.
        self.succeed("train", self.tiny_run(), "--name", "two", "--out",
                     "other", "--data", self.folder / "text",
                     "--training.steps", 1, "--job.name", "tiny")
        jobs = json.loads(self.succeed("jobs", "--json"))
        self.assertEqual([j["name"] for j in jobs], ["tiny", "tiny"])
        self.assert_documented("jobs", *jobs)
        for command in (["attach"], ["cancel"], ["jobs", "--rm"]):
            self.refuse(1, *command, "tiny",
                        names=["several jobs", " old", "done at step",
                               *(j["id"] for j in jobs)])
        self.remove_jobs(jobs)
        self.read_lines_of_both()
        self.watch_status()
        # `leave` may name a node of this machine by its name alone.
        self.assertIn("has left", self.succeed("leave", "two"))
        self.assertEqual(nodes[1].end(), 0)
        self.assertEqual(nodes[0].end(signal.SIGTERM), 0)

    def long_run(self, *arguments, out="out"):
        """A run that nobody waits for to end; its process."""
        run = self.start("train", self.tiny_run(), "--training.steps", 10 ** 6,
                         "--validation.freq", 10 ** 6, "--data",
                         self.write_text_files(), "--out", out, *arguments)
        run.wait_line(lambda line: line.startswith("step "))
        return run

    def press_again(self, process):
        """Ctrl-C until it has an effect: what follows soon does not count."""
        while True:
            process.child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.child.wait(0.1)
                return process.end()

    def test_a_second_ctrl_c_says_how_to_fetch_what_the_job_keeps(self):
        node = self.ready("--name", "one")
        run = self.long_run("--name", "one")
        node.child.send_signal(signal.SIGSTOP)  # it answers nobody
        os.waitid(os.P_PID, node.child.pid, os.WSTOPPED | os.WNOWAIT)
        run.child.send_signal(signal.SIGINT)
        run.wait_line(lambda line: "stopping after this step" in line)
        self.assertEqual(self.press_again(run), 130)
        said = run.said()
        told = [w.split() for line in said if "stopped watching" in line
                for w in line.split("`") if w.startswith("shoal ")]
        self.assertEqual([t[1] for t in told], ["cancel", "attach"], said)
        node.child.send_signal(signal.SIGCONT)
        self.succeed(*told[0][1:])
        self.succeed(*told[1][1:-1], "fetched")
        self.assertTrue((self.folder / "fetched/model.safetensors").exists())
        self.assertEqual(node.end(signal.SIGTERM), 0)

    # The terminal that closes is not needed by a shoal. UCX caught the signal,
    # printed its stack and went on.
    def test_a_closed_terminal_ends_the_command_and_not_the_job(self):
        node = self.ready("--name", "one")
        run = self.long_run("--name", "one")
        watch = self.start("attach", "out", "--name", "one", "--out", "a b")
        watch.wait_line(lambda line: line.startswith("step "))
        for command in (watch, run):
            self.assertEqual(command.end(signal.SIGHUP), 130)
        again = [shlex.split(w) for line in watch.said()
                 for w in line.split("`") if w.startswith("shoal attach ")]
        job, = json.loads(self.succeed("jobs", "--json"))
        self.assertEqual(again, [["shoal", "attach", job["id"], "--name",
                                  "one", "--out", "a b"]])
        self.assertEqual(job["state"], "running")
        self.succeed("cancel", "out", "--name", "one")
        self.run_shoal(*again[0][1:])  # it was cancelled, with a checkpoint
        self.assertTrue((self.folder / "a b/checkpoint").exists())
        self.assertEqual(node.end(signal.SIGHUP), 0)

    def test_the_last_node_says_that_its_job_ends_with_it(self):
        node = self.ready("--name", "one")
        run = self.long_run("--name", "one")
        self.assertIn("replica 0 stage 0, layers 0-2",
                      self.succeed("status", "--name", "one"))
        # It is called as its folder. A job that runs comes before one of its
        # name that has ended, and shares its name with no other that runs.
        other = self.long_run("--name", "one", out="sub/out")
        jobs = json.loads(self.succeed("jobs", "--json"))
        self.assertEqual(sorted(j["name"] for j in jobs), ["out", "out-2"])
        self.succeed("cancel", "out-2", "--now", "--name", "one")
        self.assertNotEqual(other.end(), 0)
        other = self.long_run("--name", "one", "--job.name", "out-2", out="x")
        self.refuse(1, "jobs", "--rm", "out-2", names=["several jobs"])
        self.succeed("cancel", "out-2", "--now", "--name", "one")
        self.assertNotEqual(other.end(), 0)
        self.refuse(1, "attach", "out-2", names=["several jobs"])
        self.refuse(1, "jobs", "--rm", "out",
                    names=["has not ended", "shoal cancel"])
        left = self.run_shoal("leave", "--name", "one")
        self.assertEqual(left.returncode, 0, left.stderr)
        self.assertIn("runs on no other peer", left.stderr)
        fetch = [w for w in left.stderr.split("`")
                 if w.startswith("shoal attach ")][0].split()
        self.assertEqual(node.end(), 0)
        # It was told that its job was cancelled, or it waits for another node;
        # a minute after one press, as nobody takes its request to end the job.
        self.assertIn(self.press_again(run), (1, 130))
        node = self.ready("--name", "one")
        self.succeed(*fetch[1:-1], "fetched")
        self.assertTrue((self.folder / "fetched/model.safetensors").exists())
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def limited(self, processes, uid):
        """A node of the user `uid`, with that limit of processes and threads
        together."""
        home = self.folder / str(processes)
        home.mkdir()
        os.chown(home, uid, uid)
        self.env["HOME"] = self.env["TMPDIR"] = str(home)
        return self.start(
            f"--nproc={processes}:{processes}", "setpriv", f"--reuid={uid}",
            f"--regid={uid}", "--clear-groups", "--inh-caps=-all",
            "--bounding-set=-all", self.program_of_all, "node", "--threads", 1,
            "--no-discovery", "--name", "few", program="prlimit")

    def test_with_any_number_of_threads_it_runs_and_stops_or_says_why(self):
        limits = [*range(4, 21), 24, 28, 32]
        users = free_users(len(limits))  # a limit is of all that a user runs
        if users is None:
            self.skipTest("needs root, setpriv and users without processes")
        self.folder.chmod(0o755)  # the program is read by other users
        self.program_of_all = self.folder / "shoal"
        shutil.copy(self.program, self.program_of_all)
        nodes = {processes: self.limited(processes, uid)
                 for processes, uid in zip(limits, users, strict=True)}
        ran = []
        for processes, node in nodes.items():
            with self.subTest(processes=processes):
                try:
                    node.wait_line(lambda line: line.startswith("ready:"))
                except AssertionError:  # it has ended
                    self.assertEqual(node.end(), 1, node.lines)
                    why = [line for line in node.lines
                           if line.startswith("shoal: ")]
                    self.assertEqual(len(why), 1, node.lines)
                    self.assertIn("ulimit -u", why[0])
                    self.assertEqual(ran, [])  # more is never worse
                    continue
                ran.append(processes)
                node.child.send_signal(signal.SIGTERM)
        self.assertTrue(ran)
        for processes in ran:
            with self.subTest(processes=processes):
                self.assertEqual(nodes[processes].end(), 0,
                                 nodes[processes].lines)

    def pair(self, name):
        """The link of a node that has one peer."""
        status = json.loads(self.succeed("status", "--name", name, "--json"))
        pairs = [x for x in status["links"] if x["peer"] != status["self"]]
        self.assertLessEqual(len(pairs), 1)
        return pairs[0] if pairs else {"fabric": None}

    def wait_fabric(self, name, fabric):
        deadline = time.monotonic() + 60
        while self.pair(name)["fabric"] != fabric:
            self.assertLess(time.monotonic(), deadline, self.pair(name))

    def two_stages(self):
        self.succeed("train", self.tiny_run(), "--name", "one", "--out", "out",
                     "--data", self.write_text_files(),
                     "--parallelism.pipeline_parallel_degree", 2,
                     "--parallelism.data_parallel_replicate_degree", 1)

    def test_a_pair_shows_its_fabric_why_and_how_much(self):
        self.write("force.toml", "[node]\nfabric.force = 'tls'\n")
        one = self.ready("--name", "one")
        two = self.start("--config", "force.toml", "node", "--threads", 1,
                         "--name", "two")
        for node in (one, two):
            node.wait_line(lambda line: "2 peers" in line)
        self.two_stages()
        for name, why in (("one", "the peer does not offer it"),
                          ("two", "turned off: fabric.force = tls")):
            link = self.pair(name)
            self.assertEqual(link["fabric"], "tls")
            self.assertEqual(link["instead_of"][0],
                             {"fabric": "shm", "why": why})
        # What one has sent, the other has received.
        moved = [self.pair(name)["moved"] for name in ("one", "two")]
        self.assertEqual([len(m) for m in moved], [1, 1])
        jobs = [[j for j in m[0]["jobs"] if j["job"]] for m in moved]
        self.assertEqual([len(j) for j in jobs], [1, 1])
        a, b = jobs[0][0], jobs[1][0]
        self.assertEqual(a["job"], b["job"])
        self.assertGreater(a["sent_bytes"], 0)
        self.assertEqual(a["sent_bytes"], b["received_bytes"])
        self.assertEqual(a["received_bytes"], b["sent_bytes"])
        text = self.succeed("status", "--name", "two", "--links")
        self.assertIn("turned off: fabric.force = tls", text)
        self.assertIn("job " + a["job"], text)
        for node in (one, two):
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_an_unknown_fabric_is_refused(self):
        self.refuse(2, "node", "--fabric.force", "pigeon",
                    names=["--fabric.force"])

    def test_fabrics_that_trust_their_network_must_be_given_one(self):
        for flags in (["--fabric.force", "ucx-tcp"],
                      ["--fabric.force", "rdma"]):
            self.refuse(2, "node", *flags, names=["fabric.trusted_networks"])
        self.refuse(2, "node", "--fabric.exclude", "tls",
                    names=["--fabric.exclude"])

    def test_ucx_tcp_is_used_where_it_is_asked_for(self):
        flags = ["--fabric.exclude", "shm,rdma", "--fabric.ucx_tcp",
                 "--fabric.trusted_networks", "127.0.0.0/8"]
        nodes = [self.start("node", "--threads", 1, "--name", name, *flags)
                 for name in ("one", "two")]
        for node in nodes:
            node.wait_line(lambda line: "2 peers" in line)
        self.wait_fabric("one", "ucx-tcp")
        link = self.pair("one")
        self.assertEqual(link["instead_of"], [
            {"fabric": name, "why": "turned off: fabric.exclude"}
            for name in ("shm", "rdma")])
        self.two_stages()
        jobs = [m["jobs"] for m in self.pair("one")["moved"]
                if m["fabric"] == "ucx-tcp"][0]
        self.assertGreater(max(j["sent_bytes"] for j in jobs), 0)
        self.assertIn("ucx-tcp", self.succeed("status", "--name", "one",
                                              "--links"))
        for node in nodes:
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_rdma_needs_a_trusted_network_with_a_device(self):
        self.refuse(2, "node", "--fabric.force", "rdma",
                    names=["fabric.trusted_networks"])
        self.refuse(2, "node", "--fabric.trusted_networks", "10.1",
                    names=["fabric.trusted_networks", "'10.1'"])
        why = "no active RDMA port has an address in fabric.trusted_networks"
        nodes = [self.start("node", "--threads", 1, "--name", name,
                            "--fabric.force", "rdma",
                            "--fabric.trusted_networks", "240.0.0.0/4")
                 for name in ("one", "two")]
        for node in nodes:
            node.wait_line(lambda line: "2 peers" in line)
        link = self.pair("one")
        self.assertEqual(link["fabric"], "tls")
        self.assertIn({"fabric": "rdma", "why": why}, link["instead_of"])
        for node in nodes:
            self.assertIn(why, "\n".join(node.lines))
            self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_status_and_runs_from_afar_need_the_key(self):
        self.succeed("key", "new", "key")
        self.succeed("key", "new", "other")
        node = self.start("node", "--threads", 1, "--name", "one",
                          "--listen", "127.0.0.1:0", "--cluster-key", "key")
        at = node.wait_line(lambda line: line.startswith("ready:"))
        at = at.split(" at ")[1].split(",")[0]
        away = {"XDG_DATA_HOME": str(self.folder / "elsewhere")}
        status = json.loads(self.succeed(
            "status", "--peer", at, "--cluster-key", "key", "--json",
            env=away))
        self.assertEqual([p["name"] for p in status["peers"]], ["one"])
        said = self.refuse(1, "status", "--peer", at, "--cluster-key", "other",
                           env=away, names=[at, "cluster key"])
        self.assertNotIn("shoal node", said)  # starting one is no remedy
        self.refuse(1, "status", "--peer", at, env=away, names=[at])
        events = self.events(self.succeed(
            "train", self.tiny_run(), "--peer", at, "--cluster-key", "key",
            "--data", self.write_text_files(), "--out", "out", "--json",
            env=away))
        self.assertEqual(events[-1]["state"], "done")
        status = json.loads(self.succeed(
            "status", "--peer", at, "--cluster-key", "key", "--json",
            env=away))
        self.assertEqual(len(status["peers"]), 1)  # a client is no member
        self.assertEqual(node.end(signal.SIGTERM), 0)

    def test_what_a_node_keeps_is_private(self):
        folder = self.folder / "data"
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        node = self.start("node", "--threads", 1, "--data-dir", "data")
        node.wait_line(lambda line: "made it private" in line)
        node.wait_line(lambda line: line.startswith("ready:"))
        self.succeed("train", self.tiny_run(), "--data-dir", "data",
                     "--data", self.write_text_files(), "--out", "out")
        loose = [str(p) for p in [folder, *folder.rglob("*")]
                 if p == folder and p.stat().st_mode & 0o077
                 or p.is_file() and p.stat().st_mode & 0o077]
        self.assertEqual(loose, [])
        self.assertEqual(node.end(signal.SIGTERM), 0)
        other = self.folder / "shared"
        other.mkdir()
        other.chmod(0o755)
        (other / "file").write_text("not a node's")
        self.refuse(1, "node", "--data-dir", "shared", names=["shared", "700"])

    def test_without_a_key_only_loopback_is_bound(self):
        self.refuse(2, "node", "--listen", "0.0.0.0:0", names=["cluster-key"])

    def test_wrong_addresses_are_wrong_use(self):
        for address, says in (("foo:99999", "1 to 65535"),
                              ("a:b:c", "host:port"), (":7", "host:port")):
            self.refuse(2, "node", "--join", address,
                        names=["--join", address, says])
        self.refuse(2, "node", "--listen", "nowhere",
                    names=["--listen", "nowhere"])
        # 192.0.2.1 is for documents: no machine has it.
        self.succeed("key", "new", "key")
        said = self.refuse(1, "node", "--listen", "192.0.2.1:0",
                           "--cluster-key", "key", names=["192.0.2.1"])
        self.assertEqual(said.count("cannot listen"), 1, said)

    def test_with_a_key_it_listens_at_the_usual_port_or_says_where(self):
        # In a network of its own: the port is everybody's.
        apart = ["--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        tools = all(map(shutil.which, ("unshare", "nsenter", "ip")))
        if not tools or subprocess.run(["unshare", *apart, "true"],
                                       capture_output=True,
                                       check=False).returncode != 0:
            self.skipTest("no network of its own can be made here")
        self.succeed("key", "new", "key")
        flags = [self.program, "node", "--threads", 1, "--cluster-key", "key",
                 "--name"]
        one = self.start(*apart, *flags, "one", program="unshare")
        ready = one.wait_line(lambda line: line.startswith("ready:"))
        self.assertIn(":18372,", ready)
        two = self.start("-n", "-t", one.child.pid, *flags, "two",
                         "--join", "localhost", program="nsenter")
        two.wait_line(lambda line: "18372 is taken" in line)
        two.wait_line(lambda line: "2 peers" in line)
        for each in (two, one):
            self.assertEqual(each.end(signal.SIGTERM), 0)

    def a_token_file_is_private(self):
        self.write("old", "mine").chmod(0o644)
        (self.folder / "link").symlink_to("token")
        self.refuse(1, "invite", "--name", "one", "--out", "old",
                    names=["old", "--overwrite"])
        for more in ([], ["--overwrite"]):
            self.refuse(1, "invite", "--name", "one", "--out", "link", *more,
                        names=["link", "symbolic link"])
        self.assertEqual((self.folder / "old").read_text(), "mine")
        self.assertFalse((self.folder / "token").exists())
        self.assertEqual(
            self.succeed("invite", "--name", "one", "--out", "token"), "")
        self.succeed("invite", "--name", "one", "--out", "old", "--overwrite")
        for file in ("token", "old"):
            file = self.folder / file
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            self.assertTrue(file.read_text().startswith("shoal-"))

    # `shoal invite > token` leaves a secret that everybody can read.
    def a_token_that_others_can_read_is_warned_of(self):
        for mode in (0o644, 0o640, 0o600):
            file = self.folder / "a token"
            file.unlink(missing_ok=True)
            with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600),
                      "w", encoding="utf-8") as out:
                os.fchmod(out.fileno(), mode)
                made = subprocess.run(
                    [self.program, "invite", "--name", "one"], env=self.env,
                    cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                    stderr=subprocess.PIPE, text=True, check=True)
            self.assertTrue(file.read_text().startswith("shoal-"))
            self.assertEqual(f"chmod 600 '{file}'" in made.stderr,
                             mode != 0o600, made.stderr)
            self.assertEqual("other users" in made.stderr, mode != 0o600)

    def test_a_token_brings_the_name_of_the_cluster(self):
        self.succeed("key", "new", "key")
        first = self.start("node", "--threads", 1, "--name", "one",
                           "--cluster-key", "key", "--cluster", "keyed",
                           "--listen", "127.0.0.1:0", "--no-discovery")
        first.wait_line(lambda line: line.startswith("ready:"))
        made = self.run_shoal("invite", "--name", "one")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("works on this machine only", made.stderr)
        self.assertIn("--out FILE", made.stderr)
        self.assertNotIn("chmod", made.stderr)  # of a pipe
        self.a_token_file_is_private()
        self.a_token_that_others_can_read_is_warned_of()
        token = self.folder / "token"
        joining = ["node", "--threads", 1, "--name", "two", "--no-discovery",
                   "--listen", "127.0.0.1:0"]
        self.refuse(2, *joining, "--join-token-file", token, "--cluster",
                    "other", names=["other", "keyed"])
        self.refuse(2, *joining, "--join-token-file", token, "--cluster-key",
                    "key", names=["--cluster-key", "was not used"])
        token.chmod(0o644)
        self.refuse(1, *joining, "--join-token-file", token,
                    names=["--join-token-file", "token", "chmod 600"])
        token.chmod(0o600)
        at = json.loads(self.succeed("status", "--name", "one", "--json"))
        for flags in (["--join-token-file", token],  # and by what it has kept
                      ["--join", at["peers"][0]["addresses"][0]]):
            second = self.start(*joining, *flags)
            ready = second.wait_line(lambda line: line.startswith("ready:"))
            self.assertIn("cluster keyed", ready)
            second.wait_line(lambda line: "2 peers" in line)
            self.assertEqual(second.end(signal.SIGTERM), 0)
        self.assertEqual(first.end(signal.SIGTERM), 0)
        self.refuse(2, *joining, "--join-token", made.stdout[:50],
                    "--data-dir", "third", names=["complete join token"])
        self.refuse(2, *joining, "--join-token-file", "nosuch",
                    names=["nosuch cannot be read"])


if __name__ == "__main__":
    main()
