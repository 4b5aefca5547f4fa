// actors/reduction/tied_gradients.hpp -- gradients of tied embeddings.
//
// A peer that computes only one of unit 0 and the head gets the gradient of the
// other from the corresponding peer of its first replica. Then both add them,
// to the same bits (sum_tied() in runtime/model/unit_state.hpp).
//
// Part of a reducer: see reduction_context.hpp.
#pragma once

#include "actors/reduction/reduction_context.hpp"

#include <set>
#include <span>
#include <string>

namespace shoal::actors {

class tied_gradients {
public:
  class events {
  public:
    /// The gradients here contain both sides.
    virtual void tied_added() = 0;
    virtual void failed(const std::string& what, std::error_code error) = 0;

  protected:
    ~events() = default;
  };

  /// Both arguments outlive this object.
  tied_gradients(const reduction_context& here, events& to)
    : here_(here), to_(to) {}

  /// Whether a unit waits for tied_added() before its gradient is final.
  bool concerns(model::unit_index unit) const;
  void begin(std::uint64_t step);
  /// The replicas' sum of a unit is in place. @pre concerns(unit)
  void summed(model::unit_index unit);

private:
  bool is_local() const;
  void on_arrived(const buffer& part, std::error_code error);
  void send(model::unit_index mine);
  std::span<float> span_of(model::unit_index unit) const;
  void add_if_ready();
  void submit();

  const reduction_context& here_;
  events& to_;
  std::uint64_t step_ = 0;
  std::set<model::unit_index> summed_; ///< of unit 0 and the head
  buffer part_;                        ///< gradient of the other side
  int copying_ = 0; ///< copies for peers that are being made
  bool adding_ = false;
};

} // namespace shoal::actors
