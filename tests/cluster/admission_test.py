# tests/cluster/admission_test.py -- who gets in, by which way, and who does not.
#
# Real processes on loopback addresses, without multicast unless it is the
# claim. Names on the command line choose among the scenarios.
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time

from finding_test import address, make_key
from lifecycle_support import (SCENARIOS, Run, ends, log_of, run_scenarios,
                               scenario, wait_for)

SCENARIOS.clear()  # those of finding_test
# From the command to the last closed link, as ARCHITECTURE.md promises.
LINKS_CLOSE_WITHIN = 1.0


def keyed(cluster):
    """All nodes with one key file, found by multicast on loopback."""
    key, _ = make_key(cluster)
    cluster.node_flags += ["--cluster-key", str(key), "--listen",
                           "127.0.0.1:0"]
    return key


def ask(cluster, peer, *words):
    return cluster.run([*words, "--data-dir", str(cluster.mine)], peer.number)


def says(peer, text):
    return any(text in line for line in log_of(peer))


def sockets_of(pid):
    """Numbers of the sockets that a process holds."""
    found = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            if name.startswith("socket:["):
                found.add(name[8:-1])
    except OSError:
        pass  # it has ended, or the file was closed meanwhile
    return found


def established():
    """(local, remote, socket) of every TCP connection that is up."""
    with open("/proc/net/tcp", encoding="ascii") as lines:
        fields = [line.split() for line in list(lines)[1:]]
    return [(f[1], f[2], f[9]) for f in fields if f[3] == "01"]


def ends_of(pid):
    """Addresses of this process's ends of connections."""
    own = sockets_of(pid)
    return {local for local, _, socket in established() if socket in own}


def linked(pid, far):
    """How many connections a process has to the addresses `far`."""
    own = sockets_of(pid)
    return sum(socket in own and remote in far
               for _, remote, socket in established())


def revoke_and_time(cluster, asked, gone, stays):
    """Seconds from the command to its end, and to the last closed link."""
    far = ends_of(gone.pid())
    assert all(linked(p.pid(), far) for p in stays)
    began = time.monotonic()
    command = cluster.spawn(
        [cluster.shoal, "revoke", gone.name, "--yes", "--data-dir",
         str(cluster.mine)],
        asked.number, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: not any(linked(p.pid(), far) for p in stays))
    closed = time.monotonic() - began
    out, wrong = command.communicate(timeout=60)
    assert command.returncode == 0, wrong
    assert out.startswith("revoked "), out
    print(f"  revoke: links closed after {closed:.3f} s, command ended after "
          f"{time.monotonic() - began:.3f} s")
    return closed


def one_new_key(stays, old):
    """All have the same new key in files of their own, for them alone."""
    files = [p.store / "cluster.key" for p in stays]

    def taken():
        keys = {f.read_text() for f in files if f.exists()} - {old.read_text()}
        return len(keys) == 1 and all(f.exists() and f.read_text() in keys
                                      for f in files) and keys
    (key,) = wait_for(taken)
    assert all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in files)
    return key


@scenario
def an_invite_lets_one_peer_in(cluster, folder):
    inviter, second, third = cluster.peers
    key, _ = make_key(cluster)
    mine = ["--cluster-key", str(key), "--listen", "127.0.0.1:0",
            "--no-discovery"]
    inviter.start(mine)
    inviter.wait_ready()
    made = ask(cluster, inviter, "invite", "--expires", "10m")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert inviter.status()["self"] in made.stderr, made.stderr
    assert key.read_text().strip() not in token
    joining = ["--join-token", token, "--listen", "127.0.0.1:0",
               "--no-discovery"]
    second.start(joining)
    second.wait_ready()
    cluster.wait_view(2)
    kept = second.store / "cluster.key"
    assert kept.read_text() == key.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    third.start(joining)
    assert ends([third], 20) == [1]
    assert says(third, "used by another"), log_of(third)
    second.kill()  # its key and view bring it back, the token is not needed
    second.start(joining)
    second.wait_ready()
    cluster.wait_view(2)
    late = ask(cluster, inviter, "invite", "--expires", "1s").stdout.strip()
    time_after = time.time() + 1
    wait_for(lambda: time.time() > time_after)
    third.start(["--join-token", late, "--no-discovery"])
    assert ends([third], 20) == [1]
    assert says(third, "expired"), log_of(third)
    third.start(["--join-token", token[:-1] + ("A" if token[-1] != "A"
                                               else "B"), "--no-discovery"])
    assert ends([third], 20) == [1]
    assert not (third.store / "cluster.key").exists()
    assert not any(token in line for peer in cluster.peers
                   for line in log_of(peer))


an_invite_lets_one_peer_in.peers = 3


@scenario
def a_token_in_a_file_is_in_no_command_line(cluster, folder):
    inviter, by_file, by_stdin = cluster.peers
    key, _ = make_key(cluster)
    mine = ["--listen", "127.0.0.1:0", "--no-discovery"]
    inviter.start(["--cluster-key", str(key), *mine])
    inviter.wait_ready()
    tokens = []
    for peer in (by_file, by_stdin):
        made = ask(cluster, inviter, "invite")
        assert made.returncode == 0, made.stderr
        assert "--join-token-file -" in made.stderr, made.stderr
        tokens.append(folder / f"token-{peer.number}")
        tokens[-1].write_text(made.stdout)
        tokens[-1].chmod(0o600)
    by_file.start(["--join-token-file", str(tokens[0]), *mine])
    by_file.wait_ready()
    with tokens[1].open(encoding="ascii") as stdin:
        by_stdin.start(["--join-token-file", "-", *mine], stdin=stdin)
    by_stdin.wait_ready()
    cluster.wait_view(3)
    secrets = [t.read_text(encoding="ascii").strip() for t in tokens]
    for peer in cluster.peers:
        line = pathlib.Path(f"/proc/{peer.pid()}/cmdline").read_text(
            encoding="utf-8")
        assert "node" in line, line
        assert not any(s in line for s in secrets), line


a_token_in_a_file_is_in_no_command_line.peers = 3


@scenario
def an_invite_trusts_only_the_inviter(cluster, folder):
    """A token names its inviter: another process at the address is refused."""
    inviter, other, joiner = cluster.peers
    key, _ = make_key(cluster)
    flags = ["--cluster-key", str(key), "--no-discovery", "--listen"]
    inviter.start([*flags, "127.0.0.1:0"])
    inviter.wait_ready()
    where = address(inviter)
    token = ask(cluster, inviter, "invite").stdout.strip()
    inviter.kill()
    other.start([*flags, where])
    other.wait_ready()
    joiner.start(["--join-token", token, "--no-discovery"])
    assert ends([joiner], 20) == [1]
    assert says(joiner, "fingerprint"), log_of(joiner)


an_invite_trusts_only_the_inviter.peers = 3


@scenario
def a_revoked_peer_goes_and_the_run_goes_on(cluster, folder):
    key = keyed(cluster)
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder)
    run.advance(5)
    gone = cluster.peers[2]
    stays = [cluster.peers[n] for n in (0, 1, 3)]
    closed = revoke_and_time(cluster, stays[0], gone, stays)
    assert closed <= LINKS_CLOSE_WITHIN, closed
    assert ends([gone], 10) == [1]
    assert says(gone, "revoked"), log_of(gone)
    run.advance(10)
    run.once_each()
    assert not run.said("state lost")
    cluster.wait_view(3)
    new = one_new_key(stays, key)
    gone.start()  # it knows that it was revoked
    assert ends([gone], 10) == [1]
    shutil.rmtree(gone.store)  # another identity, but the old key
    gone.store.mkdir(mode=0o700)
    gone.start(["--join", address(stays[0])])
    gone.wait_ready()
    wait_for(lambda: says(gone, "was replaced"))
    assert len(gone.status()["peers"]) == 1
    afar = subprocess.run(
        [cluster.shoal, "status", "--peer", address(stays[0]),
         "--cluster-key", str(key)], env=cluster.environment, text=True,
        capture_output=True, check=False)
    assert afar.returncode == 1, afar.stdout
    gone.kill()
    stays[1].kill()  # a member comes back with the file that it was given
    run.advance(5)
    stays[1].start()
    stays[1].wait_ready()
    wait_for(lambda: len(stays[0].status()["peers"]) == 3)
    run.advance(5)
    run.once_each()
    assert not any(new.strip() in line for p in cluster.peers
                   for line in log_of(p))


@scenario
def the_new_key_outlives_a_restart_of_all(cluster, folder):
    key = keyed(cluster)
    cluster.start_all()
    cluster.wait_view(4)
    gone, away, *stays = cluster.peers
    away.kill()
    cluster.wait_view(3)
    assert ask(cluster, stays[0], "revoke", gone.name, "--yes").returncode == 0
    assert ends([gone], 10) == [1]
    cluster.wait_view(2)
    new = one_new_key(stays, key)
    for peer in stays:
        peer.kill()
    for peer in stays:
        peer.start()
    for peer in stays:
        peer.wait_ready()
    cluster.wait_view(2)
    assert one_new_key(stays, key) == new
    away.start()  # it has the old key and old addresses, and hears by the old
    away.wait_ready()
    cluster.wait_view(3)
    stays.append(away)
    assert one_new_key(stays, key) == new
    gone.start(["--join", address(stays[0])])
    assert ends([gone], 10) == [1]
    last = cluster.root / "last"  # from afar, with a key that ends by it
    last.write_text(new, encoding="utf-8")
    last.chmod(0o600)
    nobody = "ab" * 32
    done = subprocess.run(
        [cluster.shoal, "revoke", nobody, "--yes", "--peer",
         address(stays[0]), "--cluster-key", str(last)], env=cluster.environment, text=True,
        capture_output=True, check=False)
    assert done.returncode == 0 and nobody in done.stdout, done.stderr
    newest = one_new_key(stays, last)
    file = cluster.root / "new"
    file.write_text(newest, encoding="utf-8")
    file.chmod(0o600)
    afar = subprocess.run(
        [cluster.shoal, "status", "--json", "--peer", address(stays[0]),
         "--cluster-key", str(file)], env=cluster.environment, text=True,
        capture_output=True, check=False)
    assert afar.returncode == 0, afar.stderr
    assert newest.strip() not in afar.stdout


def lie_that_it_was_revoked(cluster, liar, where, key, victim):
    """The node `liar`, which has been revoked, listens where it was again, with
    its identity and the key of that time. In a shoal of its own it has revoked
    `victim`, and tells it so."""
    for record in liar.store.glob("*.record"):
        record.unlink()
    liar.start(["--cluster-key", str(key), "--no-discovery", "--listen", where])
    liar.wait_ready()
    done = ask(cluster, liar, "revoke", victim, "--yes")
    assert done.returncode == 0, done.stderr


@scenario
def a_revoked_peer_ends_nobody_by_its_word(cluster, folder):
    stays, gone, away = cluster.peers
    key, _ = make_key(cluster)
    flags = ["--cluster-key", str(key), "--no-discovery", "--listen",
             "127.0.0.1:0"]
    stays.start(flags)
    stays.wait_ready()
    for peer in (gone, away):
        peer.start([*flags, "--join", address(stays)])
        peer.wait_ready()
    cluster.wait_view(3)
    where, victim = address(gone), away.status()["self"]
    away.kill()
    shutil.copytree(away.store, folder / "before",
                    ignore=shutil.ignore_patterns("lock", "control.sock"))
    cluster.wait_view(2)
    assert ask(cluster, stays, "revoke", gone.name, "--yes").returncode == 0
    assert ends([gone], 20) == [1]
    lie_that_it_was_revoked(cluster, gone, where, key, victim)
    away.start(flags)  # it knows both addresses from its records
    away.wait_ready()
    wait_for(lambda: len(stays.status()["peers"]) == 2)
    assert says(away, where + " says that this peer was revoked"), log_of(away)
    home = address(stays)
    for peer in (away, stays):
        peer.kill()
    away.store.rename(folder / "after")
    shutil.copytree(folder / "before", away.store)  # and there is nobody else
    away.start(flags)
    wait_for(lambda: says(away, "this peer ends unless it reaches members"))
    # It was advised to start it again, to have it leave in order.
    left = ask(cluster, away, "leave")
    assert left.returncode == 1, left.stdout
    assert "in order" not in left.stderr, left.stderr
    [code] = ends([away], 20)
    assert code in (0, 1), code
    if code == 0:  # else it ended by itself before that, after 5 s
        said = f"has ended. {gone.name} ({where}) said"
        assert said in left.stderr, left.stderr
        assert "nothing is left to do" in left.stderr, left.stderr
    shutil.rmtree(away.store)
    shutil.copytree(folder / "before", away.store)
    away.start(flags)
    assert ends([away], 60) == [1]
    assert says(away, "nobody admits this node"), log_of(away)
    shutil.rmtree(away.store)
    (folder / "after").rename(away.store)
    stays.start([*flags[:-1], home])  # their quorum may need both
    away.start(flags)
    for peer in (stays, away):
        peer.wait_ready()


a_revoked_peer_ends_nobody_by_its_word.peers = 3


def copy_store(first, copy):
    shutil.rmtree(copy.store)
    shutil.copytree(first.store, copy.store,
                    ignore=shutil.ignore_patterns("lock", "control.sock"))


@scenario
def of_two_copies_that_meet_the_later_one_goes(cluster, folder):
    first, copy = cluster.peers
    keyed(cluster)
    hosts = folder / "list"
    hosts.write_text("", encoding="utf-8")
    first.start(["--no-discovery", "--hosts", str(hosts)])
    first.wait_ready()
    copy_store(first, copy)
    copy.start(["--no-discovery", "--join", address(first)])
    assert ends([copy], 30) == [1]  # it was told before it was ready
    assert says(copy, "identity"), log_of(copy)
    copy.start(["--no-discovery"])  # alone, as far as it knows
    copy.wait_ready()
    hosts.write_text(copy.status()["address"] + "\n", encoding="utf-8")
    assert ends([copy], 30) == [1]
    assert says(copy, "identity"), log_of(copy)
    assert says(first, "identity"), log_of(first)
    assert len(first.status()["peers"]) == 1


of_two_copies_that_meet_the_later_one_goes.peers = 2


@scenario
def a_copied_data_directory_is_refused(cluster, folder):
    first, other, copy = cluster.peers
    keyed(cluster)
    first.start()
    other.start()
    for peer in (first, other):
        peer.wait_ready()
    cluster.wait_view(2)
    copy_store(first, copy)
    copy.start(["--join", address(other)])
    assert ends([copy], 30) == [1]
    assert says(copy, "identity"), log_of(copy)
    assert says(other, "identity"), log_of(other)
    copy.start(["--join", address(first)])  # and where it meets itself
    assert ends([copy], 30) == [1]
    assert says(copy, "identity"), log_of(copy)
    assert says(first, "identity"), log_of(first)
    cluster.wait_view(2)
    assert first.running() and other.running()


a_copied_data_directory_is_refused.peers = 3


if __name__ == "__main__":
    sys.exit(run_scenarios())
