// actors/job/parts/unit_moves.cpp -- receives and sends units while steps run.
#include "actors/job/parts/unit_moves.hpp"

#include "actors/training/link_names.hpp"
#include "kernels/backend.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/links/links.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/observe/training_operations.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace shoal::actors {

using namespace core::job_action;
namespace event = core::job_event;

namespace {

/// Pieces posted ahead, and sent at once where there is no pacing: the link has
/// another piece while the end of one is being reported.
constexpr std::uint32_t pieces_ahead = 2;

/// Rests between pieces are split into naps of at most this length: a pending
/// message keeps this actor and the job's memory alive, and the job may end
/// meanwhile.
constexpr core::nanoseconds nap_max = 200'000'000;

transport::bulk_tag tag_of(std::uint64_t digest, std::uint32_t unit,
                           std::uint64_t step, std::uint32_t piece) {
  return make_tag(digest, link_kind::arrival, piece, unit, step);
}

runtime::shared_bytes piece_of(const buffer& copy, std::uint32_t piece) {
  const runtime::shared_bytes all = copy.shared();
  const std::size_t one = core::pieces_of(all.bytes.size()).bytes;
  const std::size_t from = piece * one;
  return {all.keep,
          all.bytes.subspan(from, std::min(one, all.bytes.size() - from))};
}

} // namespace

kernels::adamw_options
optimizer_of(const runtime::run_config& run, std::uint64_t step, double norm) {
  kernels::adamw_options options;
  options.learning_rate = runtime::learning_rate(run, std::int64_t(step));
  options.beta1 = run.beta1;
  options.beta2 = run.beta2;
  options.epsilon = run.eps;
  options.weight_decay = run.weight_decay;
  options.step = step;
  options.gradient_scale = model::clip_scale(norm, run.max_norm);
  return options;
}

// Receiver.

void unit_moves::receive(const receive_unit& a) {
  unit_ptr& unit = here_.world->units[a.unit];
  if (!unit)
    unit = here_.world->make_unit(a.unit);
  arriving_[a.unit] = {a, !a.copy, a.version.step, {}, {}, 0, 0};
  expect_gradient(a.unit);
  if (!a.copy)
    return;
  arriving_unit& in = arriving_.at(a.unit);
  in.copy = here_.world->state_buffers.get(state_bytes(*unit));
  in.pieces_left = core::pieces_of(state_bytes(*unit)).count;
  const auto span = open_span("fetching state", a.unit);
  for (std::uint32_t i = 0; i < pieces_ahead; ++i)
    expect_piece(a, span);
}

/// Shown in the trace until the last copy of the returned pointer is gone.
std::shared_ptr<void>
unit_moves::open_span(const char* what, std::uint32_t unit) {
  runtime::timeline& trace = *here_.trace;
  trace.open(here_.entry.id, what, {{"unit", unit}});
  return {nullptr, [&trace, what, job = here_.entry.id](void*) {
            trace.close(job, what);
          }};
}

/// Whether the unit is still awaited under this attempt and sub-plan.
bool unit_moves::awaits(const receive_unit& a) const {
  const auto at = arriving_.find(a.unit);
  return a.digest == here_.digest() && at != arriving_.end()
         && at->second.asked.version == a.version;
}

void unit_moves::expect_piece(const receive_unit& a,
                              const std::shared_ptr<void>& span) {
  arriving_unit& in = arriving_.at(a.unit);
  if (in.pieces_expected
      == core::pieces_of(in.copy.shared().bytes.size()).count)
    return;
  const std::uint32_t piece = in.pieces_expected++;
  auto here = [this, a, span](std::error_code error) {
    if (error || !awaits(a))
      return;
    expect_piece(a, span);
    arriving_unit& now = arriving_.at(a.unit);
    if (--now.pieces_left == 0)
      take_copy(a, std::exchange(now.copy, {}));
  };
  here_.links->expect(a.from, tag_of(a.digest, a.unit, a.version.step, piece),
                      piece_of(in.copy, piece),
                      [post = here_.post, here](std::error_code error) {
                        post([here, error] { here(error); });
                      });
}

/// The copy of a unit is complete.
void unit_moves::take_copy(const receive_unit& a, const buffer& copy) {
  here_.compute(
    [unit = here_.world->units.at(a.unit), copy,
     operations = here_.operations](kernels::backend& device) {
      operations->copy_in(
        *unit, [&] { copy_state_in(device, copy.as<const float>(), *unit); });
    },
    [this, a] {
      if (const auto now = arriving_.find(a.unit); now != arriving_.end())
        now->second.copied = true;
      to_.moved(event::arrival_copied{a.digest, a.unit, a.version.step});
      const auto count = here_.core->arrivals();
      if (here_.digest() == a.digest && count.here == count.all)
        here_.owner->say("[job] all state that was to come is here: "
                         + std::to_string(count.all) + " units");
    });
}

/// Posts memory for the gradient of the step after the present ones, unless
/// many are kept.
void unit_moves::expect_gradient(std::uint32_t u) {
  arriving_unit& in = arriving_.at(u);
  if (in.gradients.size() >= core::arrival_backlog_max)
    return;
  const std::uint64_t step = ++in.expected;
  buffer into =
    here_.world->buffers.get(gradient_bytes(*here_.world->units.at(u)));
  auto here = [this, a = in.asked, step, into](std::error_code error) {
    const auto at = arriving_.find(a.unit);
    if (error || a.digest != here_.digest() || at == arriving_.end()
        || at->second.asked.version != a.version)
      return;
    at->second.gradients[step] = into;
    to_.moved(event::arrival_reduced{a.digest, a.unit, step});
    if (here_.digest() == a.digest && arriving_.contains(a.unit))
      expect_gradient(a.unit);
  };
  here_.links->expect(
    in.asked.from,
    make_tag(in.asked.digest, link_kind::arrival_gradient, 0, u, step),
    into.shared(), [post = here_.post, here](std::error_code error) {
      post([here, error] { here(error); });
    });
}

void unit_moves::apply(const apply_arrived& a) {
  arriving_unit& in = arriving_.at(a.unit);
  here_.compute(
    [unit = here_.world->units.at(a.unit), gradients = in.gradients.at(a.step),
     norm = a.grad_norm,
     options = optimizer_of(here_.run(), a.step, a.grad_norm),
     operations = here_.operations](kernels::backend& device) {
      device.copy(unit->gradients(), gradients.as<const float>());
      if (std::isfinite(norm)) // otherwise the step leaves the state unchanged
        operations->apply(*unit, device, options);
    },
    [this, a] {
      const auto at = arriving_.find(a.unit);
      SHOAL_ASSERT(at != arriving_.end());
      const bool full =
        at->second.gradients.size() >= core::arrival_backlog_max;
      at->second.gradients.erase(a.step);
      if (full && here_.digest() == a.digest)
        expect_gradient(a.unit);
      to_.moved(event::arrival_applied{a.digest, a.unit, a.step});
    });
}

// Source.

/// The copy is made beside the computation, which only reads the state; the
/// step's gradients are applied only when it is complete.
void unit_moves::send(const send_unit& a) {
  if (!a.copy)
    return;
  unit_ptr unit = here_.world->units.at(a.unit);
  auto out = std::make_shared<leaving_unit>();
  out->asked = a;
  out->copy = here_.world->state_buffers.get(state_bytes(*unit));
  out->pieces = core::pieces_of(state_bytes(*unit)).count;
  leaving_[{a.to, a.unit}] = out;
  to_.state_reading();
  here_.reductions->submit(
    [unit, out](kernels::backend& device) {
      copy_state_out(device, *unit, out->copy.as<float>());
    },
    [this, post = here_.post, out] {
      post([this, out] {
        to_.state_read();
        out->span = open_span("sending state", out->asked.unit);
        for (std::uint32_t i = 0; i < (out->asked.paced ? 1 : pieces_ahead);
             ++i)
          send_piece(out);
      });
    },
    {here_.entry.id});
}

/// False once the unit is sent anew, or under another sub-plan.
bool unit_moves::is_leaving(const leaving_ptr& out) const {
  const auto at = leaving_.find({out->asked.to, out->asked.unit});
  return out->asked.digest == here_.digest() && at != leaving_.end()
         && at->second == out;
}

void unit_moves::send_piece(const leaving_ptr& out) {
  if (!is_leaving(out))
    return;
  const send_unit& a = out->asked;
  if (out->next == out->pieces) {
    leaving_.erase({a.to, a.unit});
    return;
  }
  const std::uint32_t piece = out->next++;
  auto sent = [this, out, began = steady_now()] {
    core::nanoseconds rest = 0;
    if (out->asked.paced && out->next < out->pieces)
      rest = core::rest_after_piece(steady_now() - began, here_.took.whole,
                                    out->pieces);
    send_piece_after(out, rest);
  };
  here_.links->send(a.to, tag_of(a.digest, a.unit, a.version.step, piece),
                    piece_of(out->copy, piece),
                    [post = here_.post, sent](std::error_code error) {
                      if (!error) // on an error another sub-plan follows
                        post(sent);
                    });
}

void unit_moves::send_piece_after(const leaving_ptr& out,
                                  core::nanoseconds rest) {
  if (rest <= 0 || !is_leaving(out))
    return send_piece(out);
  const core::nanoseconds nap = std::min(rest, nap_max);
  here_.owner->post_after(
    std::chrono::nanoseconds(nap),
    [this, out, left = rest - nap] { send_piece_after(out, left); });
}

// Both.

void unit_moves::adopt() {
  // A step that is rolled forward at once may need their gradients.
  kept_arriving_ = std::exchange(arriving_, {});
  here_.post([this] { kept_arriving_.clear(); });
}

buffer
unit_moves::kept_gradients(std::uint32_t unit, std::uint64_t step) const {
  const auto at = kept_arriving_.find(unit);
  return at == kept_arriving_.end() ? buffer{} : at->second.gradients.at(step);
}

/// A halt ends transfers: units that are incomplete then are dropped.
void unit_moves::halt() {
  leaving_.clear();
  std::erase_if(arriving_, [this](const auto& of) {
    if (!of.second.copied)
      here_.world->units.erase(of.first);
    return !of.second.copied;
  });
}

} // namespace shoal::actors
