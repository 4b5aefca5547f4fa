// runtime/model/block.hpp -- one decoder block: forward, B and W.
//
//   x2 = x + reduce(attention(norm(x)) * Wo)
//   y  = x2 + reduce(swiglu(norm(x2) * Wg, norm(x2) * Wu) * Wd)
//
// Private to runtime/model; stage_model is the door. A prefix d marks the
// gradient of the step's loss with respect to the value it precedes.
//
// Shapes: T rows (sequences * tokens), D width, N query heads, K key-value
//         heads of H values, F values of the MLP.
#pragma once

#include "kernels/backend.hpp"
#include "runtime/model/activation_pool.hpp"
#include "runtime/model/communicator.hpp"
#include "runtime/model/inference.hpp"
#include "runtime/model/unit_state.hpp"

namespace shoal::model {

/// Views of the tensors of a block, in parameters or in gradients; or what
/// inference reads, whose matrices are packed weights.
template <class Scalar, class Matrix = kernels::matrix_view<Scalar>>
struct block_tensors {
  kernels::vector_view<Scalar> attention_norm_D;
  Matrix q, k, v, o;
  kernels::vector_view<Scalar> mlp_norm_D;
  Matrix gate, up, down;
};

block_tensors<const float> block_parameters(const unit_state& unit);
block_tensors<float> block_gradients(unit_state& unit);

/// What one microbatch keeps of one block.
struct block_activations {
  activation x_TD, r1_T, h1_TD, q_TNH, k_TKH, v_TKH, o_TNH, lse_NT;
  activation x2_TD, r2_T, h2_TD, gate_TF, up_TF, act_TF;
  // From B on; the gradients of gate and up lie in gate_TF and up_TF.
  activation dy_TD, dh2_TD, dx2_TD, dq_TNH, dk_TKH, dv_TKH, dh1_TD;
};

/// All that a pass through a block needs besides its activations.
struct block_context {
  kernels::backend& device;
  communicator& reducer;
  activation_pool& pool;
  const model_config& config;
  const kernels::rope_table& rope;
  std::size_t sequences;
  std::size_t tokens; ///< of each sequence
  kernels::vector_view<const std::int32_t> positions_T;

  std::size_t rows() const { return sequences * tokens; }
  kernels::attention_shape attention() const;
  activation take(std::size_t cols) const { return {pool, rows(), cols}; }
};

/// Computes y_TD from a.x_TD.
void block_forward(const block_context& c, const unit_state& unit,
                   block_activations& a, kernels::matrix_view<float> y_TD);

/// Computes dx_TD from a.dy_TD; afterwards `a` holds what W needs. dx_TD must
/// not be memory of `a`.
void block_input_gradient(const block_context& c, const unit_state& unit,
                          block_activations& a,
                          kernels::matrix_view<float> dx_TD);

/// Adds the gradients of all tensors of the block.
void block_weight_gradient(const block_context& c, unit_state& unit,
                           const block_activations& a);

/// Computes the block on the newest tokens of one sequence in place. `past`
/// positions are in the cache already; this call's keys and values follow.
void block_cached(const block_context& c, const inference_unit& unit,
                  kernels::matrix_view<float> x_TD,
                  kernels::matrix_view<float> keys_PKH,
                  kernels::matrix_view<float> values_PKH, std::size_t past);

} // namespace shoal::model
