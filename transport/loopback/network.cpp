// transport/loopback/network.cpp -- the event queue, the clock and the faults.
#include "transport/assert.hpp"
#include "transport/loopback/state.hpp"

namespace shoal::transport::loopback {

network::state::~state() {
  {
    lock l(mutex);
    stopping = true;
    wake.notify_all();
  }
  if (thread.joinable())
    thread.join();
}

void network::state::push(nanoseconds at, action run) {
  events.push({at, next_number++, std::move(run)});
  wake.notify_one();
}

void network::state::run_next(lock& l) {
  // The heap's top is const only to keep the order; it is removed at once.
  action run = std::move(const_cast<event&>(events.top()).run);
  if (!threaded)
    clock = std::max(clock, events.top().at);
  events.pop();
  run(l);
}

// The standard's distributions differ between libraries; a seed must not.
bool network::state::chance(double share) {
  if (share <= 0)
    return false;
  return static_cast<double>(random() >> 11) * 0x1p-53 < share;
}

nanoseconds network::state::delay() {
  const auto width = trouble.delay_max - trouble.delay_min;
  if (width <= nanoseconds{0})
    return trouble.delay_min;
  const auto range = static_cast<std::uint64_t>(width.count()) + 1;
  return trouble.delay_min
         + nanoseconds{static_cast<std::int64_t>(random() % range)};
}

bool network::state::is_cut(const std::string& from,
                            const std::string& to) const {
  return cuts.contains({from, to});
}

nanoseconds
network::state::arrival(const std::string& from, const std::string& to) {
  if (threaded)
    return clock;
  auto at = clock + delay();
  if (trouble.reorder)
    return at;
  auto& last = last_arrival[{from, to}];
  return last = std::max(last, at);
}

void network::state::carry(const std::string& from, const std::string& to,
                           action what) {
  push(arrival(from, to), [this, from, to, what = std::move(what)](lock& l) {
    if (is_cut(from, to))
      held[{from, to}].push_back(what);
    else
      what(l);
  });
}

network::state::node_ptr network::state::find(const std::string& name) const {
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : found->second;
}

network::network() : state_(std::make_shared<state>()) {
  state_->threaded = true;
  state_->thread = std::thread([s = state_.get()] {
    lock l(s->mutex);
    while (!s->stopping) {
      if (s->events.empty())
        s->wake.wait(l);
      else
        s->run_next(l);
    }
  });
}

network::network(std::uint64_t seed, faults f)
  : state_(std::make_shared<state>()) {
  state_->random.seed(seed);
  state_->trouble = f;
}

faults& network::settings() {
  SHOAL_ASSERT(!state_->threaded);
  return state_->trouble;
}

nanoseconds network::now() const {
  lock l(state_->mutex);
  return state_->clock;
}

void network::run_until(nanoseconds time) {
  SHOAL_ASSERT(!state_->threaded);
  lock l(state_->mutex);
  while (!state_->events.empty() && state_->events.top().at <= time)
    state_->run_next(l);
  state_->clock = std::max(state_->clock, time);
}

bool network::step() {
  SHOAL_ASSERT(!state_->threaded);
  lock l(state_->mutex);
  if (state_->events.empty())
    return false;
  state_->run_next(l);
  return true;
}

void network::schedule(nanoseconds after, std::function<void()> what) {
  lock l(state_->mutex);
  const auto at = state_->threaded ? state_->clock : state_->clock + after;
  state_->push(at, [what = std::move(what)](lock& held) {
    held.unlock();
    what();
    held.lock();
  });
}

void network::cut(const std::string& from, const std::string& to) {
  lock l(state_->mutex);
  state_->cuts.insert({from, to});
}

void network::heal(const std::string& from, const std::string& to) {
  lock l(state_->mutex);
  state_->cuts.erase({from, to});
  const auto waiting = state_->held.find({from, to});
  if (waiting == state_->held.end())
    return;
  const auto list = std::move(waiting->second);
  state_->held.erase(waiting);
  for (const auto& what : list)
    state_->carry(from, to, what);
}

void network::heal_all() {
  std::set<std::pair<std::string, std::string>> all;
  {
    lock l(state_->mutex);
    all = state_->cuts;
  }
  for (const auto& [from, to] : all)
    heal(from, to);
}

void network::kill(const std::string& name) {
  lock l(state_->mutex);
  const auto victim = state_->find(name);
  if (!victim || !victim->live())
    return;
  victim->killed = true;
  state_->nodes.erase(name);
  if (state_->trouble.death_notice < nanoseconds{0})
    return;
  for (const auto& [id, entry] : victim->peers) {
    const auto peer = state_->find(entry.name);
    if (!peer)
      continue;
    state_->push(state_->clock + state_->trouble.death_notice,
                 [s = state_.get(), peer, id = victim->settings.id,
                  connection = entry.connection](lock& held) {
                   s->lose(held, peer, id, connection, errc::peer_lost);
                 });
  }
}

} // namespace shoal::transport::loopback
