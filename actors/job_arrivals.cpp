// actors/job_arrivals.cpp -- units that come, or are sent, while steps run: a
// copy as of a step, then the reduced gradients of each later one.
#include "actors/job_actor.hpp"
#include "actors/link_names.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/training/arrivals.hpp"
#include "runtime/device_queue.hpp"
#include "runtime/links.hpp"
#include "runtime/timeline.hpp"

#include <algorithm>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

void job_actor::act(const receive_unit& a) {
  unit_ptr& unit = world_->units[a.unit];
  if (!unit)
    unit = std::make_shared<model::unit_state>(world_->layout, a.unit,
                                               model::purpose::training,
                                               node().links().memory());
  arriving_[a.unit] = {a, !a.copy, a.version.step, {}};
  expect_gradient(a.unit);
  if (!a.copy)
    return;
  buffer into = world_->buffers.get(state_bytes(*unit));
  node().trace().open(config_.entry.id, "fetching state", {{"unit", a.unit}});
  auto here = [this, a, unit, into](std::error_code error) {
    node().trace().close(config_.entry.id, "fetching state");
    const auto at = arriving_.find(a.unit);
    if (error || a.digest != digest_ || at == arriving_.end()
        || at->second.asked.version != a.version)
      return;
    compute(
      [unit, into](kernels::backend&) {
        copy_state_in(into.as<const float>(), *unit);
      },
      [this, a] {
        if (const auto now = arriving_.find(a.unit); now != arriving_.end())
          now->second.copied = true;
        feed(event::arrival_copied{a.digest, a.unit, a.version.step});
        const auto count = core_.arrivals();
        if (digest_ == a.digest && count.here == count.all)
          node().say("[job] all state that was to come is here: "
                     + std::to_string(count.all) + " units");
      });
  };
  node().links().expect(
    a.from, make_tag(a.digest, link_kind::arrival, 0, a.unit, a.version.step),
    into.shared(), [post = poster(), here](std::error_code error) {
      post([here, error] { here(error); });
    });
}

/// Posts memory for the gradients of the step after those that are, unless
/// many are kept.
void job_actor::expect_gradient(std::uint32_t u) {
  arriving_unit& in = arriving_.at(u);
  if (in.gradients.size() >= core::arrival_backlog_max)
    return;
  const std::uint64_t step = ++in.expected;
  buffer into = world_->buffers.get(gradient_bytes(*world_->units.at(u)));
  auto here = [this, a = in.asked, step, into](std::error_code error) {
    const auto at = arriving_.find(a.unit);
    if (error || a.digest != digest_ || at == arriving_.end()
        || at->second.asked.version != a.version)
      return;
    at->second.gradients[step] = into;
    feed(event::arrival_reduced{a.digest, a.unit, step});
    if (digest_ == a.digest && arriving_.contains(a.unit))
      expect_gradient(a.unit);
  };
  node().links().expect(
    in.asked.from,
    make_tag(in.asked.digest, link_kind::arrival_gradient, 0, u, step),
    into.shared(), [post = poster(), here](std::error_code error) {
      post([here, error] { here(error); });
    });
}

void job_actor::act(const apply_arrived& a) {
  arriving_unit& in = arriving_.at(a.unit);
  compute(
    [unit = world_->units.at(a.unit), gradients = in.gradients.at(a.step),
     options = optimizer(a.step, a.grad_norm)](kernels::backend& device) {
      std::ranges::copy(gradients.as<const float>(), unit->gradients().begin());
      model::apply(*unit, device, options);
    },
    [this, a] {
      const auto at = arriving_.find(a.unit);
      SHOAL_ASSERT(at != arriving_.end());
      const bool full =
        at->second.gradients.size() >= core::arrival_backlog_max;
      at->second.gradients.erase(a.step);
      if (full && digest_ == a.digest)
        expect_gradient(a.unit);
      feed(event::arrival_applied{a.digest, a.unit, a.step});
    });
}

void job_actor::act(const send_unit& a) {
  crew_.pass(send_gradients{a.unit, a.to});
  if (!a.copy)
    return;
  unit_ptr unit = world_->units.at(a.unit);
  buffer copy = world_->buffers.get(state_bytes(*unit));
  node().device().submit(
    [unit, copy](kernels::backend&) {
      copy_state_out(*unit, copy.as<float>());
    },
    [links = &node().links(), a, copy, trace = &node().trace(),
     job = config_.entry.id] {
      trace->open(job, "sending state", {{"unit", a.unit}});
      links->send(
        a.to, make_tag(a.digest, link_kind::arrival, 0, a.unit, a.version.step),
        copy.shared(),
        [trace, job](std::error_code) { trace->close(job, "sending state"); });
    });
}

void job_actor::act(const arrivals_complete& a) {
  node().propose_arrived(config_.entry.id, a.since);
}

/// A halt ends transfers: what has not come whole is no unit.
void job_actor::drop_unfinished_arrivals() {
  std::erase_if(arriving_, [this](const auto& of) {
    if (!of.second.copied)
      world_->units.erase(of.first);
    return !of.second.copied;
  });
}

} // namespace shoal::actors
