// runtime/model/block.cpp -- one decoder block: forward, B and W.
#include "runtime/model/block.hpp"

#include <cmath>

namespace shoal::model {

namespace {

using kernels::into;
using kernels::matrix_view;

/// Views of one buffer in the order that unit_layout gives a block's tensors.
template <class Scalar>
block_tensors<Scalar>
views(const unit_layout& layout, unit_index unit, std::span<Scalar> values) {
  const auto tensors = layout.tensors_of(unit);
  SHOAL_ASSERT(tensors.size() == 9 && values.size() == layout.unit_size(unit));
  auto vector = [&](std::size_t i) {
    return kernels::vector_view<Scalar>(values.data() + tensors[i].offset,
                                        tensors[i].size);
  };
  auto matrix = [&](std::size_t i) {
    return matrix_view<Scalar>(values.data() + tensors[i].offset,
                               tensors[i].shape[0], tensors[i].shape[1]);
  };
  return {vector(0), matrix(1), matrix(2), matrix(3), matrix(4),
          vector(5), matrix(6), matrix(7), matrix(8)};
}

void copy(matrix_view<float> to, matrix_view<const float> from) {
  std::copy_n(from.data, from.rows * from.cols, to.data);
}

} // namespace

block_tensors<const float> block_parameters(const unit_state& unit) {
  return views<const float>(unit.layout(), unit.unit(), unit.parameters());
}

block_tensors<float> block_gradients(unit_state& unit) {
  return views<float>(unit.layout(), unit.unit(), unit.gradients());
}

kernels::attention_shape block_context::attention() const {
  const auto scale =
    static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  return {sequences,
          tokens,
          config.num_attention_heads,
          config.num_key_value_heads,
          config.head_dim,
          scale};
}

void block_forward(const block_context& c, const unit_state& unit,
                   block_activations& a, matrix_view<float> y_TD) {
  const model_config& m = c.config;
  kernels::backend& dev = c.device;
  const auto w = block_parameters(unit);
  const auto eps = static_cast<float>(m.rms_norm_eps);
  const std::size_t d = m.hidden_size;
  const std::size_t nh = m.num_attention_heads * m.head_dim;
  const std::size_t kh = m.num_key_value_heads * m.head_dim;

  a.r1_T = c.take(1);
  a.h1_TD = c.take(d);
  a.q_TNH = c.take(nh);
  a.k_TKH = c.take(kh);
  a.v_TKH = c.take(kh);
  a.o_TNH = c.take(nh);
  a.lse_NT = activation(c.pool, c.sequences * m.num_attention_heads, c.tokens);
  a.x2_TD = c.take(d);
  dev.rmsnorm(a.h1_TD.matrix(), a.r1_T.vector(), a.x_TD.matrix(),
              w.attention_norm_D, eps);
  dev.matmul(a.q_TNH.matrix(), a.h1_TD.matrix(), w.q);
  dev.matmul(a.k_TKH.matrix(), a.h1_TD.matrix(), w.k);
  dev.matmul(a.v_TKH.matrix(), a.h1_TD.matrix(), w.v);
  dev.rope(a.q_TNH.matrix(), c.positions_T, c.rope);
  dev.rope(a.k_TKH.matrix(), c.positions_T, c.rope);
  dev.attention(a.o_TNH.matrix(), a.lse_NT.matrix(), a.q_TNH.matrix(),
                a.k_TKH.matrix(), a.v_TKH.matrix(), c.attention());
  dev.matmul(a.x2_TD.matrix(), a.o_TNH.matrix(), w.o);
  c.reducer.reduce(reduce_point::attention_output, unit.unit(),
                   a.x2_TD.matrix());
  dev.add(a.x2_TD.matrix(), a.x_TD.matrix(), a.x2_TD.matrix());

  a.r2_T = c.take(1);
  a.h2_TD = c.take(d);
  a.gate_TF = c.take(m.intermediate_size);
  a.up_TF = c.take(m.intermediate_size);
  a.act_TF = c.take(m.intermediate_size);
  dev.rmsnorm(a.h2_TD.matrix(), a.r2_T.vector(), a.x2_TD.matrix(), w.mlp_norm_D,
              eps);
  dev.matmul(a.gate_TF.matrix(), a.h2_TD.matrix(), w.gate);
  dev.matmul(a.up_TF.matrix(), a.h2_TD.matrix(), w.up);
  dev.swiglu(a.act_TF.matrix(), a.gate_TF.matrix(), a.up_TF.matrix());
  dev.matmul(y_TD, a.act_TF.matrix(), w.down);
  c.reducer.reduce(reduce_point::mlp_output, unit.unit(), y_TD);
  dev.add(y_TD, a.x2_TD.matrix(), y_TD);
}

namespace {

/// B of the MLP: a.dx2_TD from a.dy_TD.
void mlp_input_gradient(const block_context& c, const unit_state& unit,
                        const block_tensors<const float>& w,
                        block_activations& a) {
  kernels::backend& dev = c.device;
  activation dact_TF = c.take(c.config.intermediate_size);
  a.dh2_TD = c.take(c.config.hidden_size);
  a.dx2_TD = c.take(c.config.hidden_size);
  dev.matmul_input_gradient(dact_TF.matrix(), a.dy_TD.matrix(), w.down);
  dev.swiglu_backward(a.gate_TF.matrix(), a.up_TF.matrix(), dact_TF.matrix(),
                      a.gate_TF.matrix(), a.up_TF.matrix());
  dev.matmul_input_gradient(a.dh2_TD.matrix(), a.gate_TF.matrix(), w.gate);
  dev.matmul_input_gradient(a.dh2_TD.matrix(), a.up_TF.matrix(), w.up,
                            into::add);
  c.reducer.reduce(reduce_point::mlp_input_gradient, unit.unit(),
                   a.dh2_TD.matrix());
  copy(a.dx2_TD.matrix(), a.dy_TD.matrix());
  dev.rmsnorm_input_gradient(a.dx2_TD.matrix(), a.dh2_TD.matrix(),
                             a.x2_TD.matrix(), w.mlp_norm_D, a.r2_T.vector(),
                             into::add);
}

/// B of the attention: dx_TD from a.dx2_TD.
void attention_input_gradient(const block_context& c, const unit_state& unit,
                              const block_tensors<const float>& w,
                              block_activations& a, matrix_view<float> dx_TD) {
  kernels::backend& dev = c.device;
  const std::size_t nh = w.q.rows;
  const std::size_t kh = w.k.rows;
  activation do_TNH = c.take(nh);
  a.dq_TNH = c.take(nh);
  a.dk_TKH = c.take(kh);
  a.dv_TKH = c.take(kh);
  a.dh1_TD = c.take(c.config.hidden_size);
  dev.matmul_input_gradient(do_TNH.matrix(), a.dx2_TD.matrix(), w.o);
  dev.attention_backward(a.dq_TNH.matrix(), a.dk_TKH.matrix(),
                         a.dv_TKH.matrix(), do_TNH.matrix(), a.q_TNH.matrix(),
                         a.k_TKH.matrix(), a.v_TKH.matrix(), a.o_TNH.matrix(),
                         a.lse_NT.matrix(), c.attention());
  dev.rope_backward(a.dq_TNH.matrix(), c.positions_T, c.rope);
  dev.rope_backward(a.dk_TKH.matrix(), c.positions_T, c.rope);
  dev.matmul_input_gradient(a.dh1_TD.matrix(), a.dq_TNH.matrix(), w.q);
  dev.matmul_input_gradient(a.dh1_TD.matrix(), a.dk_TKH.matrix(), w.k,
                            into::add);
  dev.matmul_input_gradient(a.dh1_TD.matrix(), a.dv_TKH.matrix(), w.v,
                            into::add);
  c.reducer.reduce(reduce_point::attention_input_gradient, unit.unit(),
                   a.dh1_TD.matrix());
  copy(dx_TD, a.dx2_TD.matrix());
  dev.rmsnorm_input_gradient(dx_TD, a.dh1_TD.matrix(), a.x_TD.matrix(),
                             w.attention_norm_D, a.r1_T.vector(), into::add);
}

} // namespace

void block_input_gradient(const block_context& c, const unit_state& unit,
                          block_activations& a, matrix_view<float> dx_TD) {
  const auto w = block_parameters(unit);
  mlp_input_gradient(c, unit, w, a);
  attention_input_gradient(c, unit, w, a, dx_TD);
  for (activation* used : {&a.q_TNH, &a.k_TKH, &a.v_TKH, &a.lse_NT})
    used->release();
}

void block_weight_gradient(const block_context& c, unit_state& unit,
                           const block_activations& a) {
  kernels::backend& dev = c.device;
  const auto g = block_gradients(unit);
  dev.matmul_weight_gradient(g.down, a.dy_TD.matrix(), a.act_TF.matrix());
  dev.matmul_weight_gradient(g.up, a.up_TF.matrix(), a.h2_TD.matrix());
  dev.matmul_weight_gradient(g.gate, a.gate_TF.matrix(), a.h2_TD.matrix());
  dev.rmsnorm_weight_gradient(g.mlp_norm_D, a.dh2_TD.matrix(), a.x2_TD.matrix(),
                              a.r2_T.vector());
  dev.matmul_weight_gradient(g.o, a.dx2_TD.matrix(), a.o_TNH.matrix());
  dev.matmul_weight_gradient(g.v, a.dv_TKH.matrix(), a.h1_TD.matrix());
  dev.matmul_weight_gradient(g.k, a.dk_TKH.matrix(), a.h1_TD.matrix());
  dev.matmul_weight_gradient(g.q, a.dq_TNH.matrix(), a.h1_TD.matrix());
  dev.rmsnorm_weight_gradient(g.attention_norm_D, a.dh1_TD.matrix(),
                              a.x_TD.matrix(), a.r1_T.vector());
}

namespace {

block_tensors<const float, const kernels::packed_weight&>
block_weights(const inference_unit& unit) {
  return {unit.vector(0), unit.matrix(1), unit.matrix(2),
          unit.matrix(3), unit.matrix(4), unit.vector(5),
          unit.matrix(6), unit.matrix(7), unit.matrix(8)};
}

} // namespace

void block_cached(const block_context& c, const inference_unit& unit,
                  matrix_view<float> x_TD, matrix_view<float> keys_PKH,
                  matrix_view<float> values_PKH, std::size_t past) {
  kernels::backend& dev = c.device;
  const auto w = block_weights(unit);
  const auto eps = static_cast<float>(c.config.rms_norm_eps);
  const std::size_t all = past + c.rows();
  activation h_TD = c.take(c.config.hidden_size);
  activation q_TNH = c.take(w.q.rows());
  activation o_TNH = c.take(w.q.rows());
  const auto k_TKH = keys_PKH.slice_rows(past, all);
  dev.rmsnorm(h_TD.matrix(), {}, x_TD, w.attention_norm_D, eps);
  dev.packed_matmul(q_TNH.matrix(), h_TD.matrix(), w.q);
  dev.packed_matmul(k_TKH, h_TD.matrix(), w.k);
  dev.packed_matmul(values_PKH.slice_rows(past, all), h_TD.matrix(), w.v);
  dev.rope(q_TNH.matrix(), c.positions_T, c.rope);
  dev.rope(k_TKH, c.positions_T, c.rope);
  dev.attention_cached(o_TNH.matrix(), q_TNH.matrix(),
                       keys_PKH.slice_rows(0, all),
                       values_PKH.slice_rows(0, all), c.attention());
  dev.packed_matmul(h_TD.matrix(), o_TNH.matrix(), w.o);
  c.reducer.reduce(reduce_point::attention_output, unit.unit(), h_TD.matrix());
  dev.add(x_TD, x_TD, h_TD.matrix());

  activation gate_TF = c.take(c.config.intermediate_size);
  activation up_TF = c.take(c.config.intermediate_size);
  dev.rmsnorm(h_TD.matrix(), {}, x_TD, w.mlp_norm_D, eps);
  dev.packed_matmul(gate_TF.matrix(), h_TD.matrix(), w.gate);
  dev.packed_matmul(up_TF.matrix(), h_TD.matrix(), w.up);
  dev.swiglu(gate_TF.matrix(), gate_TF.matrix(), up_TF.matrix());
  dev.packed_matmul(h_TD.matrix(), gate_TF.matrix(), w.down);
  c.reducer.reduce(reduce_point::mlp_output, unit.unit(), h_TD.matrix());
  dev.add(x_TD, x_TD, h_TD.matrix());
}

} // namespace shoal::model
