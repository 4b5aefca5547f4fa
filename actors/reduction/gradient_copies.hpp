// actors/reduction/gradient_copies.hpp -- sends final gradients to other peers
// that keep a unit.
//
// The peer that computes a unit in replica 0 sends its final gradient to the
// unit's followers, which apply it as the owner does; the step waits for them.
// A peer at which a unit arrives gets the same from one of the replicas, as a
// copy, so that no step waits for the transfer.
//
// Part of a reducer: see reduction_context.hpp.
#pragma once

#include "actors/reduction/reduction_context.hpp"

#include <map>
#include <string>
#include <utility>

namespace shoal::actors {

class gradient_copies {
public:
  class events {
  public:
    /// A followed unit's gradient is here.
    virtual void copied(model::unit_index unit) = 0;
    /// All transfers out of this peer's gradients of the step have ended.
    virtual void copies_sent() = 0;
    virtual void failed(const std::string& what, std::error_code error) = 0;

  protected:
    ~events() = default;
  };

  /// Both arguments outlive this object.
  gradient_copies(const reduction_context& here, events& to)
    : here_(here), to_(to) {}

  /// Expects the gradients of units that are followed here.
  void begin(std::uint64_t step);
  /// The gradient of a unit that is computed here is final: sends it.
  void send(model::unit_index unit);
  /// From now on sends a unit's gradients to a peer at which it arrives, until
  /// core::arrival_backlog_max of them wait: then that peer cannot keep up.
  void begin_arrival(model::unit_index unit, const core::peer_id& to);
  /// Whether nothing reads the gradients of this step any more.
  bool sent() const noexcept { return reading_ == 0; }

private:
  void send_to_followers(model::unit_index unit);
  void send_to_arrivals(model::unit_index unit);
  void send_to_arrival(model::unit_index unit, const core::peer_id& to,
                       std::uint64_t order);
  void arrival_sent(model::unit_index unit, const core::peer_id& to,
                    std::uint64_t order);
  void on_read(std::uint64_t step);

  struct arrival {
    std::uint64_t order = 0; ///< number of its begin_arrival()
    std::size_t waiting = 0; ///< gradients not sent yet
  };

  const reduction_context& here_;
  events& to_;
  std::uint64_t step_ = 0;
  int reading_ = 0; ///< transfers and copies of this step's gradients
  std::map<std::pair<model::unit_index, core::peer_id>, arrival> arrivals_;
  std::uint64_t arrivals_begun_ = 0;
};

} // namespace shoal::actors
