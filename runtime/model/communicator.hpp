// runtime/model/communicator.hpp -- the points where a block may sum over devices.
//
// A decoder block is segments between named points: attention | reduce | MLP |
// reduce, and the same in the backward pass. On one device a point does
// nothing; devices that hold slices of one block sum their parts there.
#pragma once

#include "kernels/tensor.hpp"

#include <cstdint>

namespace shoal::model {

/// The points of one block.
enum class reduce_point : std::uint8_t {
  attention_output,         ///< forward, before the first residual sum
  mlp_output,               ///< forward, before the second residual sum
  mlp_input_gradient,       ///< backward, before the second norm
  attention_input_gradient, ///< backward, before the first norm
};

/// Sums partial results over the devices that share a block.
class communicator {
public:
  virtual ~communicator() = default;
  /// Replaces x_TD by its sum over all devices; returns when the sum is there.
  virtual void reduce(reduce_point point, std::uint32_t unit,
                      kernels::matrix_view<float> x_TD) {
    static_cast<void>(point);
    static_cast<void>(unit);
    static_cast<void>(x_TD);
  }
};

} // namespace shoal::model
