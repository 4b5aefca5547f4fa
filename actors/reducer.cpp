// actors/reducer.cpp -- buckets between replicas.
#include "actors/reducer.hpp"

#include "actors/link_names.hpp"
#include "actors/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <set>

namespace shoal::actors {
namespace {

/// The device has summed a bucket, or put a result in place.
struct bucket_done {
  std::uint64_t step = 0;
  std::uint32_t bucket = 0;
};
/// A transfer of ours has ended.
struct bucket_sent {
  std::uint64_t step = 0;
  std::uint32_t bucket = 0;
};
/// Tied gradients have been added.
struct tied_done {
  std::uint64_t step = 0;
};

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::bucket_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::bucket_sent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::tied_done)

namespace shoal::actors {
namespace {

using kernels::vector_view;

kernels::matrix_view<float> as_row(std::span<float> values) {
  return {values.data(), 1, values.size()};
}

class reducer_actor : public caf::event_based_actor {
public:
  reducer_actor(caf::actor_config& cfg, reducer_config config)
    : caf::event_based_actor(cfg), config_(std::move(config)),
      place_(config_.plan->where), states_(config_.world->units) {
    const auto mine = stages_on(place_, node().self());
    SHOAL_ASSERT(!mine.empty());
    replica_ = mine.front().replica;
    for (const stage_name& n : mine) {
      const unit_range range = units_of(place_, n.replica, n.stage);
      for (auto u = range.first; u < range.last; ++u)
        units_.insert(u);
    }
    head_ = config_.world->layout->head_unit();
    losses_bucket_ = head_ + 1;
  }

  const char* name() const override { return "reducer"; }

  caf::behavior make_behavior() override {
    return {
      [this](const begin_step& m) { begin(m.step); },
      [this](const unit_ready& m) {
        if (m.step == step_)
          complete_here(m.unit);
      },
      [this](step_computed& m) {
        if (m.step == step_ && !m.losses.empty())
          take_losses(m.losses);
      },
      [this](const arrived& m) { on_arrived(m); },
      [this](const bucket_done& m) {
        if (m.step == step_)
          on_summed(m.bucket);
      },
      [this](const bucket_sent& m) {
        if (m.step == step_ && --buckets_.at(m.bucket).sending == 0)
          finish_if_reduced();
      },
      [this](const tied_done& m) {
        if (m.step == step_) {
          tied_ = tied_state::added;
          finish_if_reduced();
        }
      },
    };
  }

private:
  /// One unit, or the losses.
  struct bucket {
    bool complete = false; ///< this replica's part
    bool summing = false;
    bool reduced = false;
    int sending = 0;
    std::map<std::uint32_t, buffer> parts; ///< by replica, at the owner
    buffer result;                         ///< at the others
  };
  enum class tied_state { none, waiting, adding, added };

  runtime::context& node() { return *config_.world->node; }
  std::uint32_t replicas() const {
    return std::uint32_t(place_.replicas.size());
  }
  bool is_losses(std::uint32_t b) const { return b == losses_bucket_; }
  std::uint32_t owner_of(std::uint32_t b) const { return b % replicas(); }
  const core::peer_id& peer_of(std::uint32_t replica, std::uint32_t b) const {
    return holder_of(place_, replica, is_losses(b) ? head_ : b);
  }
  std::uint32_t microbatches() const {
    return place_.replicas.back().last_microbatch;
  }
  std::size_t bytes_of(std::uint32_t b) const {
    return is_losses(b) ? microbatches() * sizeof(double)
                        : states_.at(b)->size() * sizeof(float);
  }

  void begin(std::uint64_t step) {
    step_ = step;
    buckets_.clear();
    for (std::uint32_t u : units_)
      buckets_[u];
    if (units_.contains(head_)) {
      buckets_[losses_bucket_];
      losses_.assign(microbatches(), 0.0);
    }
    if (replicas() > 1)
      for (auto& [b, state] : buckets_)
        post(b);
    post_tied();
  }

  /// Posts the other replicas' parts at the owner, the result elsewhere.
  void post(std::uint32_t b) {
    if (owner_of(b) != replica_) {
      expect(link_kind::reduce_result, replica_, b, peer_of(owner_of(b), b));
      return;
    }
    for (std::uint32_t r = 0; r < replicas(); ++r)
      if (r != replica_)
        expect(link_kind::reduce_part, r, b, peer_of(r, b));
  }

  void expect(link_kind kind, std::uint32_t replica, std::uint32_t b,
              const core::peer_id& from) {
    buffer into = config_.world->buffers.get(bytes_of(b));
    // `run` carries the step, `microbatch` replica and bucket.
    node().links().expect(
      from, make_tag(config_.plan->digest, kind, replica, b, step_),
      into.shared(),
      [self = caf::actor_cast<caf::actor>(this), kind, step = step_, replica, b,
       into](std::error_code error) {
        caf::anon_send(
          self, arrived{kind, step, (replica << 16) | b, into, error, b});
      });
  }

  void on_arrived(const arrived& m) {
    if (m.run != step_)
      return;
    if (m.error) {
      node().say("[reducer] bucket " + std::to_string(m.microbatch & 0xffff)
                 + " of step " + std::to_string(step_) + " failed: "
                 + m.error.message() + "; waiting for a new plan");
      return;
    }
    const std::uint32_t b = m.microbatch & 0xffff;
    if (m.kind == link_kind::tied) {
      tied_part_ = m.what;
      add_tied_if_ready();
      return;
    }
    bucket& state = buckets_.at(b);
    if (m.kind == link_kind::reduce_part)
      state.parts[m.microbatch >> 16] = m.what;
    else
      state.result = m.what;
    sum_if_ready(b);
  }

  void take_losses(const std::vector<double>& mine) {
    const core::replica_place& r = place_.replicas[replica_];
    SHOAL_ASSERT(mine.size() == r.last_microbatch - r.first_microbatch);
    std::ranges::copy(mine, losses_.begin() + r.first_microbatch);
    complete_here(losses_bucket_);
  }

  void complete_here(std::uint32_t b) {
    bucket& state = buckets_.at(b);
    state.complete = true;
    if (replicas() == 1) {
      state.reduced = true;
      add_tied_if_ready();
      finish_if_reduced();
      return;
    }
    if (owner_of(b) != replica_)
      send_bucket(link_kind::reduce_part, replica_, b, peer_of(owner_of(b), b));
    sum_if_ready(b);
  }

  /// Sends our part, or the sum, from where it lies.
  void send_bucket(link_kind kind, std::uint32_t replica, std::uint32_t b,
                   const core::peer_id& to) {
    runtime::shared_bytes bytes;
    if (is_losses(b)) {
      buffer copy = config_.world->buffers.get(bytes_of(b));
      std::ranges::copy(losses_, copy.as<double>().begin());
      bytes = copy.shared();
    } else {
      const unit_ptr& unit = states_.at(b);
      bytes = {unit, std::as_writable_bytes(unit->gradients())};
    }
    ++buckets_.at(b).sending;
    node().links().send(
      to, make_tag(config_.plan->digest, kind, replica, b, step_), bytes,
      [self = caf::actor_cast<caf::actor>(this), step = step_,
       b](std::error_code error) {
        if (!error) // else the peer is lost: a new plan follows
          caf::anon_send(self, bucket_sent{step, b});
      });
  }

  void sum_if_ready(std::uint32_t b) {
    bucket& state = buckets_.at(b);
    const bool owner = owner_of(b) == replica_;
    const bool all =
      owner ? state.parts.size() + 1 == replicas() : bool(state.result);
    if (!state.complete || !all || state.summing)
      return;
    state.summing = true;
    if (is_losses(b)) {
      merge_losses(state);
      on_summed(b);
      return;
    }
    node().device().submit(
      [unit = states_.at(b), parts = state.parts, result = state.result,
       me = replica_](kernels::backend& device) {
        if (result) {
          std::ranges::copy(result.as<const float>(),
                            unit->gradients().begin());
          return;
        }
        add_in_order(device, unit->gradients(), parts, me);
      },
      [self = caf::actor_cast<caf::actor>(this), step = step_, b] {
        caf::anon_send(self, bucket_done{step, b});
      });
  }

  /// own = ((part 0 + part 1) + part 2) + ..., where part `me` is own.
  static void
  add_in_order(kernels::backend& device, std::span<float> own,
               const std::map<std::uint32_t, buffer>& parts, std::uint32_t me) {
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
      std::ranges::copy(first->second.as<const float>(), own.begin());
  }

  /// Each replica filled in its own range: nothing is added.
  void merge_losses(bucket& state) {
    if (state.result) {
      std::ranges::copy(state.result.as<const double>(), losses_.begin());
      return;
    }
    for (const auto& [r, part] : state.parts) {
      const core::replica_place& place = place_.replicas[r];
      const auto from = part.as<const double>();
      for (auto m = place.first_microbatch; m < place.last_microbatch; ++m)
        losses_[m] = from[m];
    }
  }

  void on_summed(std::uint32_t b) {
    buckets_.at(b).reduced = true;
    if (owner_of(b) == replica_)
      for (std::uint32_t r = 0; r < replicas(); ++r)
        if (r != replica_)
          send_bucket(link_kind::reduce_result, r, b, peer_of(r, b));
    add_tied_if_ready();
    finish_if_reduced();
  }

  // Tied embeddings: the peers of unit 0 and of the head, in each replica.

  bool has_tied() const {
    return config_.world->layout->tied()
           && (units_.contains(0) || units_.contains(head_));
  }
  bool tied_is_local() const {
    return units_.contains(0) && units_.contains(head_);
  }

  void post_tied() {
    tied_ = has_tied() ? tied_state::waiting : tied_state::none;
    tied_part_ = {};
    tied_sent_ = false;
    if (!has_tied() || tied_is_local())
      return;
    const std::uint32_t other = units_.contains(0) ? head_ : 0;
    buffer into = config_.world->buffers.get(tied_span(!other).size_bytes());
    node().links().expect(
      holder_of(place_, replica_, other),
      make_tag(config_.plan->digest, link_kind::tied, replica_, other, step_),
      into.shared(),
      [self = caf::actor_cast<caf::actor>(this), step = step_, other,
       into](std::error_code error) {
        caf::anon_send(
          self, arrived{link_kind::tied, step, other, into, error, other});
      });
  }

  /// The tied tensor's gradient in unit 0, or in the head.
  std::span<float> tied_span(bool head) {
    const model::tied_pair pair = *config_.world->layout->tied();
    model::unit_state& unit = *states_.at(head ? head_ : 0);
    return unit.tensor(unit.gradients(), head ? pair.head : pair.embedding);
  }

  void add_tied_if_ready() {
    if (tied_ != tied_state::waiting)
      return;
    if (tied_is_local()) {
      if (buckets_.at(0).reduced && buckets_.at(head_).reduced)
        submit_tied({});
      return;
    }
    const bool here_is_head = units_.contains(head_);
    const std::uint32_t mine = here_is_head ? head_ : 0;
    if (!buckets_.at(mine).reduced)
      return;
    if (!tied_sent_) {
      tied_sent_ = true;
      buffer copy =
        config_.world->buffers.get(tied_span(here_is_head).size_bytes());
      std::ranges::copy(tied_span(here_is_head), copy.as<float>().begin());
      node().links().send(
        holder_of(place_, replica_, here_is_head ? 0 : head_),
        make_tag(config_.plan->digest, link_kind::tied, replica_, mine, step_),
        copy.shared(), [](std::error_code) {});
    }
    if (tied_part_)
      submit_tied(tied_part_);
  }

  void submit_tied(const buffer& other) {
    // The sum must not go out as a bucket's result: let those end first.
    for (std::uint32_t u : {0u, head_})
      if (units_.contains(u) && buckets_.at(u).sending > 0)
        return;
    tied_ = tied_state::adding;
    const bool head = units_.contains(head_);
    std::span<float> a =
      tied_is_local() || !head ? tied_span(false) : other.as<float>();
    std::span<float> b = head ? tied_span(true) : other.as<float>();
    node().device().submit(
      [a, b, other, kept = states_](kernels::backend&) {
        model::sum_tied(a, b);
      },
      [self = caf::actor_cast<caf::actor>(this), step = step_] {
        caf::anon_send(self, tied_done{step});
      });
  }

  void finish_if_reduced() {
    add_tied_if_ready();
    if (tied_ == tied_state::waiting || tied_ == tied_state::adding)
      return;
    for (const auto& [b, state] : buckets_)
      if (!state.reduced || state.sending > 0)
        return;
    send(config_.owner, step_reduced{step_, losses_});
    buckets_.clear();
    step_ = 0;
  }

  reducer_config config_;
  const core::assignment& place_;
  std::uint32_t replica_ = 0;
  std::map<model::unit_index, unit_ptr> states_; ///< as of this sub-plan
  std::set<std::uint32_t> units_;
  std::uint32_t head_ = 0;
  std::uint32_t losses_bucket_ = 0;

  std::uint64_t step_ = 0;
  std::map<std::uint32_t, bucket> buckets_;
  std::vector<double> losses_;
  tied_state tied_ = tied_state::none;
  buffer tied_part_;
  bool tied_sent_ = false;
};

} // namespace

caf::actor spawn_reducer(caf::actor_system& system, reducer_config config) {
  return system.spawn<reducer_actor>(std::move(config));
}

} // namespace shoal::actors
