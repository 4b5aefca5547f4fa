// actors/reduction/reducer.cpp -- messages to the parts of a reducer, and
// between them.
#include "actors/reduction/reducer.hpp"

#include "actors/reduction/gradient_copies.hpp"
#include "actors/reduction/gradient_sums.hpp"
#include "actors/reduction/step_losses.hpp"
#include "actors/reduction/tied_gradients.hpp"
#include "actors/training/later.hpp"
#include "runtime/context.hpp"
#include "runtime/links/links.hpp"
#include "runtime/work/device_queue.hpp"

#include <caf/all.hpp>

namespace shoal::actors {
namespace {

class reducer_actor : public caf::event_based_actor,
                      private gradient_sums::events,
                      private step_losses::events,
                      private tied_gradients::events,
                      private gradient_copies::events {
public:
  reducer_actor(caf::actor_config& cfg, reducer_config config)
    : caf::event_based_actor(cfg), config_(std::move(config)),
      here_(make_context()), sums_(here_, *this), losses_(here_, *this),
      tied_(here_, *this), copies_(here_, *this) {}

  const char* name() const override { return "reducer"; }
  void on_exit() override { sums_.stop(); }

  caf::behavior make_behavior() override {
    return {
      [this](const begin_step& m) {
        step_ = m.step;
        sums_.begin(m.step);
        losses_.begin(m.step);
        tied_.begin(m.step);
        copies_.begin(m.step);
      },
      [this](const unit_ready& m) {
        if (m.step == step_)
          sums_.ready(m.unit);
      },
      [this](const losses_computed& m) {
        if (m.step == step_)
          losses_.take(m.losses);
      },
      [this](const send_gradients& m) { copies_.begin_arrival(m.unit, m.to); },
      [](const later& m) { m.run(); },
    };
  }

private:
  runtime::context& node() { return *config_.world->node; }

  reduction_context make_context() {
    reduction_context out;
    out.self = node().self();
    out.plan = config_.plan;
    out.layout = config_.world->layout;
    out.states = config_.world->units;
    out.links = &node().links();
    out.device = &node().device();
    out.sums = &node().reductions();
    out.buffers = &config_.world->buffers;
    out.post = post_to(address());
    find_units(out);
    return out;
  }

  // Events of the parts.

  void summed(model::unit_index unit) override {
    if (tied_.concerns(unit))
      tied_.summed(unit);
    else
      finish(unit);
  }

  void tied_added() override {
    for (const model::unit_index u : here_.computed)
      if (tied_.concerns(u))
        finish(u);
  }

  /// The gradient of a unit is final.
  void finish(model::unit_index unit) {
    copies_.send(unit);
    sums_.square(unit);
  }

  void copied(model::unit_index unit) override { sums_.square(unit); }

  void squared(model::unit_index unit) override {
    ++config_.world->finished;
    node().flight().add("reduced", config_.world->job, step_, unit);
    report_if_reduced();
  }
  void copies_sent() override { report_if_reduced(); }
  void losses_complete() override { report_if_reduced(); }

  void failed(const std::string& what, std::error_code error) override {
    node().say("[reducer] " + what + " of step " + std::to_string(step_)
               + " failed: " + error.message() + "; waiting for a new plan");
  }

  void report_if_reduced() {
    if (!losses_.complete() || !copies_.sent())
      return;
    auto squares = sums_.squares();
    if (!squares)
      return;
    send(config_.owner,
         step_reduced{step_, losses_.all(), std::move(*squares)});
    step_ = 0;
  }

  reducer_config config_;
  reduction_context here_;
  gradient_sums sums_;
  step_losses losses_;
  tied_gradients tied_;
  gradient_copies copies_;
  std::uint64_t step_ = 0; ///< 0: no step in progress
};

} // namespace

caf::actor spawn_reducer(caf::actor_system& system, reducer_config config) {
  return system.spawn<reducer_actor>(std::move(config));
}

} // namespace shoal::actors
