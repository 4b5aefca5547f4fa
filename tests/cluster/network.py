# tests/cluster/network.py -- hosts for tests: network namespaces on a bridge.
#
# Every host has an address of its own (10.83.0.N, and fd83::N) on one bridge,
# or of `families` 6 none of IPv4, not even on loopback; "link": no other than
# the link-local one that it gives itself. The bridge
# stands in a namespace by itself, its own mount namespace (hosts file,
# /dev/shm), and if asked its own share of the processors (cgroup v1 or v2).
# Nothing of the machine's own network is touched. close() removes it all.
import os
import pathlib
import subprocess
import uuid

from quotas import Quotas


def can_make_namespaces():
    """Whether this user may: the tests say "skipped" otherwise."""
    name = f"shoal-probe-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name],
                              capture_output=True, check=False)
        if made.returncode != 0:
            return False
        # To work in one takes a mount namespace, which a chroot cannot have.
        inside = ip("-n", name, "link", "add", "br0", "type", "bridge",
                    check=False)
        ip("netns", "del", name, check=False)
        return inside.returncode == 0
    except FileNotFoundError:
        return False


def settled(namespace):
    """Whether no IPv6 address is still being checked for doubles."""
    shown = ip("-n", namespace, "-6", "addr", "show", "dev", "eth0").stdout
    return "fe80::" in shown and "tentative" not in shown


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check,
                          capture_output=True, text=True)


class Host:
    """One namespace; `command` makes a command run inside it."""

    def __init__(self, network, number):
        self.network = network
        self.number = number
        self.namespace = f"{network.prefix}h{number}"
        self.address = f"10.83.0.{number}"
        self.address6 = f"fd83::{number}"
        self.quota = None  # processors; None: all
        self.mounts = []   # (source, target), in its mount namespace
        self.apart = network.apart
        ip("netns", "add", self.namespace)
        wire = f"v{number}"
        ip("-n", network.switch, "link", "add", wire, "type", "veth", "peer",
           "name", "eth0", "netns", self.namespace)
        ip("-n", network.switch, "link", "set", wire, "master", "br0", "up")
        if network.families == "both":
            ip("-n", self.namespace, "addr", "add", f"{self.address}/24", "dev",
               "eth0")
        if network.families != "link":
            ip("-n", self.namespace, "addr", "add", f"{self.address6}/64",
               "dev", "eth0", "nodad")
        ip("-n", self.namespace, "link", "set", "eth0", "up")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        if network.families != "both":
            ip("-n", self.namespace, "-4", "addr", "flush", "dev", "lo")
            return
        # Multicast goes out where the host's only network is.
        ip("-n", self.namespace, "route", "add", "default", "dev", "eth0")

    def hosts_file(self, lines):
        """What /etc/hosts says on this host."""
        path = self.network.folder / f"hosts.{self.number}"
        path.write_text("127.0.0.1 localhost\n" + "\n".join(lines) + "\n",
                        encoding="utf-8")
        target = (str(path), "/etc/hosts")
        if target not in self.mounts:
            self.mounts.append(target)

    def limit(self, processors):
        """Limits the processors' time of all that starts from now on;
        False: there are no control groups here."""
        self.quota = self.network.cgroup(self.number, processors)
        return self.quota is not None

    def command(self, command):
        script = ["set -e"]
        for source, target in self.mounts:
            script.append(f"mount --bind '{source}' '{target}'")
        if self.apart:  # another machine: no shared memory, another boot
            boot = self.network.folder / f"boot.{self.number}"
            if not boot.exists():
                boot.write_text(f"{uuid.uuid4()}\n", encoding="utf-8")
            script.append("mount -t tmpfs shm /dev/shm")
            script.append(
                f"mount --bind '{boot}' /proc/sys/kernel/random/boot_id")
        if self.quota:
            script.append(f"echo $$ > '{self.quota}'")
        script.append('exec "$@"')
        # Not "ip netns exec": its new /sys has no control groups.
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare",
                "--mount", "--propagation", "private", "sh", "-c",
                "\n".join(script), "sh", *command]

    def cut(self, other, both=True):
        """Nothing passes from this host to `other`, and back if `both`."""
        ip("-n", self.namespace, "route", "add", "blackhole",
           f"{other.address}/32")
        ip("-n", self.namespace, "-6", "route", "add", "blackhole",
           f"{other.address6}/128")
        if both:
            other.cut(self, both=False)

    def heal(self, other, both=True):
        ip("-n", self.namespace, "route", "del", "blackhole",
           f"{other.address}/32", check=False)
        ip("-n", self.namespace, "-6", "route", "del", "blackhole",
           f"{other.address6}/128", check=False)
        if both:
            other.heal(self, both=False)


class Network:
    """`apart`: hosts share no memory, as machines do. `families`: "both", "6"
    or "link"."""

    def __init__(self, folder, hosts, apart=True, families="both"):
        self.folder = pathlib.Path(folder)
        self.apart = apart
        self.families = families
        self.prefix = f"sh{os.getpid()}"
        self.switch = f"{self.prefix}sw"
        self.quotas = Quotas(f"{self.prefix}c")
        self.hosts = []
        ip("netns", "add", self.switch)
        try:
            ip("-n", self.switch, "link", "add", "br0", "type", "bridge")
            ip("-n", self.switch, "link", "set", "br0", "up")
            for number in range(1, hosts + 1):
                self.hosts.append(Host(self, number))
        except BaseException:
            self.close()
            raise

    def cgroup(self, number, processors):
        """The file that takes the pids of a host's group; None: no groups."""
        return self.quotas.share(str(number), processors)

    def close(self):
        """After all processes inside have ended."""
        for host in self.hosts:
            ip("netns", "del", host.namespace, check=False)
        ip("netns", "del", self.switch, check=False)
        self.quotas.close()
