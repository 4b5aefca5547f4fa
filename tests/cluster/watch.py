# tests/cluster/watch.py -- follows a run whose peers come and go.
#
# Reads `shoal train --json` line by line and checks that every step comes
# once, in order; how many may come again, with the same loss, is the caller's
# to say. The time of a step is when the node that tells of it committed it (or
# learned of it), on the clock of time.monotonic(): how soon the command that
# prints it finds another node is not the run's affair.
import json
import statistics
import time

LOG_S = 10  # until what was told of a step is in a file, too


class Watch:
    """Follows a run's JSON lines; checks that every step comes once."""

    def __init__(self, process, lines, repeats_max=0, tolerance=0.0,
                 gaps=False):
        """`tolerance`: how far, relatively, the loss of a step that comes
        again may be from what it was. `gaps`: a node that was out lacks what
        was said meanwhile, which fill() then looks for."""
        self.process, self.lines = process, lines
        self.losses, self.times, self.numbers = {}, [], []
        self.before = {}  # of steps that came again
        self.tokens, self.others = [], []
        self.repeats_max, self.repeated = repeats_max, []
        self.repeated_at = []  # when the first of these was there again
        self.tolerance, self.deviation = tolerance, 0.0
        self.gaps = gaps
        self.next = 1  # step
        self.done = False
        self.over = False  # no line follows
        self.clock = time.time() - time.monotonic()

    def step(self, seconds):
        """Waits for the next committed step; its number, or None at the end."""
        deadline = time.monotonic() + seconds
        while True:
            if self.over:
                return None
            when, line = self.lines.next(deadline)
            if line is None:
                self.over = True
                continue
            event = json.loads(line)
            if event["event"] == "step":
                return self.took(event)
            self.others.append((when, event))
            if event["event"] == "done":
                self.done = event.get("state") == "done"

    def took(self, event):
        number = event["step"]
        if self.next - self.repeats_max <= number < self.next:
            self.go_back(number)
            self.repeated_at.append(event["unix_ms"] / 1e3 - self.clock)
        elif number < self.next or (number > self.next and not self.gaps):
            raise AssertionError(f"step {number} came, {self.next} was due")
        self.next = number + 1
        self.again(number, event["loss"])
        self.losses[number] = event["loss"]
        self.times.append(event["unix_ms"] / 1e3 - self.clock)
        self.numbers.append(number)
        self.tokens.append(event["tokens"])
        return number

    def go_back(self, number):
        """A step comes again, and those after it will."""
        self.repeated.append(self.next - number)
        self.before.update(self.losses)
        if self.gaps:  # lists by step: what was given up does not count
            first = self.numbers.index(number)
            del self.times[first:], self.numbers[first:], self.tokens[first:]
        for later in [s for s in self.losses if s >= number]:
            del self.losses[later]

    def again(self, number, loss):
        first = self.before.get(number)
        if first is None:
            return
        off = abs(first - loss) / abs(first)
        self.deviation = max(self.deviation, off)
        if off > self.tolerance:
            raise AssertionError(f"step {number} came again with another "
                                 f"loss: {first}, then {loss}")

    def now(self):
        """Takes in what has come so far."""
        while True:
            try:
                if self.step(0) is None:
                    return
            except TimeoutError:
                return

    def until(self, when):
        """Takes in what comes until that time, of time.monotonic()."""
        while time.monotonic() < when:
            try:
                if self.step(when - time.monotonic()) is None:
                    raise AssertionError("the run ended too early")
            except TimeoutError:
                return

    def advance(self, count, seconds=120):
        """Waits for `count` steps from now on."""
        self.now()
        for _ in range(count):
            if self.step(seconds) is None:
                raise AssertionError("the run ended too early: more steps are "
                                     "needed for all kills")

    def past(self, when, count=1, seconds=120):
        """Waits for `count` steps that were committed after `when`."""
        while sum(1 for t in self.times[-count:] if t > when) < count:
            if self.step(seconds) is None:
                raise AssertionError("the run ended too early")

    def pause_since(self, killed, count=None):
        """The longest wait for a step that the kill can have caused, of so
        many steps after it: the first of them may have been agreed when it
        came. None: of all so far. @pre past(killed)"""
        times = ([t for t in self.times if t <= killed][-1:]
                 + [t for t in self.times if t > killed][:count])
        return max(b - a for a, b in zip(times, times[1:]))

    def before_time(self, when):
        """How many steps had come by then."""
        return sum(1 for t in self.times if t <= when)

    def step_time(self, first=0, last=None):
        """The median time of a step, of those with these positions."""
        times = self.times[first:last]
        return statistics.median(b - a for a, b in zip(times, times[1:]))

    def _known(self, cluster):
        """Each step of ours as who logged it first has it."""
        found = {}
        for event in events_known(cluster):
            first = found.get(event["step"])
            if event["step"] < self.next and (
                    not first or event["unix_ms"] < first["unix_ms"]):
                found[event["step"]] = event
        return found

    def fill(self, cluster):
        """Looks in the logs of all nodes for the steps that were not told;
        then a step has the time of the first peer that committed it."""
        deadline = time.monotonic() + LOG_S
        while True:
            found = self._known(cluster)
            lost = [s for s in range(1, self.next) if s not in found]
            if not lost or time.monotonic() > deadline:
                break
        assert not lost, f"nobody knows of steps {lost}"
        ordered = [found[s] for s in range(1, self.next)]
        self.numbers = [e["step"] for e in ordered]
        self.losses = {e["step"]: e["loss"] for e in ordered}
        self.tokens = [e["tokens"] for e in ordered]
        self.times = [e["unix_ms"] / 1e3 - self.clock for e in ordered]

    def finish(self, seconds):
        while self.step(seconds) is not None:
            pass
        self.process.wait(timeout=30)
        if not self.done or self.process.returncode != 0:
            raise AssertionError(f"the run ended with code "
                                 f"{self.process.returncode}, done={self.done}")


def events_known(cluster, kind="step"):
    """Committed steps (or checkpoints) in the logs of all nodes, those that
    died included."""
    for path in cluster.root.glob("stores/*/jobs/*/events.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # its node was killed while it wrote it
            if event["event"] == kind:
                yield event


def train(cluster, run, out, data, number=1, flags=(), **watch):
    """Submits the run file at a peer and follows it."""
    process, lines = cluster.train(
        [str(run), "--data", *data, "--out", str(out), *flags], number)
    return Watch(process, lines, **watch)
