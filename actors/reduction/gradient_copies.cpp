// actors/reduction/gradient_copies.cpp -- to followers, and to where units
// arrive.
#include "actors/reduction/gradient_copies.hpp"

#include "kernels/backend.hpp"
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/links/links.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

void gradient_copies::begin(std::uint64_t step) {
  step_ = step;
  reading_ = 0;
  for (const model::unit_index u : here_.followed)
    here_.links->expect(
      here_.holds().computer(0, u).peer,
      here_.tag(link_kind::gradient_copy, 0, u, step), here_.gradient(u),
      [this, post = here_.leased_post(), step, u](std::error_code error) {
        post([this, step, u, error] {
          if (step != step_)
            return;
          if (error)
            to_.failed("the copy of unit " + std::to_string(u), error);
          else
            to_.copied(u);
        });
      });
}

void gradient_copies::send(model::unit_index unit) {
  if (here_.leads(unit) && here_.place().copy_every <= 1)
    send_to_followers(unit);
  send_to_arrivals(unit);
}

void gradient_copies::on_read(std::uint64_t step) {
  if (step == step_ && --reading_ == 0)
    to_.copies_sent();
}

void gradient_copies::send_to_followers(model::unit_index unit) {
  for (const core::member_id& to : here_.holds().followers(unit)) {
    ++reading_;
    here_.links->send(
      to.peer, here_.tag(link_kind::gradient_copy, 0, unit, step_),
      here_.gradient(unit),
      [this, post = here_.leased_post(), step = step_](std::error_code error) {
        if (!error) // on an error the peer is lost: a new plan follows
          post([this, step] { on_read(step); });
      });
  }
}

// Arrivals: the same, except that the step does not wait for them.

void gradient_copies::begin_arrival(model::unit_index unit,
                                    const core::peer_id& to) {
  arrivals_[{unit, to}] = {++arrivals_begun_, 0};
}

void gradient_copies::send_to_arrivals(model::unit_index unit) {
  for (auto at = arrivals_.lower_bound({unit, {}});
       at != arrivals_.end() && at->first.first == unit;) {
    if (at->second.waiting >= core::arrival_backlog_max) {
      at = arrivals_.erase(at); // the receiver notices, and asks again
      continue;
    }
    ++at->second.waiting;
    send_to_arrival(unit, at->first.second, at->second.order);
    ++at;
  }
}

void gradient_copies::send_to_arrival(model::unit_index unit,
                                      const core::peer_id& to,
                                      std::uint64_t order) {
  const unit_ptr& state = here_.states.at(unit);
  buffer copy = here_.buffers->get(gradient_bytes(*state));
  ++reading_; // the step may end when the copy is complete
  here_.sums->submit(
    [state, copy](kernels::backend& device) {
      device.copy(copy.as<float>(), state->gradients());
    },
    // Without the lease: this may begin after the halt has cancelled all
    // transfers, and the halt waits until the lease has been released.
    [this, post = here_.post, links = here_.links, copy, unit, to, order,
     step = step_,
     tag = here_.tag(link_kind::arrival_gradient, 0, unit, step_)] {
      post([this, step] { on_read(step); });
      links->send(
        to, tag, copy.shared(),
        [this, post, unit, to, order](std::error_code error) {
          if (!error) // on an error the peer is lost: a new plan follows
            post([this, unit, to, order] { arrival_sent(unit, to, order); });
        });
    },
    {here_.plan->id.job});
}

void gradient_copies::arrival_sent(model::unit_index unit,
                                   const core::peer_id& to,
                                   std::uint64_t order) {
  const auto at = arrivals_.find({unit, to});
  if (at != arrivals_.end() && at->second.order == order)
    --at->second.waiting;
}

} // namespace shoal::actors
