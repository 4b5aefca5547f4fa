# tests/cluster/disks_test.py -- views change while no disk takes anything.
#
# Each peer's data directory is a small tmpfs. It is filled to its last byte
# from outside; it becomes read-only for a process by a read-only mount of it on
# top, in the process's own mount namespace: what the process opens from then on
# is below that. Needs mount namespaces; without them it says so and passes.
import contextlib
import subprocess
import sys

from lifecycle_support import (Run, log_of, run_scenarios, scenario, wait_for)

CANNOT = "cannot write views and votes"
AGAIN = "are written to"


def call(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=False).returncode == 0


def in_its_world(peer, script):
    return call("nsenter", "--target", str(peer.pid()), "--mount", "--root",
                "sh", "-c", script, "sh", str(peer.cluster.mine))


def make_read_only(peer):
    return in_its_world(peer, 'mount --bind "$1" "$1" && '
                              'mount -o remount,bind,ro "$1"')


def make_writable(peer):
    return in_its_world(peer, 'umount -l "$1"')


def fill(peer):
    """Leaves not one byte free."""
    with contextlib.suppress(OSError), open(peer.store / "ballast", "wb",
                                            buffering=0) as out:
        while True:
            out.write(bytes(4096))


def said(peer, text):
    return [t for t in log_of(peer) if text in t]


@contextlib.contextmanager
def small_disks(cluster, size="16m"):
    mounted = []
    try:
        for p in cluster.peers:
            if not (cluster.isolated
                    and call("mount", "-t", "tmpfs", "-o", f"size={size}", "none",
                             str(p.store))):
                print("  skipped: no tmpfs can be mounted here")
                yield False
                return
            mounted.append(p.store)
        yield True
    finally:
        for p in cluster.peers:
            if p.running():
                p.kill()
        for disk in mounted:
            call("umount", "-l", str(disk))


def start(cluster, folder, interval=0):
    text = folder / "text"
    text.write_bytes(bytes(32 + (i * i * 7 + i // 3) % 90
                           for i in range(300_000)))
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, data=[str(text)], interval=interval)
    run.advance(5)
    return run


def all_are_back(cluster, run):
    for p in cluster.peers:
        if not p.running():
            p.start()
            p.wait_ready()
    cluster.wait_view(4)
    run.advance(5)
    run.once_each()


@scenario
def full_disks_do_not_matter_to_views(cluster, folder):
    """The room for views and votes is reserved."""
    with small_disks(cluster) as there:
        if not there:
            return
        run = start(cluster, folder)
        for p in cluster.peers:
            fill(p)
        cluster.peers[2].kill()
        cluster.wait_view(3)
        run.advance(5)
        run.once_each()
        for p in cluster.peers:
            assert not said(p, CANNOT), said(p, CANNOT)
            (p.store / "ballast").unlink()
        all_are_back(cluster, run)


@scenario
def read_only_disks_stop_no_training(cluster, folder):
    """All of them, and then a peer dies."""
    with small_disks(cluster) as there:
        if not there:
            return
        run = start(cluster, folder)
        for p in cluster.peers:
            assert make_read_only(p)
        dead = cluster.peers[2]
        dead.kill()
        cluster.wait_view(3)
        run.advance(5)
        run.once_each()
        alive = [p for p in cluster.peers if p is not dead]
        for p in alive:
            wait_for(lambda p=p: said(p, CANNOT))
        again = cluster.peers[3]
        again.kill()  # what it has voted is in memory that outlives it
        cluster.wait_view(2)
        run.advance(5)
        alive.remove(again)
        for p in alive:
            print(f"  {p.name}: {said(p, CANNOT)}")
            assert len(said(p, CANNOT)) == 1, said(p, CANNOT)
            assert not said(p, AGAIN), said(p, AGAIN)
            assert make_writable(p)
        for p in alive:
            wait_for(lambda p=p: said(p, AGAIN))
            assert len(said(p, CANNOT)) == len(said(p, AGAIN)) == 1
        all_are_back(cluster, run)


@scenario
def the_status_of_every_peer_names_a_full_disk(cluster, folder):
    """It named that peer as a keeper of checkpoints like any other."""
    with small_disks(cluster, "128m") as there:
        if not there:
            return
        run = start(cluster, folder, interval=10)

        def refuse():
            """The names of keepers whose disks refuse, as each peer knows."""
            return [{k["peer"] for k in p.status()["jobs"][0]["keepers"]
                     if k["refuses"]} for p in cluster.peers]

        wait_for(lambda: "checkpoint" in cluster.peers[0].status()["jobs"][0])
        assert refuse() == [set()] * 4, refuse()
        keepers = {k["peer"] for k in
                   cluster.peers[0].status()["jobs"][0]["keepers"]}
        full = next(p for p in cluster.peers if p.name in keepers)
        fill(full)
        wait_for(lambda: all(full.name in names for names in refuse()), 60)
        table = cluster.run(["status", "--data-dir", str(cluster.mine)],
                            cluster.peers[0].number).stdout
        assert "keeps no checkpoints of job out" in table, table
        (full.store / "ballast").unlink()
        run.advance(5)
        run.once_each()


if __name__ == "__main__":
    sys.exit(run_scenarios())
