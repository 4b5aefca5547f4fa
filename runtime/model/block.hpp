// runtime/model/block.hpp -- one decoder block: forward, B and W, as passes.
//
//   x2 = x + attention(norm(x)) * Wo
//   y  = x2 + mlp(norm(x2)) * Wd         or the experts' weighted sum
//
// and with post-norms (Gemma 2) a norm of each product before it is added.
// All other differences between families are switches: biases, norms of the
// heads, rotary or learned positions, windows and soft caps (config.hpp).
//
// Private to runtime/model; callers use stage_model. Segments and exchanges are
// those of pass.hpp. A prefix d marks the
// gradient of the step's loss with respect to the value it precedes.
//
// Shapes: T rows (sequences * tokens), D width, N query heads, K key-value
//         heads of H values, F values of the MLP.
// Ownership: a pass refers to context, unit, activations and views that it was
//         given; they stay where they are until it is destroyed.
#pragma once

#include "runtime/model/layers.hpp"
#include "runtime/model/pass.hpp"
#include "runtime/model/unit_state.hpp"

#include <memory>

namespace shoal::model {

/// Views of one MLP.
template <class Linear>
struct mlp_tensors {
  Linear gate, up, down;
};

/// Views of the tensors of a block, in parameters, in gradients or in inference
/// weights. Tensors that the family lacks are empty.
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
/// The views that inference uses (decode/block_cached.hpp).
using packed_tensors = block_tensors<const float, packed_view>;

/// The values kept of a query or key projection whose heads are normalized: the
/// values before the norm, their 1/rms and, from B on, the gradient after the
/// norm.
struct head_norm_activations {
  activation raw_TNH, r_TN, d_TNH;
};

/// The values kept of the experts of a block: all rows that tokens are sent to,
/// sorted by expert. The gradients of gate, up and logits replace the values,
/// and so do those of the outputs.
struct expert_activations {
  kernels::routing by;
  activation p_TE, weight_S, dweight_S, x_SD, gate_SF, up_SF, y_SD;
  activation act_SF; ///< from B on, which computes it again
};

/// The values that one microbatch keeps of one block. The results of its norms
/// and of its MLP's function are computed again, which saves more memory than
/// it costs time.
struct block_activations {
  activation x_TD, r1_T, q_TNH, k_TKH, v_TKH, o_TNH, lse_NT;
  head_norm_activations q_norm, k_norm;
  activation a_TD, ra_T; ///< the attention's sum before its post-norm
  activation x2_TD, r2_T, gate_TF, up_TF;
  expert_activations experts; ///< instead of gate, up and act
  activation m_TD, rm_T;      ///< the MLP's sum before its post-norm
  // From B on. The gradients of gate and up lie in gate_TF and up_TF. The
  // gradients of the sums before post-norms are empty if there are no
  // post-norms.
  activation act_TF, dy_TD, dm_TD, dh2_TD, dx2_TD, da_TD, dq_TNH, dk_TKH,
    dv_TKH, dh1_TD;
};

/// Everything that a pass through a block needs besides its activations.
struct block_context {
  kernels::backend& device;
  activation_pool& pool;
  const model_config& config;
  const family& kind;
  layers ops;
  const kernels::rope_table& rope;
  std::size_t sequences;
  std::size_t tokens; ///< of each sequence
  kernels::vector_view<const std::int32_t> positions_T;
  /// The factor of the balance of a block's experts in the loss.
  float balance_scale = 0;
  logits_budget logits = {};

  std::size_t rows() const { return sequences * tokens; }
  kernels::attention_shape attention(unit_index unit) const;
  activation take(std::size_t cols) const { return {pool, rows(), cols}; }
};

/// Rows of heads as rows of a matrix.
inline kernels::matrix_view<float>
rows_of_heads(kernels::matrix_view<float> x_TNH, std::size_t head_size) {
  return {x_TNH.data, x_TNH.rows * x_TNH.cols / head_size, head_size};
}

// The experts of a block (experts.cpp), in parts between which rows may go to
// the devices that hold their experts. `Tensors` are weights of training or of
// inference.

/// Chooses the experts of each row of h_TD, the result of their norm, and
/// gathers a.x_SD.
template <class Tensors>
void route_rows(const block_context& c, const Tensors& w, expert_activations& a,
                kernels::matrix_view<const float> h_TD);
/// Computes a.y_SD from a.x_SD: each expert its rows.
template <class Tensors>
void experts_forward(const block_context& c, const Tensors& w,
                     expert_activations& a);
/// Computes y_TD, the weighted sums of a.y_SD.
void combine_rows(const block_context& c, const expert_activations& a,
                  kernels::matrix_view<float> y_TD);

/// B, first part: the gradient of a.y_SD, in its place, from dy_TD.
void experts_output_gradient(const block_context& c, expert_activations& a,
                             kernels::matrix_view<const float> dy_TD);
/// B, second part: computes dx_SD; each expert its rows.
void experts_input_gradient(const block_context& c,
                            const block_tensors<const float>& w,
                            expert_activations& a,
                            kernels::matrix_view<float> dx_SD);
/// B, third part: computes dh_TD; afterwards `a` holds the values that W needs.
void router_input_gradient(const block_context& c,
                           const block_tensors<const float>& w,
                           expert_activations& a,
                           kernels::matrix_view<const float> dx_SD,
                           kernels::matrix_view<float> dh_TD);
void experts_weight_gradient(const block_context& c,
                             const block_tensors<float>& g,
                             const expert_activations& a,
                             kernels::matrix_view<const float> h_TD);

/// A pass that computes y_TD from a.x_TD.
std::unique_ptr<pass>
begin_block_forward(const block_context& c, const unit_state& unit,
                    block_activations& a, kernels::matrix_view<float> y_TD);

/// A pass that computes dx_TD from a.dy_TD; afterwards `a` holds the values
/// that W needs. dx_TD must not be memory of `a`.
std::unique_ptr<pass>
begin_block_input_gradient(const block_context& c, const unit_state& unit,
                           block_activations& a,
                           kernels::matrix_view<float> dx_TD);

/// A pass that adds the gradients of all tensors of the block.
std::unique_ptr<pass>
begin_block_weight_gradient(const block_context& c, unit_state& unit,
                            const block_activations& a);

} // namespace shoal::model
