// actors/stage.cpp -- turns a schedule into device work and transfers.
#include "actors/stage.hpp"

#include "actors/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/core/training/schedule.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"

#include <caf/all.hpp>

#include <algorithm>

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
  buffer made; ///< hidden states or their gradients, for a neighbour
};

/// Evaluations and steps alternate; each has a number of its own so that
/// arrivals of another are told apart.
std::uint64_t run_number(std::uint64_t step, bool eval) {
  return 2 * step + (eval ? 1 : 0);
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

class stage_actor : public caf::event_based_actor {
public:
  stage_actor(caf::actor_config& cfg, stage_config config)
    : caf::event_based_actor(cfg), config_(std::move(config)),
      compute_(std::make_shared<stage_compute>()) {
    const core::assignment& place = config_.plan->where;
    const auto& replica = place.replicas.at(config_.name.replica);
    stages_ = std::uint32_t(replica.stages.size());
    first_ = replica.first_microbatch;
    last_ = replica.last_microbatch;
    const unit_range range =
      units_of(place, config_.name.replica, config_.name.stage);
    for (auto u = range.first; u < range.last; ++u)
      compute_->units.push_back(config_.world->units.at(u));
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
  bool is_first() const { return config_.name.stage == 0; }
  bool is_last() const { return config_.name.stage + 1 == stages_; }
  runtime::context& node() { return *config_.world->node; }

  std::uint32_t microbatches() const {
    return config_.plan->where.replicas.back().last_microbatch;
  }

  receiver
  make_receiver(link_kind kind, const core::peer_id& from, std::size_t bytes) {
    return {{kind, config_.plan->digest, config_.name.replica,
             config_.name.stage, from, bytes},
            node().links(),
            config_.world->buffers,
            address()};
  }

  const core::peer_id& neighbour(int offset) const {
    const auto& stages =
      config_.plan->where.replicas[config_.name.replica].stages;
    const int at = int(config_.name.stage) + offset;
    return stages[std::size_t(at)].where.peer;
  }

  void begin(std::uint64_t step, bool eval) {
    step_ = step;
    eval_ = eval;
    next_ = 0;
    busy_ = false;
    losses_.clear();
    const std::uint32_t evals =
      std::uint32_t(config_.world->run.validation_steps);
    items_ =
      eval ? core::make_forward_schedule(0, evals)
           : core::make_schedule(config_.name.stage, stages_, first_, last_);
    post_receives(eval, eval ? evals : microbatches());
    auto compute = compute_;
    runtime::device_queue& device = node().device();
    // The model is made on the device's thread, where all its calls happen.
    device.submit(
      [compute, eval](kernels::backend& backend) {
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
    advance();
  }

  void post_receives(bool eval, std::uint32_t per_step) {
    std::vector<std::uint32_t> forward;
    for (const work_item& item : items_)
      if (item.kind == work_kind::forward)
        forward.push_back(item.microbatch);
    const std::uint64_t run = run_number(step_, eval);
    const std::uint64_t sequence = step_ * per_step;
    const std::size_t ids_bytes =
      config_.world->tokens_per_microbatch() * sizeof(model::token_id);
    const std::size_t hidden = config_.world->hidden_bytes();
    const core::peer_id& source = config_.plan->where.data_source.peer;
    tokens_ = targets_ = hidden_in_ = d_out_ = receiver{};
    if (is_first()) {
      tokens_ = make_receiver(eval ? link_kind::eval_tokens : link_kind::tokens,
                              source, ids_bytes);
      tokens_.begin(run, forward, sequence);
    } else {
      hidden_in_ = make_receiver(eval ? link_kind::eval_activations
                                      : link_kind::activations,
                                 neighbour(-1), hidden);
      hidden_in_.begin(run, forward, sequence);
    }
    if (is_last()) {
      targets_ = make_receiver(
        eval ? link_kind::eval_targets : link_kind::targets, source, ids_bytes);
      targets_.begin(run, forward, sequence);
    } else if (!eval) {
      d_out_ = make_receiver(link_kind::gradients, neighbour(+1), hidden);
      d_out_.begin(run, forward, sequence);
    }
  }

  void on_arrived(const arrived& m) {
    for (receiver* r : {&tokens_, &targets_, &hidden_in_, &d_out_})
      if (r->used() && r->kind() == m.kind)
        if (!r->put(m) && m.error && m.run == run_number(step_, eval_))
          node().say("[stage] input of microbatch "
                     + std::to_string(m.microbatch) + " of step "
                     + std::to_string(step_) + " failed: " + m.error.message()
                     + "; waiting for a new plan");
    advance();
  }

  bool ready(const work_item& item) const {
    const std::uint32_t m = item.microbatch;
    switch (item.kind) {
    case work_kind::forward:
      return (!tokens_.used() || tokens_.has(m))
             && (!targets_.used() || targets_.has(m))
             && (!hidden_in_.used() || hidden_in_.has(m));
    case work_kind::input_gradient:
      return !d_out_.used() || d_out_.has(m);
    case work_kind::weight_gradient:
      return true;
    }
    return false;
  }

  void advance() {
    if (busy_ || next_ == items_.size() || !ready(items_[next_]))
      return;
    busy_ = true;
    const work_item item = items_[next_++];
    switch (item.kind) {
    case work_kind::forward:
      forward(item);
      break;
    case work_kind::input_gradient:
      input_gradient(item);
      break;
    case work_kind::weight_gradient:
      weight_gradient(item);
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
      [compute = compute_, done, run](kernels::backend&) {
        run(*compute->stage, *done);
      },
      [self = caf::actor_cast<caf::actor>(this), done] {
        caf::anon_send(self, std::move(*done));
      });
  }

  void forward(const work_item& item) {
    const auto& run = config_.world->run;
    const std::uint32_t m = item.microbatch;
    buffer ids = is_first() ? tokens_.take(m) : buffer{};
    buffer targets = is_last() ? targets_.take(m) : buffer{};
    buffer hidden = is_first() ? buffer{} : hidden_in_.take(m);
    buffer out = is_last()
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
           });
  }

  void input_gradient(const work_item& item) {
    const std::uint32_t m = item.microbatch;
    buffer d_out = is_last() ? buffer{} : d_out_.take(m);
    buffer d_in = is_first()
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
    if (next_ == items_.size()) // the last one: gradients become final
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
    busy_ = false;
    if (m.item.kind == work_kind::forward) {
      if (is_last()) { // S-1: in order of microbatches
        if (eval_) {
          losses_.push_back(m.loss_sum);
          losses_.push_back(m.predicted);
        } else {
          losses_.push_back(m.loss_sum
                            / double(config_.world->tokens_per_microbatch()));
        }
      } else
        pass_on(m, eval_ ? link_kind::eval_activations : link_kind::activations,
                +1);
    } else if (m.item.kind == work_kind::input_gradient && !is_first()) {
      pass_on(m, link_kind::gradients, -1);
    }
    if (next_ == items_.size()) {
      if (eval_ && is_last())
        send_eval_losses();
      if (eval_)
        send(config_.owner, eval_computed{step_, config_.name});
      else
        send(config_.owner,
             step_computed{step_, config_.name, std::move(losses_)});
      return;
    }
    advance();
  }

  void pass_on(item_done& m, link_kind kind, int offset) {
    const std::uint32_t per_step =
      eval_ ? std::uint32_t(config_.world->run.validation_steps)
            : microbatches();
    node().links().send(
      neighbour(offset),
      make_tag(config_.plan->digest, kind, config_.name.replica,
               std::uint32_t(int(config_.name.stage) + offset),
               step_ * per_step + m.item.microbatch),
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
  std::shared_ptr<stage_compute> compute_;
  std::uint32_t stages_ = 0;
  std::uint32_t first_ = 0; ///< microbatches of this replica
  std::uint32_t last_ = 0;

  std::uint64_t step_ = 0;
  bool eval_ = false;
  std::vector<work_item> items_;
  std::size_t next_ = 0;
  bool busy_ = false;
  receiver tokens_, targets_, hidden_in_, d_out_;
  std::vector<double> losses_;
};

} // namespace

caf::actor spawn_stage(caf::actor_system& system, stage_config config) {
  return system.spawn<stage_actor>(std::move(config));
}

} // namespace shoal::actors
