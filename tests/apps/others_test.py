# tests/apps/others_test.py -- what a node says, and does, about other nodes.
#
# One shoal of three nodes with a key file that no command is given: commands
# reach the others through the local node.
import json
import signal
import time

from support import DEADLINE_S, World, main

NAMES = ("one", "two", "three")


class Others(World):
    def shoal(self):
        self.succeed("key", "new", "key")
        nodes = {}
        for name in NAMES:
            nodes[name] = self.start(
                "node", "--threads", 1, "--name", name, "--cluster-key", "key",
                "--listen", "127.0.0.1:0")
            nodes[name].wait_line(lambda line: line.startswith("ready:"))
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        return nodes

    def status(self, *flags):
        return json.loads(self.succeed("status", "--json", *flags))

    def test_one_node_speaks_for_the_others(self):
        nodes = self.shoal()
        key = self.folder / ".config" / "shoal" / "cluster.key"
        peers = {p["name"]: p for p in self.status("--name", "one")["peers"]}
        there = peers["two"]["addresses"][0]
        self.status_through_the_local_node(there, peers["two"]["id"])
        away = {"XDG_DATA_HOME": str(self.folder / "elsewhere")}
        for command in (["status"], ["jobs"], ["leave"]):
            self.refuse(1, *command, "--peer", there, env=away,
                        names=[there, str(key), "--cluster-key"])
        self.assertFalse(key.exists(), "a command has made a key")
        self.unknown_names_are_told_from_dead_peers()
        self.a_member_with_another_key_is_told(nodes)
        # Of two, the one with the lower id is a quorum: that one dies.
        dies, stays = sorted(("one", "three"), key=lambda n: peers[n]["id"])
        self.succeed("train", self.tiny_run(), "--job.name", "ended", "--data",
                     self.write_text_files(), "--name", stays, "--out", "ended")
        job = self.submit(stays)
        self.succeed("leave", "two", "--name", stays)
        self.assertEqual(nodes["two"].end(), 0)
        self.refuse(1, "logs", "two", "--name", stays,
                    names=["two", "left the shoal"])
        nodes[dies].end(signal.SIGKILL)
        nodes[stays].wait_line(lambda line: "no quorum" in line)
        for command in ("logs", "leave"):
            self.refuse(1, command, dies, "--name", stays,
                        names=[dies, "not reachable since", "ago"])
        self.without_a_quorum(stays, dies)
        self.refuse(1, "recover", job, "--name", stays,
                    names=[job, "no quorum", dies])
        self.force_asks_first(stays, dies)
        self.succeed("cancel", job, "--now", "--name", stays)
        self.assertFalse(key.exists(), "a command has made a key")
        self.assertEqual(nodes[stays].end(signal.SIGTERM), 0)

    # It had submitted the run to a shoal of its own before it was let in, and that
    # one joined no other.
    def test_a_run_that_is_to_join_waits_until_it_has(self):
        self.succeed("key", "new", "key")
        one = self.start("node", "--threads", 1, "--listen", "127.0.0.1:0",
                         "--name", "one", "--cluster-key", "key")
        ready = one.wait_line(lambda line: line.startswith("ready:"))
        there = ready.split(" at ")[1].split(",")[0]
        away = {"XDG_DATA_HOME": str(self.folder / "elsewhere")}
        here = {"XDG_DATA_HOME": str(self.folder / ".local/share")}
        train = ["train", self.tiny_run(), "--data", self.write_text_files(),
                 "--cluster-key", "key", "--join"]
        # Its results would be of one machine.
        self.env.update(away)
        alone = self.start(*train, "127.0.0.1:1", "--out", "alone")
        alone.wait_line(lambda line: "takes this peer in, 60 s at most" in line)
        self.assertEqual(alone.end(signal.SIGINT), 130)
        self.assertIn("was not joined: interrupted", alone.said()[-1])
        self.succeed(*train, there, "--out", "out")
        jobs = json.loads(self.succeed("jobs", "--name", "one", "--json",
                                       env=here))
        self.assertEqual([j["state"] for j in jobs], ["done"], jobs)

    # Only status, jobs, logs and leave did: the others had no key.
    def test_a_member_asks_others_by_the_key_of_its_invite(self):
        self.succeed("key", "new", "key")
        flags = ["node", "--threads", 1, "--listen", "127.0.0.1:0", "--name"]
        one = self.start(*flags, "one", "--cluster-key", "key")
        ready = one.wait_line(lambda line: line.startswith("ready:"))
        there = ready.split(" at ")[1].split(",")[0]
        self.succeed("invite", "--name", "one", "--out", "token")
        two = self.start(*flags, "two", "--join-token-file", "token")
        two.wait_line(lambda line: "2 peers" in line)
        for which in ([], ["--name", "two"]):
            self.assertIn("shoal-", self.succeed("invite", "--peer", there,
                                                 *which))
            for command in (["attach", "nosuch"], ["cancel", "nosuch"],
                            ["recover", "nosuch"]):
                self.refuse(1, *command, "--peer", there, *which,
                            names=["no job 'nosuch'"])
            self.refuse(1, "revoke", "nosuch", "--yes", "--peer", there, *which,
                        names=["'nosuch'"])
        # A key that a node was given by name is not kept for commands.
        self.refuse(1, "invite", "--peer", there, "--name", "one",
                    names=["there is no cluster key here", "--cluster-key"])
        self.assertEqual(two.end(signal.SIGTERM), 0)
        self.succeed("invite", "--peer", there, "--name", "two")
        # Nor does one that is of no use stand in the way of the right one.
        (self.folder / ".config/shoal").mkdir(parents=True)
        (self.folder / "key").rename(self.folder / ".config/shoal/cluster.key")
        self.succeed("key", "new", "other")
        own, = self.folder.glob(".local/share/shoal/two/cluster.key")
        (self.folder / "other").rename(own)
        self.succeed("invite", "--peer", there)

    def test_a_node_that_is_not_let_in_says_so_itself(self):
        for name in ("key", "other"):
            self.succeed("key", "new", name)
        flags = ["node", "--threads", 1, "--listen", "127.0.0.1:0", "--name"]
        first = self.start(*flags, "first", "--cluster-key", "key")
        ready = first.wait_line(lambda line: line.startswith("ready:"))
        there = ready.split(" at ")[1].split(",")[0]
        for name, wrong, says in (
                ("keyed", ["--cluster-key", "other"], "shoal key show"),
                ("named", ["--cluster-key", "key", "--cluster", "zoo"],
                 "--cluster")):
            node = self.start(*flags, name, *wrong, "--join", there)
            node.wait_line(lambda line, says=says: line.startswith("[node]")
                           and there in line and says in line)
            apart = {a["address"]: a for a in
                     self.status("--name", name)["apart"]}
            self.assertIn(says, apart[there]["why"])
            table = self.succeed("status", "--name", name)
            self.assertIn(f"not of this shoal: {there}, since 2", table)
            # It hears the first one's announcements, which are not its own; the
            # list names that node once all the same.
            self.wait_strange_beacons(name)
            self.assertEqual(
                [a["address"] for a in self.status("--name", name)["apart"]],
                [there])
            self.assertIn("in the last minute, the last one",
                          self.succeed("status", "--name", name))
            self.assertEqual(node.end(signal.SIGTERM), 0)
        twin = self.start(*flags, "first", "--data-dir", "twin",
                          "--cluster-key", "key", "--join", there)
        for node in (first, twin):
            line = node.wait_line(lambda line: "is named first, too" in line)
            self.assertIn("another --name", line)
        # It said nothing until it had left: one pressed Ctrl-C again, which
        # costs the steps since the last checkpoint.
        twin.child.send_signal(signal.SIGINT)
        twin.wait_line(lambda line: "later: stop at once" in line)
        self.assertEqual(twin.end(), 0)
        gone = self.start(*flags, "gone", "--cluster-key", "key", "--join",
                          there)
        gone.wait_line(lambda line: "2 peers" in line)
        said = self.refuse(2, "revoke", "gone", "--name", "first",
                           names=["gone (", "cluster key is replaced"])
        self.assertIn("`shoal revoke gone --yes --name first`", said)
        said, code = self.answer_on_terminal("n", "revoke", "gone", "--name",
                                             "first")
        self.assertEqual(code, 1, said)
        self.assertEqual(
            len(self.status("--name", "first")["peers"]), 2, said)
        self.succeed("revoke", "gone", "--yes", "--name", "first")
        line = gone.wait_line(lambda line: line.startswith("[node] stops:"))
        for says in ("was revoked", "shoal invite", "--data-dir"):
            self.assertIn(says, line)
        # By the view, if that has come before the connections ended.
        self.assertRegex(line, r"as view \d+ says|first \(.* said at .* UTC")
        self.assertEqual(gone.end(), 1)
        said = gone.said()
        self.assertEqual([s for s in said if "recover --force" in s], [])
        self.assertEqual(sum("shoal invite" in s for s in said), 1, said)
        # Another token was advised, which is refused like this one.
        self.succeed("invite", "--name", "first", "--out", "token")
        said = self.refuse(1, *flags, "gone", "--join-token-file", "token",
                           names=["has revoked this node's identity",
                                  "new --data-dir and this token"])
        self.assertNotIn("ask for a new one", said)
        self.assertEqual(first.end(signal.SIGTERM), 0)

    def wait_strange_beacons(self, name):
        deadline = time.monotonic() + DEADLINE_S
        while self.status("--name", name)["beacons"]["strange_last_minute"] \
                == 0:
            self.assertLess(time.monotonic(), deadline)

    def wait_all_active(self, name):
        deadline = time.monotonic() + DEADLINE_S
        while [p["state"] for p in self.status("--name", name)["peers"]] \
                != len(NAMES) * ["active"]:
            self.assertLess(time.monotonic(), deadline)

    def a_member_with_another_key_is_told(self, nodes):
        """Also what to do, and by `leave` that the others were not told."""
        self.succeed("key", "new", "other")
        node = ["node", "--threads", 1, "--name", "two", "--listen",
                "127.0.0.1:0", "--cluster-key"]
        nodes["two"].end(signal.SIGKILL)
        wrong = self.start(*node, "other")
        line = wrong.wait_line(lambda line: "no quorum" in line
                               and "does not prove the cluster key" in line)
        self.assertIn("--cluster-key of its shoal", line)
        self.assertNotIn("force", line)
        table = self.succeed("status", "--name", "two")
        self.assertIn("does not prove the cluster key", table)
        self.assertNotIn("force", table)
        said = self.refuse(1, "leave", "--name", "two", names=[
            "no quorum", "were not told", "go on there"])
        self.assertNotIn("checkpoint", said)
        self.assertEqual(wrong.end(), 0)
        nodes["two"] = self.start(*node, "key")
        nodes["two"].wait_line(lambda line: line.startswith("ready:"))
        for name in ("one", "three"):
            self.wait_all_active(name)

    def status_through_the_local_node(self, there, two):
        self.assertEqual(self.status("--peer", there)["self"], two)
        self.assertEqual(self.status("--peer", "two", "--name", "one")["self"],
                         two)
        self.assertEqual(
            json.loads(self.succeed("jobs", "--json", "--peer", there)), [])
        self.assertIn("ready", self.succeed("logs", "--peer", there))
        self.refuse(1, "train", self.tiny_run(), "--peer", there, "--data",
                    self.write_text_files(), names=["--cluster-key"])

    def unknown_names_are_told_from_dead_peers(self):
        for command in ("logs", "leave"):
            said = self.refuse(1, command, "tree", "--name", "one",
                               names=["no peer 'tree'", "mean 'three'"])
            self.assertNotIn("reachable", said)
            self.refuse(1, command, "elephant", "--name", "one",
                        names=["no peer 'elephant'", "it has ", *NAMES])

    def submit(self, name):
        said = self.succeed(
            "train", self.tiny_run(), "--detach", "--training.steps", 1000000,
            "--data", self.write_text_files(), "--name", name)
        self.assertIn("job", said)
        return [job["id"] for job in self.status("--name", name)["jobs"]
                if job["state"] == "running"][0]

    def without_a_quorum(self, stays, dies):
        """What needs the others' consent waits for it and says so, but for a
        new key: that is refused at once. It said that it waited, too."""
        said = self.refuse(1, "revoke", dies, "--yes", "--name", stays,
                           names=["no quorum", dies, "Nobody was revoked"])
        self.assertNotIn("Waiting", said)
        for command in (["invite"], ["jobs", "--rm", "ended", "--yes"]):
            waits = self.start(*command, "--name", stays)
            line = waits.wait_line(lambda line: "Waiting for a quorum" in line)
            for part in (dies, "start them again", "`shoal recover --force`"):
                self.assertIn(part, line)
            self.assertNotEqual(waits.end(signal.SIGINT), 0)
        for command in (["train", self.tiny_run(), "--data",
                         self.write_text_files(), "--out", "unborn"],
                        ["serve", "ended"]):
            waits = self.start(*command, "--name", stays)
            waits.wait_line(lambda line: "Waiting for a quorum" in line)
            self.assertEqual(waits.end(signal.SIGINT), 130)
            said = "\n".join(waits.said())
            self.assertRegex(said, "does not run|ended before|stopped while")
        self.assertFalse((self.folder / "unborn").exists())
        # With a node here the key is needed only once that is lost.
        for command in (["status"], ["train", self.tiny_run(), "--data",
                                     self.write_text_files(), "--out", "unborn"]):
            self.refuse(1, *command, "--cluster-key", "nokey", "--name", stays,
                        names=["nokey"])

    def force_asks_first(self, stays, dies):
        force = ["recover", "--force", "--name", stays]
        before = self.status("--name", stays)["id"]
        said = self.refuse(2, *force, names=[dies])
        self.assertIn(f"`shoal recover --force --yes --name {stays}`", said)
        said, code = self.answer_on_terminal("n", *force)
        self.assertEqual(code, 1, said)
        for part in (before[:12], dies, "1 of its 2 peers"):
            self.assertIn(part, said)
        self.assertEqual(self.status("--name", stays)["id"], before)
        said, code = self.answer_on_terminal("y", *force)
        self.assertEqual(code, 0, said)
        self.assertNotEqual(self.status("--name", stays)["id"], before)
        self.refuse(1, *force, names=["nothing to recover"])


if __name__ == "__main__":
    main()
