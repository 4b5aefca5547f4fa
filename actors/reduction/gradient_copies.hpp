// actors/reduction/gradient_copies.hpp -- final gradients for peers that keep a unit, too.
//
// The peer that computes a unit in replica 0 sends its final gradient to the
// unit's followers, which apply what it applies; the step waits for them. A
// peer at which a unit arrives gets the same from one of the replicas, copied
// first, so that no step waits for the transfer.
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
    /// What was being sent of the step has left this peer's gradients.
    virtual void copies_sent() = 0;
    virtual void failed(const std::string& what, std::error_code error) = 0;

  protected:
    ~events() = default;
  };

  /// Both outlive it.
  gradient_copies(const reduction_context& here, events& to)
    : here_(here), to_(to) {}

  /// Expects the units that are followed here.
  void begin(std::uint64_t step);
  /// The gradient of a unit that is computed here is final.
  void send(model::unit_index unit);
  /// From now on a unit's gradients go to a peer at which it arrives, until
  /// core::arrival_backlog_max of them wait: then it cannot keep up.
  void begin_arrival(model::unit_index unit, const core::peer_id& to);
  /// Nothing reads the gradients of this step any more.
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
    std::uint64_t order = 0; ///< of its begin_arrival()
    std::size_t waiting = 0; ///< gradients that have not been sent
  };

  const reduction_context& here_;
  events& to_;
  std::uint64_t step_ = 0;
  int reading_ = 0; ///< transfers and copies of this step's gradients
  std::map<std::pair<model::unit_index, core::peer_id>, arrival> arrivals_;
  std::uint64_t arrivals_begun_ = 0;
};

} // namespace shoal::actors
