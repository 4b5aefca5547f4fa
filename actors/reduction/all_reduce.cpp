// actors/reduction/all_reduce.cpp -- exchanges pieces with other replicas in
// lanes.
#include "actors/reduction/all_reduce.hpp"

#include "actors/training/link_names.hpp"
#include "kernels/backend.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/links/links.hpp"
#include "runtime/work/device_queue.hpp"
#include "runtime/work/serial.hpp"

#include <algorithm>
#include <atomic>
#include <map>

namespace shoal::actors {

namespace {

/// Parts of one piece, by replica.
using parts_by_replica = std::map<std::uint32_t, buffer>;

kernels::matrix_view<float> as_row(std::span<float> values) {
  return {values.data(), 1, values.size()};
}

/// own = ((part 0 + part 1) + part 2) + ..., where part `me` is own.
void add_in_order(kernels::backend& device, std::span<float> own,
                  const parts_by_replica& parts, std::uint32_t me) {
  auto first = parts.begin();
  if (me == 0) {
    for (const auto& [replica, part] : parts)
      device.add(as_row(own), as_row(own), as_row(part.as<float>()));
    return;
  }
  const kernels::matrix_view<float> sum = as_row(first->second.as<float>());
  bool own_added = false;
  for (auto at = std::next(first); at != parts.end(); ++at) {
    if (at->first > me && !own_added) {
      device.add(sum, sum, as_row(own));
      own_added = true;
    }
    device.add(sum, sum, as_row(at->second.as<float>()));
  }
  if (!own_added)
    device.add(as_row(own), sum, as_row(own));
  else
    device.copy(as_row(own), sum);
}

} // namespace

/// All members except `stopped` are accessed only by events.
struct all_reduce::state : std::enable_shared_from_this<state> {
  explicit state(config c) : settings(std::move(c)) {}

  /// One bucket of the step.
  struct work {
    bucket what;
    std::uint32_t me = 0; ///< index among its holders
    std::uint32_t pieces = 0;
    std::uint32_t in_place = 0; ///< pieces whose sum is here
    std::size_t to_send = 0;    ///< our transfers that have not ended
    bool ready = false;
    bool ended = false;
    std::vector<parts_by_replica> parts; ///< by piece, at the owner
  };
  using work_ptr = std::shared_ptr<work>;

  /// A piece to be transferred.
  struct item {
    work_ptr of;
    std::uint32_t piece = 0;
    std::uint32_t replica = 0; ///< replica of the part, or receiver of the sum
    bool ready = false;        ///< to be sent
  };
  /// Pieces from or to one peer, in order.
  struct lane {
    std::vector<item> items;
    std::size_t next = 0;    ///< next to be posted or sent
    std::size_t current = 0; ///< posted and not used up, or being sent
  };
  struct lane_name {
    core::peer_id peer{};
    link_kind kind{};
    friend auto operator<=>(const lane_name&, const lane_name&) = default;
  };

  /// The replica that sums a piece.
  static std::uint32_t owner_of(const work& w, std::uint32_t piece) {
    return (w.what.index + piece) % std::uint32_t(w.what.holders.size());
  }
  static bool is_owner(const work& w, std::uint32_t piece) {
    return owner_of(w, piece) == w.me;
  }

  std::span<std::byte> bytes_of(const work& w, std::uint32_t piece) const {
    const std::size_t first = piece * piece_bytes;
    const std::span<std::byte> all = w.what.values.bytes;
    return all.subspan(first, std::min(piece_bytes, all.size() - first));
  }
  static std::span<float> floats(std::span<std::byte> bytes) {
    return {reinterpret_cast<float*>(bytes.data()),
            bytes.size() / sizeof(float)};
  }
  transport::bulk_tag tag(const item& i, link_kind kind) const {
    return make_tag(settings.plan, kind, i.replica, i.of->what.index,
                    step * i.of->pieces + i.piece);
  }

  void begin(std::uint64_t number, std::vector<bucket> buckets) {
    SHOAL_ASSERT(std::ranges::all_of(
      works, [](const auto& w) { return w.second->ended; }));
    step = number;
    works.clear();
    incoming.clear();
    outgoing.clear();
    for (bucket& b : buckets)
      add(std::move(b));
    for (auto& [name, l] : incoming)
      post(name, l);
  }

  void add(bucket b) {
    auto w = std::make_shared<work>();
    w->what = std::move(b);
    w->pieces = std::uint32_t((w->what.values.bytes.size() + piece_bytes - 1)
                              / piece_bytes);
    works[w->what.index] = w;
    const std::vector<core::peer_id>& holders = w->what.holders;
    w->me = std::uint32_t(std::ranges::find(holders, settings.self)
                          - holders.begin());
    SHOAL_ASSERT(w->me < holders.size());
    if (holders.size() == 1) {
      w->in_place = w->pieces;
      return;
    }
    w->parts.resize(w->pieces);
    for (std::uint32_t p = 0; p < w->pieces; ++p) {
      const std::uint32_t owner = owner_of(*w, p);
      if (owner == w->me)
        for (std::uint32_t r = 0; r < holders.size(); ++r)
          exchange(w, p, r, holders[r], link_kind::reduce_result,
                   link_kind::reduce_part);
      else
        exchange(w, p, w->me, holders[owner], link_kind::reduce_part,
                 link_kind::reduce_result);
    }
  }

  /// Sends a piece to `peer` and expects another one from there.
  void exchange(const work_ptr& w, std::uint32_t piece, std::uint32_t replica,
                const core::peer_id& peer, link_kind out, link_kind in) {
    if (is_owner(*w, piece) && replica == w->me)
      return; // our own part of our own piece
    outgoing[{peer, out}].items.push_back({w, piece, replica});
    incoming[{peer, in}].items.push_back({w, piece, replica});
    ++w->to_send;
  }

  void post(const lane_name& name, lane& l) {
    for (; l.current < window && l.next < l.items.size(); ++l.next) {
      const item& i = l.items[l.next];
      ++l.current;
      // A sum comes after our part has been sent, so it may overwrite the part.
      const std::span<std::byte> place = bytes_of(*i.of, i.piece);
      buffer part;
      runtime::shared_bytes into;
      if (name.kind == link_kind::reduce_part) {
        part = settings.buffers->get(place.size());
        into = part.shared();
      } else {
        using kept = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
        into = {std::make_shared<kept>(settings.lease, i.of->what.values.keep),
                place};
      }
      settings.links->expect(
        name.peer, tag(i, name.kind), into,
        [self = shared_from_this(), name, i, part](std::error_code error) {
          self->later([self, name, i, part, error] {
            self->arrived(name, i, part, error);
          });
        });
    }
  }

  void arrived(const lane_name& name, const item& i, const buffer& part,
               std::error_code error) {
    if (error)
      return end(i.of, error);
    if (name.kind == link_kind::reduce_part) {
      i.of->parts[i.piece][i.replica] = part;
      return sum_if_complete(i.of, i.piece);
    }
    used_up(name);
    ++i.of->in_place;
    end_if_reduced(i.of);
  }

  /// A piece that had arrived is no longer needed.
  void used_up(const lane_name& name) {
    lane& l = incoming.at(name);
    --l.current;
    post(name, l);
  }

  void ready(std::uint32_t index) {
    const work_ptr w = works.at(index);
    w->ready = true;
    if (w->what.holders.size() == 1)
      return end_if_reduced(w);
    for (std::uint32_t p = 0; p < w->pieces; ++p)
      if (is_owner(*w, p))
        sum_if_complete(w, p);
    for (auto& [name, l] : outgoing) {
      if (name.kind != link_kind::reduce_part)
        continue;
      for (item& i : l.items)
        i.ready |= i.of == w;
      send(name, l);
    }
  }

  void sum_if_complete(const work_ptr& w, std::uint32_t piece) {
    if (!w->ready || w->parts[piece].size() + 1 < w->what.holders.size())
      return;
    settings.sums->submit(
      [self = shared_from_this(), w, own = floats(bytes_of(*w, piece)),
       parts = std::move(w->parts[piece])](kernels::backend& device) {
        if (!self->stopped)
          add_in_order(device, own, parts, w->me);
      },
      [self = shared_from_this(), w, piece] {
        self->later([self, w, piece] { self->summed(w, piece); });
      },
      {settings.job});
    w->parts[piece].clear();
  }

  void summed(const work_ptr& w, std::uint32_t piece) {
    ++w->in_place;
    const std::vector<core::peer_id>& holders = w->what.holders;
    for (std::uint32_t r = 0; r < holders.size(); ++r) {
      if (r == w->me)
        continue;
      used_up({holders[r], link_kind::reduce_part});
      const lane_name name{holders[r], link_kind::reduce_result};
      lane& l = outgoing.at(name);
      const auto at = std::ranges::find_if(
        l.items.begin() + std::ptrdiff_t(l.next), l.items.end(),
        [&](const item& i) { return i.of == w && i.piece == piece; });
      SHOAL_ASSERT(at != l.items.end());
      at->ready = true;
      send(name, l);
    }
    end_if_reduced(w);
  }

  void send(const lane_name& name, lane& l) {
    for (;
         l.current < window && l.next < l.items.size() && l.items[l.next].ready;
         ++l.next) {
      const item& i = l.items[l.next];
      ++l.current;
      settings.links->send(
        name.peer, tag(i, name.kind),
        {i.of->what.values.keep, bytes_of(*i.of, i.piece)},
        [self = shared_from_this(), name, w = i.of](std::error_code error) {
          self->later([self, name, w, error] { self->sent(name, w, error); });
        });
    }
  }

  void sent(const lane_name& name, const work_ptr& w, std::error_code error) {
    if (error)
      return end(w, error);
    --w->to_send;
    lane& l = outgoing.at(name);
    --l.current;
    send(name, l);
    end_if_reduced(w);
  }

  void end_if_reduced(const work_ptr& w) {
    if (w->ready && w->in_place == w->pieces && w->to_send == 0)
      end(w, {});
  }

  void end(const work_ptr& w, std::error_code error) {
    if (w->ended)
      return;
    w->ended = true;
    settings.reduced(step, w->what.index, error);
  }

  /// Runs `e` among the other events, unless stopped.
  void later(runtime::serial::event e) {
    events.post([self = shared_from_this(), e = std::move(e)] {
      if (!self->stopped)
        e();
    });
  }

  config settings;
  runtime::serial events;
  std::atomic<bool> stopped = false;
  std::uint64_t step = 0;
  std::map<std::uint32_t, work_ptr> works;
  std::map<lane_name, lane> incoming, outgoing;
};

all_reduce::all_reduce(config config)
  : state_(std::make_shared<state>(std::move(config))) {
}

all_reduce::~all_reduce() {
  stop();
}

void all_reduce::begin(std::uint64_t step, std::vector<bucket> buckets) {
  state_->later([s = state_.get(), step, buckets = std::move(buckets)] {
    s->begin(step, buckets);
  });
}

void all_reduce::ready(std::uint64_t step, std::uint32_t bucket) {
  state_->later([s = state_.get(), step, bucket] {
    if (s->step == step)
      s->ready(bucket);
  });
}

void all_reduce::stop() {
  state_->stopped = true;
  // After this no event begins a transfer.
  state_->events.run([s = state_.get()] { s->settings.lease.reset(); });
}

} // namespace shoal::actors
