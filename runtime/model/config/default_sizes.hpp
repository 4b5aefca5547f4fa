// runtime/model/config/default_sizes.hpp -- the sizes that a run file leaves out.
//
// A config.json belongs to existing weights, so a missing key has the value
// that the family's programs use (families.cpp): a model of 7 billion
// parameters. A run file describes a model that is yet to be trained. There the
// other sizes follow hidden_size (h):
//
//   hidden_size          256
//   num_hidden_layers    h / 64, within 2 .. 32: as wide for each layer as
//                        GPT-2 of 124M parameters (12 x 768)
//   num_attention_heads  h / 64, or the next number below that divides h into
//                        heads of an even size; at least 1
//   num_key_value_heads  as many
//   head_dim             h / heads
//   intermediate_size    8/3 h for an MLP with a gate (three matrices), 4 h for
//                        one without (two): as many parameters. Rounded up to
//                        a multiple of 64
//
// Given sizes stay, and the others are computed from them.
#pragma once

#include "runtime/files/json.hpp"

namespace shoal::model {

/// The same for users.
inline constexpr char default_sizes_text[] =
  "Sizes that are left out follow from hidden_size (h): num_hidden_layers is "
  "h/64, within 2 to 32; num_attention_heads h/64; num_key_value_heads as "
  "many; "
  "head_dim h/heads; intermediate_size 8/3 h (4 h for gpt2), rounded up to a "
  "multiple of 64.";

/// Adds those of the sizes above that `keys` lacks. `keys` are the keys of a
/// config.json with or without a model_type. Invalid keys (a size that is text,
/// an unknown family) are left for parse_config() to refuse.
void add_default_sizes(nlohmann::ordered_json& keys);

} // namespace shoal::model
