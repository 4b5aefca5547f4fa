// runtime/model/stage_parts.hpp -- the parts of a model besides its blocks: the
// embedding, and the head with final norm, logits and loss.
//
// The logits of all rows together are the largest data of a microbatch, so
// those beyond a budget (logits_budget, units.hpp) never exist all at once: the
// losses of a block of rows, its dlogits and its dh are computed together, and
// W computes the block's dlogits again, by the same calls, with the same bits.
//
// Private to runtime/model; callers use stage_model. Names as in block.hpp; V
// is the vocabulary.
#pragma once

#include "runtime/model/block.hpp"
#include "runtime/model/stage_model.hpp"

namespace shoal::model {

/// Computes the hidden states of tokens: their embeddings, scaled or with those
/// of their positions if the family has that.
void embed(const block_context& c, const unit_state& unit,
           kernels::vector_view<const kernels::token_id> ids_T,
           kernels::matrix_view<float> x_TD);
/// Adds the gradients of the embeddings. dx_TD is the gradient of the hidden
/// states; it is overwritten.
void embed_weight_gradient(const block_context& c, unit_state& unit,
                           kernels::vector_view<const kernels::token_id> ids_T,
                           kernels::matrix_view<float> dx_TD);

/// The factor of embeddings; transformers rounds it like this.
float embedding_scale(const block_context& c);
/// The soft cap of the final logits; 0: none.
float logit_cap(const block_context& c);

/// The values that one microbatch keeps of the head. From the forward pass on,
/// dlogits_TV holds the gradient of the scaled loss; or it is empty, dh_TD is
/// there already, and W needs targets and scale.
struct head_activations {
  activation x_TD, r_T, h_TD, dlogits_TV; ///< r_T: statistics of the norm
  activation dh_TD;                       ///< from B on at the latest
  std::vector<kernels::token_id> targets_T;
  float scale = 0;
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
