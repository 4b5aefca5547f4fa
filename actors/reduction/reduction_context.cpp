// actors/reduction/reduction_context.cpp -- which units are here, and their transfers.
#include "actors/reduction/reduction_context.hpp"

#include "runtime/core/assert.hpp"

namespace shoal::actors {

void find_units(reduction_context& here) {
  const core::member_parts& mine = here.holds().of(here.self);
  here.computed = mine.computes;
  here.followed = mine.held;
  here.followed.remove(mine.computes);
  SHOAL_ASSERT(!here.computed.empty() || !here.followed.empty());
}

bool reduction_context::leads(model::unit_index u) const {
  return computes(u) && holds().computer(0, u).peer == self;
}

std::uint32_t reduction_context::first_replica(model::unit_index u) const {
  return holds().first_replica(self, u);
}

poster reduction_context::leased_post() const {
  return [post = post, lease = plan->lease](std::function<void()> run) {
    post(std::move(run));
  };
}

transport::bulk_tag
reduction_context::tag(link_kind kind, std::uint32_t replica,
                       std::uint32_t index, std::uint64_t step) const {
  return make_tag(plan->digest, kind, replica, index, step);
}

runtime::shared_bytes reduction_context::gradient(model::unit_index u) const {
  const unit_ptr& state = states.at(u);
  return {state, std::as_writable_bytes(state->gradients())};
}

void reduction_context::expect(
  const core::peer_id& from, transport::bulk_tag tag, std::size_t bytes,
  std::function<void(const buffer&, std::error_code)> then) const {
  buffer into = buffers->get(bytes);
  links->expect(from, tag, into.shared(),
                [post = leased_post(), into,
                 then = std::move(then)](std::error_code error) {
                  post([into, then, error] { then(into, error); });
                });
}

} // namespace shoal::actors
