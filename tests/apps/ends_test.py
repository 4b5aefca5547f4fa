# tests/apps/ends_test.py -- what is kept and said when a node ends.
import signal

from support import World, main


class Ends(World):
    def ready(self, *arguments):
        node = self.start("node", "--threads", 1, *arguments)
        node.wait_line(lambda line: line.startswith("ready:"))
        return node

    def test_logs_follow_a_node_that_is_started_again(self):
        node = self.ready("--name", "one")
        follow = self.start("logs", "--name", "one", "--follow")
        follow.wait_line(lambda line: "ready:" in line)
        node.end(signal.SIGKILL)
        follow.wait_line(lambda line: "until it answers again" in line)
        node = self.ready("--name", "one")
        follow.wait_line(lambda line: "it answers again" in line)
        follow.wait_line(lambda line: "ready:" in line)
        self.assertEqual(follow.end(signal.SIGINT), 130)
        self.assertEqual(node.end(signal.SIGTERM), 0)


if __name__ == "__main__":
    main()
