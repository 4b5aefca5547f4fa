# tests/cluster/quotas.py -- shares of the processors: control groups, v1 or v2.
#
# A process that writes its pid to the file of a group gets at most the group's
# share from then on, with all that it starts. Needs root.
import os
import pathlib

PERIOD_US = 10000  # short, so that a slow share is slow, not bursty
FIRST = pathlib.Path("/sys/fs/cgroup/cpu")
SECOND = pathlib.Path("/sys/fs/cgroup")


class Quotas:
    def __init__(self, prefix):
        self.prefix = prefix
        self.groups = []

    def share(self, name, processors):
        """Makes or changes a group with that share of the processors' time (say,
        1.5). Returns the file that takes its pids; None: no groups here."""
        quota = int(PERIOD_US * processors)
        name = f"{self.prefix}{name}"
        try:
            if (FIRST / "cpu.cfs_quota_us").exists() or (
                    FIRST / "tasks").exists():
                group = FIRST / name
                group.mkdir(exist_ok=True)
                (group / "cpu.cfs_period_us").write_text(f"{PERIOD_US}")
                (group / "cpu.cfs_quota_us").write_text(f"{quota}")
            elif (SECOND / "cgroup.controllers").exists():
                (SECOND / "cgroup.subtree_control").write_text("+cpu")
                group = SECOND / name
                group.mkdir(exist_ok=True)
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
            else:
                return None
        except OSError:  # no right to, or no processor controller
            return None
        if group not in self.groups:
            self.groups.append(group)
        return str(group / "cgroup.procs")

    def close(self):
        """After all processes inside have ended."""
        for group in self.groups:
            try:
                group.rmdir()
            except OSError:
                pass  # a process is still being reaped
        self.groups = []


def share_of(options, processors):
    """The processors of each node: with --targets that number, where groups can
    be made, so that capacity does not depend on other nodes; else all."""
    if not options.targets:
        return None
    if not can_make_quotas():
        print("no control groups can be made here: the nodes share all "
              "processors")
        return None
    return processors


def can_make_quotas():
    """Whether this user may: scripts say "skipped" otherwise."""
    probe = Quotas(f"shoal-probe-{os.getpid()}-")
    made = probe.share("0", 1.0) is not None
    probe.close()
    return made
