# tests/apps/hello_actor_test.py -- a user's own role on two peers.
import signal

from support import World, main


class HelloActor(World):
    def test_two_peers_hear_each_other(self):
        peers = [self.start(name) for name in ("one", "two")]
        for peer in peers:
            peer.wait_line(lambda line: "[hello] 2 peers" in line)
        for peer in peers:
            self.assertEqual(peer.end(signal.SIGTERM), 0)


if __name__ == "__main__":
    main()
