// runtime/model/experts.cpp -- the experts of a block: parts of forward, B and W.
//
// A token's row is copied for each of its k experts, rows are sorted by expert,
// and each expert multiplies its rows. An expert that no token chose does
// nothing, also in the backward pass.
#include "runtime/model/block.hpp"

namespace shoal::model {

using kernels::into;
using kernels::matrix_view;

namespace {

/// The rows of one expert in a matrix of all.
matrix_view<float>
rows_of(const activation& all, const kernels::routing& by, std::size_t expert) {
  return all.matrix().slice_rows(by.first_row[expert],
                                 by.first_row[expert + 1]);
}

activation
take_rows(const block_context& c, std::size_t rows, std::size_t cols) {
  return {c.pool, rows, cols};
}

} // namespace

template <class Tensors>
void route_rows(const block_context& c, const Tensors& w, expert_activations& a,
                matrix_view<const float> h_TD) {
  const model_config& m = c.config;
  const std::size_t rows = h_TD.rows * m.num_experts_per_tok;
  a.p_TE = c.take(m.num_experts);
  a.weight_S = take_rows(c, rows, 1);
  a.x_SD = take_rows(c, rows, m.hidden_size);
  c.ops.product(a.p_TE.matrix(), h_TD, w.router);
  c.device.route(a.by, a.weight_S.vector(), a.p_TE.matrix(),
                 m.num_experts_per_tok, m.norm_topk_prob);
  c.device.embedding(a.x_SD.matrix(), h_TD, a.by.row_token);
}

template <class Tensors>
void experts_forward(const block_context& c, const Tensors& w,
                     expert_activations& a) {
  const model_config& m = c.config;
  const std::size_t rows = a.by.rows();
  a.gate_SF = take_rows(c, rows, m.intermediate_size);
  a.up_SF = take_rows(c, rows, m.intermediate_size);
  const activation act_SF = take_rows(c, rows, m.intermediate_size);
  a.y_SD = take_rows(c, rows, m.hidden_size);
  for (std::size_t e = 0; e < w.experts.size(); ++e) {
    if (a.by.rows_of(e) == 0)
      continue;
    const auto x = rows_of(a.x_SD, a.by, e);
    c.ops.product(rows_of(a.gate_SF, a.by, e), x, w.experts[e].gate);
    c.ops.product(rows_of(a.up_SF, a.by, e), x, w.experts[e].up);
    c.ops.mlp(rows_of(act_SF, a.by, e), rows_of(a.gate_SF, a.by, e),
              rows_of(a.up_SF, a.by, e));
    c.ops.product(rows_of(a.y_SD, a.by, e), rows_of(act_SF, a.by, e),
                  w.experts[e].down);
  }
}

template void
route_rows(const block_context&, const block_tensors<const float>&,
           expert_activations&, matrix_view<const float>);
template void route_rows(const block_context&, const packed_tensors&,
                         expert_activations&, matrix_view<const float>);
template void
experts_forward(const block_context&, const block_tensors<const float>&,
                expert_activations&);
template void experts_forward(const block_context&, const packed_tensors&,
                              expert_activations&);

void combine_rows(const block_context& c, const expert_activations& a,
                  matrix_view<float> y_TD) {
  c.device.combine(y_TD, a.y_SD.matrix(), a.weight_S.vector(), a.by);
}

void experts_output_gradient(const block_context& c, expert_activations& a,
                             matrix_view<const float> dy_TD) {
  a.dweight_S = take_rows(c, a.by.rows(), 1);
  c.device.combine_backward(a.y_SD.matrix(), a.dweight_S.vector(), dy_TD,
                            a.y_SD.matrix(), a.weight_S.vector(), a.by);
}

void experts_input_gradient(const block_context& c,
                            const block_tensors<const float>& w,
                            expert_activations& a, matrix_view<float> dx_SD) {
  a.act_SF = take_rows(c, a.by.rows(), c.config.intermediate_size);
  for (std::size_t e = 0; e < w.experts.size(); ++e) {
    if (a.by.rows_of(e) == 0)
      continue;
    const auto act = rows_of(a.act_SF, a.by, e); // its gradient first
    const auto gate = rows_of(a.gate_SF, a.by, e);
    const auto up = rows_of(a.up_SF, a.by, e);
    const auto dx = dx_SD.slice_rows(a.by.first_row[e], a.by.first_row[e + 1]);
    c.ops.product_input_gradient(act, rows_of(a.y_SD, a.by, e),
                                 w.experts[e].down);
    c.ops.mlp_backward(gate, up, act);
    c.ops.product_input_gradient(dx, gate, w.experts[e].gate);
    c.ops.product_input_gradient(dx, up, w.experts[e].up, into::add);
  }
}

void router_input_gradient(const block_context& c,
                           const block_tensors<const float>& w,
                           expert_activations& a,
                           matrix_view<const float> dx_SD,
                           matrix_view<float> dh_TD) {
  c.device.combine(dh_TD, dx_SD, {}, a.by);
  c.device.route_backward(a.p_TE.matrix(), a.dweight_S.vector(), a.by,
                          c.config.norm_topk_prob, c.balance_scale);
  c.ops.product_input_gradient(dh_TD, a.p_TE.matrix(), w.router, into::add);
}

void experts_weight_gradient(const block_context& c,
                             const block_tensors<float>& g,
                             const expert_activations& a,
                             matrix_view<const float> h_TD) {
  for (std::size_t e = 0; e < g.experts.size(); ++e) {
    if (a.by.rows_of(e) == 0)
      continue;
    const auto x = rows_of(a.x_SD, a.by, e);
    c.ops.product_weight_gradient(g.experts[e].down, rows_of(a.y_SD, a.by, e),
                                  rows_of(a.act_SF, a.by, e));
    c.ops.product_weight_gradient(g.experts[e].up, rows_of(a.up_SF, a.by, e),
                                  x);
    c.ops.product_weight_gradient(g.experts[e].gate,
                                  rows_of(a.gate_SF, a.by, e), x);
  }
  c.ops.product_weight_gradient(g.router, a.p_TE.matrix(), h_TD);
}

} // namespace shoal::model
