// runtime/links/link_service.cpp -- peers, fabrics and plans: added, lost,
// removed.
#include "runtime/links/link_service.hpp"

#include "runtime/links/link_local.hpp"
#include "runtime/links/link_state.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

namespace links {

using transport::errc;

namespace {

/// Ticks for which a grant may wait until its fabric comes up on this side;
/// then the receiver is asked for another grant. About a second: longer than
/// one side of a new connection lags behind the other.
constexpr int patience_ticks = 10;

/// Removes all entries with this plan from `known`.
template <class Pointer>
std::vector<Pointer>
take(std::map<bulk_tag, Pointer>& known, std::uint64_t plan) {
  std::vector<Pointer> list;
  auto at = known.lower_bound({plan, 0, 0});
  while (at != known.end() && at->first.plan == plan) {
    list.push_back(at->second);
    at = known.erase(at);
  }
  return list;
}

} // namespace

transport::fabric* state::fabric_of(fabric_kind kind) const {
  return fabrics[index(kind)];
}

bool state::anywhere(const peer& p) const {
  return std::any_of(p.connections.begin(), p.connections.end(),
                     [](const connection& c) { return c.up; });
}

void state::add_fabric(fabric_kind kind, transport::fabric& f) {
  if (closed)
    return;
  fabrics[index(kind)] = &f;
  flush_all();
}

void state::up(fabric_kind kind, const peer_id& id) {
  auto& p = peers[id];
  auto& c = p.connections[index(kind)];
  c.up = true;
  ++c.generation;
  if (kind == settings.control) { // messages in transit may be lost
    p.outbox.clear();
    for (const auto& [tag, r] : p.receives)
      if (r->at == receive::stage::posted)
        send_credit(id, {tag, r->fabric, credit_kind::grant, r->attempt});
    for (const auto& [tag, s] : p.sends)
      if (s->at == sending::stage::waiting && s->refused)
        send_credit(id, {tag, s->fabric, credit_kind::refuse, s->attempt});
  }
  for (const auto& [tag, s] : p.sends)
    if (s->at == sending::stage::granted && s->fabric == kind) {
      s->at = sending::stage::blocked;
      p.blocked.push_back(s);
    }
  flush(id, p);
}

void state::down(fabric_kind kind, const peer_id& id) {
  connection_lost(id, kind, peers[id].connections[index(kind)].generation);
  flush_all();
}

void state::connection_lost(const peer_id& id, fabric_kind kind,
                            std::uint64_t generation) {
  auto& p = peers[id];
  auto& c = p.connections[index(kind)];
  if (!c.up || c.generation != generation)
    return;
  c.up = false;
  if (!anywhere(p)) { // nothing from before is repeated: L-4
    p.early.clear();
    p.outbox.clear();
  }
  const auto blocked = std::exchange(p.blocked, {});
  for (const auto& s : blocked) {
    if (s->at != sending::stage::blocked)
      continue;
    if (s->fabric == kind)
      wait_again(s, true);
    else
      p.blocked.push_back(s);
  }
  if (anywhere(p))
    return;
  std::vector<sending_ptr> granted;
  for (const auto& [tag, s] : p.sends)
    if (s->at == sending::stage::granted)
      granted.push_back(s);
  for (const auto& s : granted)
    wait_again(s, true);
}

void state::all_down(peer& p, std::error_code why) {
  const auto receives = std::exchange(p.receives, {});
  const auto sends = std::exchange(p.sends, {});
  p.held.clear();
  p.blocked.clear();
  p.early.clear();
  p.finished.clear();
  p.finished_order.clear();
  p.outbox.clear();
  for (const auto& [tag, r] : receives) {
    if (r->at == receive::stage::posted)
      r->detached = why;
    else
      end(r, why);
  }
  for (const auto& [tag, s] : sends) {
    if (s->at == sending::stage::sending)
      s->detached = why;
    else
      end(s, why);
  }
}

void state::credit(const peer_id& from, const link_credit& c) {
  if (closed || index(c.fabric) >= fabrics_max)
    return;
  if (c.kind == credit_kind::grant)
    grant(from, c);
  else if (c.kind == credit_kind::refuse)
    refusal(from, c);
  else if (c.kind == credit_kind::complete)
    completed(from, c);
  flush_all();
}

void state::send_credit(const peer_id& to, const link_credit& c) {
  auto& p = peers[to];
  if (p.outbox.size() >= link_service::outbox_max)
    return; // repeated when the control fabric comes up again
  p.outbox.push_back(c);
  flush_outbox(to, p);
}

void state::flush_outbox(const peer_id& id, peer& p) {
  while (!p.outbox.empty()) {
    if (sender.send_credit(id, p.outbox.front()) == errc::would_block) {
      stuck.insert(id);
      return;
    }
    p.outbox.pop_front();
  }
}

void state::flush(const peer_id& id, peer& p) {
  flush_outbox(id, p);
  flush_receives(p);
  flush_sends(p);
  if (p.outbox.empty() && p.held.empty() && p.blocked.empty())
    stuck.erase(id);
  else
    stuck.insert(id);
}

void state::flush_all() {
  const std::vector<peer_id> list(stuck.begin(), stuck.end());
  for (const auto& id : list)
    flush(id, peers[id]);
}

void state::tick() {
  for (auto& [id, p] : peers) {
    std::vector<sending_ptr> late;
    for (const auto& [tag, s] : p.sends)
      if (s->at == sending::stage::granted && ++s->held_ticks > patience_ticks)
        late.push_back(s);
    for (const auto& s : late)
      wait_again(s, true);
  }
  flush_all();
}

/// The control fabric stays: the news of the failure came over it.
void state::drop(const peer_id& id, peer& p, fabric_kind kind) {
  auto& c = p.connections[index(kind)];
  if (kind == settings.control || !c.up || c.dropped == c.generation)
    return;
  c.dropped = c.generation;
  if (auto* f = fabric_of(kind))
    f->drop(id);
}

bool state::is_cancelled(std::uint64_t plan) const {
  return std::find(cancelled.begin(), cancelled.end(), plan) != cancelled.end();
}

void state::use(std::uint64_t plan) {
  std::erase(cancelled, plan);
}

void state::cancel(std::uint64_t plan) {
  if (!is_cancelled(plan))
    cancelled.push_back(plan);
  if (cancelled.size() > link_service::cancelled_plans_max)
    cancelled.pop_front();
  for (auto& [id, p] : peers) {
    for (const auto& r : take(p.receives, plan)) {
      if (r->at == receive::stage::posted)
        r->detached = errc::canceled;
      else
        end(r, errc::canceled);
    }
    for (const auto& s : take(p.sends, plan)) {
      if (s->at == sending::stage::sending)
        s->detached = errc::canceled;
      else
        end(s, errc::canceled);
    }
    std::erase_if(p.early, [&](const auto& e) { return e.first.plan == plan; });
    std::erase_if(p.outbox, [&](const auto& c) { return c.tag.plan == plan; });
    std::erase_if(p.held,
                  [](const auto& r) { return r->at == receive::stage::ended; });
    std::erase_if(p.blocked,
                  [](const auto& s) { return s->at == sending::stage::ended; });
  }
  for (auto* f : fabrics)
    if (f)
      f->cancel(plan);
}

void state::close() {
  closed = true;
  for (auto& [id, p] : peers) {
    for (auto& c : p.connections)
      c.up = false;
    all_down(p, errc::canceled);
  }
  stuck.clear();
  fabrics = {};
}

} // namespace links

namespace {

class service final : public link_service {
public:
  service(config c, credit_sender& sender)
    : state_(std::make_shared<links::state>(std::move(c), sender)) {}

  ~service() override { close(); }

  void expect(const transport::peer_id& from, transport::bulk_tag tag,
              shared_bytes into, callback done) override {
    if (from == state_->settings.self)
      return local_.expect(tag, std::move(into), std::move(done));
    auto r = std::make_shared<links::receive>();
    r->peer = from;
    r->tag = tag;
    r->buffer = std::move(into);
    r->done = std::move(done);
    post([r = std::move(r)](links::state& s) { s.expect(r); });
  }

  void send(const transport::peer_id& to, transport::bulk_tag tag,
            shared_bytes from, callback done) override {
    if (to == state_->settings.self)
      return local_.send(tag, std::move(from), std::move(done));
    auto t = std::make_shared<links::sending>();
    t->peer = to;
    t->tag = tag;
    t->buffer = std::move(from);
    t->done = std::move(done);
    post([t = std::move(t)](links::state& s) { s.send(t); });
  }

  shared_memory_resource memory() const override {
    return state_->settings.memory ? state_->settings.memory
                                   : link_hub::memory();
  }

  void cancel(std::uint64_t plan) override {
    local_.cancel(plan);
    post([plan](links::state& s) { s.cancel(plan); });
  }

  void list_pending(std::uint64_t plan,
                    std::function<void(std::vector<pending>)> then) override {
    post([plan, then = std::move(then)](links::state& s) {
      then(s.pending_of(plan));
    });
  }

  void list_queues(std::function<void(queues)> then) override {
    post(
      [then = std::move(then)](links::state& s) { then(s.longest_queues()); });
  }

  /// Not an event: the thread that hangs may be the one that runs events.
  std::chrono::nanoseconds silent_for() override {
    std::lock_guard lock(fabrics_mutex_);
    std::chrono::nanoseconds longest{0};
    for (transport::fabric* f : fabrics_)
      longest = std::max(longest, f->silent_for());
    return longest;
  }

  std::vector<link_stat> stats() const override {
    auto list = state_->all_stats();
    std::uint64_t sum = 0;
    const auto jobs = local_.copied();
    for (const auto& [job, bytes] : jobs)
      sum += bytes;
    if (sum == 0)
      return list;
    link_stat own{state_->settings.self, "local", sum, sum, 0, 0, 0, {}};
    for (const auto& [job, bytes] : jobs)
      own.jobs.push_back({job, bytes, bytes});
    list.insert(list.begin(), std::move(own));
    return list;
  }

  void name_plan(std::uint64_t plan, std::uint64_t job) override {
    local_.name_plan(plan, job);
    std::lock_guard lock(state_->stats_mutex);
    state_->named.name_plan(plan, job);
  }

  void add_fabric(fabric_kind kind, transport::fabric& f) override {
    {
      std::lock_guard lock(fabrics_mutex_);
      if (!closed_)
        fabrics_.push_back(&f);
    }
    post([kind, &f](links::state& s) { s.add_fabric(kind, f); });
  }
  void peer_up(fabric_kind kind, const transport::peer_id& peer) override {
    post([kind, peer](links::state& s) { s.up(kind, peer); });
  }
  void peer_down(fabric_kind kind, const transport::peer_id& peer) override {
    post([kind, peer](links::state& s) { s.down(kind, peer); });
  }
  void credit_received(const transport::peer_id& from,
                       const link_credit& credit) override {
    post([from, credit](links::state& s) { s.credit(from, credit); });
  }
  void tick() override {
    post([](links::state& s) { s.tick(); });
  }
  void close() override {
    local_.close();
    {
      std::lock_guard lock(fabrics_mutex_);
      closed_ = true;
      fabrics_.clear();
    }
    const auto keep = state_;
    keep->events.run([s = keep.get()] { s->close(); });
  }

private:
  template <class Event>
  void post(Event e) {
    const auto keep = state_;
    keep->events.post([s = keep.get(), e = std::move(e)] { e(*s); });
  }

  std::shared_ptr<links::state> state_;
  links::local local_;
  std::mutex fabrics_mutex_; ///< guards what follows
  std::vector<transport::fabric*> fabrics_;
  bool closed_ = false;
};

} // namespace

std::unique_ptr<link_service>
make_link_service(link_service::config config, credit_sender& sender) {
  return std::make_unique<service>(std::move(config), sender);
}

} // namespace shoal::runtime
