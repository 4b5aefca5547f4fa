// runtime/model/microbatch_state.hpp -- the values that a stage keeps of one
// microbatch.
//
// Private to runtime/model: between stage_model.cpp and stage_passes.cpp.
#pragma once

#include "runtime/model/block.hpp"
#include "runtime/model/stage_parts.hpp"

#include <cstdint>
#include <vector>

namespace shoal::model {

/// In a stage that is the whole model, B computes nothing: nobody waits for its
/// input gradient. W then runs B and W of each unit in turn, so that the values
/// between them are held for one unit only.
struct microbatch_state {
  /// The last pass that is done; or the microbatch is in one.
  enum class phase : std::uint8_t { forward, input_gradient, in_pass };

  phase done = phase::forward;
  std::size_t sequences = 0;
  std::size_t tokens = 0;
  float loss_scale = 0;
  std::vector<std::int32_t> positions; ///< B*T
  std::vector<token_id> ids;           ///< first stage only
  activation d_embedding_TD;           ///< first stage only, from B on
  std::vector<block_activations> blocks;
  head_activations head;
};

} // namespace shoal::model
