// runtime/model/config/config.cpp -- families, and the rules of a configuration.
#include "runtime/model/config/config.hpp"

#include "runtime/core/text/nearest.hpp"

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

broken_rule rope_fits(const model_config& c) {
  using rule = kernels::rope_scaling::rule;
  const kernels::rope_scaling& s = c.rope_scaling;
  auto within = [](double x, double first, double last) {
    return std::isfinite(x) && x >= first && x <= last;
  };
  if (!within(s.factor, 1, 1e6))
    return {"rope_scaling: factor", "must be in 1 .. 1000000"};
  if (!within(s.low_freq_factor, 1e-3, 1e6)
      || !within(s.high_freq_factor, 1e-3, 1e6)
      || s.high_freq_factor <= s.low_freq_factor)
    return {"rope_scaling: high_freq_factor",
            "must be above low_freq_factor, both in 0.001 .. 1000000"};
  if (!within(s.original, 1, static_cast<double>(positions_max)))
    return {"rope_scaling: original_max_position_embeddings",
            "must be in 1 .. " + std::to_string(positions_max)};
  if (s.type != rule::yarn)
    return {};
  if (c.rope_theta <= 1)
    return {"rope_theta", "must be above 1 for yarn"};
  if (!within(s.beta_slow, 1e-3, 1e6) || !within(s.beta_fast, 1e-3, 1e6))
    return {"rope_scaling: beta_fast",
            "and beta_slow must be in 0.001 .. 1000000"};
  if (!within(s.attention_factor, 1e-3, 1e3))
    return {"rope_scaling: attention_factor", "must be in 0.001 .. 1000"};
  return {};
}

broken_rule experts_fit(const model_config& c) {
  if (c.num_experts > experts_max)
    return {"num_experts", std::to_string(c.num_experts) + " is above "
                             + std::to_string(experts_max)};
  const bool has = family_of(c).usual.num_experts != 0;
  if (has != (c.num_experts != 0))
    return {"num_experts", has ? "must be at least 1" : "must be 0"};
  if (has
      && (c.num_experts_per_tok < 1 || c.num_experts_per_tok > c.num_experts))
    return {"num_experts_per_tok", std::to_string(c.num_experts_per_tok)
                                     + " is not in 1 .. num_experts ("
                                     + std::to_string(c.num_experts) + ")"};
  if (!std::isfinite(c.router_aux_loss_coef) || c.router_aux_loss_coef < 0
      || c.router_aux_loss_coef > 1e3)
    return {"router_aux_loss_coef", "must be in 0 .. 1000"};
  return {};
}

broken_rule consistent(const model_config& c) {
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    return {"num_key_value_heads", std::to_string(c.num_key_value_heads)
                                     + " does not divide num_attention_heads ("
                                     + std::to_string(c.num_attention_heads)
                                     + ")"};
  const family& kind = family_of(c);
  if (kind.rotary && c.head_dim % 2 != 0)
    return {"head_dim",
            std::to_string(c.head_dim)
              + " is odd; rotary embeddings need pairs (where it is left out, "
                "it is hidden_size, "
              + std::to_string(c.hidden_size) + ", / num_attention_heads, "
              + std::to_string(c.num_attention_heads) + ")"};
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
  const auto activation = mlp_function_of(c.hidden_act);
  if (!activation || (!kind.gated && activation == mlp_function::silu))
    return {"hidden_act", "\"" + c.hidden_act
                            + "\" is not supported, only gelu, gelu_new, "
                              "gelu_pytorch_tanh"
                            + (kind.gated ? " and silu are" : " are")};
  if (c.sliding_window > positions_max)
    return {"sliding_window", std::to_string(c.sliding_window) + " is above "
                                + std::to_string(positions_max)};
  if (!c.sliding_layers.empty()
      && c.sliding_layers.size() != c.num_hidden_layers)
    return {"layer_types", "has " + std::to_string(c.sliding_layers.size())
                             + " entries, not one for each layer"};
  for (const auto& [key, value] :
       {std::pair{"query_pre_attn_scalar", c.query_pre_attn_scalar},
        std::pair{"attn_logit_softcapping", c.attn_logit_softcapping},
        std::pair{"final_logit_softcapping", c.final_logit_softcapping}})
    if (value != 0 && (!positive(value) || value < 1e-3 || value > 1e6))
      return {key, "must be in 0.001 .. 1000000"};
  if (broken_rule broken = rope_fits(c); broken.key != nullptr)
    return broken;
  if (broken_rule broken = experts_fit(c); broken.key != nullptr)
    return broken;
  if (const std::uint64_t count = tensor_count(c); count > model_tensors_max)
    return {"num_experts", // without experts layers_max allows fewer
            "with the other sizes makes " + std::to_string(count)
              + " tensors, more than " + std::to_string(model_tensors_max)};
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

std::string_view
suggested_key(std::string_view mistyped, std::string_view nearest) {
  if (core::edit_distance(mistyped, nearest) <= 1)
    return nearest;
  for (const family& f : families())
    for (const key_alias& a : f.aliases)
      if (a.own == nearest)
        return a.usual;
  return nearest;
}

const std::vector<std::string_view>& known_keys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all = {"model_type",
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
                                         "pad_token_id",
                                         "quantization_config",
                                         "sliding_window",
                                         "use_sliding_window",
                                         "max_window_layers",
                                         "layer_types",
                                         "query_pre_attn_scalar",
                                         "attn_logit_softcapping",
                                         "final_logit_softcapping",
                                         "use_bidirectional_attention",
                                         "num_experts",
                                         "num_experts_per_tok",
                                         "norm_topk_prob",
                                         "router_aux_loss_coef",
                                         "decoder_sparse_step",
                                         "mlp_only_layers",
                                         "router_jitter_noise",
                                         "attn_pdrop",
                                         "embd_pdrop",
                                         "resid_pdrop",
                                         "scale_attn_weights",
                                         "scale_attn_by_inverse_layer_idx",
                                         "add_cross_attention"};
    for (const family& f : families())
      for (const key_alias& a : f.aliases)
        if (std::find(all.begin(), all.end(), a.own) == all.end())
          all.push_back(a.own);
    return all;
  }();
  return keys;
}

const family& family_of(const model_config& c) {
  const auto& all = families();
  const auto it = std::find_if(all.begin(), all.end(), [&](const family& f) {
    return f.model_type == c.model_type;
  });
  SHOAL_ASSERT(it != all.end());
  return *it;
}

std::uint64_t tensor_count(const model_config& c) {
  const family& kind = family_of(c);
  const std::uint64_t norm = kind.layer_norm ? 2 : 1;
  const std::uint64_t qkv = kind.qkv_bias || c.attention_bias ? 6 : 3;
  const std::uint64_t output = kind.output_bias || c.attention_bias ? 2 : 1;
  const std::uint64_t mlp =
    (kind.gated ? 3 : 2) * (kind.mlp_bias || c.mlp_bias ? 2 : 1);
  const std::uint64_t block =
    2 * norm + qkv + (kind.head_norms ? 2 * norm : 0) + output
    + (kind.post_norms ? 2 * norm : 0)
    + (c.num_experts != 0 ? 1 + c.num_experts * mlp : mlp);
  return (kind.rotary ? 1 : 2) + c.num_hidden_layers * block + norm + 1;
}

std::optional<mlp_function> mlp_function_of(std::string_view name) {
  if (name == "silu" || name == "swish")
    return mlp_function::silu;
  if (name == "gelu")
    return mlp_function::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh")
    return mlp_function::gelu_tanh;
  return {};
}

std::uint64_t window_of(const model_config& c, std::uint64_t layer) {
  const bool windowed = c.sliding_layers.empty() || c.sliding_layers[layer];
  return windowed ? c.sliding_window : 0;
}

status check_config(const model_config& c, std::string_view where) {
  const auto& all = families();
  if (std::none_of(all.begin(), all.end(), [&](const family& f) {
        return f.model_type == c.model_type;
      }))
    return failure{std::string(where) + ": model_type: is not supported"};
  broken_rule broken = in_range(c);
  if (broken.key == nullptr)
    broken = consistent(c);
  if (broken.key != nullptr)
    return failure{std::string(where) + ": " + broken.key + ": "
                   + broken.reason};
  return done{};
}

} // namespace shoal::model
