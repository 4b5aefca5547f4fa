// tests/sim/shoal/seams.cpp -- the product's functions that the world watches.
//
// The linker binds calls of a function of the list in meson.build to
// __wrap_<name>, and __real_<name> to the function itself: so the product is
// the same code in the simulation, and has no hooks. The clocks of the C++
// library are replaced likewise: a program that defines them uses its own.
// Each seam is counted: one that has lost its function, because its type has
// changed and with it its name, fails the run.
#include "tests/sim/shoal/seams.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/training/training_state.hpp"
#include "runtime/core/training/data_order.hpp"
#include "tests/sim/shoal/planted.hpp"
#include "tests/sim/shoal/world.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

using namespace shoal;

namespace {

std::uint64_t hits[sim::seams_count];

void hit(sim::seam s) {
  ++hits[std::size_t(s)];
}

/// The world, while one of its processes is at work; not when one that has
/// died is cleared away.
sim::shoal_world* at_work() {
  sim::shoal_world* world = sim::shoal_world::active();
  return world != nullptr && world->at_work >= 0 ? world : nullptr;
}

void unit_is(model::unit_state& unit) {
  sim::shoal_world* world = at_work();
  if (world == nullptr)
    return;
  std::uint64_t bits = unit.unit();
  for (auto part :
       {unit.parameters(), unit.first_moment(), unit.second_moment()})
    bits = XXH3_64bits_withSeed(part.data(), part.size_bytes(), bits);
  world->past().unit_is(world->at_work, unit.unit(), bits);
}

std::int64_t real_now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

} // namespace

namespace shoal::sim {

std::uint64_t seam_hits(seam s) {
  return hits[std::size_t(s)];
}

} // namespace shoal::sim

// NOLINTBEGIN: the names are the linker's

#define SEAM(name) __asm__(name)

core::job_actions real_step(core::job_core*, const core::job_input&,
                            core::nanoseconds) SEAM("__real_" SHOAL_SEAM_STEP);
core::job_actions wrap_step(core::job_core*, const core::job_input&,
                            core::nanoseconds) SEAM("__wrap_" SHOAL_SEAM_STEP);

core::job_actions wrap_step(core::job_core* core, const core::job_input& in,
                            core::nanoseconds now) {
  hit(sim::seam::step);
  sim::shoal_world* world = at_work();
  if (world == nullptr)
    return real_step(core, in, now);
  const auto took = [&](const core::job_input& told,
                        const core::job_actions& out) {
    world->note(told.index(), out.size());
    world->past().stepped(world->at_work, *core, told, out);
    if (core->loads())
      world->loads(world->at_work);
  };
  if (const auto* p = std::get_if<core::job_event::prepared>(&in);
      p != nullptr && !p->losses.empty() && world->work().is_bad(p->step)
      && std::isfinite(p->losses[0])) {
    core::job_event::prepared bad = *p;
    bad.losses[0] = std::numeric_limits<double>::quiet_NaN();
    return wrap_step(core, bad, now);
  }
  if (world->has(sim::planted::nothing)) {
    core::job_actions out = real_step(core, in, now);
    took(in, out);
    return out;
  }
  core::job_actions all;
  for (const core::job_input& told : sim::mutate(*world, world->at_work, in)) {
    core::job_actions out = real_step(core, told, now);
    sim::mutate(*world, world->at_work, told, out);
    took(told, out);
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

void real_apply(model::unit_state&, kernels::backend&,
                const kernels::adamw_options&) SEAM("__real_" SHOAL_SEAM_APPLY);
void wrap_apply(model::unit_state&, kernels::backend&,
                const kernels::adamw_options&) SEAM("__wrap_" SHOAL_SEAM_APPLY);

void wrap_apply(model::unit_state& unit, kernels::backend& device,
                const kernels::adamw_options& options) {
  hit(sim::seam::apply);
  sim::shoal_world* world = at_work();
  kernels::adamw_options used = options;
  if (world != nullptr && world->has(sim::planted::optimizer_restarts)
      && world->past().adoptions() > 1)
    used.step = 1;
  real_apply(unit, device, used);
  unit_is(unit);
}

void real_initialise(model::unit_state&, std::uint64_t)
  SEAM("__real_" SHOAL_SEAM_INITIALISE);
void wrap_initialise(model::unit_state&, std::uint64_t)
  SEAM("__wrap_" SHOAL_SEAM_INITIALISE);

void wrap_initialise(model::unit_state& unit, std::uint64_t seed) {
  hit(sim::seam::initialise);
  real_initialise(unit, seed);
  unit_is(unit);
}

void real_copy_in(std::span<const float>, model::unit_state&)
  SEAM("__real_" SHOAL_SEAM_COPY_IN);
void wrap_copy_in(std::span<const float>, model::unit_state&)
  SEAM("__wrap_" SHOAL_SEAM_COPY_IN);

void wrap_copy_in(std::span<const float> from, model::unit_state& unit) {
  hit(sim::seam::copy_in);
  real_copy_in(from, unit);
  sim::shoal_world* world = at_work();
  if (world != nullptr && world->has(sim::planted::moments_not_moved)) {
    std::ranges::fill(unit.first_moment(), 0.0f);
    std::ranges::fill(unit.second_moment(), 0.0f);
  }
  unit_is(unit);
}

model::status real_load(const actors::unit_files&, model::unit_state&)
  SEAM("__real_" SHOAL_SEAM_LOAD);
model::status wrap_load(const actors::unit_files&, model::unit_state&)
  SEAM("__wrap_" SHOAL_SEAM_LOAD);

model::status
wrap_load(const actors::unit_files& from, model::unit_state& unit) {
  hit(sim::seam::load);
  sim::shoal_world* world = at_work();
  if (world != nullptr && world->has(sim::planted::rollback_forgotten)
      && std::ranges::any_of(unit.second_moment(),
                             [](float v) { return v != 0; })) {
    unit_is(unit);
    return model::done{};
  }
  model::status loaded = real_load(from, unit);
  unit_is(unit);
  return loaded;
}

std::uint64_t real_sample(const core::data_order*, std::uint64_t, std::uint32_t)
  SEAM("__real_" SHOAL_SEAM_SAMPLE);
std::uint64_t wrap_sample(const core::data_order*, std::uint64_t, std::uint32_t)
  SEAM("__wrap_" SHOAL_SEAM_SAMPLE);

std::uint64_t wrap_sample(const core::data_order* order, std::uint64_t step,
                          std::uint32_t index) {
  hit(sim::seam::sample);
  sim::shoal_world* world = at_work();
  const bool ahead = world != nullptr
                     && world->has(sim::planted::cursor_off_by_one)
                     && world->past().adoptions() > 1;
  return real_sample(order, step + (ahead ? 1 : 0), index);
}

// NOLINTEND

std::chrono::steady_clock::time_point
std::chrono::steady_clock::now() noexcept {
  const sim::shoal_world* world = sim::shoal_world::active();
  return time_point(
    nanoseconds(world != nullptr ? world->now() : real_now(CLOCK_MONOTONIC)));
}

std::chrono::system_clock::time_point
std::chrono::system_clock::now() noexcept {
  const sim::shoal_world* world = sim::shoal_world::active();
  return time_point(
    nanoseconds(world != nullptr ? world->now() : real_now(CLOCK_REALTIME)));
}
