// kernels/reference/layers/routing.cpp -- choice and weighted sums of floats, sorting.
#include "kernels/reference/layers/routing.hpp"

#include "kernels/common/check.hpp"
#include "kernels/reference/backend.hpp"

namespace shoal::kernels {

void largest_of(const float* p_E, std::size_t experts, std::size_t per_token,
                std::uint32_t* out) {
  reference::loops::largest_of(p_E, experts, per_token, out);
}

void sort_rows(routing& to, const std::vector<std::uint32_t>& choice,
               std::size_t per_token, std::size_t experts) {
  to.per_token = per_token;
  to.first_row.assign(experts + 1, 0);
  to.row_token.resize(choice.size());
  to.token_row.resize(choice.size());
  for (const auto expert : choice)
    ++to.first_row[expert + 1];
  for (std::size_t e = 0; e != experts; ++e)
    to.first_row[e + 1] += to.first_row[e];
  auto next = to.first_row;
  for (std::size_t i = 0; i != choice.size(); ++i) {
    const auto row = next[choice[i]]++;
    to.row_token[row] = static_cast<token_id>(i / per_token);
    to.token_row[i] = static_cast<std::uint32_t>(row);
  }
}

namespace reference {

void reference_backend::route(routing& to, vector_view<float> weight_S,
                              matrix_view<float> logits_TE,
                              std::size_t per_token, bool normalised) {
  SHOAL_KERNEL_ASSERT(per_token >= 1 && per_token <= logits_TE.cols
                      && weight_S.size == logits_TE.rows * per_token);
  loops::route<float>(to, weight_S, logits_TE, per_token, normalised);
}

void reference_backend::route_backward(matrix_view<float> p_TE,
                                       vector_view<const float> dweight_S,
                                       const routing& routes, bool normalised,
                                       float balance_scale) {
  SHOAL_KERNEL_ASSERT(p_TE.cols == routes.experts()
                      && p_TE.rows == routes.tokens()
                      && dweight_S.size == routes.rows());
  loops::route_backward<float>(p_TE, dweight_S, routes, normalised,
                               balance_scale);
}

void reference_backend::combine(matrix_view<float> y_TD,
                                matrix_view<const float> x_SD,
                                vector_view<const float> weight_S,
                                const routing& routes) {
  SHOAL_KERNEL_ASSERT(y_TD.rows == routes.tokens() && x_SD.rows == routes.rows()
                      && y_TD.cols == x_SD.cols
                      && (weight_S.empty() || weight_S.size == routes.rows()));
  loops::combine<float>(y_TD, x_SD, weight_S, routes);
}

void reference_backend::combine_backward(matrix_view<float> dx_SD,
                                         vector_view<float> dweight_S,
                                         matrix_view<const float> dy_TD,
                                         matrix_view<const float> x_SD,
                                         vector_view<const float> weight_S,
                                         const routing& routes) {
  SHOAL_KERNEL_ASSERT(
    same_shape(dx_SD, x_SD) && x_SD.rows == routes.rows()
    && dy_TD.rows == routes.tokens() && dy_TD.cols == x_SD.cols
    && dweight_S.size == routes.rows() && weight_S.size == routes.rows());
  loops::combine_backward<float>(dx_SD, dweight_S, dy_TD, x_SD, weight_S,
                                 routes);
}

} // namespace reference

} // namespace shoal::kernels
