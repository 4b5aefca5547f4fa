// runtime/model/stage_parts.cpp -- the embedding, and the head with its loss.
#include "runtime/model/stage_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace shoal::model {

using kernels::matrix_view;
using kernels::vector_view;

namespace {

/// The only tensor of a unit with this role. @pre there is one
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

} // namespace

float embedding_scale(const block_context& c) {
  return static_cast<float>(
    std::sqrt(static_cast<double>(c.config.hidden_size)));
}

float logit_cap(const block_context& c) {
  return static_cast<float>(c.config.final_logit_softcapping);
}

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

namespace {

/// Logits of some rows, before their cap.
void compute_logits(const block_context& c, const unit_state& unit,
                    matrix_view<const float> h_RD,
                    matrix_view<float> logits_RV) {
  c.device.matmul(logits_RV, h_RD, matrix_of(unit, tensor_role::head), {},
                  kernels::weight_order::out_in, c.ops.factors());
}

void logits_input_gradient(const block_context& c, const unit_state& unit,
                           matrix_view<float> dh_RD,
                           matrix_view<const float> dlogits_RV) {
  c.device.matmul_input_gradient(
    dh_RD, dlogits_RV, matrix_of(unit, tensor_role::head),
    kernels::into::overwrite, kernels::weight_order::out_in, c.ops.factors());
}

void logits_weight_gradient(const block_context& c, unit_state& unit,
                            matrix_view<const float> dlogits_RV,
                            matrix_view<const float> h_RD) {
  c.device.matmul_weight_gradient(
    gradient_matrix_of(unit, tensor_role::head), dlogits_RV, h_RD,
    kernels::weight_order::out_in, c.ops.factors());
}

/// Calls body(first, last, block_RV) for each block of rows, with memory for
/// its logits.
template <class Body>
void each_block(const activation& block_RV, std::size_t rows,
                const Body& body) {
  const auto all = block_RV.matrix();
  for (std::size_t first = 0; first < rows; first += all.rows) {
    const std::size_t last = std::min(rows, first + all.rows);
    body(first, last, all.slice_rows(0, last - first));
  }
}

activation take_block(const block_context& c) {
  const std::size_t v = c.config.vocab_size;
  return {c.pool, c.logits.block_rows(c.rows(), v), v};
}

/// Writes the logits that the caller asked for, of rows from `first` on.
void copy_logits(const block_context& c, matrix_view<const float> logits_RV,
                 std::size_t first, std::span<float> all) {
  if (all.empty())
    return;
  SHOAL_ASSERT(all.size() == c.rows() * c.config.vocab_size);
  const matrix_view<float> to(all.data() + first * logits_RV.cols,
                              logits_RV.rows, logits_RV.cols);
  c.device.copy(to, logits_RV);
  if (logit_cap(c) > 0)
    c.device.softcap(to, logit_cap(c));
}

/// Adds the losses in the order of tokens, on the host.
forward_result
sum_of_losses(const block_context& c, vector_view<const float> losses_T,
              std::span<const kernels::token_id> targets) {
  std::vector<float> losses(losses_T.size);
  c.device.copy(vector_view<float>(losses), losses_T);
  forward_result result;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0)
      continue;
    result.loss_sum += losses[t];
    ++result.predicted;
  }
  return result;
}

} // namespace

forward_result
head_forward(const block_context& c, const unit_state& unit, activation x_TD,
             const forward_work& work, head_activations& a) {
  const std::size_t rows = c.rows();
  const std::size_t d = c.config.hidden_size;
  const bool with_loss = !work.targets.empty();
  SHOAL_ASSERT(with_loss || (!work.keep && !work.logits_out.empty()));
  SHOAL_ASSERT(!with_loss || work.targets.size() == rows);
  SHOAL_ASSERT(work.losses_out.empty() || work.losses_out.size() == rows);
  a.x_TD = std::move(x_TD);
  a.h_TD = c.take(d);
  const bool whole = work.keep && c.logits.keeps(rows, c.config.vocab_size);
  activation block = whole ? c.take(c.config.vocab_size) : take_block(c);
  c.ops.norm(a.h_TD.matrix(), a.x_TD.matrix(), norm_of(c, unit.parameters()),
             &a.r_T, &c.pool);
  if (work.keep && !whole) {
    a.dh_TD = c.take(d);
    a.targets_T.assign(work.targets.begin(), work.targets.end());
    a.scale = work.loss_scale;
  }
  activation own_losses = c.take(1);
  vector_view<float> losses_T = own_losses.vector();
  if (!work.losses_out.empty())
    losses_T = work.losses_out;
  each_block(block, rows, [&](std::size_t first, std::size_t last, auto x_RV) {
    compute_logits(c, unit, a.h_TD.matrix().slice_rows(first, last), x_RV);
    copy_logits(c, x_RV, first, work.logits_out);
    if (!with_loss)
      return;
    c.device.cross_entropy({losses_T.data + first, last - first},
                           work.keep ? x_RV : matrix_view<float>(), x_RV,
                           work.targets.subspan(first, last - first),
                           work.loss_scale, logit_cap(c));
    if (!a.dh_TD.empty())
      logits_input_gradient(c, unit, a.dh_TD.matrix().slice_rows(first, last),
                            x_RV);
  });
  if (whole)
    a.dlogits_TV = std::move(block);
  return with_loss ? sum_of_losses(c, losses_T, work.targets)
                   : forward_result{};
}

void head_input_gradient(const block_context& c, const unit_state& unit,
                         head_activations& a, matrix_view<float> dx_TD) {
  if (a.dh_TD.empty()) {
    a.dh_TD = c.take(c.config.hidden_size);
    logits_input_gradient(c, unit, a.dh_TD.matrix(), a.dlogits_TV.matrix());
  }
  c.ops.norm_input_gradient(dx_TD, a.dh_TD.matrix(), a.x_TD.matrix(),
                            norm_of(c, unit.parameters()), a.r_T);
}

void head_weight_gradient(const block_context& c, unit_state& unit,
                          const head_activations& a) {
  if (!a.dlogits_TV.empty()) {
    logits_weight_gradient(c, unit, a.dlogits_TV.matrix(), a.h_TD.matrix());
  } else {
    const activation losses = c.take(1);
    each_block(take_block(c), c.rows(),
               [&](std::size_t first, std::size_t last, auto x_RV) {
                 const std::size_t count = last - first;
                 const auto h_RD = a.h_TD.matrix().slice_rows(first, last);
                 compute_logits(c, unit, h_RD, x_RV);
                 c.device.cross_entropy(
                   {losses.vector().data, count}, x_RV, x_RV,
                   std::span(a.targets_T).subspan(first, count), a.scale,
                   logit_cap(c));
                 logits_weight_gradient(c, unit, x_RV, h_RD);
               });
  }
  c.ops.norm_weight_gradient(norm_of(c, unit.gradients()), a.dh_TD.matrix(),
                             a.x_TD.matrix(), a.r_T);
}

} // namespace shoal::model
