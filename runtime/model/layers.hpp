// runtime/model/layers.hpp -- norms, products and MLP functions by family.
//
// Private to runtime/model. A block is written once, in terms of these. The
// family's row (config.hpp) decides which kernel each of them is, and what it
// has besides its weight. For a Llama each is one call of one kernel.
//
// Shapes: as in block.hpp. The statistics of a norm are T values, or 2 T for
//         LayerNorm.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/model/activation_pool.hpp"
#include "runtime/model/config/config.hpp"

namespace shoal::model {

/// A product's weight (in the family's order), and its bias if it has one; in
/// parameters or in gradients.
template <class Scalar>
struct linear_view {
  kernels::matrix_view<Scalar> w;
  kernels::vector_view<Scalar> bias;
};

/// The same for inference, where weights are [out, in] in every family.
struct packed_view {
  const kernels::packed_weight* w = nullptr;
  kernels::vector_view<const float> bias;
};

/// A norm's weight, and the bias of LayerNorm.
template <class Scalar>
struct norm_view {
  kernels::vector_view<Scalar> w_D;
  kernels::vector_view<Scalar> b_D;
};

/// The operations of one family on one device.
class layers {
public:
  using matrix = kernels::matrix_view<float>;
  using const_matrix = kernels::matrix_view<const float>;
  using into = kernels::into;

  /// Products of training are of `factors`.
  layers(kernels::backend& device, const model_config& config,
         kernels::factor_type factors = kernels::factor_type::f32);

  kernels::factor_type factors() const noexcept { return factors_; }

  /// Computes y_TD. If `stats` is not null, takes its memory from `pool` and
  /// keeps the values there that the backward pass needs.
  void norm(matrix y_TD, const_matrix x_TD, norm_view<const float> weight,
            activation* stats, activation_pool* pool) const;
  void
  norm_input_gradient(matrix dx_TD, const_matrix dy_TD, const_matrix x_TD,
                      norm_view<const float> weight, const activation& stats,
                      into mode = into::overwrite) const;
  void norm_weight_gradient(norm_view<float> gradient, const_matrix dy_TD,
                            const_matrix x_TD, const activation& stats) const;

  void product(matrix y_TO, const_matrix x_TI,
               linear_view<const float> weight) const {
    device_.matmul(y_TO, x_TI, weight.w, weight.bias, order_, factors_);
  }
  void product(matrix y_TO, const_matrix x_TI, packed_view weight) const;
  void product_input_gradient(matrix dx_TI, const_matrix dy_TO,
                              linear_view<const float> weight,
                              into mode = into::overwrite) const {
    device_.matmul_input_gradient(dx_TI, dy_TO, weight.w, mode, order_,
                                  factors_);
  }
  void product_weight_gradient(linear_view<float> gradient, const_matrix dy_TO,
                               const_matrix x_TI) const;

  /// y = act(gate) * up, or act(up) if `gate` is empty. y may be an input.
  void mlp(matrix y_TF, const_matrix gate_TF, const_matrix up_TF) const;
  /// Replaces gate and up by their gradients, and dy by y.
  void mlp_backward(matrix gate_TF, matrix up_TF, matrix dy_TF) const;

private:
  kernels::backend& device_;
  float eps_;
  float offset_;
  bool layer_norm_;
  kernels::weight_order order_;
  kernels::factor_type factors_;
  mlp_function function_;
};

} // namespace shoal::model
