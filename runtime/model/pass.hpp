// runtime/model/pass.hpp -- a computation in segments, between which it may
// leave the device.
//
// The forward pass, B and W of a microbatch, and a batch of rows of
// generation, are passes. A segment computes without waiting for anybody. It may end at a named
// exchange: the data that devices which share a block have to exchange before
// the next segment may run. Nobody else holds a part of a block today, so no
// exchange has anything to do, and a pass may run from end to end:
//
//   while (!p.done())
//     if (const auto met = p.advance())
//       ...; // advance() goes on when met->x holds the result of the exchange
//
// Segments and exchanges of one block, forward (a cached step has the same):
//
//   attention | attention_output | MLP | mlp_output | residual sum
//   attention | attention_output | route | expert_rows | experts
//             | expert_results | weighted sum | mlp_output | residual sum
//
// and B:
//
//   MLP | mlp_input_gradient | attention | attention_input_gradient | norm
//   weighted sum | expert_result_gradients | experts | expert_row_gradients
//             | router | mlp_input_gradient | attention
//             | attention_input_gradient | norm
//
// W has two segments, MLP and attention, and no exchange. A stage's pass runs
// those of its blocks one after another; the embedding and the head are one
// segment each. Inputs are read by the first segment, outputs are complete when
// done() is true.
//
// P-1: the results have the same bits wherever a pass rests, however long, and
//      whatever other passes of the stage run meanwhile; except that gradients
//      are sums in the order in which segments of W run.
//
// Shapes:    T rows (tokens of the microbatch), D width; S = T * k rows with
//            experts, k for each token (kernels/layers/routing.hpp).
// Threads:   one call at a time per device; all of them on its thread.
// Ownership: a pass belongs to its caller. It refers to its stage or cache,
//            and to the memory that it was given, until it is destroyed.
//            An exchange is a view of activations, valid until the next call.
// Errors:    none. A pass that is destroyed before its end leaves its
//            microbatch unusable until stage_model::reset().
#pragma once

#include "kernels/common/tensor.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/model/units.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace shoal::kernels {
struct routing; // kernels/layers/routing.hpp
}

namespace shoal::model {

/// The points of one block, in forward and B, where data may be exchanged.
enum class exchange_point : std::uint8_t {
  // Partial sums: each device that holds a part of the block has a summand.
  attention_output,         ///< forward, before the first residual sum
  mlp_output,               ///< forward, before the second residual sum
  mlp_input_gradient,       ///< B, before the second norm
  attention_input_gradient, ///< B, before the first norm
  // Rows: each goes to the device that holds its expert, or comes back.
  expert_rows,             ///< forward, to the experts
  expert_results,          ///< forward, from the experts
  expert_result_gradients, ///< B, to the experts
  expert_row_gradients,    ///< B, from the experts
};

/// The name of a point, for logs: "attention output".
const char* name_of(exchange_point point);

/// Data at a point. The exchange replaces them in place.
struct exchange {
  exchange_point point{};
  unit_index unit = 0;
  kernels::matrix_view<float> x; ///< T rows of D, or S rows of D
  /// The rows of each expert; null at the points of partial sums.
  const kernels::routing* rows = nullptr;
};

class pass {
public:
  virtual ~pass() = default;
  pass() = default;
  pass(const pass&) = delete;
  pass& operator=(const pass&) = delete;

  /// Runs the next segment. @pre !done()
  /// @returns the exchange that has to be complete before the next call, if any
  virtual std::optional<exchange> advance() = 0;
  virtual bool done() const = 0;
};

/// Runs all that is left of a pass, where this device holds whole blocks.
inline void run(pass& all) {
  while (!all.done())
    static_cast<void>(all.advance());
}

/// A pass that is a table of member functions of `Self`, one for each segment.
template <class Self>
class pass_by_table : public pass {
public:
  std::optional<exchange> advance() final {
    SHOAL_ASSERT(!done());
    const segment next = left_.front();
    left_ = left_.subspan(1);
    return (static_cast<Self&>(*this).*next)();
  }
  bool done() const final { return left_.empty(); }

protected:
  using segment = std::optional<exchange> (Self::*)();
  /// Sets the table, which the pass does not copy.
  void follow(std::span<const segment> table) { left_ = table; }

private:
  std::span<const segment> left_;
};

} // namespace shoal::model
