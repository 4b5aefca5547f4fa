// runtime/model/stage_parts.hpp -- the head: final norm, logits and loss.
//
// Private to runtime/model; stage_model is the door. Names as in block.hpp;
// V is the vocabulary.
#pragma once

#include "runtime/model/block.hpp"
#include "runtime/model/stage_model.hpp"

namespace shoal::model {

/// The matrix that is tensor `index` of a unit.
kernels::matrix_view<const float>
matrix_of(const unit_state& unit, std::size_t index);
kernels::matrix_view<float>
gradient_matrix_of(unit_state& unit, std::size_t index);

/// What one microbatch keeps of the head. From the forward pass on,
/// dlogits_TV holds the gradient of the scaled loss.
struct head_activations {
  activation x_TD, r_T, h_TD, dlogits_TV;
  activation dh_TD; ///< from B on
};

/// Takes the hidden states of the last block; fills the outputs of `work`.
forward_result
head_forward(const block_context& c, const unit_state& unit, activation x_TD,
             const forward_work& work, head_activations& a);

/// Computes dx_TD.
void head_input_gradient(const block_context& c, const unit_state& unit,
                         head_activations& a,
                         kernels::matrix_view<float> dx_TD);

/// Adds the gradients of the norm and the head.
void head_weight_gradient(const block_context& c, unit_state& unit,
                          const head_activations& a);

} // namespace shoal::model
