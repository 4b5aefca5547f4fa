// traffic.js -- rates of links, from two looks at their counters.
//
// A node counts the bytes of its own links only, so of pairs of other peers
// nothing is known here.

/// The bytes that a status has counted: id of a peer -> [sent, received].
function counters(status) {
  const out = new Map();
  for (const link of status.links ?? []) {
    const sums = [0, 0];
    for (const moved of link.moved ?? []) {
      sums[0] += moved.sent_bytes;
      sums[1] += moved.received_bytes;
    }
    out.set(link.peer, sums);
  }
  return out;
}

export class Traffic {
  /// Takes a status that was got at `now` (ms).
  take(status, now) {
    const next = counters(status);
    this.rates = new Map();
    if (this.before && now > this.at)
      for (const [peer, sums] of next) {
        const old = this.before.get(peer);
        // A counter that went back is that of a node that was started again.
        if (old && sums[0] >= old[0] && sums[1] >= old[1])
          this.rates.set(peer, sums.map((sum, k) =>
            (sum - old[k]) * 1000 / (now - this.at)));
      }
    this.before = next;
    this.at = now;
    this.self = status.self;
  }

  /// Bytes/s from one peer to another; undefined where it is not known.
  between(from, to) {
    if (from === to) return undefined;
    if (from === this.self) return this.rates?.get(to)?.[0];
    if (to === this.self) return this.rates?.get(from)?.[1];
    return undefined;
  }
}
