// actors/reducer.cpp -- units and losses between replicas, tied gradients.
#include "actors/reducer.hpp"

#include "actors/all_reduce.hpp"
#include "actors/link_names.hpp"
#include "actors/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/training/arrivals.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

namespace shoal::actors {
namespace {

/// The replicas' sum of a unit is in place.
struct unit_reduced {
  std::uint64_t step = 0;
  model::unit_index unit = 0;
  std::error_code error;
};
/// The squares of a unit's gradient have been summed.
struct unit_squared {
  std::uint64_t step = 0;
  core::unit_sums sums;
};
/// A transfer of losses has ended.
struct losses_sent {
  std::uint64_t step = 0;
};
/// A followed unit's gradient is here.
struct copy_arrived {
  std::uint64_t step = 0;
  model::unit_index unit = 0;
  std::error_code error;
};
/// A follower has one of ours.
struct copy_sent {
  std::uint64_t step = 0;
};
/// Of one microbatch, as replicas send them to each other.
struct loss_entry {
  double loss = 0;
  std::uint64_t sample = 0; ///< digest of its targets
};
/// Tied gradients have been added.
struct tied_done {
  std::uint64_t step = 0;
};
/// A gradient has reached a peer at which its unit arrives.
struct arrival_sent {
  model::unit_index unit = 0;
  core::peer_id to{};
  std::uint64_t order = 0; ///< of the send_gradients
};

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::unit_reduced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::unit_squared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::losses_sent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::copy_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::copy_sent)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::tied_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::arrival_sent)

namespace shoal::actors {
namespace {

class reducer_actor : public caf::event_based_actor {
public:
  reducer_actor(caf::actor_config& cfg, reducer_config config)
    : caf::event_based_actor(cfg), config_(std::move(config)),
      place_(config_.plan->where), states_(config_.world->units) {
    for (const stage_name& n : stages_on(place_, node().self())) {
      const unit_range range = units_of(place_, n.replica, n.stage);
      for (auto u = range.first; u < range.last; ++u)
        units_[u];
    }
    for (const model::unit_index u : units_of(place_, node().self()))
      if (!units_.contains(u))
        followed_[u];
    SHOAL_ASSERT(!units_.empty() || !followed_.empty());
    head_ = config_.world->layout->head_unit();
    sums_ = std::make_unique<all_reduce>(all_reduce::config{
      &node().links(), &node().reductions(), &config_.world->buffers,
      config_.plan->digest, node().self(), config_.plan->lease,
      [self = address()](std::uint64_t step, std::uint32_t unit,
                         std::error_code error) { // weak: we own this
        if (const auto to = caf::actor_cast<caf::actor>(self))
          caf::anon_send(to, unit_reduced{step, unit, error});
      }});
  }

  const char* name() const override { return "reducer"; }
  void on_exit() override { sums_->stop(); }

  caf::behavior make_behavior() override {
    return {
      [this](const begin_step& m) { begin(m.step); },
      [this](const unit_ready& m) {
        if (m.step == step_)
          sums_->ready(m.step, m.unit);
      },
      [this](step_computed& m) {
        if (m.step == step_ && !m.losses.empty())
          take_losses(m);
      },
      [this](const arrived& m) { on_arrived(m); },
      [this](const unit_reduced& m) {
        if (m.step == step_)
          on_reduced(m);
      },
      [this](const unit_squared& m) {
        if (m.step != step_)
          return;
        ++config_.world->finished;
        node().flight().add("reduced", config_.world->job, step_, m.sums.unit);
        const bool own = units_.contains(m.sums.unit);
        (own ? units_ : followed_).at(m.sums.unit).squares = m.sums;
        finish_if_reduced();
      },
      [this](const copy_arrived& m) {
        if (m.step != step_)
          return;
        if (m.error)
          failed("the copy of unit " + std::to_string(m.unit), m.error);
        else
          square(m.unit);
      },
      [this](const copy_sent& m) {
        if (m.step != step_)
          return;
        --copies_to_send_;
        finish_if_reduced();
      },
      [this](const send_gradients& m) {
        arrivals_[{m.unit, m.to}] = {++arrivals_begun_, 0};
      },
      [this](const arrival_sent& m) {
        const auto at = arrivals_.find({m.unit, m.to});
        if (at != arrivals_.end() && at->second.order == m.order)
          --at->second.waiting;
      },
      [this](const losses_sent& m) {
        if (m.step != step_)
          return;
        --losses_to_send_;
        finish_if_reduced();
      },
      [this](const tied_done& m) {
        if (m.step != step_)
          return;
        tied_ = tied_state::added;
        for (auto& [u, unit] : units_)
          if (is_tied(u))
            finish(u);
      },
    };
  }

private:
  /// One unit in this step.
  struct progress {
    bool reduced = false;
    std::optional<core::unit_sums> squares;
  };
  enum class tied_state { none, waiting, adding, added };

  runtime::context& node() { return *config_.world->node; }
  bool has_head() const { return units_.contains(head_); }
  /// Whether this peer computes it in replica 0.
  bool leads(model::unit_index u) {
    return units_.contains(u) && holder_of(place_, 0, u) == node().self();
  }
  std::uint32_t first_replica(model::unit_index u) {
    return first_replica_of(place_, node().self(), u);
  }
  std::uint32_t microbatches() const {
    return place_.replicas.back().last_microbatch;
  }

  void begin(std::uint64_t step) {
    step_ = step;
    std::vector<all_reduce::bucket> buckets;
    for (auto& [u, unit] : units_) {
      unit = {};
      all_reduce::bucket& b = buckets.emplace_back();
      b.index = u;
      b.holders = holders_of(place_, u);
      const unit_ptr& state = states_.at(u);
      b.values = {state, std::as_writable_bytes(state->gradients())};
    }
    std::ranges::reverse(buckets); // as the backward pass makes them
    sums_->begin(step, std::move(buckets));
    post_losses();
    post_tied();
    post_copies();
  }

  /// Posts memory for a transfer of this step; `arrived` comes back.
  void expect(const core::peer_id& from, link_kind kind, std::uint32_t replica,
              std::uint32_t index, std::size_t bytes) {
    buffer into = config_.world->buffers.get(bytes);
    node().links().expect(
      from, make_tag(config_.plan->digest, kind, replica, index, step_),
      into.shared(),
      [self = caf::actor_cast<caf::actor>(this), kind, step = step_, replica,
       into](std::error_code error) {
        caf::anon_send(self, arrived{kind, step, replica, into, error, 0});
      });
  }

  void on_arrived(const arrived& m) {
    if (m.run != step_)
      return;
    if (m.error)
      return failed(m.kind == link_kind::tied ? "the tied gradient"
                                              : "the losses",
                    m.error);
    if (m.kind == link_kind::tied) {
      tied_part_ = m.what;
      add_tied_if_ready();
      return;
    }
    losses_here_[m.kind == link_kind::losses ? m.microbatch : 0] = m.what;
    merge_losses_if_ready();
  }

  void failed(const std::string& what, std::error_code error) {
    node().say("[reducer] " + what + " of step " + std::to_string(step_)
               + " failed: " + error.message() + "; waiting for a new plan");
  }

  void on_reduced(const unit_reduced& m) {
    if (m.error)
      return failed("unit " + std::to_string(m.unit), m.error);
    units_.at(m.unit).reduced = true;
    if (is_tied(m.unit))
      add_tied_if_ready();
    else
      finish(m.unit);
  }

  /// Its gradient is final.
  void finish(model::unit_index u) {
    if (leads(u) && place_.copy_every <= 1)
      send_copies(u);
    send_arrivals(u);
    square(u);
  }

  void square(model::unit_index u) {
    auto done = std::make_shared<unit_squared>();
    done->step = step_;
    done->sums.unit = u;
    node().device().submit(
      [unit = states_.at(u), done](kernels::backend& device) {
        done->sums.sums = model::sums_of_squares(*unit, device);
      },
      [self = caf::actor_cast<caf::actor>(this), done] {
        caf::anon_send(self, std::move(*done));
      });
  }

  // Copies: a follower gets what this peer would apply.

  void post_copies() {
    copies_to_send_ = 0;
    for (auto& [u, unit] : followed_) {
      unit = {};
      const unit_ptr& state = states_.at(u);
      node().links().expect(
        holder_of(place_, 0, u), copy_tag(u),
        {state, std::as_writable_bytes(state->gradients())},
        [self = caf::actor_cast<caf::actor>(this), step = step_, u = u,
         lease = config_.plan->lease](std::error_code error) {
          caf::anon_send(self, copy_arrived{step, u, error});
        });
    }
  }

  void send_copies(model::unit_index u) {
    const unit_ptr& state = states_.at(u);
    for (const core::follower_place& f : place_.followers) {
      if (u < f.first_unit || u >= f.last_unit)
        continue;
      ++copies_to_send_;
      node().links().send(
        f.where.peer, copy_tag(u),
        {state, std::as_writable_bytes(state->gradients())},
        [self = caf::actor_cast<caf::actor>(this),
         step = step_](std::error_code error) {
          if (!error) // else the peer is lost: a new plan follows
            caf::anon_send(self, copy_sent{step});
        });
    }
  }

  // Arrivals: the same, but the step does not wait for them.

  void send_arrivals(model::unit_index u) {
    for (auto at = arrivals_.lower_bound({u, {}});
         at != arrivals_.end() && at->first.first == u;) {
      if (at->second.waiting >= core::arrival_backlog_max) {
        at = arrivals_.erase(at); // the receiver sees, and asks again
        continue;
      }
      ++at->second.waiting;
      send_arrival(u, at->first.second, at->second.order);
      ++at;
    }
  }

  void send_arrival(model::unit_index u, const core::peer_id& to,
                    std::uint64_t order) {
    const unit_ptr& state = states_.at(u);
    buffer copy = config_.world->buffers.get(gradient_bytes(*state));
    ++copies_to_send_; // the step may end, and gradients change, when it is made
    node().reductions().submit(
      [state, copy](kernels::backend&) {
        std::ranges::copy(state->gradients(), copy.as<float>().begin());
      },
      // Weak: it may begin after the halt has cancelled all transfers, and
      // the halt waits until this is gone.
      [self = address(), links = &node().links(), copy, u, to, order,
       step = step_,
       tag = make_tag(config_.plan->digest, link_kind::arrival_gradient, 0, u,
                      step_)] {
        if (const auto here = caf::actor_cast<caf::actor>(self))
          caf::anon_send(here, copy_sent{step});
        links->send(to, tag, copy.shared(),
                    [self, u, to, order](std::error_code error) {
                      const auto here = caf::actor_cast<caf::actor>(self);
                      if (here && !error) // else lost: a new plan follows
                        caf::anon_send(here, arrival_sent{u, to, order});
                    });
      });
  }

  transport::bulk_tag copy_tag(model::unit_index u) const {
    return make_tag(config_.plan->digest, link_kind::gradient_copy, 0, u,
                    step_);
  }

  // Losses: who has the head in some replicas knows those of their
  // microbatches. The head of replica 0 merges them and tells the others, and
  // those who follow it: with their votes alone a step can be rolled forward,
  // too.

  bool wants_losses() const { return has_head() || followed_.contains(head_); }

  /// Whom the head of replica 0 tells, and the replica in the tag: a
  /// follower's is 0.
  std::vector<std::pair<core::peer_id, std::uint32_t>> told() const {
    std::vector<std::pair<core::peer_id, std::uint32_t>> out;
    const std::vector<core::peer_id> heads = holders_of(place_, head_);
    for (std::size_t i = 1; i < heads.size(); ++i)
      out.emplace_back(heads[i], first_replica_of(place_, heads[i], head_));
    if (place_.copy_every <= 1)
      for (const core::follower_place& f : place_.followers)
        if (f.first_unit <= head_ && head_ < f.last_unit
            && std::ranges::find(heads, f.where.peer) == heads.end())
          out.emplace_back(f.where.peer, 0);
    return out;
  }

  void post_losses() {
    losses_here_.clear();
    losses_to_send_ = 0;
    losses_merged_ = !wants_losses();
    if (losses_merged_)
      return;
    losses_.assign(microbatches(), {});
    const std::size_t bytes = losses_.size() * sizeof(loss_entry);
    if (!leads(head_)) {
      losses_to_send_ = has_head() ? 1 : 0;
      expect(holder_of(place_, 0, head_), link_kind::losses_merged,
             has_head() ? first_replica(head_) : 0, 0, bytes);
      return;
    }
    losses_to_send_ = int(told().size());
    for (const core::peer_id& other : holders_of(place_, head_))
      if (other != node().self())
        expect(other, link_kind::losses, first_replica_of(place_, other, head_),
               0, bytes);
  }

  void take_losses(const step_computed& mine) {
    for (const microbatch_loss& l : mine.losses)
      losses_.at(l.microbatch) = {l.loss, l.sample};
    const std::uint32_t first = first_replica(head_);
    losses_here_[first] = {};
    if (!leads(head_))
      send_losses(link_kind::losses, first, holder_of(place_, 0, head_));
    merge_losses_if_ready();
  }

  void
  send_losses(link_kind kind, std::uint32_t replica, const core::peer_id& to) {
    buffer copy =
      config_.world->buffers.get(losses_.size() * sizeof(loss_entry));
    std::ranges::copy(losses_, copy.as<loss_entry>().begin());
    node().links().send(
      to, make_tag(config_.plan->digest, kind, replica, 0, step_),
      copy.shared(),
      [self = caf::actor_cast<caf::actor>(this),
       step = step_](std::error_code error) {
        if (!error) // else the peer is lost: a new plan follows
          caf::anon_send(self, losses_sent{step});
      });
  }

  /// Everyone filled in what is theirs: nothing is added.
  void merge_losses_if_ready() {
    const std::vector<core::peer_id> all = holders_of(place_, head_);
    const bool leader = leads(head_);
    const std::size_t wanted = leader ? all.size() : has_head() ? 2 : 1;
    if (losses_merged_ || losses_here_.size() < wanted)
      return;
    losses_merged_ = true;
    for (const auto& [first, part] : losses_here_) {
      if (!part)
        continue; // our own
      const auto from = part.as<const loss_entry>();
      if (!leader) { // the merged ones
        std::ranges::copy(from, losses_.begin());
        continue;
      }
      const core::peer_id& who = holder_of(place_, first, head_);
      for (std::uint32_t r = first; r < place_.replicas.size(); ++r) {
        if (holder_of(place_, r, head_) != who)
          continue;
        const core::replica_place& place = place_.replicas[r];
        for (auto m = place.first_microbatch; m < place.last_microbatch; ++m)
          losses_[m] = from[m];
      }
    }
    if (leader)
      for (const auto& [to, replica] : told())
        send_losses(link_kind::losses_merged, replica, to);
    finish_if_reduced();
  }

  // Tied embeddings: who computes only one of unit 0 and the head gets the
  // gradient of the other from the peer beside it in its first replica.

  bool is_tied(model::unit_index u) const {
    return config_.world->layout->tied() && (u == 0 || u == head_);
  }
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
    tied_sent_.clear();
    if (!has_tied() || tied_is_local())
      return;
    const std::uint32_t mine = units_.contains(0) ? 0 : head_;
    const std::uint32_t other = head_ - mine;
    const std::uint32_t replica = first_replica(mine);
    expect(holder_of(place_, replica, other), link_kind::tied, replica, other,
           tied_span(mine == head_).size_bytes());
  }

  /// To those who wait for it here.
  void send_tied(std::uint32_t mine) {
    const std::uint32_t other = head_ - mine;
    const std::vector<core::peer_id> here = holders_of(place_, mine);
    for (const core::peer_id& to : holders_of(place_, other)) {
      if (std::ranges::find(here, to) != here.end())
        continue; // it has both
      const std::uint32_t replica = first_replica_of(place_, to, other);
      if (holder_of(place_, replica, mine) != node().self())
        continue;
      buffer copy =
        config_.world->buffers.get(tied_span(mine == head_).size_bytes());
      std::ranges::copy(tied_span(mine == head_), copy.as<float>().begin());
      node().links().send(
        to,
        make_tag(config_.plan->digest, link_kind::tied, replica, mine, step_),
        copy.shared(), [](std::error_code) {});
    }
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
    bool all = true;
    for (const std::uint32_t mine : {0u, head_}) {
      if (!units_.contains(mine))
        continue;
      if (!units_.at(mine).reduced)
        all = false;
      else if (tied_sent_.insert(mine).second)
        send_tied(mine);
    }
    if (all && (tied_is_local() || tied_part_))
      submit_tied(tied_part_);
  }

  void submit_tied(const buffer& other) {
    tied_ = tied_state::adding;
    const bool head = units_.contains(head_);
    std::span<float> a =
      tied_is_local() || !head ? tied_span(false) : other.as<float>();
    std::span<float> b = head ? tied_span(true) : other.as<float>();
    node().device().submit(
      [a, b, other, kept = states_](kernels::backend& backend) {
        model::sum_tied(a, b, backend);
      },
      [self = caf::actor_cast<caf::actor>(this), step = step_] {
        caf::anon_send(self, tied_done{step});
      });
  }

  void finish_if_reduced() {
    if (!losses_merged_ || losses_to_send_ > 0 || copies_to_send_ > 0)
      return;
    step_reduced all{step_, {}, {}, {}};
    for (const loss_entry& l : losses_) {
      all.losses.push_back(l.loss);
      all.samples.push_back(l.sample);
    }
    for (auto* units : {&units_, &followed_})
      for (const auto& [u, unit] : *units) {
        if (!unit.squares)
          return;
        all.squares.push_back(*unit.squares);
      }
    std::ranges::sort(all.squares, {}, &core::unit_sums::unit);
    send(config_.owner, std::move(all));
    step_ = 0;
  }

  reducer_config config_;
  const core::assignment& place_;
  std::map<model::unit_index, unit_ptr> states_; ///< as of this sub-plan
  std::uint32_t head_ = 0;
  std::unique_ptr<all_reduce> sums_;

  std::uint64_t step_ = 0;                      ///< 0: none is under way
  std::map<model::unit_index, progress> units_; ///< computed here
  std::map<model::unit_index, progress> followed_;
  int copies_to_send_ = 0;
  struct arrival {
    std::uint64_t order = 0;
    std::size_t waiting = 0; ///< gradients that have not been sent
  };
  std::map<std::pair<model::unit_index, core::peer_id>, arrival> arrivals_;
  std::uint64_t arrivals_begun_ = 0;
  /// By the first replica of who sent them; own: empty.
  std::map<std::uint32_t, buffer> losses_here_;
  std::vector<loss_entry> losses_;
  int losses_to_send_ = 0;
  bool losses_merged_ = false;
  tied_state tied_ = tied_state::none;
  buffer tied_part_;
  std::set<std::uint32_t> tied_sent_; ///< of unit 0 and the head
};

} // namespace

caf::actor spawn_reducer(caf::actor_system& system, reducer_config config) {
  return system.spawn<reducer_actor>(std::move(config));
}

} // namespace shoal::actors
