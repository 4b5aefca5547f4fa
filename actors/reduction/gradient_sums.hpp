// actors/reduction/gradient_sums.hpp -- the sum of each unit's gradient, and
// the sum of its squares.
//
// A unit that is computed here is a bucket of an all_reduce.hpp. The squares of
// each gradient, for its norm, are summed once it is final, also for followed
// units.
//
// Part of a reducer: see reduction_context.hpp.
#pragma once

#include "actors/reduction/all_reduce.hpp"
#include "actors/reduction/reduction_context.hpp"
#include "runtime/core/training/job_messages.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::actors {

class gradient_sums {
public:
  class events {
  public:
    /// The replicas' sum of a unit is in place.
    virtual void summed(model::unit_index unit) = 0;
    /// The squares of a unit's gradient have been summed.
    virtual void squared(model::unit_index unit) = 0;
    virtual void failed(const std::string& what, std::error_code error) = 0;

  protected:
    ~events() = default;
  };

  /// Both arguments outlive this object.
  gradient_sums(const reduction_context& here, events& to);

  void begin(std::uint64_t step);
  /// This peer's part of a unit is complete.
  void ready(model::unit_index unit);
  /// The gradient of a unit is final: sums its squares.
  void square(model::unit_index unit);
  /// The squares of all units here, ascending; nothing until they are complete.
  std::optional<std::vector<core::unit_square>> squares() const;
  /// As all_reduce::stop().
  void stop() { sums_.stop(); }

private:
  const reduction_context& here_;
  events& to_;
  std::uint64_t step_ = 0;
  std::map<model::unit_index, core::unit_square> squares_;
  all_reduce sums_;
};

} // namespace shoal::actors
