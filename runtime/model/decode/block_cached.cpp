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

void head_norm(const block_context& c, const inference_unit& unit,
               matrix_view<float> x_TD) {
  norm_view<const float> norm;
  norm.w_D = unit.vector(0);
  if (c.kind.layer_norm)
    norm.b_D = unit.vector(1);
  c.ops.norm(x_TD, x_TD, norm, nullptr, nullptr);
}

void head_logits(const block_context& c, const inference_unit& unit,
                 matrix_view<float> x_TD, matrix_view<float> logits_TV) {
  head_norm(c, unit, x_TD);
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

/// Replaces h_TD by the output of the MLP.
void mlp_cached(const block_context& c, const mlp_tensors<packed_view>& w,
                matrix_view<float> h_TD) {
  activation gate_TF;
  if (c.kind.gated) {
    gate_TF = c.take(c.config.intermediate_size);
    c.ops.product(gate_TF.matrix(), h_TD, w.gate);
  }
  activation up_TF = c.take(c.config.intermediate_size);
  c.ops.product(up_TF.matrix(), h_TD, w.up);
  c.ops.mlp(up_TF.matrix(), gate_TF.matrix(), up_TF.matrix());
  c.ops.product(h_TD, up_TF.matrix(), w.down);
}

class cached_pass final : public pass_by_table<cached_pass> {
public:
  cached_pass(const block_context& c, const inference_unit& unit,
              matrix_view<float> x_TD, const kernels::kv_pages& cache,
              std::span<const kernels::paged_rows> sequences)
    : c_(c), unit_(unit.unit()), w_(block_weights(unit)), x_TD_(x_TD),
      cache_(cache), sequences_(sequences) {
    static constexpr segment dense[] = {
      &cached_pass::attention, &cached_pass::mlp, &cached_pass::finish};
    static constexpr segment sparse[] = {
      &cached_pass::attention, &cached_pass::route, &cached_pass::experts,
      &cached_pass::combine, &cached_pass::finish};
    if (w_.experts.empty())
      follow(dense);
    else
      follow(sparse);
  }

private:
  std::optional<exchange> attention() {
    const model_config& m = c_.config;
    h_TD_ = c_.take(m.hidden_size);
    const activation q_TNH = c_.take(m.num_attention_heads * m.head_dim);
    const activation o_TNH = c_.take(m.num_attention_heads * m.head_dim);
    const auto h = h_TD_.matrix();
    c_.ops.norm(h, x_TD_, w_.attention_norm, nullptr, nullptr);
    append_keys_and_values(h, q_TNH.matrix());
    c_.device.attention_paged(o_TNH.matrix(), q_TNH.matrix(), cache_,
                              sequences_, c_.attention(unit_));
    c_.ops.product(h, o_TNH.matrix(), w_.o);
    return exchange{exchange_point::attention_output, unit_, h};
  }

  void append_keys_and_values(matrix_view<const float> h_TD,
                              matrix_view<float> q_TNH) {
    const std::size_t width = cache_.kv_heads * cache_.head_size;
    const activation k_TKH = c_.take(width), v_TKH = c_.take(width);
    project_cached(c_, w_, h_TD, q_TNH, k_TKH.matrix(), v_TKH.matrix());
    c_.device.append_paged(cache_, k_TKH.matrix(), v_TKH.matrix(), sequences_);
  }

  std::optional<exchange> mlp() {
    begin_second_half();
    mlp_cached(c_, w_.mlp, h_TD_.matrix());
    return exchange{exchange_point::mlp_output, unit_, h_TD_.matrix()};
  }

  std::optional<exchange> route() {
    begin_second_half();
    route_rows(c_, w_, used_, h_TD_.matrix());
    return exchange{exchange_point::expert_rows, unit_, used_.x_SD.matrix(),
                    &used_.by};
  }

  std::optional<exchange> experts() {
    experts_forward(c_, w_, used_);
    return exchange{exchange_point::expert_results, unit_, used_.y_SD.matrix(),
                    &used_.by};
  }

  std::optional<exchange> combine() {
    combine_rows(c_, used_, h_TD_.matrix());
    used_ = {};
    return exchange{exchange_point::mlp_output, unit_, h_TD_.matrix()};
  }

  std::optional<exchange> finish() {
    add_half(w_.mlp_post_norm);
    h_TD_.release();
    return std::nullopt;
  }

  void begin_second_half() {
    add_half(w_.attention_post_norm);
    c_.ops.norm(h_TD_.matrix(), x_TD_, w_.mlp_norm, nullptr, nullptr);
  }

  void add_half(norm_view<const float> post_norm) {
    const auto h = h_TD_.matrix();
    if (c_.kind.post_norms)
      c_.ops.norm(h, h, post_norm, nullptr, nullptr);
    c_.device.add(x_TD_, x_TD_, h);
  }

  const block_context& c_;
  const unit_index unit_;
  const packed_tensors w_;
  const matrix_view<float> x_TD_;
  const kernels::kv_pages cache_;
  const std::span<const kernels::paged_rows> sequences_;
  activation h_TD_;
  expert_activations used_; ///< from route() to combine()
};

} // namespace

std::unique_ptr<pass>
begin_block_cached(const block_context& c, const inference_unit& unit,
                   matrix_view<float> x_TD, const kernels::kv_pages& cache,
                   std::span<const kernels::paged_rows> sequences) {
  return std::make_unique<cached_pass>(c, unit, x_TD, cache, sequences);
}

} // namespace shoal::model
