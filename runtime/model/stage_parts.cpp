// runtime/model/stage_parts.cpp -- the embedding, and the head with its loss.
#include "runtime/model/stage_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shoal::model {

using kernels::matrix_view;
using kernels::vector_view;

namespace {

/// The one tensor of a unit that has a role. @pre there is one
const tensor_info& tensor_with(const unit_state& unit, tensor_role role) {
  for (const tensor_info& t : unit.layout().tensors_of(unit.unit()))
    if (t.role == role)
      return t;
  SHOAL_ASSERT(false);
  std::abort();
}

matrix_view<const float> matrix_of(const unit_state& unit, tensor_role role) {
  const tensor_info& t = tensor_with(unit, role);
  return {unit.parameters().data() + t.offset, t.shape[0], t.shape[1]};
}

matrix_view<float> gradient_matrix_of(unit_state& unit, tensor_role role) {
  const tensor_info& t = tensor_with(unit, role);
  return {unit.gradients().data() + t.offset, t.shape[0], t.shape[1]};
}

/// The final norm in a buffer of its unit: weight and bias are its first
/// tensors.
template <class Scalar>
norm_view<Scalar> norm_of(const block_context& c, std::span<Scalar> values) {
  const std::size_t d = c.config.hidden_size;
  norm_view<Scalar> norm;
  norm.w_D = {values.data(), d};
  if (c.kind.layer_norm)
    norm.b_D = {values.data() + d, d};
  return norm;
}

/// What embeddings are multiplied with; transformers rounds it like this.
float embedding_scale(const block_context& c) {
  return static_cast<float>(
    std::sqrt(static_cast<double>(c.config.hidden_size)));
}

float cap_of(const block_context& c) {
  return static_cast<float>(c.config.final_logit_softcapping);
}

} // namespace

void embed(const block_context& c, const unit_state& unit,
           vector_view<const kernels::token_id> ids_T,
           matrix_view<float> x_TD) {
  c.device.embedding(x_TD, matrix_of(unit, tensor_role::embedding), ids_T);
  if (!c.kind.rotary)
    c.device.embedding(x_TD, matrix_of(unit, tensor_role::position_embedding),
                       c.positions_T, kernels::into::add);
  if (c.kind.scaled_embeddings)
    c.device.scale(x_TD, embedding_scale(c));
}

void embed_weight_gradient(const block_context& c, unit_state& unit,
                           vector_view<const kernels::token_id> ids_T,
                           matrix_view<float> dx_TD) {
  if (c.kind.scaled_embeddings)
    c.device.scale(dx_TD, embedding_scale(c));
  c.device.embedding_weight_gradient(
    gradient_matrix_of(unit, tensor_role::embedding), dx_TD, ids_T);
  if (!c.kind.rotary)
    c.device.embedding_weight_gradient(
      gradient_matrix_of(unit, tensor_role::position_embedding), dx_TD,
      c.positions_T);
}

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
  if (cap_of(c) > 0)
    c.device.softcap(logits_TV, cap_of(c));
}

forward_result
head_forward(const block_context& c, const unit_state& unit, activation x_TD,
             const forward_work& work, head_activations& a) {
  const std::size_t rows = c.rows();
  const bool with_loss = !work.targets.empty();
  SHOAL_ASSERT(with_loss || (!work.keep && !work.logits_out.empty()));
  a.x_TD = std::move(x_TD);
  a.h_TD = c.take(c.config.hidden_size);
  a.dlogits_TV = c.take(c.config.vocab_size);
  const auto logits_TV = a.dlogits_TV.matrix();
  c.ops.norm(a.h_TD.matrix(), a.x_TD.matrix(), norm_of(c, unit.parameters()),
             &a.r_T, &c.pool);
  c.device.matmul(logits_TV, a.h_TD.matrix(),
                  matrix_of(unit, tensor_role::head), {},
                  kernels::weight_order::out_in, c.ops.factors());
  if (!work.logits_out.empty()) {
    SHOAL_ASSERT(work.logits_out.size() == rows * c.config.vocab_size);
    std::copy_n(logits_TV.data, work.logits_out.size(), work.logits_out.data());
    if (cap_of(c) > 0)
      c.device.softcap({work.logits_out.data(), rows, c.config.vocab_size},
                       cap_of(c));
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
                         logits_TV, work.targets, work.loss_scale, cap_of(c));
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
  c.device.matmul_input_gradient(
    a.dh_TD.matrix(), a.dlogits_TV.matrix(), matrix_of(unit, tensor_role::head),
    kernels::into::overwrite, kernels::weight_order::out_in, c.ops.factors());
  c.ops.norm_input_gradient(dx_TD, a.dh_TD.matrix(), a.x_TD.matrix(),
                            norm_of(c, unit.parameters()), a.r_T);
}

void head_weight_gradient(const block_context& c, unit_state& unit,
                          const head_activations& a) {
  c.device.matmul_weight_gradient(
    gradient_matrix_of(unit, tensor_role::head), a.dlogits_TV.matrix(),
    a.h_TD.matrix(), kernels::weight_order::out_in, c.ops.factors());
  c.ops.norm_weight_gradient(norm_of(c, unit.gradients()), a.dh_TD.matrix(),
                             a.x_TD.matrix(), a.r_T);
}

} // namespace shoal::model
