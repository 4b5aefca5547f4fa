// runtime/model/block.hpp -- one decoder block: forward, B and W.
//
//   x2 = x + reduce(attention(norm(x)) * Wo)
//   y  = x2 + reduce(mlp(norm(x2)) * Wd)       or the experts' weighted sum
//
// and with post-norms (Gemma 2) a norm of each reduced sum before it is added.
// What else differs between families is a switch: biases, norms of the heads,
// rotary or learned positions, windows and soft caps (config.hpp).
//
// Private to runtime/model; stage_model is the door. A prefix d marks the
// gradient of the step's loss with respect to the value it precedes.
//
// Shapes: T rows (sequences * tokens), D width, N query heads, K key-value
//         heads of H values, F values of the MLP.
#pragma once

#include "runtime/model/communicator.hpp"
#include "runtime/model/inference.hpp"
#include "runtime/model/layers.hpp"
#include "runtime/model/unit_state.hpp"

namespace shoal::model {

/// Views of one MLP.
template <class Linear>
struct mlp_tensors {
  Linear gate, up, down;
};

/// Views of the tensors of a block, in parameters or in gradients; or what
/// inference reads. What the family lacks is empty.
template <class Scalar, class Linear = linear_view<Scalar>>
struct block_tensors {
  norm_view<Scalar> attention_norm;
  Linear q, k, v, o;
  Linear qkv; ///< inference: instead of q, k and v if they are one tensor
  kernels::vector_view<Scalar> q_norm_H, k_norm_H;
  norm_view<Scalar> attention_post_norm;
  norm_view<Scalar> mlp_norm;
  mlp_tensors<Linear> mlp;
  Linear router;
  std::vector<mlp_tensors<Linear>> experts; ///< instead of one MLP
  norm_view<Scalar> mlp_post_norm;
};

block_tensors<const float> block_parameters(const unit_state& unit);
block_tensors<float> block_gradients(unit_state& unit);
using packed_tensors = block_tensors<const float, packed_view>;
packed_tensors block_weights(const inference_unit& unit);

/// What is kept of a query or key projection whose heads are normalized: the
/// values before, their 1/rms and, from B on, the gradient behind the norm.
struct head_norm_activations {
  activation raw_TNH, r_TN, d_TNH;
};

/// What is kept of the experts of a block: rows of all that a token is sent
/// to, sorted by expert. The gradients of gate, up and logits take the place
/// of the values, as those of the outputs do.
struct expert_activations {
  kernels::routing by;
  activation p_TE, weight_S, dweight_S, x_SD, gate_SF, up_SF, y_SD;
  activation act_SF; ///< from B on, which computes it again
};

/// What one microbatch keeps of one block. What its norms and its MLP's
/// function give is computed again, which takes less time than it is memory.
struct block_activations {
  activation x_TD, r1_T, q_TNH, k_TKH, v_TKH, o_TNH, lse_NT;
  head_norm_activations q_norm, k_norm;
  activation a_TD, ra_T; ///< the attention's sum before its post-norm
  activation x2_TD, r2_T, gate_TF, up_TF;
  expert_activations experts; ///< instead of gate, up and act
  activation m_TD, rm_T;      ///< the MLP's sum before its post-norm
  // From B on; the gradients of gate and up lie in gate_TF and up_TF. Those
  // of the sums before post-norms are empty where there are none.
  activation act_TF, dy_TD, dm_TD, dh2_TD, dx2_TD, da_TD, dq_TNH, dk_TKH,
    dv_TKH, dh1_TD;
};

/// All that a pass through a block needs besides its activations.
struct block_context {
  kernels::backend& device;
  communicator& reducer;
  activation_pool& pool;
  const model_config& config;
  const family& kind;
  layers ops;
  const kernels::rope_table& rope;
  std::size_t sequences;
  std::size_t tokens; ///< of each sequence
  kernels::vector_view<const std::int32_t> positions_T;
  /// What the balance of a block's experts is multiplied with in the loss.
  float balance_scale = 0;
  logits_budget logits = {};

  std::size_t rows() const { return sequences * tokens; }
  kernels::attention_shape attention(unit_index unit) const;
  activation take(std::size_t cols) const { return {pool, rows(), cols}; }
};

/// The experts of a block (experts.cpp): y_TD, which may be h_TD, from h_TD,
/// what their norm gave. Weights are those of training or of inference.
void experts_forward(const block_context& c,
                     const block_tensors<const float>& w, expert_activations& a,
                     kernels::matrix_view<const float> h_TD,
                     kernels::matrix_view<float> y_TD);
void experts_forward(const block_context& c, const packed_tensors& w,
                     expert_activations& a,
                     kernels::matrix_view<const float> h_TD,
                     kernels::matrix_view<float> y_TD);
/// Computes dh_TD from dy_TD; afterwards `a` holds what W needs.
void experts_input_gradient(const block_context& c,
                            const block_tensors<const float>& w,
                            expert_activations& a,
                            kernels::matrix_view<const float> dy_TD,
                            kernels::matrix_view<float> dh_TD);
void experts_weight_gradient(const block_context& c,
                             const block_tensors<float>& g,
                             const expert_activations& a,
                             kernels::matrix_view<const float> h_TD);

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
