# tests/cluster/finding_test.py -- nodes that find each other in every way.
#
# Real processes on loopback addresses, without multicast unless it is the
# claim. Names on the command line choose among the scenarios.
import os
import subprocess
import sys

from lifecycle_support import run_scenarios, scenario

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
    if not cluster.isolated:
        print("  skipped: no mount namespaces here")
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
    if not cluster.isolated:
        print("  skipped: no mount namespaces here")
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


if __name__ == "__main__":
    sys.exit(run_scenarios())
