// runtime/model/block.cpp -- one decoder block: the passes forward, B and W.
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

class forward_pass final : public pass_by_table<forward_pass> {
public:
  forward_pass(const block_context& c, const unit_state& unit,
               block_activations& a, matrix_view<float> y_TD)
    : c_(c), unit_(unit.unit()), w_(block_parameters(unit)), a_(a),
      y_TD_(y_TD) {
    static constexpr segment dense[] = {
      &forward_pass::attention, &forward_pass::mlp, &forward_pass::finish};
    static constexpr segment sparse[] = {
      &forward_pass::attention, &forward_pass::route, &forward_pass::experts,
      &forward_pass::combine, &forward_pass::finish};
    if (w_.experts.empty())
      follow(dense);
    else
      follow(sparse);
  }

private:
  std::optional<exchange> attention() {
    const model_config& m = c_.config;
    const std::size_t nh = m.num_attention_heads * m.head_dim;
    const std::size_t kh = m.num_key_value_heads * m.head_dim;
    const activation h1_TD = c_.take(m.hidden_size);
    const auto h1 = h1_TD.matrix();
    a_.q_TNH = c_.take(nh);
    a_.k_TKH = c_.take(kh);
    a_.v_TKH = c_.take(kh);
    a_.o_TNH = c_.take(nh);
    a_.lse_NT =
      activation(c_.pool, c_.sequences * m.num_attention_heads, c_.tokens);
    a_.x2_TD = c_.take(m.hidden_size);
    c_.ops.norm(h1, a_.x_TD.matrix(), w_.attention_norm, &a_.r1_T, &c_.pool);
    project_heads(c_, a_.q_TNH.matrix(), h1, w_.q, w_.q_norm_H, a_.q_norm);
    project_heads(c_, a_.k_TKH.matrix(), h1, w_.k, w_.k_norm_H, a_.k_norm);
    c_.ops.product(a_.v_TKH.matrix(), h1, w_.v);
    c_.device.attention(a_.o_TNH.matrix(), a_.lse_NT.matrix(),
                        a_.q_TNH.matrix(), a_.k_TKH.matrix(), a_.v_TKH.matrix(),
                        c_.attention(unit_));
    if (c_.kind.post_norms)
      a_.a_TD = c_.take(m.hidden_size);
    c_.ops.product(attention_sum(), a_.o_TNH.matrix(), w_.o);
    return exchange{exchange_point::attention_output, unit_, attention_sum()};
  }

  std::optional<exchange> mlp() {
    const activation h2_TD = begin_second_half();
    mlp_forward(c_, w_.mlp, a_, h2_TD.matrix(), mlp_sum());
    return exchange{exchange_point::mlp_output, unit_, mlp_sum()};
  }

  std::optional<exchange> route() {
    const activation h2_TD = begin_second_half();
    route_rows(c_, w_, a_.experts, h2_TD.matrix());
    return exchange{exchange_point::expert_rows, unit_,
                    a_.experts.x_SD.matrix(), &a_.experts.by};
  }

  std::optional<exchange> experts() {
    experts_forward(c_, w_, a_.experts);
    return exchange{exchange_point::expert_results, unit_,
                    a_.experts.y_SD.matrix(), &a_.experts.by};
  }

  std::optional<exchange> combine() {
    combine_rows(c_, a_.experts, mlp_sum());
    return exchange{exchange_point::mlp_output, unit_, mlp_sum()};
  }

  std::optional<exchange> finish() {
    add_half(c_, y_TD_, a_.x2_TD.matrix(), mlp_sum(), w_.mlp_post_norm,
             &a_.rm_T);
    return std::nullopt;
  }

  /// Adds the attention's half. @returns the input of the MLP or the experts
  activation begin_second_half() {
    add_half(c_, a_.x2_TD.matrix(), a_.x_TD.matrix(), attention_sum(),
             w_.attention_post_norm, &a_.ra_T);
    activation h2_TD = c_.take(c_.config.hidden_size);
    c_.ops.norm(h2_TD.matrix(), a_.x2_TD.matrix(), w_.mlp_norm, &a_.r2_T,
                &c_.pool);
    if (c_.kind.post_norms)
      a_.m_TD = c_.take(c_.config.hidden_size);
    return h2_TD;
  }

  matrix_view<float> attention_sum() const {
    return (c_.kind.post_norms ? a_.a_TD : a_.x2_TD).matrix();
  }
  matrix_view<float> mlp_sum() const {
    return c_.kind.post_norms ? a_.m_TD.matrix() : y_TD_;
  }

  const block_context& c_;
  const unit_index unit_;
  const block_tensors<const float> w_;
  block_activations& a_;
  const matrix_view<float> y_TD_;
};

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

class input_gradient_pass final : public pass_by_table<input_gradient_pass> {
public:
  input_gradient_pass(const block_context& c, const unit_state& unit,
                      block_activations& a, matrix_view<float> dx_TD)
    : c_(c), unit_(unit.unit()), w_(block_parameters(unit)), a_(a),
      dx_TD_(dx_TD) {
    using self = input_gradient_pass;
    static constexpr segment dense[] = {&self::mlp, &self::attention,
                                        &self::finish};
    static constexpr segment sparse[] = {&self::expert_outputs, &self::experts,
                                         &self::router, &self::attention,
                                         &self::finish};
    if (w_.experts.empty())
      follow(dense);
    else
      follow(sparse);
  }

private:
  std::optional<exchange> mlp() {
    const auto dm_TD = begin_second_half();
    mlp_input_gradient(c_, w_.mlp, a_, dm_TD);
    return exchange{exchange_point::mlp_input_gradient, unit_,
                    a_.dh2_TD.matrix()};
  }

  std::optional<exchange> expert_outputs() {
    const auto dm_TD = begin_second_half();
    experts_output_gradient(c_, a_.experts, dm_TD);
    return exchange{exchange_point::expert_result_gradients, unit_,
                    a_.experts.y_SD.matrix(), &a_.experts.by};
  }

  std::optional<exchange> experts() {
    dx_SD_ = {c_.pool, a_.experts.by.rows(), c_.config.hidden_size};
    experts_input_gradient(c_, w_, a_.experts, dx_SD_.matrix());
    return exchange{exchange_point::expert_row_gradients, unit_,
                    dx_SD_.matrix(), &a_.experts.by};
  }

  std::optional<exchange> router() {
    router_input_gradient(c_, w_, a_.experts, dx_SD_.matrix(),
                          a_.dh2_TD.matrix());
    dx_SD_.release();
    return exchange{exchange_point::mlp_input_gradient, unit_,
                    a_.dh2_TD.matrix()};
  }

  /// The end of the second half: a.dx2_TD. Then the attention.
  std::optional<exchange> attention() {
    c_.device.copy(a_.dx2_TD.matrix(), a_.dy_TD.matrix());
    c_.ops.norm_input_gradient(a_.dx2_TD.matrix(), a_.dh2_TD.matrix(),
                               a_.x2_TD.matrix(), w_.mlp_norm, a_.r2_T,
                               into::add);
    const std::size_t nh = a_.q_TNH.matrix().cols;
    const std::size_t kh = a_.k_TKH.matrix().cols;
    const activation do_TNH = c_.take(nh);
    a_.dq_TNH = c_.take(nh);
    a_.dk_TKH = c_.take(kh);
    a_.dv_TKH = c_.take(kh);
    a_.dh1_TD = c_.take(c_.config.hidden_size);
    const auto da_TD = half_gradient(c_, a_.dx2_TD, w_.attention_post_norm,
                                     a_.a_TD, a_.ra_T, a_.da_TD);
    c_.ops.product_input_gradient(do_TNH.matrix(), da_TD, w_.o);
    c_.device.attention_backward(
      a_.dq_TNH.matrix(), a_.dk_TKH.matrix(), a_.dv_TKH.matrix(),
      do_TNH.matrix(), a_.q_TNH.matrix(), a_.k_TKH.matrix(), a_.v_TKH.matrix(),
      a_.o_TNH.matrix(), a_.lse_NT.matrix(), c_.attention(unit_));
    heads_gradient(c_, a_.dq_TNH.matrix(), w_.q_norm_H, a_.q_norm);
    heads_gradient(c_, a_.dk_TKH.matrix(), w_.k_norm_H, a_.k_norm);
    const auto dh1 = a_.dh1_TD.matrix();
    c_.ops.product_input_gradient(dh1, a_.dq_TNH.matrix(), w_.q);
    c_.ops.product_input_gradient(dh1, a_.dk_TKH.matrix(), w_.k, into::add);
    c_.ops.product_input_gradient(dh1, a_.dv_TKH.matrix(), w_.v, into::add);
    return exchange{exchange_point::attention_input_gradient, unit_, dh1};
  }

  std::optional<exchange> finish() {
    c_.device.copy(dx_TD_, a_.dx2_TD.matrix());
    c_.ops.norm_input_gradient(dx_TD_, a_.dh1_TD.matrix(), a_.x_TD.matrix(),
                               w_.attention_norm, a_.r1_T, into::add);
    for (activation* used : {&a_.q_TNH, &a_.k_TKH, &a_.v_TKH, &a_.lse_NT})
      used->release();
    return std::nullopt;
  }

  /// @returns the gradient of the sum of the MLP or the experts
  matrix_view<float> begin_second_half() {
    a_.dh2_TD = c_.take(c_.config.hidden_size);
    a_.dx2_TD = c_.take(c_.config.hidden_size);
    return half_gradient(c_, a_.dy_TD, w_.mlp_post_norm, a_.m_TD, a_.rm_T,
                         a_.dm_TD);
  }

  const block_context& c_;
  const unit_index unit_;
  const block_tensors<const float> w_;
  block_activations& a_;
  const matrix_view<float> dx_TD_;
  activation dx_SD_; ///< from experts() to router()
};

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

class weight_gradient_pass final : public pass_by_table<weight_gradient_pass> {
public:
  weight_gradient_pass(const block_context& c, unit_state& unit,
                       const block_activations& a)
    : c_(c), g_(block_gradients(unit)), w_(block_parameters(unit)), a_(a) {
    static constexpr segment all[] = {&weight_gradient_pass::second_half,
                                      &weight_gradient_pass::attention};
    follow(all);
  }

private:
  std::optional<exchange> second_half() {
    const bool post = c_.kind.post_norms;
    const activation again_TD = c_.take(c_.config.hidden_size);
    const auto h2_TD = again_TD.matrix();
    if (post)
      c_.ops.norm_weight_gradient(g_.mlp_post_norm, a_.dy_TD.matrix(),
                                  a_.m_TD.matrix(), a_.rm_T);
    c_.ops.norm(h2_TD, a_.x2_TD.matrix(), w_.mlp_norm, nullptr, nullptr);
    if (g_.experts.empty())
      mlp_weight_gradient(c_, g_.mlp, a_, h2_TD,
                          (post ? a_.dm_TD : a_.dy_TD).matrix());
    else
      experts_weight_gradient(c_, g_, a_.experts, h2_TD);
    c_.ops.norm_weight_gradient(g_.mlp_norm, a_.dh2_TD.matrix(),
                                a_.x2_TD.matrix(), a_.r2_T);
    return std::nullopt;
  }

  std::optional<exchange> attention() {
    const bool post = c_.kind.post_norms;
    const activation again_TD = c_.take(c_.config.hidden_size);
    const auto h1_TD = again_TD.matrix();
    if (post)
      c_.ops.norm_weight_gradient(g_.attention_post_norm, a_.dx2_TD.matrix(),
                                  a_.a_TD.matrix(), a_.ra_T);
    c_.ops.product_weight_gradient(g_.o, (post ? a_.da_TD : a_.dx2_TD).matrix(),
                                   a_.o_TNH.matrix());
    c_.ops.norm(h1_TD, a_.x_TD.matrix(), w_.attention_norm, nullptr, nullptr);
    c_.ops.product_weight_gradient(g_.v, a_.dv_TKH.matrix(), h1_TD);
    c_.ops.product_weight_gradient(g_.k, a_.dk_TKH.matrix(), h1_TD);
    c_.ops.product_weight_gradient(g_.q, a_.dq_TNH.matrix(), h1_TD);
    heads_weight_gradient(c_, g_.k_norm_H, a_.k_norm);
    heads_weight_gradient(c_, g_.q_norm_H, a_.q_norm);
    c_.ops.norm_weight_gradient(g_.attention_norm, a_.dh1_TD.matrix(),
                                a_.x_TD.matrix(), a_.r1_T);
    return std::nullopt;
  }

  const block_context& c_;
  const block_tensors<float> g_;
  const block_tensors<const float> w_;
  const block_activations& a_;
};

} // namespace

std::unique_ptr<pass>
begin_block_forward(const block_context& c, const unit_state& unit,
                    block_activations& a, matrix_view<float> y_TD) {
  return std::make_unique<forward_pass>(c, unit, a, y_TD);
}

std::unique_ptr<pass>
begin_block_input_gradient(const block_context& c, const unit_state& unit,
                           block_activations& a, matrix_view<float> dx_TD) {
  return std::make_unique<input_gradient_pass>(c, unit, a, dx_TD);
}

std::unique_ptr<pass>
begin_block_weight_gradient(const block_context& c, unit_state& unit,
                            const block_activations& a) {
  return std::make_unique<weight_gradient_pass>(c, unit, a);
}

} // namespace shoal::model
