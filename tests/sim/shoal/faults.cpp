// tests/sim/shoal/faults.cpp -- draws faults, and ends them.
//
// A cut link swallows all messages, like a broken network. A connection cannot
// restore what it has lost, so one that was cut breaks when the link is
// repaired, as TCP gives up or a peer hears of a connection that it does not
// know.
#include "tests/sim/shoal/node.hpp"
#include "tests/sim/shoal/world.hpp"

namespace shoal::sim {

void shoal_world::fault() {
  if (!faults_)
    return;
  const int n = int(machines_.size());
  const int i = int(below(std::uint64_t(n)));
  const int j = int(below(std::uint64_t(n)));
  switch (below(20)) {
  case 0:
  case 1:
  case 2:
  case 3:
    kill_and_restart(i);
    break;
  case 4: // several within a moment, so that they hit recoveries
    for (std::uint64_t k = 1 + below(3); k > 0; --k)
      after(between(0, 300 * millisecond), [this, n] {
        if (faults_)
          kill_and_restart(int(below(std::uint64_t(n))));
      });
    break;
  case 5: // all at once, like a power failure
    if (chance(0.3))
      for (int k = 0; k < n; ++k)
        kill_and_restart(k);
    break;
  case 6:
  case 7:
    stop_for(i, between(20 * millisecond, chance(0.5) ? second : 6 * second));
    break;
  case 8:
    lose_connection(i, j);
    break;
  case 9:
    cut_for(i, j, chance(0.5), between(50 * millisecond, 5 * second));
    break;
  case 10: { // two sides
    const std::uint64_t side = random_.next();
    const bool both = chance(0.7);
    const nanoseconds time = between(100 * millisecond, 5 * second);
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b)
        if (((side >> a) & 1) && !((side >> b) & 1))
          cut_for(a, b, both, time);
    break;
  }
  case 11: // a link that comes and goes
    for (nanoseconds at = 0; at < 3 * second;
         at += between(50 * millisecond, 700 * millisecond))
      after(at, [this, i, j, cuts = chance(0.5)] {
        if (!faults_)
          return;
        if (cuts)
          cut_for(i, j, true, between(10 * millisecond, 300 * millisecond));
        else
          lose_connection(i, j);
      });
    break;
  case 12:
    lost = chance(0.5) ? 0 : double(below(20)) / 100;
    break;
  case 13: { // a slow host, or all of them
    device_time = (chance(0.5) ? 2 : 1 + nanoseconds(below(10))) * millisecond;
    disk_time = (chance(0.5) ? 1 : 1 + nanoseconds(below(100))) * millisecond;
    break;
  }
  case 14:
    disk_full = chance(0.5) ? 0 : double(below(100)) / 100;
    break;
  case 16:
    change_profile(i);
    break;
  case 17:
    if (alive(i))
      machines_[std::size_t(i)].node->enter(
        [this, i] { machines_[std::size_t(i)].node->leave(); });
    break;
  case 18:
    if (alive(i) && chance(0.3))
      hang(i, chance(0.5) ? 0 : between(50 * millisecond, 12 * second));
    break;
  case 19:
    if (alive(i) && chance(0.3))
      machines_[std::size_t(i)].node->lose_transfer();
    break;
  case 15:
    bit_flips = chance(0.5) ? 0 : double(below(50)) / 100;
    break;
  }
  if (slow_records_ && record_random_.below(4) == 0) {
    constexpr nanoseconds times[] = {millisecond, 20 * millisecond,
                                     400 * millisecond, 2 * second};
    record_max_ = times[record_random_.below(std::size(times))];
    records_fail_ = record_random_.below(2) == 0 ? 0 : 0.5;
  }
  after(between(20 * millisecond, 1500 * millisecond), [this] { fault(); });
}

nanoseconds shoal_world::record_time() {
  return faults_ && slow_records_ ? 1
                                      + nanoseconds(record_random_.below(
                                        std::uint64_t(record_max_) + 1))
                                  : 0;
}

bool shoal_world::record_fails() {
  return faults_ && slow_records_
         && double(record_random_.below(1000)) < records_fail_ * 1000;
}

void shoal_world::kill_and_restart(int i) {
  kill(i, chance(0.3));
  after(chance(0.3) ? between(millisecond, 50 * millisecond)
                    : between(10 * millisecond, 5 * second),
        [this, i] { start(i); });
}

/// Its device stops working; 0: until that is noticed, even after the other
/// faults have stopped.
void shoal_world::hang(int i, nanoseconds time) {
  machine& m = machines_[std::size_t(i)];
  say(i, "its device hangs");
  m.node->hang();
  if (time > 0)
    after(time, [this, i, start = m.starts] {
      machine& now = machines_[std::size_t(i)];
      if (now.node && now.starts == start) {
        say(i, "its device goes on");
        now.node->wake();
      }
    });
}

/// Its disk or, more rarely, its device never finishes the piece that it begins
/// next, until the process ends.
void shoal_world::hang_for_good(int i) {
  machine& m = machines_[std::size_t(i)];
  if (!m.node)
    return;
  const bool disk = hang_random_.below(3) > 0;
  say(i, std::string("its ") + (disk ? "disk" : "device") + " hangs for good");
  if (disk)
    m.node->hang_disk();
  else
    m.node->hang();
}

/// A hang while the job's data are fetched: at any time, or at a critical one.
void shoal_world::hang_while_fetching() {
  const int i = int(hang_random_.below(machines_.size()));
  hang_due_ = hang_random_.below(2) == 0;
  if (!hang_due_)
    after(nanoseconds(hang_random_.below(300 * millisecond)),
          [this, i] { hang_for_good(i); });
}

void shoal_world::loads(int node) {
  if (!hang_due_ || hang_random_.below(4) > 0)
    return;
  hang_due_ = false;
  hang_for_good(node);
}

/// The job's state is only on disks; this is the only fault from here on.
void shoal_world::hang_after_death_of_all() {
  for (machine& m : machines_)
    kill(m.number, true);
  heal();
  const int i = int(hang_random_.below(machines_.size()));
  const auto way = hang_random_.below(4);
  hang_due_ = way >= 2;
  if (way == 0) // while it looks for what it has
    hang_for_good(i);
  else if (way == 1)
    after(nanoseconds(hang_random_.below(3 * second)),
          [this, i] { hang_for_good(i); });
}

/// SIGSTOP, and SIGCONT later: it wakes up with old knowledge.
void shoal_world::stop_for(int i, nanoseconds time) {
  machine& m = machines_[std::size_t(i)];
  if (!m.node || m.node->stopped())
    return;
  say(i, "is stopped");
  m.node->stop();
  after(time, [this, i, start = m.starts] { go_on(i, start); });
}

void shoal_world::go_on(int i, std::uint64_t start) {
  machine& m = machines_[std::size_t(i)];
  if (!m.node || m.starts != start || !m.node->stopped())
    return;
  say(i, "goes on");
  m.node->go_on();
}

void shoal_world::lose_connection(int i, int j) {
  if (i != j && alive(i))
    machines_[std::size_t(i)].node->drop(machines_[std::size_t(j)].id);
}

/// The speed of a peer is measured anew, and the plan follows.
void shoal_world::change_profile(int i) {
  machine& m = machines_[std::size_t(i)];
  if (!m.node)
    return;
  m.mflops = 50'000 + 10'000 * below(11);
  m.node->enter([&m] {
    core::cluster::update_profile e;
    e.device.mflops = m.mflops;
    e.device.memory_bytes = std::uint64_t{1} << 34;
    e.addresses = {m.address};
    m.node->tell(e);
  });
}

void shoal_world::cut_for(int a, int b, bool both, nanoseconds time) {
  if (a == b)
    return;
  say(-1, "cut m" + std::to_string(a) + (both ? " - m" : " > m")
            + std::to_string(b));
  cut(a, b);
  if (both)
    cut(b, a);
  after(time, [this, a, b, both] {
    mend(a, b);
    if (both)
      mend(b, a);
  });
}

void shoal_world::cut(int a, int b) {
  if (++cuts_[{a, b}] == 1)
    net_.cut(machines_[std::size_t(a)].address,
             machines_[std::size_t(b)].address);
}

void shoal_world::mend(int a, int b) {
  const auto at = cuts_.find({a, b});
  if (at == cuts_.end() || --at->second > 0)
    return;
  cuts_.erase(at);
  net_.heal(machines_[std::size_t(a)].address,
            machines_[std::size_t(b)].address);
  lose_connection(a, b);
  lose_connection(b, a);
}

void shoal_world::heal() {
  faults_ = false; // and records are stored at once
  lost = disk_full = bit_flips = 0;
  device_time = 2 * millisecond;
  disk_time = millisecond;
  for (auto all = cuts_; const auto& [way, times] : all) {
    cuts_[way] = 1;
    mend(way.first, way.second);
  }
  for (machine& m : machines_) {
    go_on(m.number, m.starts);
    if (m.node)
      m.node->settle();
    start(m.number);
  }
}

} // namespace shoal::sim
