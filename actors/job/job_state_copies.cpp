// actors/job/job_state_copies.cpp -- copies of units at a step: takes them,
// sends them to followers, returns to them, drops them.
#include "actors/job/job_actor.hpp"
#include "actors/training/link_names.hpp"
#include "runtime/links/links.hpp"
#include "runtime/observe/training_operations.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

namespace {

transport::bulk_tag tag_of(const take_copies& a, std::uint32_t unit) {
  return make_tag(a.digest, link_kind::state_copy, 0, unit, a.version.step);
}

} // namespace

/// The copy is made beside the computation, as for units that leave
/// (unit_moves.cpp).
void job_actor::act(const take_copies& a) {
  const core::holdings& holds = actors_.plan()->holds;
  for (const std::uint32_t u : a.own) {
    unit_ptr unit = world_->units.at(u);
    buffer copy = world_->state_buffers.get(state_bytes(*unit));
    std::vector<core::member_id> followers;
    if (holds.computer(0, u).peer == node().self())
      followers = holds.followers(u);
    state_reading();
    node().reductions().submit(
      [unit, copy](kernels::backend& device) {
        copy_state_out(device, *unit, copy.as<float>());
      },
      [this, post = here_.post, links = &node().links(), a, u, copy,
       followers] {
        for (const core::member_id& to : followers)
          links->send(to.peer, tag_of(a, u), copy.shared(),
                      [](std::error_code) {});
        post([this, a, u, copy] {
          keep_copy(a, u, copy);
          state_read();
        });
      },
      {config_.entry.id});
  }
  for (const std::uint32_t u : a.followed) {
    buffer into = world_->state_buffers.get(3 * sizeof(float)
                                            * world_->layout->unit_size(u));
    node().links().expect(
      holds.computer(0, u).peer, tag_of(a, u), into.shared(),
      [this, post = here_.post, a, u, into](std::error_code error) {
        post([this, a, u, into, error] {
          if (!error) // on an error another sub-plan follows
            keep_copy(a, u, into);
        });
      });
  }
}

void job_actor::keep_copy(const take_copies& a, std::uint32_t unit,
                          const buffer& copy) {
  world_->copies[a.version][unit] = copy;
  feed(event::copied{a.digest, a.version, unit});
  if (!core_.copies().contains(a.version)) // it came after a halt
    world_->copies.erase(a.version);
}

void job_actor::act(const revert_unit& a) {
  here_.compute(
    [unit = world_->units.at(a.unit),
     copy = world_->copies.at(a.version).at(a.unit),
     operations = &node().operations(id())](kernels::backend& device) {
      operations->copy_in(
        *unit, [&] { copy_state_in(device, copy.as<const float>(), *unit); });
    },
    [this, a] {
      feed(event::loaded{a.digest, a.unit});
    });
}

void job_actor::act(const drop_copies& a) {
  std::erase_if(world_->copies, [&](const auto& kept) {
    return std::ranges::find(a.keep, kept.first) == a.keep.end();
  });
}

} // namespace shoal::actors
