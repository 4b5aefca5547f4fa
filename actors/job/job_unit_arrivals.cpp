// actors/job/job_unit_arrivals.cpp -- units that are received or sent while
// steps run: a copy at a step, then the reduced gradients of each later one.
#include "actors/job/job_actor.hpp"
#include "actors/training/link_names.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/arrivals.hpp"
#include "runtime/links/links.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/observe/training_operations.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
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

// Receiver.

void job_actor::act(const receive_unit& a) {
  unit_ptr& unit = world_->units[a.unit];
  if (!unit)
    unit = world_->make_unit(a.unit);
  arriving_[a.unit] = {a, !a.copy, a.version.step, {}, {}, 0, 0};
  expect_gradient(a.unit);
  if (!a.copy)
    return;
  arriving_unit& in = arriving_.at(a.unit);
  in.copy = world_->state_buffers.get(state_bytes(*unit));
  in.pieces_left = core::pieces_of(state_bytes(*unit)).count;
  const auto span = open_span("fetching state", a.unit);
  for (std::uint32_t i = 0; i < pieces_ahead; ++i)
    expect_piece(a, span);
}

/// Shown in the trace until the last copy of the returned pointer is gone.
std::shared_ptr<void>
job_actor::open_span(const char* what, std::uint32_t unit) {
  runtime::timeline& trace = node().trace();
  trace.open(config_.entry.id, what, {{"unit", unit}});
  return {nullptr, [&trace, what, job = config_.entry.id](void*) {
            trace.close(job, what);
          }};
}

/// Whether the unit is still awaited under this attempt and sub-plan.
bool job_actor::awaits(const receive_unit& a) const {
  const auto at = arriving_.find(a.unit);
  return a.digest == digest() && at != arriving_.end()
         && at->second.asked.version == a.version;
}

void job_actor::expect_piece(const receive_unit& a,
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
  node().links().expect(a.from, tag_of(a.digest, a.unit, a.version.step, piece),
                        piece_of(in.copy, piece),
                        [post = poster(), here](std::error_code error) {
                          post([here, error] { here(error); });
                        });
}

/// The copy of a unit is complete.
void job_actor::take_copy(const receive_unit& a, const buffer& copy) {
  compute(
    [unit = world_->units.at(a.unit), copy,
     operations = &node().operations(id())](kernels::backend& device) {
      operations->copy_in(
        *unit, [&] { copy_state_in(device, copy.as<const float>(), *unit); });
    },
    [this, a] {
      if (const auto now = arriving_.find(a.unit); now != arriving_.end())
        now->second.copied = true;
      feed(event::arrival_copied{a.digest, a.unit, a.version.step});
      const auto count = core_.arrivals();
      if (digest() == a.digest && count.here == count.all)
        node().say("[job] all state that was to come is here: "
                   + std::to_string(count.all) + " units");
    });
}

/// Posts memory for the gradient of the step after the present ones, unless
/// many are kept.
void job_actor::expect_gradient(std::uint32_t u) {
  arriving_unit& in = arriving_.at(u);
  if (in.gradients.size() >= core::arrival_backlog_max)
    return;
  const std::uint64_t step = ++in.expected;
  buffer into = world_->buffers.get(gradient_bytes(*world_->units.at(u)));
  auto here = [this, a = in.asked, step, into](std::error_code error) {
    const auto at = arriving_.find(a.unit);
    if (error || a.digest != digest() || at == arriving_.end()
        || at->second.asked.version != a.version)
      return;
    at->second.gradients[step] = into;
    feed(event::arrival_reduced{a.digest, a.unit, step});
    if (digest() == a.digest && arriving_.contains(a.unit))
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
     norm = a.grad_norm, options = optimizer(a.step, a.grad_norm),
     operations = &node().operations(id())](kernels::backend& device) {
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
      if (full && digest() == a.digest)
        expect_gradient(a.unit);
      feed(event::arrival_applied{a.digest, a.unit, a.step});
    });
}

// Source.

/// The copy is made beside the computation, which only reads the state; the
/// step's gradients are applied only when it is complete.
void job_actor::act(const send_unit& a) {
  actors_.pass(send_gradients{a.unit, a.to});
  if (!a.copy)
    return;
  unit_ptr unit = world_->units.at(a.unit);
  auto out = std::make_shared<leaving_unit>();
  out->asked = a;
  out->copy = world_->state_buffers.get(state_bytes(*unit));
  out->pieces = core::pieces_of(state_bytes(*unit)).count;
  leaving_[{a.to, a.unit}] = out;
  ++reading_state_;
  node().reductions().submit(
    [unit, out](kernels::backend& device) {
      copy_state_out(device, *unit, out->copy.as<float>());
    },
    [this, post = poster(), out] {
      post([this, out] {
        --reading_state_;
        prepare_if_complete();
        out->span = open_span("sending state", out->asked.unit);
        for (std::uint32_t i = 0; i < (out->asked.paced ? 1 : pieces_ahead);
             ++i)
          send_piece(out);
      });
    },
    {config_.entry.id});
}

/// False once the unit is sent anew, or under another sub-plan.
bool job_actor::is_leaving(const std::shared_ptr<leaving_unit>& out) const {
  const auto at = leaving_.find({out->asked.to, out->asked.unit});
  return out->asked.digest == digest() && at != leaving_.end()
         && at->second == out;
}

void job_actor::send_piece(const std::shared_ptr<leaving_unit>& out) {
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
  node().links().send(a.to, tag_of(a.digest, a.unit, a.version.step, piece),
                      piece_of(out->copy, piece),
                      [post = poster(), sent](std::error_code error) {
                        if (!error) // on an error another sub-plan follows
                          post(sent);
                      });
}

void job_actor::send_piece_after(const std::shared_ptr<leaving_unit>& out,
                                 core::nanoseconds rest) {
  if (rest <= 0 || !is_leaving(out))
    return send_piece(out);
  const core::nanoseconds nap = std::min(rest, nap_max);
  delayed_send(
    this, std::chrono::nanoseconds(nap),
    later{[this, out, left = rest - nap] { send_piece_after(out, left); }});
}

void job_actor::act(const arrivals_complete& a) {
  node().propose_arrived(id(), a.since);
}

/// A halt ends transfers: units that are incomplete then are dropped.
void job_actor::drop_unfinished_arrivals() {
  leaving_.clear();
  std::erase_if(arriving_, [this](const auto& of) {
    if (!of.second.copied)
      world_->units.erase(of.first);
    return !of.second.copied;
  });
}

} // namespace shoal::actors
