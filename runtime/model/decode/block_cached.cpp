// runtime/model/decode/block_cached.cpp -- a model's parts, forward only, with a cache.
#include "runtime/model/decode/block_cached.hpp"

#include "runtime/model/block_views.hpp"
#include "runtime/model/stage_parts.hpp"

#include <algorithm>

namespace shoal::model {

using kernels::matrix_view;
using kernels::vector_view;

namespace {

/// The place of the tensors of a unit for inference: each on its own.
struct inference_tensors {
  const inference_unit& unit;

  vector_view<const float> vector(const tensor_info&, std::size_t i) const {
    return unit.vector(i);
  }
  void set(packed_view& to, const tensor_info&, std::size_t i) const {
    to.w = &unit.matrix(i);
  }
  void set_qkv(packed_tensors& to, const tensor_info&, std::size_t i) const {
    to.qkv.w = &unit.matrix(i);
  }
  void
  set_qkv_bias(packed_tensors& to, const tensor_info&, std::size_t i) const {
    to.qkv.bias = unit.vector(i);
  }
};

packed_tensors block_weights(const inference_unit& unit) {
  return block_views<packed_tensors>(unit.layout(), unit.unit(),
                                     inference_tensors{unit});
}

} // namespace

void embed(const block_context& c, const inference_unit& unit,
           vector_view<const kernels::token_id> ids_T,
           matrix_view<float> x_TD) {
  kernels::packed_embedding(x_TD, unit.matrix(0), ids_T);
  if (!c.kind.rotary) {
    const activation positions_TD = c.take(x_TD.cols);
    kernels::packed_embedding(positions_TD.matrix(), unit.matrix(1),
                              c.positions_T);
    c.device.add(x_TD, x_TD, positions_TD.matrix());
  }
  if (c.kind.scaled_embeddings)
    c.device.scale(x_TD, embedding_scale(c));
}

void head_logits(const block_context& c, const inference_unit& unit,
                 matrix_view<float> x_TD, matrix_view<float> logits_TV) {
  norm_view<const float> norm;
  norm.w_D = unit.vector(0);
  if (c.kind.layer_norm)
    norm.b_D = unit.vector(1);
  c.ops.norm(x_TD, x_TD, norm, nullptr, nullptr);
  c.device.packed_matmul(logits_TV, x_TD,
                         unit.matrix(c.kind.layer_norm ? 2 : 1));
  if (logit_cap(c) > 0)
    c.device.softcap(logits_TV, logit_cap(c));
}

namespace {

/// Normalizes and rotates queries or keys in place.
void finish_heads(const block_context& c, matrix_view<float> x_TNH,
                  vector_view<const float> norm_H) {
  const auto rows_TH = rows_of_heads(x_TNH, c.config.head_dim);
  if (!norm_H.empty())
    c.device.rmsnorm(rows_TH, {}, rows_TH, norm_H,
                     static_cast<float>(c.config.rms_norm_eps),
                     c.kind.norm_offset);
  if (c.kind.rotary)
    c.device.rope(x_TNH, c.positions_T, c.rope);
}

/// Computes queries, keys and values from h_TD.
void project_cached(const block_context& c, const packed_tensors& w,
                    matrix_view<const float> h_TD, matrix_view<float> q_TNH,
                    matrix_view<float> k_TKH, matrix_view<float> v_TKH) {
  if (w.qkv.w == nullptr) {
    c.ops.product(q_TNH, h_TD, w.q);
    c.ops.product(k_TKH, h_TD, w.k);
    c.ops.product(v_TKH, h_TD, w.v);
  } else {
    const activation all = c.take(q_TNH.cols + 2 * k_TKH.cols);
    c.ops.product(all.matrix(), h_TD, w.qkv);
    const std::size_t k = q_TNH.cols, v = k + k_TKH.cols;
    c.device.copy(q_TNH, all.matrix().slice_cols(0, k));
    c.device.copy(k_TKH, all.matrix().slice_cols(k, v));
    c.device.copy(v_TKH, all.matrix().slice_cols(v, v + v_TKH.cols));
  }
  finish_heads(c, q_TNH, w.q_norm_H);
  finish_heads(c, k_TKH, w.k_norm_H);
}

/// Replaces h_TD by the output of the MLP or the experts.
void mlp_cached(const block_context& c, const packed_tensors& w,
                matrix_view<float> h_TD) {
  if (!w.experts.empty()) {
    expert_activations used;
    experts_forward(c, w, used, h_TD, h_TD);
    return;
  }
  activation gate_TF;
  if (c.kind.gated) {
    gate_TF = c.take(c.config.intermediate_size);
    c.ops.product(gate_TF.matrix(), h_TD, w.mlp.gate);
  }
  activation up_TF = c.take(c.config.intermediate_size);
  c.ops.product(up_TF.matrix(), h_TD, w.mlp.up);
  c.ops.mlp(up_TF.matrix(), gate_TF.matrix(), up_TF.matrix());
  c.ops.product(h_TD, up_TF.matrix(), w.mlp.down);
}

} // namespace

void block_cached(const block_context& c, const inference_unit& unit,
                  matrix_view<float> x_TD, matrix_view<float> keys_PKH,
                  matrix_view<float> values_PKH, std::size_t past) {
  const model_config& m = c.config;
  const auto w = block_weights(unit);
  const std::size_t all = past + c.rows();
  activation h_TD = c.take(m.hidden_size);
  activation q_TNH = c.take(m.num_attention_heads * m.head_dim);
  activation o_TNH = c.take(m.num_attention_heads * m.head_dim);
  const auto h = h_TD.matrix();
  c.ops.norm(h, x_TD, w.attention_norm, nullptr, nullptr);
  project_cached(c, w, h, q_TNH.matrix(), keys_PKH.slice_rows(past, all),
                 values_PKH.slice_rows(past, all));
  c.device.attention_cached(
    o_TNH.matrix(), q_TNH.matrix(), keys_PKH.slice_rows(0, all),
    values_PKH.slice_rows(0, all), c.attention(unit.unit()));
  c.ops.product(h, o_TNH.matrix(), w.o);
  c.reducer.reduce(reduce_point::attention_output, unit.unit(), h);
  if (c.kind.post_norms)
    c.ops.norm(h, h, w.attention_post_norm, nullptr, nullptr);
  c.device.add(x_TD, x_TD, h);

  c.ops.norm(h, x_TD, w.mlp_norm, nullptr, nullptr);
  mlp_cached(c, w, h);
  c.reducer.reduce(reduce_point::mlp_output, unit.unit(), h);
  if (c.kind.post_norms)
    c.ops.norm(h, h, w.mlp_post_norm, nullptr, nullptr);
  c.device.add(x_TD, x_TD, h);
}

} // namespace shoal::model
