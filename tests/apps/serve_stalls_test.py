# tests/apps/serve_stalls_test.py -- one thread of a peer with a stage stands still
# for ever, while its process answers: streams go on elsewhere, with the same text.
import json

from serving import LONG, PROMPTS, Serving
from support import DEADLINE_S, TINY_RUN, main

from held_threads import Held  # support.py knows its folder


class ServeStalls(Serving):
    def streams_go_on_without(self, thread):
        """A thread of the peer of the second stage is held while streams run."""
        names = ("one", "two", "three", "four")
        nodes, at = {}, {}
        for name in names:
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "4 peers" in line)
        self.write("long.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "long.toml", "--out", "long")
        served = self.start("serve", "long", "--as", "tiny", "--stages", 2,
                            "--name", "one")
        served.wait_line(lambda line: " is served at http://" in line)
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        peers = {p["id"]: p["name"] for p in status["peers"]}
        job = json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]
        at_work = [peers[stage["id"]] for stage in job["places"][0]]
        held = next(n for n in reversed(at_work) if n != "one")
        asked = next(n for n in names if n not in at_work and n != "one")
        expected = [self.alone(p, LONG, temperature=0, model="long")
                    for p in PROMPTS]
        threads, results = self.begin_long_streams(at[asked])
        with Held(nodes[held].child.pid, thread):
            self.assertLess(len(results), len(PROMPTS), "all ended before")
            line = served.wait_line(
                lambda line: "is expelled" in line or "begins anew" in line)
            self.assertIn(f"{held} holds the job up and is expelled", line)
            for one in threads:
                one.join(DEADLINE_S)
            for i, text in enumerate(expected):
                self.assertEqual(results.get(i), (200, {0: text}))
            self.assertNotEqual(nodes[held].child.wait(DEADLINE_S), 0)
        self.assertTrue(any("the pipeline stands still at" in line
                            for line in served.lines), served.lines)

    def test_a_device_that_hangs(self):
        self.streams_go_on_without("shoal-device")

    def test_links_that_hang(self):
        self.streams_go_on_without("shoal-shm")


if __name__ == "__main__":
    main()
