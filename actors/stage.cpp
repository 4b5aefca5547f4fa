// actors/stage.cpp -- turns a schedule into device work and transfers.
#include "actors/stage.hpp"

#include "actors/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/training/ledger.hpp"
#include "runtime/core/training/schedule.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"
#include "runtime/timeline.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <array>

namespace shoal::actors {

using core::work_item;
using core::work_kind;

namespace {

/// The device has run an item.
struct item_done {
  std::uint64_t run = 0;
  work_item item;
  double loss_sum = 0;
  double predicted = 0;
  std::uint64_t sample = 0;   ///< digest of the targets
  core::nanoseconds took = 0; ///< on the device
  buffer made; ///< hidden states or their gradients, for a neighbour
};

/// Evaluations and steps alternate; each has a number of its own so that
/// arrivals of another are told apart.
std::uint64_t run_number(std::uint64_t step, bool eval) {
  return 2 * step + (eval ? 1 : 0);
}

/// As the flight record names it, when it begins on the device.
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

/// What device work touches; outlives the actor until that work has run.
struct stage_compute {
  std::vector<unit_ptr> units;
  std::unique_ptr<model::stage_model> stage;
};

/// One of the stages that run here.
struct stage_here {
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
    : caf::event_based_actor(cfg), config_(std::move(config)),
      place_(config_.plan->where.replicas.at(config_.replica)),
      pipeline_(core::make_pipeline(config_.plan->where.schedule, place_)) {
    const auto index = core::index_of(place_, node().self());
    SHOAL_ASSERT(index);
    peer_ = *index;
    for (std::uint32_t s = 0; s < stages(); ++s) {
      if (pipeline_.peer_of[s] != peer_)
        continue;
      stage_here& here = here_.emplace_back();
      here.index = s;
      here.compute = std::make_shared<stage_compute>();
      const unit_range range =
        units_of(config_.plan->where, config_.replica, s);
      for (auto u = range.first; u < range.last; ++u)
        here.compute->units.push_back(config_.world->units.at(u));
    }
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
  std::uint32_t stages() const { return pipeline_.stages(); }
  bool is_first(std::uint32_t stage) const { return stage == 0; }
  bool is_last(std::uint32_t stage) const { return stage + 1 == stages(); }
  runtime::context& node() { return *config_.world->node; }

  stage_here& here(std::uint32_t stage) {
    auto at = std::ranges::find(here_, stage, &stage_here::index);
    SHOAL_ASSERT(at != here_.end());
    return *at;
  }

  /// In a step of this run: the step's training, or its evaluation.
  std::uint32_t microbatches() const {
    return eval_ ? std::uint32_t(config_.world->run.validation_steps)
                 : config_.plan->where.replicas.back().last_microbatch;
  }

  receiver make_receiver(link_kind kind, std::uint32_t stage,
                         const core::peer_id& from, std::size_t bytes) {
    return {{kind, config_.plan->digest, config_.replica, stage, from, bytes},
            node().links(),
            config_.world->buffers,
            address()};
  }

  const core::peer_id& peer_of(std::uint32_t stage) const {
    return place_.stages[stage].where.peer;
  }

  void begin(std::uint64_t step, bool eval) {
    step_ = step;
    eval_ = eval;
    busy_ = false;
    began_ = steady_now();
    worked_ = 0;
    losses_.clear();
    samples_.clear();
    order_ =
      eval ? core::work_order::forward_only(pipeline_, peer_, microbatches())
           : core::work_order(pipeline_, peer_);
    runtime::device_queue& device = node().device();
    for (stage_here& s : here_) {
      post_receives(s);
      // The model is made on the device's thread, where all its calls happen.
      device.submit(
        [compute = s.compute, eval](kernels::backend& backend) {
          if (!compute->stage) {
            std::vector<model::unit_state*> units;
            for (const unit_ptr& u : compute->units)
              units.push_back(u.get());
            compute->stage =
              std::make_unique<model::stage_model>(std::move(units), backend);
          }
          if (!eval)
            for (const unit_ptr& u : compute->units)
              u->zero_gradients();
        },
        {});
    }
    advance();
  }

  /// A stage takes microbatches in ascending order (S-1).
  void post_receives(stage_here& s) {
    std::vector<std::uint32_t> order;
    const std::uint32_t last = eval_ ? microbatches() : pipeline_.last;
    for (auto m = eval_ ? 0 : pipeline_.first; m < last; ++m)
      order.push_back(m);
    const std::uint64_t run = run_number(step_, eval_);
    const std::uint64_t sequence = step_ * microbatches();
    const std::size_t ids_bytes =
      config_.world->tokens_per_microbatch() * sizeof(model::token_id);
    const std::size_t hidden = config_.world->hidden_bytes();
    const core::peer_id& source = config_.plan->where.data_source.peer;
    auto expect = [&](receiver& r, link_kind kind, const core::peer_id& from,
                      std::size_t bytes) {
      r = make_receiver(kind, s.index, from, bytes);
      r.begin(run, order, sequence);
    };
    for (receiver* r : s.receivers())
      *r = receiver{};
    if (is_first(s.index))
      expect(s.tokens, eval_ ? link_kind::eval_tokens : link_kind::tokens,
             source, ids_bytes);
    else
      expect(s.hidden_in,
             eval_ ? link_kind::eval_activations : link_kind::activations,
             peer_of(s.index - 1), hidden);
    if (is_last(s.index))
      expect(s.targets, eval_ ? link_kind::eval_targets : link_kind::targets,
             source, ids_bytes);
    else if (!eval_)
      expect(s.d_out, link_kind::gradients, peer_of(s.index + 1), hidden);
  }

  void note(const char* what, std::uint32_t stage, std::uint32_t microbatch) {
    node().flight().add(what, config_.world->job, step_, stage, microbatch);
  }

  void on_arrived(const arrived& m) {
    note(m.error ? "input failed" : "input arrived", m.index, m.microbatch);
    for (receiver* r : here(m.index).receivers())
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
    stage_here& s = here(item.stage);
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

  /// Posts `run` to the device; what it leaves in *done comes back here.
  template <class Work>
  void submit(const work_item& item, buffer made, Work run) {
    auto done = std::make_shared<item_done>();
    done->run = run_number(step_, eval_);
    done->item = item;
    done->made = std::move(made);
    node().device().submit(
      [compute = here(item.stage).compute, done, run, item, step = step_,
       what = eval_ ? "evaluate" : name_of(item.kind),
       trace = &node().trace()](kernels::backend&) {
        const runtime::timeline_span span(
          *trace, runtime::timeline::queue::device, what,
          {{"step", step},
           {"stage", item.stage},
           {"microbatch", item.microbatch}});
        const core::nanoseconds began = steady_now();
        run(*compute->stage, *done);
        done->took = steady_now() - began;
      },
      [self = caf::actor_cast<caf::actor>(this), done] {
        caf::anon_send(self, std::move(*done));
      });
  }

  void forward(const work_item& item) {
    const auto& run = config_.world->run;
    const std::uint32_t m = item.microbatch;
    stage_here& s = here(item.stage);
    buffer ids = s.tokens.used() ? s.tokens.take(m) : buffer{};
    buffer targets = s.targets.used() ? s.targets.take(m) : buffer{};
    buffer hidden = s.hidden_in.used() ? s.hidden_in.take(m) : buffer{};
    buffer out = is_last(item.stage)
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
             const model::forward_result result = stage.forward(work);
             done.loss_sum = result.loss_sum;
             done.predicted = double(result.predicted);
             if (targets)
               done.sample =
                 core::digest_of_sample(targets.as<const model::token_id>());
           });
  }

  void input_gradient(const work_item& item) {
    const std::uint32_t m = item.microbatch;
    stage_here& s = here(item.stage);
    buffer d_out = s.d_out.used() ? s.d_out.take(m) : buffer{};
    buffer d_in = is_first(item.stage)
                    ? buffer{}
                    : config_.world->buffers.get(config_.world->hidden_bytes());
    submit(item, d_in, [=](model::stage_model& stage, item_done&) {
      stage.input_gradient(
        m, d_out ? d_out.as<const float>() : std::span<const float>{},
        d_in ? d_in.as<float>() : std::span<float>{});
    });
  }

  void weight_gradient(const work_item& item) {
    const std::uint32_t m = item.microbatch;
    model::unit_callback after;
    if (order_.gradients_final(item.stage))
      after = [reducer = config_.reducer,
               step = step_](model::unit_index unit) {
        caf::anon_send(reducer, unit_ready{step, unit});
      };
    submit(item, {}, [m, after](model::stage_model& stage, item_done&) {
      stage.weight_gradient(m, after);
    });
  }

  void on_done(item_done& m) {
    if (m.run != run_number(step_, eval_))
      return;
    ++config_.world->finished;
    busy_ = false;
    worked_ += m.took;
    const std::uint32_t stage = m.item.stage;
    if (m.item.kind == work_kind::forward && is_last(stage)) { // S-1: in order
      if (eval_) {
        losses_.push_back(m.loss_sum);
        losses_.push_back(m.predicted);
      } else {
        losses_.push_back(m.loss_sum
                          / double(config_.world->tokens_per_microbatch()));
        samples_.push_back(m.sample);
      }
    } else if (m.item.kind == work_kind::forward) {
      pass_on(m, eval_ ? link_kind::eval_activations : link_kind::activations,
              stage + 1);
    } else if (m.item.kind == work_kind::input_gradient && !is_first(stage)) {
      pass_on(m, link_kind::gradients, stage - 1);
    }
    if (order_.finished())
      finish();
    else
      advance();
  }

  void finish() {
    note("stage finished", here_.front().index, 0);
    if (!eval_) {
      send(config_.owner,
           step_computed{step_, std::move(losses_), std::move(samples_),
                         worked_, steady_now() - began_});
      return;
    }
    if (here_.back().index + 1 == stages())
      send_eval_losses();
    send(config_.owner, eval_computed{step_});
  }

  void pass_on(item_done& m, link_kind kind, std::uint32_t to) {
    node().links().send(
      peer_of(to),
      make_tag(config_.plan->digest, kind, config_.replica, to,
               step_ * microbatches() + m.item.microbatch),
      m.made.shared(), [](std::error_code) {}); // a lost peer: a new plan
  }

  /// Sends {sum, predicted} of all microbatches to the evaluator.
  void send_eval_losses() {
    buffer sums = config_.world->buffers.get(losses_.size() * sizeof(double));
    std::ranges::copy(losses_, sums.as<double>().begin());
    node().links().send(
      config_.plan->where.evaluator.peer,
      make_tag(config_.plan->digest, link_kind::eval_losses, 0, 0, step_),
      sums.shared(), [](std::error_code) {});
  }

  stage_config config_;
  const core::replica_place& place_;
  core::pipeline pipeline_;
  std::uint32_t peer_ = 0;       ///< this one, in the pipeline
  std::vector<stage_here> here_; ///< by index

  std::uint64_t step_ = 0;
  bool eval_ = false;
  core::work_order order_;
  bool busy_ = false; ///< an item is on the device
  core::nanoseconds began_ = 0;
  core::nanoseconds worked_ = 0; ///< the device, since then
  std::vector<double> losses_;
  std::vector<std::uint64_t> samples_; ///< of the same microbatches
};

} // namespace

caf::actor spawn_stage(caf::actor_system& system, stage_config config) {
  return system.spawn<stage_actor>(std::move(config));
}

} // namespace shoal::actors
