// actors/training/stage.cpp -- turns a schedule into device work and transfers.
#include "actors/training/stage.hpp"

#include "actors/training/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/schedule/schedule.hpp"
#include "runtime/core/state/parts.hpp"
#include "runtime/core/training/ledger.hpp"
#include "runtime/links/links.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

namespace shoal::actors {

using core::work_item;
using core::work_kind;

namespace {

/// The device has run an item.
struct item_done {
  std::uint64_t run = 0;
  work_item item;
  model::forward_result result;
  std::uint64_t sample = 0;   ///< digest of the targets
  core::nanoseconds took = 0; ///< on the device
  buffer made; ///< hidden states or their gradients, for a neighbour
};

/// Evaluations and steps alternate; each has its own number, so that arrivals
/// of another one are recognised.
std::uint64_t run_number(std::uint64_t step, bool eval) {
  return 2 * step + (eval ? 1 : 0);
}

/// The name of an item in the flight record, when it begins on the device.
const char* name_of(work_kind kind) {
  switch (kind) {
  case work_kind::forward:
    return "forward";
  case work_kind::input_gradient:
    return "input gradient";
  case work_kind::weight_gradient:
    return "weight gradient";
  }
  return "work";
}

} // namespace
} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::item_done)

namespace shoal::actors {
namespace {

/// State that device work uses; outlives the actor until that work has run.
struct stage_compute {
  std::vector<unit_ptr> units;
  std::unique_ptr<model::stage_model> stage;
};

/// An item of the schedule on the device: a pass of a stage. Only the device's
/// thread uses it.
struct item_pass {
  std::shared_ptr<stage_compute> compute;
  std::unique_ptr<model::pass> pass; ///< from the first segment on
  core::nanoseconds longest = 0;     ///< of its segments so far
};

/// Runs the next segment of an item, and adds its time. @param begin makes the
/// pass in the first one. @returns whether another segment follows
template <class Begin>
bool run_segment(item_pass& item, item_done& done, const Begin& begin) {
  const core::nanoseconds began = steady_now();
  if (!item.pass)
    item.pass = begin(*item.compute->stage, done);
  if (!item.pass->done()) // no exchange has anything to do
    static_cast<void>(item.pass->advance());
  const core::nanoseconds took = steady_now() - began;
  done.took += took;
  item.longest = std::max(item.longest, took);
  const bool more = !item.pass->done();
  if (!more)
    item.pass.reset(); // and what it holds
  return more;
}

/// A replica with stages here.
struct replica_here {
  std::uint32_t index = 0;
  const core::replica_place* place = nullptr;
  core::pipeline line;
  std::uint32_t peer = 0; ///< this peer, in the pipeline
  std::uint32_t stages() const { return line.stages(); }
};

/// One of the stages that run here.
struct stage_here {
  const replica_here* replica = nullptr;
  std::uint32_t index = 0;
  std::shared_ptr<stage_compute> compute;
  receiver tokens, targets, hidden_in, d_out;

  std::array<receiver*, 4> receivers() {
    return {&tokens, &targets, &hidden_in, &d_out};
  }
};

class stage_actor : public caf::event_based_actor {
public:
  stage_actor(caf::actor_config& cfg, stage_config config)
    : caf::event_based_actor(cfg), config_(std::move(config)) {
    const core::island_place& all = config_.plan->where;
    for (std::uint32_t r = 0; r < all.replicas.size(); ++r)
      if (const auto peer = core::index_of(all.replicas[r], node().self()))
        replicas_.push_back({r, &all.replicas[r],
                             core::make_pipeline(all.schedule, all.replicas[r]),
                             *peer});
    for (const replica_here& r : replicas_)
      for (std::uint32_t s = 0; s < r.stages(); ++s) {
        if (r.line.peer_of[s] != r.peer)
          continue;
        stage_here& here = here_.emplace_back();
        here.replica = &r;
        here.index = s;
        here.compute = std::make_shared<stage_compute>();
        const core::part_range parts = core::parts_of_stage(
          all.replicas[r.index].stages[s], s == 0, s + 1 == r.stages());
        for (auto u = parts.first; u < parts.last; ++u)
          here.compute->units.push_back(config_.world->units.at(u));
      }
    SHOAL_ASSERT(!here_.empty());
  }

  const char* name() const override { return "stage"; }

  caf::behavior make_behavior() override {
    return {
      [this](const begin_step& m) { begin(m.step, false); },
      [this](const begin_eval& m) { begin(m.step, true); },
      [this](const arrived& m) { on_arrived(m); },
      [this](item_done& m) { on_done(m); },
    };
  }

private:
  static bool is_first(const stage_here& s) { return s.index == 0; }
  static bool is_last(const stage_here& s) {
    return s.index + 1 == s.replica->stages();
  }
  runtime::context& node() { return *config_.world->node; }

  stage_here& here(std::uint32_t replica, std::uint32_t stage) {
    auto at = std::ranges::find_if(here_, [&](const stage_here& s) {
      return s.replica->index == replica && s.index == stage;
    });
    SHOAL_ASSERT(at != here_.end());
    return *at;
  }
  stage_here& here(const work_item& w) { return here(w.replica, w.stage); }

  /// Number of microbatches in a step of this run: in training, or in its
  /// evaluation.
  std::uint32_t microbatches() const {
    return eval_ ? std::uint32_t(config_.world->run.validation_steps)
                 : config_.plan->where.replicas.back().last_microbatch;
  }

  receiver make_receiver(link_kind kind, const stage_here& s,
                         const core::peer_id& from, std::size_t bytes) {
    return {
      {kind, config_.plan->digest, s.replica->index, s.index, from, bytes},
      node().links(),
      config_.world->buffers,
      address()};
  }

  static const core::peer_id& peer_of(const stage_here& s, int distance) {
    return s.replica->place->stages[s.index + std::uint32_t(distance)]
      .lead()
      .peer;
  }

  void begin(std::uint64_t step, bool eval) {
    step_ = step;
    eval_ = eval;
    busy_ = false;
    began_ = steady_now();
    worked_ = 0;
    losses_.clear();
    eval_losses_.clear();
    order_ = eval ? core::work_order::forward_only(
               replicas_.front().line, replicas_.front().peer, microbatches())
                  : order_of_step();
    runtime::device_queue& device = node().device();
    std::set<const model::unit_state*> zeroed; // stages may share units
    for (stage_here& s : here_) {
      if (eval && s.replica->index != 0)
        continue;
      post_receives(s);
      std::vector<unit_ptr> zero;
      if (!eval)
        std::ranges::copy_if(
          s.compute->units, std::back_inserter(zero),
          [&](const unit_ptr& u) { return zeroed.insert(u.get()).second; });
      // The model is made on the device's thread, where all its calls happen.
      device.submit(
        [compute = s.compute, zero = std::move(zero), over = config_.plan->over,
         step, factors = runtime::factors_of(config_.world->run),
         trace = &node().trace()](kernels::backend& backend) {
          if (*over)
            return;
          const runtime::timeline_span span(*trace,
                                            runtime::timeline::queue::device,
                                            "prepare stage", {{"step", step}});
          if (!compute->stage) {
            std::vector<model::unit_state*> units;
            for (const unit_ptr& u : compute->units)
              units.push_back(u.get());
            compute->stage = std::make_unique<model::stage_model>(
              std::move(units), backend, factors);
          }
          for (const unit_ptr& u : zero)
            u->zero_gradients(backend);
        },
        {}, {config_.world->job});
    }
    advance();
  }

  core::work_order order_of_step() const {
    std::vector<core::pipeline_role> roles;
    for (const replica_here& r : replicas_)
      roles.push_back({r.index, &r.line, r.peer});
    return core::work_order(roles);
  }

  /// A stage takes microbatches in ascending order (S-1).
  void post_receives(stage_here& s) {
    std::vector<std::uint32_t> order;
    const std::uint32_t last = eval_ ? microbatches() : s.replica->line.last;
    for (auto m = eval_ ? 0 : s.replica->line.first; m < last; ++m)
      order.push_back(m);
    const std::uint64_t run = run_number(step_, eval_);
    const std::uint64_t sequence = step_ * microbatches();
    const std::size_t ids_bytes =
      config_.world->tokens_per_microbatch() * sizeof(model::token_id);
    const std::size_t hidden = config_.world->hidden_bytes();
    const core::peer_id& source = config_.plan->where.data_source.peer;
    auto expect = [&](receiver& r, link_kind kind, const core::peer_id& from,
                      std::size_t bytes) {
      r = make_receiver(kind, s, from, bytes);
      r.begin(run, order, sequence);
    };
    for (receiver* r : s.receivers())
      *r = receiver{};
    if (is_first(s))
      expect(s.tokens, eval_ ? link_kind::eval_tokens : link_kind::tokens,
             source, ids_bytes);
    else
      expect(s.hidden_in,
             eval_ ? link_kind::eval_activations : link_kind::activations,
             peer_of(s, -1), hidden);
    if (is_last(s))
      expect(s.targets, eval_ ? link_kind::eval_targets : link_kind::targets,
             source, ids_bytes);
    else if (!eval_)
      expect(s.d_out, link_kind::gradients, peer_of(s, 1), hidden);
  }

  void note(const char* what, std::uint32_t stage, std::uint32_t microbatch) {
    node().flight().add(what, config_.world->job, step_, stage, microbatch);
  }

  void on_arrived(const arrived& m) {
    note(m.error ? "input failed" : "input arrived", m.index, m.microbatch);
    for (receiver* r : here(m.replica, m.index).receivers())
      if (r->used() && r->kind() == m.kind)
        if (!r->put(m) && m.error && m.run == run_number(step_, eval_))
          node().say("[stage] input of microbatch "
                     + std::to_string(m.microbatch) + " of step "
                     + std::to_string(step_) + " failed: " + m.error.message()
                     + "; waiting for a new plan");
    advance();
  }

  bool ready(const work_item& item) {
    const std::uint32_t m = item.microbatch;
    stage_here& s = here(item);
    if (item.kind == work_kind::input_gradient)
      return !s.d_out.used() || s.d_out.has(m);
    return (!s.tokens.used() || s.tokens.has(m))
           && (!s.targets.used() || s.targets.has(m))
           && (!s.hidden_in.used() || s.hidden_in.has(m));
  }

  void advance() {
    if (busy_)
      return;
    const auto item =
      order_.next([this](const work_item& w) { return ready(w); });
    if (!item)
      return;
    busy_ = true;
    note(name_of(item->kind), item->stage, item->microbatch);
    switch (item->kind) {
    case work_kind::forward:
      forward(*item);
      break;
    case work_kind::input_gradient:
      input_gradient(*item);
      break;
    case work_kind::weight_gradient:
      weight_gradient(*item);
      break;
    }
  }

  /// Posts the pass that `begin` makes to the device; its result in *done
  /// returns here. One piece of work, unless urgent work waits.
  template <class Begin>
  void submit(const work_item& item, buffer made, Begin begin) {
    auto done = std::make_shared<item_done>();
    done->run = run_number(step_, eval_);
    done->item = item;
    done->made = std::move(made);
    auto running = std::make_shared<item_pass>();
    running->compute = here(item).compute;
    node().device().submit_pass(
      [running, done, begin, item, step = step_, over = config_.plan->over,
       what = eval_ ? "evaluate" : name_of(item.kind),
       trace = &node().trace()](kernels::backend&) {
        const bool first = !running->pass;
        if (first && *over)
          return false;
        constexpr auto device = runtime::timeline::queue::device;
        if (first)
          trace->begin(device, what,
                       {{"step", step},
                        {"stage", item.stage},
                        {"microbatch", item.microbatch}});
        const bool more = run_segment(*running, *done, begin);
        if (!more)
          trace->end(device, {{"longest_segment_us",
                               std::uint64_t(running->longest / 1000)}});
        return more;
      },
      [self = caf::actor_cast<caf::actor>(this), done] {
        caf::anon_send(self, std::move(*done));
      },
      {config_.world->job});
  }

  void forward(const work_item& item) {
    const auto& run = config_.world->run;
    const std::uint32_t m = item.microbatch;
    stage_here& s = here(item);
    buffer ids = s.tokens.used() ? s.tokens.take(m) : buffer{};
    buffer targets = s.targets.used() ? s.targets.take(m) : buffer{};
    buffer hidden = s.hidden_in.used() ? s.hidden_in.take(m) : buffer{};
    buffer out = is_last(s)
                   ? buffer{}
                   : config_.world->buffers.get(config_.world->hidden_bytes());
    const float scale = 1.0f / float(config_.world->tokens_per_step());
    submit(item, out,
           [=, keep = !eval_, sequences = std::size_t(run.local_batch_size),
            tokens = std::size_t(run.seq_len)](model::stage_model& stage,
                                               item_done& done) {
             model::forward_work work;
             work.microbatch = m;
             work.sequences = sequences;
             work.tokens = tokens;
             if (ids)
               work.ids = ids.as<const model::token_id>();
             if (targets)
               work.targets = targets.as<const model::token_id>();
             if (hidden)
               work.hidden_in = hidden.as<const float>();
             if (out)
               work.hidden_out = out.as<float>();
             work.loss_scale = scale;
             work.keep = keep;
             if (targets)
               done.sample =
                 core::digest_of_sample(targets.as<const model::token_id>());
             return stage.begin_forward(work, done.result);
           });
  }

  void input_gradient(const work_item& item) {
    const std::uint32_t m = item.microbatch;
    stage_here& s = here(item);
    buffer d_out = s.d_out.used() ? s.d_out.take(m) : buffer{};
    buffer d_in = is_first(s)
                    ? buffer{}
                    : config_.world->buffers.get(config_.world->hidden_bytes());
    submit(item, d_in, [=](model::stage_model& stage, item_done&) {
      return stage.begin_input_gradient(
        m, d_out ? d_out.as<const float>() : std::span<const float>{},
        d_in ? d_in.as<float>() : std::span<float>{});
    });
  }

  void weight_gradient(const work_item& item) {
    const std::uint32_t m = item.microbatch;
    model::unit_callback after;
    if (order_.gradients_final(item.stage, item.replica))
      after = [reducer = config_.reducer, step = step_,
               others = still_added_to()](model::unit_index unit) {
        if (!std::ranges::binary_search(others, unit))
          caf::anon_send(reducer, unit_ready{step, unit});
      };
    submit(item, {}, [m, after](model::stage_model& stage, item_done&) {
      return stage.begin_weight_gradient(m, after);
    });
  }

  /// Units to which other stages here have not added yet, ascending.
  std::vector<model::unit_index> still_added_to() const {
    std::vector<model::unit_index> out;
    for (const stage_here& s : here_)
      if (!order_.gradients_final(s.index, s.replica->index))
        for (const unit_ptr& u : s.compute->units)
          out.push_back(u->unit());
    std::ranges::sort(out);
    return out;
  }

  void on_done(item_done& m) {
    if (m.run != run_number(step_, eval_))
      return;
    ++config_.world->finished;
    busy_ = false;
    worked_ += m.took;
    const stage_here& s = here(m.item);
    if (m.item.kind == work_kind::forward && is_last(s)) { // S-1: in order
      if (eval_) {
        eval_losses_.push_back(m.result.loss_sum);
        eval_losses_.push_back(double(m.result.predicted));
      } else {
        losses_[m.item.microbatch] = {
          m.result.loss_sum / double(config_.world->tokens_per_microbatch()),
          m.sample};
      }
    } else if (m.item.kind == work_kind::forward) {
      pass_on(m, eval_ ? link_kind::eval_activations : link_kind::activations,
              s, 1);
    } else if (m.item.kind == work_kind::input_gradient && !is_first(s)) {
      pass_on(m, link_kind::gradients, s, -1);
    }
    if (order_.finished())
      finish();
    else
      advance();
  }

  void finish() {
    note("stage finished", here_.front().index, 0);
    if (!eval_) {
      if (!losses_.empty())
        send(config_.reducer, losses_computed{step_, std::move(losses_)});
      send(config_.owner, step_computed{step_, worked_, steady_now() - began_});
      return;
    }
    if (!eval_losses_.empty())
      send_eval_losses();
    send(config_.owner, eval_computed{step_});
  }

  void
  pass_on(item_done& m, link_kind kind, const stage_here& s, int distance) {
    node().links().send(peer_of(s, distance),
                        make_tag(config_.plan->digest, kind, s.replica->index,
                                 s.index + std::uint32_t(distance),
                                 step_ * microbatches() + m.item.microbatch),
                        m.made.shared(),
                        [](std::error_code) {}); // lost peer: a new plan
  }

  /// Sends {sum, predicted} of all microbatches to the evaluator.
  void send_eval_losses() {
    buffer sums =
      config_.world->buffers.get(eval_losses_.size() * sizeof(double));
    std::ranges::copy(eval_losses_, sums.as<double>().begin());
    node().links().send(
      config_.plan->where.evaluator.peer,
      make_tag(config_.plan->digest, link_kind::eval_losses, 0, 0, step_),
      sums.shared(), [](std::error_code) {});
  }

  stage_config config_;
  std::vector<replica_here> replicas_; ///< complete before here_ is filled
  std::vector<stage_here> here_;       ///< by replica, then index

  std::uint64_t step_ = 0;
  bool eval_ = false;
  core::work_order order_;
  bool busy_ = false; ///< an item is on the device
  core::nanoseconds began_ = 0;
  core::nanoseconds worked_ = 0; ///< of the device, since then
  std::map<std::uint32_t, microbatch_loss> losses_;
  std::vector<double> eval_losses_; ///< sum and tokens of each microbatch
};

} // namespace

caf::actor spawn_stage(caf::actor_system& system, stage_config config) {
  return system.spawn<stage_actor>(std::move(config));
}

} // namespace shoal::actors
