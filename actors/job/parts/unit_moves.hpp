// actors/job/parts/unit_moves.hpp -- units that come and go while steps run.
//
// A unit moves as a copy of its state at a step, and the reduced gradients of
// each later step, which the receiver applies as the source does. The copy goes
// piece by piece, with rests between the pieces if it is paced, so that the
// steps keep their speed. Gradients that come before the copy is complete are
// kept aside.
//
// Part of a job actor: see job_context.hpp.
//
// Threads:   the owner's.
// Ownership: the units are the job's (job_world); a unit whose copy is not
//            complete at a halt is removed from them.
// Errors:    a transfer that fails ends its unit's move: another sub-plan
//            follows.
#pragma once

#include "actors/job/parts/job_context.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace shoal::actors {

class unit_moves {
public:
  class events {
  public:
    /// Something for the core.
    virtual void moved(const core::job_input& what) = 0;
    /// From now on, until state_read(), a unit's state is read beside the
    /// computation: nothing may be applied to it.
    virtual void state_reading() = 0;
    virtual void state_read() = 0;

  protected:
    ~events() = default;
  };

  /// Both arguments outlive this object.
  unit_moves(const job_context& here, events& to) : here_(here), to_(to) {}

  // Receiver.

  void receive(const core::job_action::receive_unit& a);
  /// @pre the gradients of that step are here
  void apply(const core::job_action::apply_arrived& a);
  /// The gradients of a unit that had arrived when the former sub-plan ended;
  /// null: there are none. Valid in the turn that adopts, and in those that
  /// follow from it at once.
  buffer kept_gradients(std::uint32_t unit, std::uint64_t step) const;

  // Source.

  /// Sends a copy of the unit's state, if one is asked for. Its gradients are
  /// the reducer's to send.
  void send(const core::job_action::send_unit& a);

  /// Another sub-plan is adopted.
  void adopt();
  /// Nothing computes any more: drops the units that are incomplete.
  void halt();

private:
  struct arriving_unit {
    core::job_action::receive_unit asked;
    bool copied = false;
    std::uint64_t expected = 0; ///< gradients are posted up to this step
    std::map<std::uint64_t, buffer> gradients; ///< kept aside, by step
    buffer copy;                               ///< until it is complete
    std::uint32_t pieces_expected = 0;
    std::uint32_t pieces_left = 0;
  };
  /// A copy that leaves this peer, piece by piece.
  struct leaving_unit {
    core::job_action::send_unit asked;
    buffer copy;
    std::uint32_t next = 0; ///< next piece
    std::uint32_t pieces = 0;
    std::shared_ptr<void> span;
  };
  using leaving_ptr = std::shared_ptr<leaving_unit>;

  std::shared_ptr<void> open_span(const char* what, std::uint32_t unit);
  bool awaits(const core::job_action::receive_unit& a) const;
  void expect_piece(const core::job_action::receive_unit& a,
                    const std::shared_ptr<void>& span);
  void take_copy(const core::job_action::receive_unit& a, const buffer& copy);
  void expect_gradient(std::uint32_t unit);
  bool is_leaving(const leaving_ptr& out) const;
  void send_piece(const leaving_ptr& out);
  void send_piece_after(const leaving_ptr& out, core::nanoseconds rest);

  const job_context& here_;
  events& to_;
  std::map<std::uint32_t, arriving_unit> arriving_;
  /// Of the former sub-plan, while this one is adopted.
  std::map<std::uint32_t, arriving_unit> kept_arriving_;
  std::map<std::pair<core::peer_id, std::uint32_t>, leaving_ptr> leaving_;
};

/// The optimizer's settings for a step of the run.
kernels::adamw_options
optimizer_of(const runtime::run_config& run, std::uint64_t step, double norm);

} // namespace shoal::actors
