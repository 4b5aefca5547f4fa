// runtime/model/layers.cpp -- norms, products and MLP functions by family.
#include "runtime/model/layers.hpp"

namespace shoal::model {

using kernels::gelu_form;

namespace {

gelu_form form_of(mlp_function function) {
  return function == mlp_function::gelu ? gelu_form::exact : gelu_form::tanh;
}

} // namespace

layers::layers(kernels::backend& device, const model_config& config,
               kernels::factor_type factors)
  : device_(device), eps_(static_cast<float>(config.rms_norm_eps)),
    offset_(family_of(config).norm_offset),
    layer_norm_(family_of(config).layer_norm),
    order_(family_of(config).in_out_weights ? kernels::weight_order::in_out
                                            : kernels::weight_order::out_in),
    factors_(factors), function_(*mlp_function_of(config.hidden_act)) {
}

void layers::norm(matrix y_TD, const_matrix x_TD, norm_view<const float> weight,
                  activation* stats, activation_pool* pool) const {
  if (stats != nullptr)
    *stats = layer_norm_ ? activation(*pool, 2, x_TD.rows)
                         : activation(*pool, x_TD.rows, 1);
  if (layer_norm_)
    device_.layernorm(y_TD, stats != nullptr ? stats->matrix() : matrix(), x_TD,
                      weight.w_D, weight.b_D, eps_);
  else
    device_.rmsnorm(
      y_TD, stats != nullptr ? stats->vector() : kernels::vector_view<float>(),
      x_TD, weight.w_D, eps_, offset_);
}

void layers::norm_input_gradient(matrix dx_TD, const_matrix dy_TD,
                                 const_matrix x_TD,
                                 norm_view<const float> weight,
                                 const activation& stats, into mode) const {
  if (layer_norm_)
    device_.layernorm_input_gradient(dx_TD, dy_TD, x_TD, weight.w_D,
                                     stats.matrix(), mode);
  else
    device_.rmsnorm_input_gradient(dx_TD, dy_TD, x_TD, weight.w_D,
                                   stats.vector(), mode, offset_);
}

void layers::norm_weight_gradient(norm_view<float> gradient, const_matrix dy_TD,
                                  const_matrix x_TD,
                                  const activation& stats) const {
  if (layer_norm_)
    device_.layernorm_weight_gradient(gradient.w_D, gradient.b_D, dy_TD, x_TD,
                                      stats.matrix());
  else
    device_.rmsnorm_weight_gradient(gradient.w_D, dy_TD, x_TD, stats.vector());
}

void layers::product(matrix y_TO, const_matrix x_TI, packed_view weight) const {
  device_.packed_matmul(y_TO, x_TI, *weight.w);
  if (weight.bias.empty())
    return;
  const std::vector<kernels::token_id> first(y_TO.rows, 0);
  device_.embedding(y_TO, {weight.bias.data, 1, weight.bias.size}, first,
                    into::add);
}

void layers::product_weight_gradient(linear_view<float> gradient,
                                     const_matrix dy_TO,
                                     const_matrix x_TI) const {
  device_.matmul_weight_gradient(gradient.w, dy_TO, x_TI, order_, factors_);
  if (!gradient.bias.empty())
    device_.bias_gradient(gradient.bias, dy_TO);
}

void layers::mlp(matrix y_TF, const_matrix gate_TF, const_matrix up_TF) const {
  if (gate_TF.empty())
    device_.gelu(y_TF, up_TF, form_of(function_));
  else if (function_ == mlp_function::silu)
    device_.swiglu(y_TF, gate_TF, up_TF);
  else
    device_.geglu(y_TF, gate_TF, up_TF, form_of(function_));
}

void layers::mlp_backward(matrix gate_TF, matrix up_TF, matrix dy_TF) const {
  if (gate_TF.empty())
    device_.gelu_backward(up_TF, dy_TF, up_TF, form_of(function_), dy_TF);
  else if (function_ == mlp_function::silu)
    device_.swiglu_backward(gate_TF, up_TF, dy_TF, gate_TF, up_TF, dy_TF);
  else
    device_.geglu_backward(gate_TF, up_TF, dy_TF, gate_TF, up_TF,
                           form_of(function_), dy_TF);
}

} // namespace shoal::model
