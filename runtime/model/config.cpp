// runtime/model/config.cpp -- the families, and what a configuration may say.
#include "runtime/model/config.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace shoal::model {

namespace {

/// The first rule that a configuration breaks: key and reason.
struct broken_rule {
  const char* key = nullptr;
  std::string reason;
};

broken_rule in_range(const model_config& c) {
  struct bound {
    const char* key;
    std::uint64_t value;
    std::uint64_t last;
  };
  for (const bound& b : std::initializer_list<bound>{
         {"vocab_size", c.vocab_size, vocabulary_max},
         {"hidden_size", c.hidden_size, width_max},
         {"intermediate_size", c.intermediate_size, width_max},
         {"num_hidden_layers", c.num_hidden_layers, layers_max},
         {"num_attention_heads", c.num_attention_heads, width_max},
         {"num_key_value_heads", c.num_key_value_heads, width_max},
         {"head_dim", c.head_dim, width_max},
         {"max_position_embeddings", c.max_position_embeddings,
          positions_max}}) {
    if (b.value < 1 || b.value > b.last)
      return {b.key, std::to_string(b.value) + " is not in 1 .. "
                       + std::to_string(b.last)};
  }
  return {};
}

broken_rule consistent(const model_config& c) {
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    return {"num_key_value_heads", std::to_string(c.num_key_value_heads)
                                     + " does not divide num_attention_heads ("
                                     + std::to_string(c.num_attention_heads)
                                     + ")"};
  if (c.head_dim % 2 != 0)
    return {"head_dim", std::to_string(c.head_dim)
                          + " is odd; rotary embeddings need pairs"};
  if (c.num_attention_heads * c.head_dim > width_max)
    return {"head_dim", "num_attention_heads * head_dim is above "
                          + std::to_string(width_max)};
  auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  if (!positive(c.rms_norm_eps) || c.rms_norm_eps > 1)
    return {"rms_norm_eps", "must be above 0 and at most 1"};
  if (static_cast<float>(c.rms_norm_eps) == 0)
    return {"rms_norm_eps", "is 0 in single precision"};
  if (!positive(c.rope_theta) || c.rope_theta > 1e30)
    return {"rope_theta", "must be above 0 and at most 1e30"};
  if (!std::isfinite(c.initializer_range) || c.initializer_range < 0
      || c.initializer_range > 1e3)
    return {"initializer_range", "must be in 0 .. 1000"};
  auto id = [&](std::int32_t i) {
    return i >= 0 && static_cast<std::uint64_t>(i) < c.vocab_size;
  };
  if (c.bos_token_id && !id(*c.bos_token_id))
    return {"bos_token_id", "is not an id below vocab_size"};
  if (!std::all_of(c.eos_token_ids.begin(), c.eos_token_ids.end(), id))
    return {"eos_token_id", "is not an id below vocab_size"};
  return {};
}

} // namespace

const std::vector<family>& families() {
  static const std::vector<family> table = {{"llama", "LlamaForCausalLM"}};
  return table;
}

const std::vector<std::string_view>& known_keys() {
  static const std::vector<std::string_view> keys = {"model_type",
                                                     "vocab_size",
                                                     "hidden_size",
                                                     "intermediate_size",
                                                     "num_hidden_layers",
                                                     "num_attention_heads",
                                                     "num_key_value_heads",
                                                     "head_dim",
                                                     "hidden_act",
                                                     "max_position_embeddings",
                                                     "initializer_range",
                                                     "rms_norm_eps",
                                                     "tie_word_embeddings",
                                                     "rope_theta",
                                                     "rope_parameters",
                                                     "rope_scaling",
                                                     "attention_bias",
                                                     "attention_dropout",
                                                     "mlp_bias",
                                                     "torch_dtype",
                                                     "dtype",
                                                     "bos_token_id",
                                                     "eos_token_id",
                                                     "quantization_config"};
  return keys;
}

status check_config(const model_config& c, std::string_view where) {
  broken_rule broken = in_range(c);
  if (broken.key == nullptr)
    broken = consistent(c);
  if (broken.key != nullptr)
    return failure{std::string(where) + ": " + broken.key + ": "
                   + broken.reason};
  return done{};
}

} // namespace shoal::model
