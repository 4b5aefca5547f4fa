// runtime/model/block.cpp -- one decoder block: forward, B and W.
#include "runtime/model/block.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::model {

namespace {

using kernels::into;
using kernels::matrix_view;
using kernels::vector_view;

} // namespace

kernels::attention_shape block_context::attention(unit_index unit) const {
  const double scalar = config.query_pre_attn_scalar != 0
                          ? config.query_pre_attn_scalar
                          : static_cast<double>(config.head_dim);
  return {sequences,
          tokens,
          config.num_attention_heads,
          config.num_key_value_heads,
          config.head_dim,
          static_cast<float>(1.0 / std::sqrt(scalar)),
          window_of(config, unit - 1),
          static_cast<float>(config.attn_logit_softcapping)};
}

namespace {

/// Computes x_TNH, queries or keys, from h_TD. Keeps the values before the norm
/// of the heads.
void project_heads(const block_context& c, matrix_view<float> x_TNH,
                   matrix_view<const float> h_TD,
                   linear_view<const float> weight,
                   vector_view<const float> norm_H,
                   head_norm_activations& kept) {
  const std::size_t size = c.config.head_dim;
  const auto eps = static_cast<float>(c.config.rms_norm_eps);
  if (norm_H.empty()) {
    c.ops.product(x_TNH, h_TD, weight);
  } else {
    kept.raw_TNH = c.take(x_TNH.cols);
    kept.r_TN = c.take(x_TNH.cols / size);
    c.ops.product(kept.raw_TNH.matrix(), h_TD, weight);
    c.device.rmsnorm(rows_of_heads(x_TNH, size), kept.r_TN.vector(),
                     rows_of_heads(kept.raw_TNH.matrix(), size), norm_H, eps,
                     c.kind.norm_offset);
  }
  if (c.kind.rotary)
    c.device.rope(x_TNH, c.positions_T, c.rope);
}

/// Turns dx_TNH, the gradient of the result of project_heads(), into the
/// gradient of the product.
void heads_gradient(const block_context& c, matrix_view<float> dx_TNH,
                    vector_view<const float> norm_H,
                    head_norm_activations& kept) {
  const std::size_t size = c.config.head_dim;
  if (c.kind.rotary)
    c.device.rope_backward(dx_TNH, c.positions_T, c.rope);
  if (norm_H.empty())
    return;
  kept.d_TNH = c.take(dx_TNH.cols);
  c.device.copy(kept.d_TNH.matrix(), dx_TNH);
  c.device.rmsnorm_input_gradient(
    rows_of_heads(dx_TNH, size), rows_of_heads(kept.d_TNH.matrix(), size),
    rows_of_heads(kept.raw_TNH.matrix(), size), norm_H, kept.r_TN.vector(),
    into::overwrite, c.kind.norm_offset);
}

void heads_weight_gradient(const block_context& c, vector_view<float> norm_H,
                           const head_norm_activations& kept) {
  if (norm_H.empty())
    return;
  const std::size_t size = c.config.head_dim;
  c.device.rmsnorm_weight_gradient(
    norm_H, rows_of_heads(kept.d_TNH.matrix(), size),
    rows_of_heads(kept.raw_TNH.matrix(), size), kept.r_TN.vector());
}

/// y = x + h, or x + norm(h): the end of half a block. `stats` keeps what the
/// norm's backward pass needs besides h.
void add_half(const block_context& c, matrix_view<float> y_TD,
              matrix_view<const float> x_TD, matrix_view<float> h_TD,
              norm_view<const float> post_norm, activation* stats) {
  if (c.kind.post_norms) {
    c.ops.norm(y_TD, h_TD, post_norm, stats, &c.pool);
    c.device.add(y_TD, x_TD, y_TD);
  } else {
    c.device.add(y_TD, x_TD, h_TD);
  }
}

void attention_forward(const block_context& c, const unit_state& unit,
                       const block_tensors<const float>& w,
                       block_activations& a) {
  kernels::backend& dev = c.device;
  const model_config& m = c.config;
  const std::size_t nh = m.num_attention_heads * m.head_dim;
  const std::size_t kh = m.num_key_value_heads * m.head_dim;
  const activation h1_TD = c.take(m.hidden_size);
  a.q_TNH = c.take(nh);
  a.k_TKH = c.take(kh);
  a.v_TKH = c.take(kh);
  a.o_TNH = c.take(nh);
  a.lse_NT = activation(c.pool, c.sequences * m.num_attention_heads, c.tokens);
  a.x2_TD = c.take(m.hidden_size);
  c.ops.norm(h1_TD.matrix(), a.x_TD.matrix(), w.attention_norm, &a.r1_T,
             &c.pool);
  project_heads(c, a.q_TNH.matrix(), h1_TD.matrix(), w.q, w.q_norm_H, a.q_norm);
  project_heads(c, a.k_TKH.matrix(), h1_TD.matrix(), w.k, w.k_norm_H, a.k_norm);
  c.ops.product(a.v_TKH.matrix(), h1_TD.matrix(), w.v);
  dev.attention(a.o_TNH.matrix(), a.lse_NT.matrix(), a.q_TNH.matrix(),
                a.k_TKH.matrix(), a.v_TKH.matrix(), c.attention(unit.unit()));
  if (c.kind.post_norms)
    a.a_TD = c.take(m.hidden_size);
  const auto sum_TD = (c.kind.post_norms ? a.a_TD : a.x2_TD).matrix();
  c.ops.product(sum_TD, a.o_TNH.matrix(), w.o);
  c.reducer.reduce(reduce_point::attention_output, unit.unit(), sum_TD);
  add_half(c, a.x2_TD.matrix(), a.x_TD.matrix(), sum_TD, w.attention_post_norm,
           &a.ra_T);
}

/// One MLP on all rows: sum_TD from h2_TD.
void mlp_forward(const block_context& c,
                 const mlp_tensors<linear_view<const float>>& w,
                 block_activations& a, matrix_view<const float> h2_TD,
                 matrix_view<float> sum_TD) {
  const model_config& m = c.config;
  if (c.kind.gated)
    a.gate_TF = c.take(m.intermediate_size);
  a.up_TF = c.take(m.intermediate_size);
  const activation act_TF = c.take(m.intermediate_size);
  if (c.kind.gated)
    c.ops.product(a.gate_TF.matrix(), h2_TD, w.gate);
  c.ops.product(a.up_TF.matrix(), h2_TD, w.up);
  c.ops.mlp(act_TF.matrix(), a.gate_TF.matrix(), a.up_TF.matrix());
  c.ops.product(sum_TD, act_TF.matrix(), w.down);
}

/// The second half of a block: y_TD from a.x2_TD.
void second_half(const block_context& c, const unit_state& unit,
                 const block_tensors<const float>& w, block_activations& a,
                 matrix_view<float> y_TD) {
  const activation h2_TD = c.take(c.config.hidden_size);
  c.ops.norm(h2_TD.matrix(), a.x2_TD.matrix(), w.mlp_norm, &a.r2_T, &c.pool);
  if (c.kind.post_norms)
    a.m_TD = c.take(c.config.hidden_size);
  const auto sum_TD = c.kind.post_norms ? a.m_TD.matrix() : y_TD;
  if (w.experts.empty())
    mlp_forward(c, w.mlp, a, h2_TD.matrix(), sum_TD);
  else
    experts_forward(c, w, a.experts, h2_TD.matrix(), sum_TD);
  c.reducer.reduce(reduce_point::mlp_output, unit.unit(), sum_TD);
  add_half(c, y_TD, a.x2_TD.matrix(), sum_TD, w.mlp_post_norm, &a.rm_T);
}

} // namespace

void block_forward(const block_context& c, const unit_state& unit,
                   block_activations& a, matrix_view<float> y_TD) {
  const auto w = block_parameters(unit);
  attention_forward(c, unit, w, a);
  second_half(c, unit, w, a, y_TD);
}

namespace {

/// The gradient of the sum that a half block adds, before its post-norm: dy
/// itself if there is no post-norm.
matrix_view<float>
half_gradient(const block_context& c, const activation& dy_TD,
              norm_view<const float> post_norm, const activation& sum_TD,
              const activation& stats, activation& d_TD) {
  if (!c.kind.post_norms)
    return dy_TD.matrix();
  d_TD = c.take(c.config.hidden_size);
  c.ops.norm_input_gradient(d_TD.matrix(), dy_TD.matrix(), sum_TD.matrix(),
                            post_norm, stats);
  return d_TD.matrix();
}

/// Computes a.dh2_TD from dm_TD, the gradient of the MLP's sum; and a.act_TF.
void mlp_input_gradient(const block_context& c,
                        const mlp_tensors<linear_view<const float>>& w,
                        block_activations& a, matrix_view<const float> dm_TD) {
  a.act_TF = c.take(c.config.intermediate_size); // its gradient first
  c.ops.product_input_gradient(a.act_TF.matrix(), dm_TD, w.down);
  c.ops.mlp_backward(a.gate_TF.matrix(), a.up_TF.matrix(), a.act_TF.matrix());
  if (c.kind.gated)
    c.ops.product_input_gradient(a.dh2_TD.matrix(), a.gate_TF.matrix(), w.gate);
  c.ops.product_input_gradient(a.dh2_TD.matrix(), a.up_TF.matrix(), w.up,
                               c.kind.gated ? into::add : into::overwrite);
}

/// B of the second half: a.dx2_TD from a.dy_TD.
void second_half_input_gradient(const block_context& c, const unit_state& unit,
                                const block_tensors<const float>& w,
                                block_activations& a) {
  a.dh2_TD = c.take(c.config.hidden_size);
  a.dx2_TD = c.take(c.config.hidden_size);
  const auto dm_TD =
    half_gradient(c, a.dy_TD, w.mlp_post_norm, a.m_TD, a.rm_T, a.dm_TD);
  if (w.experts.empty())
    mlp_input_gradient(c, w.mlp, a, dm_TD);
  else
    experts_input_gradient(c, w, a.experts, dm_TD, a.dh2_TD.matrix());
  c.reducer.reduce(reduce_point::mlp_input_gradient, unit.unit(),
                   a.dh2_TD.matrix());
  c.device.copy(a.dx2_TD.matrix(), a.dy_TD.matrix());
  c.ops.norm_input_gradient(a.dx2_TD.matrix(), a.dh2_TD.matrix(),
                            a.x2_TD.matrix(), w.mlp_norm, a.r2_T, into::add);
}

/// B of the attention: dx_TD from a.dx2_TD.
void attention_input_gradient(const block_context& c, const unit_state& unit,
                              const block_tensors<const float>& w,
                              block_activations& a, matrix_view<float> dx_TD) {
  const std::size_t nh = a.q_TNH.matrix().cols;
  const std::size_t kh = a.k_TKH.matrix().cols;
  activation do_TNH = c.take(nh);
  a.dq_TNH = c.take(nh);
  a.dk_TKH = c.take(kh);
  a.dv_TKH = c.take(kh);
  a.dh1_TD = c.take(c.config.hidden_size);
  const auto da_TD =
    half_gradient(c, a.dx2_TD, w.attention_post_norm, a.a_TD, a.ra_T, a.da_TD);
  c.ops.product_input_gradient(do_TNH.matrix(), da_TD, w.o);
  c.device.attention_backward(
    a.dq_TNH.matrix(), a.dk_TKH.matrix(), a.dv_TKH.matrix(), do_TNH.matrix(),
    a.q_TNH.matrix(), a.k_TKH.matrix(), a.v_TKH.matrix(), a.o_TNH.matrix(),
    a.lse_NT.matrix(), c.attention(unit.unit()));
  heads_gradient(c, a.dq_TNH.matrix(), w.q_norm_H, a.q_norm);
  heads_gradient(c, a.dk_TKH.matrix(), w.k_norm_H, a.k_norm);
  c.ops.product_input_gradient(a.dh1_TD.matrix(), a.dq_TNH.matrix(), w.q);
  c.ops.product_input_gradient(a.dh1_TD.matrix(), a.dk_TKH.matrix(), w.k,
                               into::add);
  c.ops.product_input_gradient(a.dh1_TD.matrix(), a.dv_TKH.matrix(), w.v,
                               into::add);
  c.reducer.reduce(reduce_point::attention_input_gradient, unit.unit(),
                   a.dh1_TD.matrix());
  c.device.copy(dx_TD, a.dx2_TD.matrix());
  c.ops.norm_input_gradient(dx_TD, a.dh1_TD.matrix(), a.x_TD.matrix(),
                            w.attention_norm, a.r1_T, into::add);
}

} // namespace

void block_input_gradient(const block_context& c, const unit_state& unit,
                          block_activations& a, matrix_view<float> dx_TD) {
  const auto w = block_parameters(unit);
  second_half_input_gradient(c, unit, w, a);
  attention_input_gradient(c, unit, w, a, dx_TD);
  for (activation* used : {&a.q_TNH, &a.k_TKH, &a.v_TKH, &a.lse_NT})
    used->release();
}

namespace {

void mlp_weight_gradient(const block_context& c,
                         const mlp_tensors<linear_view<float>>& g,
                         const block_activations& a,
                         matrix_view<const float> h2_TD,
                         matrix_view<const float> dm_TD) {
  c.ops.product_weight_gradient(g.down, dm_TD, a.act_TF.matrix());
  c.ops.product_weight_gradient(g.up, a.up_TF.matrix(), h2_TD);
  if (c.kind.gated)
    c.ops.product_weight_gradient(g.gate, a.gate_TF.matrix(), h2_TD);
}

} // namespace

void block_weight_gradient(const block_context& c, unit_state& unit,
                           const block_activations& a) {
  const auto g = block_gradients(unit);
  const auto w = block_parameters(unit);
  const bool post = c.kind.post_norms;
  const activation again_TD = c.take(c.config.hidden_size);
  const auto h_TD = again_TD.matrix();
  if (post)
    c.ops.norm_weight_gradient(g.mlp_post_norm, a.dy_TD.matrix(),
                               a.m_TD.matrix(), a.rm_T);
  c.ops.norm(h_TD, a.x2_TD.matrix(), w.mlp_norm, nullptr, nullptr);
  if (g.experts.empty())
    mlp_weight_gradient(c, g.mlp, a, h_TD, (post ? a.dm_TD : a.dy_TD).matrix());
  else
    experts_weight_gradient(c, g, a.experts, h_TD);
  c.ops.norm_weight_gradient(g.mlp_norm, a.dh2_TD.matrix(), a.x2_TD.matrix(),
                             a.r2_T);
  if (post)
    c.ops.norm_weight_gradient(g.attention_post_norm, a.dx2_TD.matrix(),
                               a.a_TD.matrix(), a.ra_T);
  c.ops.product_weight_gradient(g.o, (post ? a.da_TD : a.dx2_TD).matrix(),
                                a.o_TNH.matrix());
  c.ops.norm(h_TD, a.x_TD.matrix(), w.attention_norm, nullptr, nullptr);
  c.ops.product_weight_gradient(g.v, a.dv_TKH.matrix(), h_TD);
  c.ops.product_weight_gradient(g.k, a.dk_TKH.matrix(), h_TD);
  c.ops.product_weight_gradient(g.q, a.dq_TNH.matrix(), h_TD);
  heads_weight_gradient(c, g.k_norm_H, a.k_norm);
  heads_weight_gradient(c, g.q_norm_H, a.q_norm);
  c.ops.norm_weight_gradient(g.attention_norm, a.dh1_TD.matrix(),
                             a.x_TD.matrix(), a.r1_T);
}

} // namespace shoal::model
