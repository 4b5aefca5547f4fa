# tests/cluster/history.py -- one history: what all nodes' logs must agree on.
#
# Of a cluster's files alone, so that it holds for whatever was done to it:
#   H-1  two nodes never tell different views of one number of one shoal
#   H-2  a step of one assignment has one loss, norm and set of samples,
#        whichever node reports it
#   H-3  a step that is run again has the samples that it had
#   H-4  when a step of a later assignment is committed, none of an earlier
#        one is committed any more: no peer went on alone
#   H-5  a step is run again only if the run has said that state was lost
# Logs of nodes that were killed may end in the middle of a line.
import collections
import json

LOST = "state lost", "the run went back"


def events_of(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("{"):
                try:
                    yield json.loads(line)
                except ValueError:
                    pass  # its node was killed while it wrote it


def views(root):
    """(shoal, epoch) -> digests that nodes have told; how often they did."""
    found, told = {}, 0
    for path in root.glob("*.log"):
        for event in events_of(path):
            if event.get("event") == "view" and "shoal" in event:
                found.setdefault((event["shoal"], event["epoch"]),
                                 set()).add(event["digest"])
                told += 1
    return found, told


class Job:
    def __init__(self):
        self.results = {}  # (step, assignment) -> what was told of it
        self.samples = {}  # step -> digests
        self.first = {}    # (step, assignment) -> ms of the first commit
        self.lost = False

    def add(self, event):
        self.lost |= any(text in event.get("text", "") for text in LOST)
        if event.get("event") != "step":
            return
        key = event["step"], event["epoch"]
        self.results.setdefault(key, set()).add(
            (event["loss"], event["grad_norm"]))
        if event.get("data"):
            self.samples.setdefault(event["step"], set()).add(event["data"])
        self.first[key] = min(self.first.get(key, event["unix_ms"]),
                              event["unix_ms"])

    def wrong(self):
        out = [f"step {s} of assignment {e} has results {sorted(r)}"
               for (s, e), r in self.results.items() if len(r) > 1]  # H-2
        out += [f"step {s} has used samples {sorted(d)}"
                for s, d in self.samples.items() if len(d) > 1]  # H-3
        begun = {}
        for (_, epoch), when in self.first.items():
            begun[epoch] = min(begun.get(epoch, when), when)
        for (step, epoch), when in self.first.items():  # H-4
            later = [e for e, b in begun.items() if e > epoch and b < when]
            if later:
                out.append(f"step {step} of assignment {epoch} was committed "
                           f"after a step of assignment {later[0]}")
        times = collections.Counter(step for step, _ in self.first)
        again = sorted(s for s, count in times.items() if count > 1)
        if again and not self.lost:  # H-5
            out.append(f"steps {again} were run again, and no state was lost")
        return out


def forks(root):
    """What is wrong with the history below a cluster's folder: sentences."""
    found, _ = views(root)
    out = [f"view {epoch} of shoal {shoal}: {len(digests)} of one number"
           for (shoal, epoch), digests in found.items() if len(digests) > 1]
    jobs = {}
    for path in root.glob("stores/*/jobs/*/events.jsonl"):
        job = jobs.setdefault(path.parent.name, Job())
        for event in events_of(path):
            job.add(event)
    return out + [f"job {name}: {what}" for name, job in jobs.items()
                  for what in job.wrong()]
