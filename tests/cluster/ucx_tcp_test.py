# tests/cluster/ucx_tcp_test.py -- hosts whose tensors go by UCX-TCP.
#
# Hosts are network namespaces (network.py) that share no memory; exit code 77
# without the right to make them. Names on the command line choose.
import signal
import sys

from hosts_test import Hosts, by_multicast, up
from lifecycle_support import Run, run_scenarios, scenario, wait_for
from network import can_make_namespaces, ip

# UCX 1.13 ends a process now and then when a peer dies: why UCX-TCP is not
# used unasked (transport/ucx/README.md).
Hosts.may_end = True
TRUSTED = ["--fabric.trusted_networks", "10.83.0.0/24"]
ASKED = [*TRUSTED, "--fabric.ucx_tcp"]
NAME = "ucx-tcp"


def links(peer):
    """Name of the other end -> link, of a peer's status."""
    status = peer.status()
    names = {p["id"]: p["name"] for p in status["peers"]}
    return {names[x["peer"]]: x for x in status["links"]
            if x["peer"] != status["self"] and x["peer"] in names}


def reasons(link):
    return {r["fabric"]: r["why"] for r in link["instead_of"]}


def all_by(cluster, fabric):
    """Whether every pair of running peers uses it."""
    running = [p for p in cluster.peers if p.running()]
    found = [links(p) for p in running]
    return all(len(x) == len(running) - 1 for x in found) and all(
        x["fabric"] == fabric for pairs in found for x in pairs.values())


def start(cluster, *flags, of=None):
    cluster.node_flags += flags
    addresses = by_multicast(cluster)
    up(cluster, lambda peer: addresses(peer) + (of or {}).get(peer.number, []))


@scenario
def two_hosts_train_as_one_process_does(cluster, folder):
    with Hosts(cluster.shoal, count=2) as hosts:
        start(hosts, *ASKED)
        wait_for(lambda: all_by(hosts, NAME))
        found = []
        for stages in (1, 2):
            run = Run(hosts, folder, steps=20, stages=stages, replicas=1,
                      own=stages == 1)
            assert run.finish() == 0, "the run failed"
            found.append(run.losses)
        assert found[0] == found[1] and len(found[0]) == 20, found
        for peer in hosts.peers:
            for link in links(peer).values():
                moved = {m["fabric"]: m for m in link["moved"]}
                job = [j for j in moved[NAME]["jobs"] if j["job"]][0]
                assert job["sent_bytes"] > 0 and job["received_bytes"] > 0
                by_tls = [j for j in moved.get("tls", {"jobs": []})["jobs"]
                          if j["job"]]
                assert not by_tls, by_tls
                print(f"  {peer.name}: {job['sent_bytes']} bytes by {NAME}")
        for peer in hosts.peers:
            assert peer.stop() == 0, f"{peer.name} ended badly"


@scenario
def only_by_choice_and_in_trusted_networks(cluster, folder):
    with Hosts(cluster.shoal, count=4) as hosts:
        start(hosts, of={
            1: [*TRUSTED, "--fabric.force", NAME], 2: ASKED, 3: TRUSTED,
            4: ["--fabric.ucx_tcp", "--fabric.trusted_networks", "10.84.0.0/24"]})
        one, two, three, four = hosts.peers
        wait_for(lambda: links(one).get("peer2", {}).get("fabric") == NAME)
        assert links(two)["peer1"]["fabric"] == NAME
        why = reasons(links(three)["peer1"])
        assert why[NAME] == "not asked for: fabric.ucx_tcp", why
        why = reasons(links(four)["peer1"])
        assert why[NAME] == ("no network interface has an address in "
                             "fabric.trusted_networks"), why
        for peer in (three, four):
            assert {x["fabric"] for x in links(peer).values()} == {"tls"}
        # Only the trusted address is listened on, by who was asked to.
        assert listening(one) > listening(three) == listening(four)


def listening(peer):
    """Doors on this host, of any address."""
    shown = ip("netns", "exec", peer.host.namespace, "ss", "-Hltn").stdout
    own = [x.split()[3] for x in shown.splitlines()]
    assert all(a.startswith((peer.host.address + ":", "[fd83::"))
               for a in own), own
    return len(own)


@scenario
def one_is_killed_and_one_hangs_during_a_run(cluster, folder):
    with Hosts(cluster.shoal, count=4) as hosts:
        start(hosts, *ASKED)
        wait_for(lambda: all_by(hosts, NAME))
        run = Run(hosts, folder, replicas=2, stages=2, number=4, width=256)
        run.advance(3)
        hosts.peers[1].kill()
        run.advance(3)
        hosts.peers[1].start(by_multicast(hosts)(hosts.peers[1]))
        hosts.peers[1].wait_ready()
        hosts.wait_view(4)
        run.advance(3)
        hung = hosts.peers[2]
        hung.process.send_signal(signal.SIGSTOP)
        try:
            run.advance(3)
        finally:
            hung.process.send_signal(signal.SIGCONT)
        hosts.wait_view(4, 60)
        wait_for(lambda: all_by(hosts, NAME), 60)
        run.once_each()


@scenario
def a_cut_pair_goes_on_around_it(cluster, folder):
    """The link is cut with bytes in flight, so nothing is heard of it."""
    with Hosts(cluster.shoal, count=4) as hosts:
        start(hosts, *ASKED)
        wait_for(lambda: all_by(hosts, NAME))
        run = Run(hosts, folder, replicas=2, stages=1, number=4, width=256)
        run.advance(3)
        a, b = hosts.peers[0], hosts.peers[1]
        a.host.cut(b.host)
        wait_for(lambda: all(len(p.status()["cuts"]) == 1
                             for p in hosts.peers), 60)
        run.advance(3)
        a.host.heal(b.host)
        wait_for(lambda: not any(p.status()["cuts"] for p in hosts.peers), 60)
        wait_for(lambda: all_by(hosts, NAME), 60)
        run.advance(3)
        run.once_each()


if __name__ == "__main__":
    if not can_make_namespaces():
        print("skipped: no right to make network namespaces")
        sys.exit(77)
    sys.exit(run_scenarios())
