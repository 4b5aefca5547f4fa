// runtime/links/link_prober.cpp -- sends one probe at a time, receives one at a
// time.
#include "runtime/links/link_prober.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>

namespace shoal::runtime {

namespace {

/// Never used for a link of an actor: those have their kind in the upper bits.
constexpr std::uint32_t probe_link = 0xffffffff;

/// The sub-plan of a probe; both ends compute it.
std::uint64_t plan_of(const core::peer_id& from, const core::peer_id& to,
                      std::uint64_t nonce) {
  std::uint64_t h = nonce ^ 0x9e3779b97f4a7c15u;
  for (const auto* id : {&from, &to})
    for (std::size_t i = 0; i + 8 <= id->size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, id->data() + i, 8);
      h = (h ^ word) * 0xff51afd7ed558ccdu; // mixing step of MurmurHash3
      h ^= h >> 32;
    }
  return h;
}

std::size_t bytes_of(const link_probe& p) {
  return p.small * link_prober::small_bytes + p.bulk * link_prober::bulk_bytes;
}

} // namespace

struct link_prober::state : std::enable_shared_from_this<state> {
  struct probe {
    core::peer_id peer{};
    link_probe what;
    std::uint64_t plan = 0;
    std::uint32_t next = 0; ///< outgoing: next to be sent; incoming: number
                            ///< that has ended
    clock::time_point deadline{};
    std::shared_ptr<std::vector<std::byte>> memory;

    std::uint32_t count() const { return what.small + what.bulk; }
    shared_bytes bytes(std::uint32_t i) const {
      const auto n = i < what.small ? small_bytes : bulk_bytes;
      return {memory, std::span(*memory).first(n)};
    }
  };
  struct budget {
    std::size_t sent = 0;
    std::size_t received = 0;
  };

  state(const core::peer_id& me, link_hub& l, probe_sender& s)
    : self(me), links(l), sender(s) {}

  static std::shared_ptr<std::vector<std::byte>>
  memory_for(const link_probe& p) {
    return std::make_shared<std::vector<std::byte>>(p.bulk > 0 ? bulk_bytes
                                                               : small_bytes);
  }

  /// Sends transfer `i` of the probe `plan`; its end sends the next one.
  void send(std::uint64_t plan, std::uint32_t i) {
    core::peer_id to{};
    shared_bytes from;
    {
      std::lock_guard lock(mutex);
      if (!out || out->plan != plan)
        return;
      if (i == out->count()) {
        out.reset();
        return;
      }
      to = out->peer;
      from = out->bytes(i);
    }
    links.send(to, {plan, probe_link, i}, std::move(from),
               [weak = weak_from_this(), plan, i](std::error_code error) {
                 if (auto self = weak.lock())
                   error ? self->end_out(plan) : self->send(plan, i + 1);
               });
  }

  void end_out(std::uint64_t plan) {
    std::lock_guard lock(mutex);
    if (out && out->plan == plan)
      out.reset();
  }

  void received(std::uint64_t plan) {
    {
      std::lock_guard lock(mutex);
      if (!in || in->plan != plan || ++in->next != in->count())
        return;
      in.reset();
    }
    expect_next();
  }

  /// Posts the memory for the probe that waits longest, if none is being
  /// received.
  void expect_next() {
    probe begun;
    {
      std::lock_guard lock(mutex);
      while (!in && !waiting.empty()) {
        if (now < waiting.front().deadline)
          in = waiting.front();
        waiting.pop_front();
      }
      if (!in || in->memory)
        return;
      in->memory = memory_for(in->what);
      begun = *in;
    }
    for (std::uint32_t i = 0; i < begun.count(); ++i)
      links.expect(
        begun.peer, {begun.plan, probe_link, i}, begun.bytes(i),
        [weak = weak_from_this(), plan = begun.plan](std::error_code) {
          if (auto self = weak.lock())
            self->received(plan);
        });
  }

  core::peer_id self{};
  link_hub& links;
  probe_sender& sender;
  std::mutex mutex;        ///< guards what follows; not held in calls to links
  clock::time_point now{}; ///< as of tick() and asked()
  std::optional<probe> out;
  std::optional<probe> in;
  std::deque<probe> waiting; ///< to be received; no memory posted yet
  std::map<core::peer_id, budget> spent;
  std::mt19937_64 random{std::random_device{}()};
};

link_prober::link_prober(const core::peer_id& self, link_hub& links,
                         probe_sender& sender)
  : state_(std::make_shared<state>(self, links, sender)) {
}

link_prober::~link_prober() = default;

void link_prober::tick(clock::time_point now, std::span<const pair> unknown) {
  std::vector<std::uint64_t> late;
  std::optional<state::probe> begun;
  {
    std::lock_guard lock(state_->mutex);
    state_->now = now;
    for (auto* p : {&state_->out, &state_->in})
      if (*p && now >= (*p)->deadline) {
        late.push_back((*p)->plan);
        p->reset();
      }
    for (const pair& u : unknown) {
      if (state_->out)
        break;
      link_probe what{state_->random(), u.latency ? small_count : 0,
                      u.bandwidth ? bulk_count : 0};
      auto& spent = state_->spent[u.peer].sent;
      if (bytes_of(what) == 0 || spent + bytes_of(what) > pair_bytes_max)
        continue;
      spent += std::max(bytes_of(what), pair_bytes_max / 8);
      state_->out = begun =
        state::probe{u.peer,
                     what,
                     plan_of(state_->self, u.peer, what.nonce),
                     0,
                     now + probe_timeout,
                     state::memory_for(what)};
    }
  }
  for (const auto plan : late)
    state_->links.cancel(plan);
  state_->expect_next();
  if (!begun)
    return;
  if (state_->sender.send_probe(begun->peer, begun->what))
    state_->end_out(begun->plan);
  else
    state_->send(begun->plan, 0);
}

void link_prober::asked(const core::peer_id& from, const link_probe& p,
                        clock::time_point now) {
  {
    std::lock_guard lock(state_->mutex);
    state_->now = now;
    auto& spent = state_->spent[from].received;
    if (state_->waiting.size() >= waiting_max || bytes_of(p) == 0
        || p.small > probe_small_max || p.bulk > probe_bulk_max
        || spent + bytes_of(p) > pair_bytes_max)
      return;
    spent += bytes_of(p);
    state_->waiting.push_back({from, p, plan_of(from, state_->self, p.nonce), 0,
                               now + probe_timeout, nullptr});
  }
  state_->expect_next();
}

void link_prober::gone(const core::peer_id& peer) {
  std::vector<std::uint64_t> ended;
  {
    std::lock_guard lock(state_->mutex);
    state_->spent.erase(peer);
    for (auto* p : {&state_->out, &state_->in})
      if (*p && (*p)->peer == peer) {
        ended.push_back((*p)->plan);
        p->reset();
      }
    std::erase_if(state_->waiting,
                  [&](const auto& p) { return p.peer == peer; });
  }
  for (const auto plan : ended)
    state_->links.cancel(plan);
  state_->expect_next();
}

} // namespace shoal::runtime
