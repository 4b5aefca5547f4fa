# tests/cluster/finding_test.py -- nodes that find each other in every way.
#
# Real processes on loopback addresses, without multicast unless it is the
# claim; where IPv6 is, on hosts that are network namespaces without any IPv4
# address. Names on the command line choose among the scenarios.
import contextlib
import os
import pathlib
import subprocess
import sys

from hosts_test import Hosts
from lifecycle_support import run_scenarios, scenario, wait_for
from network import can_make_namespaces, ip, settled

NAME = "many.shoal.test"


def make_key(cluster, name="key"):
    file = cluster.root / name
    done = subprocess.run([cluster.shoal, "key", "new", str(file)],
                          capture_output=True, text=True, check=True)
    return file, done.stdout.split()[0]


def address(peer):
    return next(p["addresses"][0] for p in peer.status()["peers"]
                if p["name"] == peer.name)


def by_name(cluster, folder, hosts):
    """Starts nodes whose /etc/hosts is `hosts`; they know only one name."""
    key, _ = make_key(cluster)
    file = folder / "hosts"
    file.write_text(hosts, encoding="utf-8")
    script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
    plain = cluster._isolate

    def isolate(command, number):
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                script, "sh", str(file), *plain(command, number)]
    cluster._isolate = isolate
    port = 20000 + os.getpid() % 10000
    for peer in cluster.peers:
        peer.start(["--cluster-key", str(key), "--no-discovery", "--listen",
                    f"127.0.0.{peer.number + 1}:{port}", "--join",
                    f"{NAME}:{port}"])
    for peer in cluster.peers:
        peer.wait_ready()


@scenario
def a_name_stands_for_all_of_its_addresses(cluster, folder):
    if not cluster.isolated or not os.path.exists("/etc/hosts"):
        print("  skipped: no mount namespaces, or no /etc/hosts, here")
        return
    # The first address is nobody's: a dead seed changes nothing.
    by_name(cluster, folder, "127.0.0.1 localhost\n" + "".join(
        f"127.0.0.{n} {NAME}\n" for n in (9, 2, 3, 4)))
    cluster.wait_view(3)


a_name_stands_for_all_of_its_addresses.peers = 3


@scenario
def a_hosts_file_is_read_again(cluster, folder):
    key, _ = make_key(cluster)
    hosts = folder / "list"
    hosts.write_text("# nobody yet\n", encoding="utf-8")
    for peer in cluster.peers:
        peer.start(["--cluster-key", str(key), "--no-discovery", "--listen",
                    "127.0.0.1:0", "--hosts", str(hosts)])
    for peer in cluster.peers:
        peer.wait_ready()
    assert all(len(p.status()["peers"]) == 1 for p in cluster.peers)
    hosts.write_text("127.0.0.1:9 # nobody\n" + address(cluster.peers[2])
                     + "\n", encoding="utf-8")
    cluster.wait_view(3)


a_hosts_file_is_read_again.peers = 3


@scenario
def a_slurm_list_is_enough(cluster, folder):
    if not cluster.isolated or not os.path.exists("/etc/hosts"):
        print("  skipped: no mount namespaces, or no /etc/hosts, here")
        return
    key, _ = make_key(cluster)
    file = folder / "hosts"
    file.write_text("127.0.0.1 localhost\n" + "".join(
        f"127.0.0.{n} node0{n}\n" for n in (2, 3)), encoding="utf-8")
    script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
    plain = cluster._isolate
    cluster._isolate = lambda command, number: [
        "unshare", "--mount", "--propagation", "private", "sh", "-c", script,
        "sh", str(file), *plain(command, number)]
    cluster.environment["SLURM_JOB_NODELIST"] = "node[02-03]"
    for peer in cluster.peers:
        peer.start(["--cluster-key", str(key), "--no-discovery", "--listen",
                    f"127.0.0.{peer.number + 1}:18372", "--slurm"])
    for peer in cluster.peers:
        peer.wait_ready()
    cluster.wait_view(2)


a_slurm_list_is_enough.peers = 2


@contextlib.contextmanager
def hosts_of(cluster, families, count=3):
    """Hosts without IPv4 addresses; None without the right to make them."""
    if not can_make_namespaces():
        print("  skipped: no network namespaces here")
        yield None
        return
    with Hosts(cluster.shoal, count=count, families=families) as hosts:
        for host in hosts.network.hosts:
            wait_for(lambda h=host: settled(h.namespace))
            assert "inet " not in ip("-n", host.namespace, "addr").stdout
        yield hosts


def link_local(host):
    shown = ip("-n", host.namespace, "-6", "addr", "show", "dev", "eth0",
               "scope", "link").stdout
    return shown.split("inet6 ")[1].split("/")[0]


def come_together(hosts, flags_of):
    for peer in hosts.peers:
        peer.start(flags_of(peer))
    for peer in hosts.peers:
        peer.wait_ready()
    view = hosts.wait_view(len(hosts.peers))
    found = sorted(a for p in view["peers"] for a in p["addresses"])
    print("  found:", ", ".join(found))
    assert found and all(a.startswith("[") for a in found), found
    return found


@scenario
def ipv6_multicast_is_enough(cluster, folder):
    with hosts_of(cluster, "6") as hosts:
        if hosts:
            found = come_together(hosts, lambda peer: [])
            assert all(a.startswith("[fd83::") for a in found), found


@scenario
def link_local_addresses_are_enough(cluster, folder):
    """Found by multicast; and again after a restart of one."""
    with hosts_of(cluster, "link") as hosts:
        if hosts:
            found = come_together(hosts, lambda peer: [])
            assert all(a.startswith("[fe80::") for a in found), found
            assert not any("%" in a for a in found), found
            last = hosts.peers[2]
            last.kill()
            hosts.wait_view(2)
            last.start()
            last.wait_ready()
            hosts.wait_view(3)


@scenario
def ipv6_addresses_are_joined(cluster, folder):
    with hosts_of(cluster, "6") as hosts:
        if hosts:
            seed = hosts.peers[1].host.address6
            come_together(hosts, lambda peer: [
                "--no-discovery", "--listen", f"[{peer.host.address6}]:7717",
                "--join", f"[{seed}]:7717"])


@scenario
def scoped_addresses_are_joined(cluster, folder):
    with hosts_of(cluster, "link") as hosts:
        if hosts:
            seed = link_local(hosts.peers[1].host)
            come_together(hosts, lambda peer: [
                "--no-discovery", "--listen", "[::]:7717",
                "--join", f"[{seed}%eth0]:7717"])


@scenario
def nodes_of_one_machine_without_ipv4(cluster, folder):
    """Without a shared key, so on loopback alone."""
    with hosts_of(cluster, "6", count=2) as hosts:
        if not hosts:
            return
        one, other = hosts.peers
        other.host = one.host
        plain = hosts._isolate
        script = ('mount --bind "$1" "$2" && mount -t tmpfs none "$3" '
                  '&& shift 3 && exec "$@"')
        hosts._isolate = lambda command, number: one.host.command(
            ["sh", "-c", script, "sh",
             str(hosts.root / "stores" / str(number)), str(hosts.mine),
             str(hosts.root / "stores"), *command])
        hosts.node_flags = hosts.node_flags[:2]
        found = come_together(hosts, lambda peer: [])
        assert all(a.startswith("[::1]:") for a in found), found
        hosts._isolate = plain


@scenario
def repeated_beacons_have_no_effect(cluster, folder):
    """From the third host; nor does a flood keep the others apart."""
    with hosts_of(cluster, "6") as hosts:
        if not hosts:
            return
        one, other, stranger = hosts.peers
        echo = str(pathlib.Path(__file__).resolve().parent / "echo.py")

        def repeat(*numbers):
            return hosts.spawn(["python3", echo, *map(str, numbers)],
                               stranger.number, stdout=subprocess.PIPE)
        listener = repeat(1, 20, 0)
        one.start()
        one.wait_ready()
        assert listener.communicate(timeout=60)[0].strip() == "20"
        # Its own are passed over.
        assert sum(one.status()["beacons"].values()) == 0
        listener = repeat(2, 20, 0)
        other.start()
        other.wait_ready()
        hosts.wait_view(2)
        listener.communicate(timeout=60)
        wait_for(lambda: other.status()["beacons"]["elsewhere"] > 0)
        repeat(0, 0, 5000).communicate(timeout=60)
        wait_for(lambda: other.status()["beacons"]["crowded"] > 0)
        seen = other.status()["beacons"]
        print("  beacons:", seen)
        assert seen["dialled"] <= 4 and seen["strange"] > 0, seen
        stranger.start()
        stranger.wait_ready()
        hosts.wait_view(3)


def addresses(peer, name):
    """Where `peer` believes that the member of this name is."""
    status = peer.status()
    return next((p["addresses"] for p in status["peers"]
                 if p["name"] == name), []) if status else []


@scenario
def an_address_that_comes_later_is_told_and_one_that_goes_is_not(cluster,
                                                                folder):
    """By IPv4 and without multicast, so that only the view says where."""
    if not can_make_namespaces():
        print("  skipped: no network namespaces here")
        return
    with Hosts(cluster.shoal, count=4) as hosts:
        moves, seed, other, late = hosts.peers
        old, new = moves.host.address, "10.83.0.101"
        port = 7717

        def start(peer, *joins):
            peer.start(["--no-discovery", "--listen", f"0.0.0.0:{port}",
                        *(f for a in joins for f in ("--join", f"{a}:{port}"))])
            peer.wait_ready()
        start(seed)
        start(moves, seed.host.address)
        start(other, seed.host.address)
        hosts.wait_view(3)
        assert addresses(other, moves.name) == [f"{old}:{port}"]

        def change(what, address):
            # Another prefix: with the first of a network its others go, too.
            bits = 24 if address == old else 25
            ip("-n", moves.host.namespace, "addr", what, f"{address}/{bits}",
               "dev", "eth0")
        # One that goes at once is not told, or taken back.
        change("add", "10.83.0.102")
        change("del", "10.83.0.102")
        change("add", new)
        for peer in (seed, other):
            wait_for(lambda p=peer: addresses(p, moves.name) == [
                f"{old}:{port}", f"{new}:{port}"])
        change("del", old)
        for peer in (seed, other):
            wait_for(lambda p=peer: addresses(p, moves.name)
                     == [f"{new}:{port}"], 90)
        hosts.wait_view(3, 90)
        start(late, other.host.address)
        view = hosts.wait_view(4, 90)
        names = {p["id"]: p["name"] for p in view["peers"]}
        wait_for(lambda: moves.name in {
            names[x["peer"]] for x in late.status()["links"]}, 60)
        # While it moved, its links were down: who waited long has said so.
        wait_for(lambda: late.status()["cuts"] == [], 90)
        assert moves.running() and moves.starts == 1


@scenario
def two_shoals_meet_later_by_a_seed(cluster, folder):
    """Two pairs without multicast; one member of the first knows a seed of
    the second, where nobody is until the first has been a pair for long."""
    key, _ = make_key(cluster)
    port = 20000 + os.getpid() % 10000
    at = [f"127.0.0.{p.number + 1}:{port}" for p in cluster.peers]
    joins = [[], [at[0], at[2]], [], [at[2]]]

    def begin(number):
        flags = [f for a in joins[number] for f in ("--join", a)]
        cluster.peers[number].start(
            ["--cluster-key", str(key), "--no-discovery", "--listen",
             at[number], *flags])
        cluster.peers[number].wait_ready()
    begin(0)
    begin(1)
    cluster.wait_view(2)
    begin(2)
    # One pair of two: it may have met the others already.
    begin(3)
    cluster.wait_view(4, 60)


if __name__ == "__main__":
    sys.exit(run_scenarios())
