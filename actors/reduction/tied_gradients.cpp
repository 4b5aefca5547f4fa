// actors/reduction/tied_gradients.cpp -- sends one side and adds the other.
#include "actors/reduction/tied_gradients.hpp"

#include "kernels/backend.hpp"
#include "runtime/links/links.hpp"
#include "runtime/model/unit_state.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace shoal::actors {

bool tied_gradients::concerns(model::unit_index unit) const {
  return here_.layout->tied() && (unit == 0 || unit == here_.head());
}

bool tied_gradients::is_local() const {
  return here_.computes(0) && here_.computes(here_.head());
}

/// The tied tensor's gradient in unit 0, or in the head.
std::span<float> tied_gradients::span_of(model::unit_index unit) const {
  const model::tied_pair pair = *here_.layout->tied();
  model::unit_state& state = *here_.states.at(unit);
  return state.tensor(state.gradients(),
                      unit == here_.head() ? pair.head : pair.embedding);
}

void tied_gradients::begin(std::uint64_t step) {
  step_ = step;
  summed_.clear();
  part_ = {};
  copying_ = 0;
  adding_ = false;
  const bool embedding = here_.computes(0);
  if (!here_.layout->tied() || embedding == here_.computes(here_.head()))
    return; // this peer has both sides
  const model::unit_index mine = embedding ? 0 : here_.head();
  const model::unit_index other = here_.head() - mine;
  const std::uint32_t replica = here_.first_replica(mine);
  here_.expect(here_.holds().computer(replica, other).peer,
               here_.tag(link_kind::tied, replica, other, step),
               span_of(mine).size_bytes(),
               [this, step](const buffer& part, std::error_code error) {
                 if (step == step_)
                   on_arrived(part, error);
               });
}

void tied_gradients::on_arrived(const buffer& part, std::error_code error) {
  if (error)
    return to_.failed("the tied gradient", error);
  part_ = part;
  add_if_ready();
}

void tied_gradients::summed(model::unit_index unit) {
  if (summed_.insert(unit).second)
    send(unit);
  add_if_ready();
}

/// Sends it to the peers that wait for it from here.
void tied_gradients::send(model::unit_index mine) {
  const model::unit_index other = here_.head() - mine;
  const core::holdings& holds = here_.holds();
  const std::vector<core::peer_id> have = holds.computers(mine);
  using target = std::pair<core::peer_id, transport::bulk_tag>;
  std::vector<target> targets;
  for (const core::peer_id& to : holds.computers(other)) {
    if (std::ranges::find(have, to) != have.end())
      continue; // that peer has both
    const std::uint32_t replica = holds.first_replica(to, other);
    if (holds.computer(replica, mine).peer == here_.self)
      targets.emplace_back(to,
                           here_.tag(link_kind::tied, replica, mine, step_));
  }
  if (targets.empty())
    return;
  const std::span<const float> values = span_of(mine);
  buffer copy = here_.buffers->get(values.size_bytes());
  ++copying_;
  here_.sums->submit(
    [state = here_.states.at(mine), values, copy](kernels::backend& device) {
      device.copy(copy.as<float>(), values);
    },
    // Without the lease, as for arrivals (gradient_copies.cpp).
    [this, post = here_.post, links = here_.links, targets, copy,
     step = step_] {
      post([this, step] {
        if (step != step_)
          return;
        --copying_;
        add_if_ready();
      });
      for (const auto& [to, tag] : targets)
        links->send(to, tag, copy.shared(), [](std::error_code) {});
    },
    {here_.plan->id.job});
}

/// The sum is written in place: not before it has been copied from there.
void tied_gradients::add_if_ready() {
  const std::size_t wanted = is_local() ? 2 : 1;
  if (!adding_ && copying_ == 0 && summed_.size() == wanted
      && (is_local() || part_))
    submit();
}

void tied_gradients::submit() {
  adding_ = true;
  const bool embedding = here_.computes(0), head = here_.computes(here_.head());
  const std::span<float> a = embedding ? span_of(0) : part_.as<float>();
  const std::span<float> b = head ? span_of(here_.head()) : part_.as<float>();
  here_.device->submit(
    [a, b, part = part_, kept = here_.states](kernels::backend& backend) {
      model::sum_tied(a, b, backend);
    },
    [this, post = here_.leased_post(), step = step_] {
      post([this, step] {
        if (step == step_)
          to_.tied_added();
      });
    },
    {here_.plan->id.job});
}

} // namespace shoal::actors
