// runtime/model/stage_parts.cpp -- the head: final norm, logits and loss.
#include "runtime/model/stage_parts.hpp"

#include <algorithm>

namespace shoal::model {

using kernels::matrix_view;
using kernels::vector_view;

matrix_view<const float> matrix_of(const unit_state& unit, std::size_t index) {
  const tensor_info& t = unit.layout().tensors_of(unit.unit())[index];
  return {unit.parameters().data() + t.offset, t.shape[0], t.shape[1]};
}

matrix_view<float> gradient_matrix_of(unit_state& unit, std::size_t index) {
  const tensor_info& t = unit.layout().tensors_of(unit.unit())[index];
  return {unit.gradients().data() + t.offset, t.shape[0], t.shape[1]};
}

namespace {

/// The weight of the final norm is the first tensor of its unit.
vector_view<const float> norm_of(const unit_state& unit) {
  return {unit.parameters().data(), unit.layout().config().hidden_size};
}

} // namespace

forward_result
head_forward(const block_context& c, const unit_state& unit, activation x_TD,
             const forward_work& work, head_activations& a) {
  const std::size_t rows = c.rows();
  const bool with_loss = !work.targets.empty();
  SHOAL_ASSERT(with_loss || (!work.keep && !work.logits_out.empty()));
  a.x_TD = std::move(x_TD);
  a.r_T = c.take(1);
  a.h_TD = c.take(c.config.hidden_size);
  a.dlogits_TV = c.take(c.config.vocab_size);
  const auto logits_TV = a.dlogits_TV.matrix();
  c.device.rmsnorm(a.h_TD.matrix(), a.r_T.vector(), a.x_TD.matrix(),
                   norm_of(unit), static_cast<float>(c.config.rms_norm_eps));
  c.device.matmul(logits_TV, a.h_TD.matrix(), matrix_of(unit, 1));
  if (!work.logits_out.empty()) {
    SHOAL_ASSERT(work.logits_out.size() == rows * c.config.vocab_size);
    std::copy_n(logits_TV.data, work.logits_out.size(), work.logits_out.data());
  }
  forward_result result;
  if (!with_loss)
    return result;
  SHOAL_ASSERT(work.targets.size() == rows);
  SHOAL_ASSERT(work.losses_out.empty() || work.losses_out.size() == rows);
  activation own_losses = c.take(1);
  vector_view<float> losses_T = own_losses.vector();
  if (!work.losses_out.empty())
    losses_T = work.losses_out;
  c.device.cross_entropy(losses_T, work.keep ? logits_TV : matrix_view<float>(),
                         logits_TV, work.targets, work.loss_scale);
  for (std::size_t t = 0; t < rows; ++t) {
    if (work.targets[t] < 0)
      continue;
    result.loss_sum += losses_T[t];
    ++result.predicted;
  }
  return result;
}

void head_input_gradient(const block_context& c, const unit_state& unit,
                         head_activations& a, matrix_view<float> dx_TD) {
  a.dh_TD = c.take(c.config.hidden_size);
  c.device.matmul_input_gradient(a.dh_TD.matrix(), a.dlogits_TV.matrix(),
                                 matrix_of(unit, 1));
  c.device.rmsnorm_input_gradient(dx_TD, a.dh_TD.matrix(), a.x_TD.matrix(),
                                  norm_of(unit), a.r_T.vector());
}

void head_weight_gradient(const block_context& c, unit_state& unit,
                          const head_activations& a) {
  c.device.matmul_weight_gradient(gradient_matrix_of(unit, 1),
                                  a.dlogits_TV.matrix(), a.h_TD.matrix());
  const vector_view<float> norm_D(unit.gradients().data(),
                                  c.config.hidden_size);
  c.device.rmsnorm_weight_gradient(norm_D, a.dh_TD.matrix(), a.x_TD.matrix(),
                                   a.r_T.vector());
}

} // namespace shoal::model
