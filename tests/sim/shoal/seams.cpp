// tests/sim/shoal/seams.cpp -- operations that the world observes, and clocks.
//
// The clocks of the C++ library are replaced: a program that defines these
// functions uses its own.
#include "tests/sim/shoal/seams.hpp"

#include "kernels/training/adamw.hpp"
#include "runtime/core/training/data_order.hpp"
#include "tests/sim/shoal/mutants.hpp"
#include "tests/sim/shoal/world.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

namespace shoal::sim {

namespace {

std::uint64_t hits[seams_count];

void hit(seam s) {
  ++hits[std::size_t(s)];
}

std::int64_t real_now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

} // namespace

std::uint64_t seam_hits(seam s) {
  return hits[std::size_t(s)];
}

bool watched_operations::at_work() const {
  return world_.at_work == node_;
}

void watched_operations::unit_is(model::unit_state& unit) {
  if (!at_work())
    return;
  std::uint64_t bits = unit.unit();
  for (auto part :
       {unit.parameters(), unit.first_moment(), unit.second_moment()})
    bits = XXH3_64bits_withSeed(part.data(), part.size_bytes(), bits);
  world_.past(id_).unit_is(node_, unit.unit(), bits);
}

core::job_actions
watched_operations::step(core::job_core& core, const core::job_input& in,
                         core::nanoseconds now) {
  hit(seam::step);
  if (!at_work())
    return training_operations::step(core, in, now);
  const auto took = [&](const core::job_input& told,
                        const core::job_actions& out) {
    world_.note(told.index(), out.size());
    world_.past(id_).stepped(node_, core, told, out);
    if (core.loads())
      world_.loads(node_);
  };
  if (const auto* p = std::get_if<core::job_event::prepared>(&in);
      p != nullptr && !p->losses.empty() && world_.work(id_.job).is_bad(p->step)
      && std::isfinite(p->losses[0])) {
    core::job_event::prepared bad = *p;
    bad.losses[0] = std::numeric_limits<double>::quiet_NaN();
    return step(core, bad, now);
  }
  if (world_.has(mutant::nothing)) {
    core::job_actions out = training_operations::step(core, in, now);
    took(in, out);
    return out;
  }
  core::job_actions all;
  for (const core::job_input& told : mutate(world_, node_, id_, in)) {
    core::job_actions out = training_operations::step(core, told, now);
    mutate(world_, node_, id_, told, out);
    took(told, out);
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

std::uint64_t
watched_operations::sample(const core::data_order& order, std::uint64_t step,
                           std::uint32_t index) {
  hit(seam::sample);
  const bool ahead = at_work() && world_.has(mutant::cursor_off_by_one)
                     && world_.past(id_).adoptions() > 1;
  if (at_work() && world_.has(mutant::samples_shared))
    return training_operations::sample(
      core::data_order(std::uint64_t(world_.work(id_.job).run.seed),
                       order.windows(), order.samples_per_step()),
      step, index);
  return training_operations::sample(order, step + (ahead ? 1 : 0), index);
}

void watched_operations::apply(model::unit_state& unit,
                               kernels::backend& device,
                               const kernels::adamw_options& options) {
  hit(seam::apply);
  kernels::adamw_options used = options;
  if (at_work() && world_.has(mutant::optimizer_restarts)
      && world_.past(id_).adoptions() > 1)
    used.step = 1;
  training_operations::apply(unit, device, used);
  unit_is(unit);
}

void watched_operations::initialise(model::unit_state& unit,
                                    std::uint64_t seed) {
  hit(seam::initialise);
  training_operations::initialise(unit, seed);
  unit_is(unit);
}

void watched_operations::copy_in(model::unit_state& unit,
                                 const std::function<void()>& copy) {
  hit(seam::copy_in);
  training_operations::copy_in(unit, copy);
  if (at_work() && world_.has(mutant::moments_not_moved)) {
    std::ranges::fill(unit.first_moment(), 0.0f);
    std::ranges::fill(unit.second_moment(), 0.0f);
  }
  unit_is(unit);
}

model::status
watched_operations::load(model::unit_state& unit,
                         const std::function<model::status()>& read) {
  hit(seam::load);
  if (at_work() && world_.has(mutant::rollback_forgotten)
      && std::ranges::any_of(unit.second_moment(),
                             [](float v) { return v != 0; })) {
    unit_is(unit);
    return model::done{};
  }
  model::status loaded = training_operations::load(unit, read);
  unit_is(unit);
  return loaded;
}

} // namespace shoal::sim

using namespace shoal;

std::chrono::steady_clock::time_point
std::chrono::steady_clock::now() noexcept {
  const sim::shoal_world* world = sim::shoal_world::active();
  return time_point(nanoseconds(
    world != nullptr ? world->now() : sim::real_now(CLOCK_MONOTONIC)));
}

std::chrono::system_clock::time_point
std::chrono::system_clock::now() noexcept {
  const sim::shoal_world* world = sim::shoal_world::active();
  return time_point(nanoseconds(
    world != nullptr ? world->now() : sim::real_now(CLOCK_REALTIME)));
}
