// runtime/model/units.cpp -- the tensors of a model, unit by unit.
#include "runtime/model/units.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

/// The names of a model's parts in the files of a family. Weights and biases
/// add ".weight" and ".bias".
struct tensor_names {
  std::string_view embedding = "model.embed_tokens";
  std::string_view positions = "";
  std::string_view block = "model.layers.";
  std::string_view attention_norm = "input_layernorm";
  std::string_view q = "self_attn.q_proj";
  std::string_view k = "self_attn.k_proj";
  std::string_view v = "self_attn.v_proj";
  std::string_view qkv = ""; ///< not empty: instead of q, k and v
  std::string_view q_norm = "self_attn.q_norm";
  std::string_view k_norm = "self_attn.k_norm";
  std::string_view o = "self_attn.o_proj";
  std::string_view attention_post_norm = "";
  std::string_view mlp_norm = "post_attention_layernorm";
  std::string_view gate = "mlp.gate_proj";
  std::string_view up = "mlp.up_proj";
  std::string_view down = "mlp.down_proj";
  std::string_view mlp_post_norm = "";
  std::string_view router = "mlp.gate";
  std::string_view experts = "mlp.experts."; ///< number, gate, up, down
  std::string_view final_norm = "model.norm";
};

tensor_names names_of(const family& kind) {
  tensor_names n;
  if (kind.model_type == "gpt2") {
    n.embedding = "transformer.wte";
    n.positions = "transformer.wpe";
    n.block = "transformer.h.";
    n.attention_norm = "ln_1";
    n.qkv = "attn.c_attn";
    n.o = "attn.c_proj";
    n.mlp_norm = "ln_2";
    n.up = "mlp.c_fc";
    n.down = "mlp.c_proj";
    n.final_norm = "transformer.ln_f";
  }
  if (kind.usual.num_experts != 0) {
    n.gate = "gate_proj";
    n.up = "up_proj";
    n.down = "down_proj";
  }
  if (kind.model_type == "mixtral") {
    n.router = "block_sparse_moe.gate";
    n.experts = "block_sparse_moe.experts.";
    n.gate = "w1";
    n.up = "w3";
    n.down = "w2";
  }
  if (kind.post_norms) {
    n.attention_post_norm = "post_attention_layernorm";
    n.mlp_norm = "pre_feedforward_layernorm";
    n.mlp_post_norm = "post_feedforward_layernorm";
  }
  return n;
}

std::string named(std::string_view part, std::string_view kind) {
  return std::string(part) + "." + std::string(kind);
}

tensor_role bias_of(tensor_role weight) {
  return static_cast<tensor_role>(static_cast<int>(weight) + 1);
}

} // namespace

unit_layout::unit_layout(const model_config& config) : config_(config) {
  const model_config& c = config_;
  const family& kind = family_of(c);
  const tensor_names names = names_of(kind);
  const std::uint64_t d = c.hidden_size;

  first_.push_back(0);
  add(named(names.embedding, "weight"), {c.vocab_size, d}, 0,
      tensor_role::embedding);
  if (!kind.rotary)
    add(named(names.positions, "weight"), {c.max_position_embeddings, d}, 0,
        tensor_role::position_embedding);
  for (std::uint64_t i = 0; i < c.num_hidden_layers; ++i)
    add_block(i);
  const auto head = static_cast<unit_index>(c.num_hidden_layers + 1);
  first_.push_back(static_cast<tensor_index>(tensors_.size()));
  add(named(names.final_norm, "weight"), {d}, head, tensor_role::final_norm);
  if (kind.layer_norm)
    add(named(names.final_norm, "bias"), {d}, head,
        tensor_role::final_norm_bias);
  add("lm_head.weight", {c.vocab_size, d}, head, tensor_role::head);
  if (c.tie_word_embeddings) {
    tied_ = tied_pair{0, static_cast<tensor_index>(tensors_.size() - 1)};
    tensors_.back().copy_of = tied_->embedding;
    parameters_ -= tensors_.back().size;
  }
  first_.push_back(static_cast<tensor_index>(tensors_.size()));
}

void unit_layout::add_block(std::uint64_t layer) {
  using role = tensor_role;
  const model_config& c = config_;
  const family& kind = family_of(c);
  const tensor_names n = names_of(kind);
  const std::uint64_t d = c.hidden_size;
  const std::uint64_t q = c.num_attention_heads * c.head_dim;
  const std::uint64_t kv = c.num_key_value_heads * c.head_dim;
  const std::uint64_t f = c.intermediate_size;
  const auto unit = static_cast<unit_index>(layer + 1);
  const std::string prefix = std::string(n.block) + std::to_string(layer) + ".";
  first_.push_back(static_cast<tensor_index>(tensors_.size()));

  auto norm = [&](std::string_view name, std::uint64_t size, role r) {
    add(prefix + named(name, "weight"), {size}, unit, r);
    if (kind.layer_norm)
      add(prefix + named(name, "bias"), {size}, unit, bias_of(r));
  };
  auto product = [&](const std::string& name, std::uint64_t outputs,
                     std::uint64_t inputs, bool bias, role r,
                     std::uint32_t expert = no_expert) {
    const bool turned = kind.in_out_weights;
    add(prefix + named(name, "weight"),
        {turned ? inputs : outputs, turned ? outputs : inputs}, unit, r,
        expert);
    if (bias)
      add(prefix + named(name, "bias"), {outputs}, unit, bias_of(r), expert);
  };
  const bool qkv_bias = kind.qkv_bias || c.attention_bias;
  const bool mlp_bias = kind.mlp_bias || c.mlp_bias;
  norm(n.attention_norm, d, role::attention_norm);
  if (!n.qkv.empty()) {
    product(std::string(n.qkv), q + 2 * kv, d, qkv_bias, role::qkv);
  } else {
    product(std::string(n.q), q, d, qkv_bias, role::q);
    product(std::string(n.k), kv, d, qkv_bias, role::k);
    product(std::string(n.v), kv, d, qkv_bias, role::v);
  }
  if (kind.head_norms) {
    norm(n.q_norm, c.head_dim, role::q_norm);
    norm(n.k_norm, c.head_dim, role::k_norm);
  }
  product(std::string(n.o), d, q, kind.output_bias || c.attention_bias,
          role::o);
  if (kind.post_norms)
    norm(n.attention_post_norm, d, role::attention_post_norm);
  norm(n.mlp_norm, d, role::mlp_norm);
  auto mlp = [&](const std::string& at, std::uint32_t expert) {
    if (kind.gated)
      product(at + std::string(n.gate), f, d, mlp_bias, role::gate, expert);
    product(at + std::string(n.up), f, d, mlp_bias, role::up, expert);
    product(at + std::string(n.down), d, f, mlp_bias, role::down, expert);
  };
  if (c.num_experts == 0) {
    mlp("", no_expert);
  } else {
    product(std::string(n.router), c.num_experts, d, false, role::router);
    for (std::uint32_t e = 0; e < c.num_experts; ++e)
      mlp(std::string(n.experts) + std::to_string(e) + ".", e);
  }
  if (kind.post_norms)
    norm(n.mlp_post_norm, d, role::mlp_post_norm);
}

void unit_layout::add(std::string name, std::vector<std::uint64_t> shape,
                      unit_index unit, tensor_role role, std::uint32_t expert) {
  tensor_info info;
  info.name = std::move(name);
  info.unit = unit;
  info.role = role;
  info.expert = expert;
  info.size = 1;
  for (std::uint64_t n : shape)
    info.size *= n;
  info.shape = std::move(shape);
  if (first_.back() < tensors_.size())
    info.offset = tensors_.back().offset + tensors_.back().size;
  parameters_ += info.size;
  tensors_.push_back(std::move(info));
}

std::span<const tensor_info> unit_layout::tensors_of(unit_index unit) const {
  SHOAL_ASSERT(unit < unit_count());
  return std::span(tensors_).subspan(first_[unit],
                                     first_[unit + 1] - first_[unit]);
}

std::size_t unit_layout::unit_size(unit_index unit) const {
  const tensor_info& last = tensors_of(unit).back();
  return last.offset + last.size;
}

std::optional<tensor_index> unit_layout::find(std::string_view name) const {
  auto it = std::find_if(tensors_.begin(), tensors_.end(),
                         [&](const tensor_info& t) { return t.name == name; });
  if (it == tensors_.end())
    return {};
  return static_cast<tensor_index>(it - tensors_.begin());
}

slice unit_layout::whole(tensor_index tensor) const {
  return {tensor, 0, 0, tensors_.at(tensor).shape.front()};
}

std::string_view short_name(const tensor_info& tensor) {
  const std::string_view name = tensor.name;
  constexpr std::string_view base = "transformer.";
  return name.starts_with(base) ? name.substr(base.size()) : name;
}

std::uint64_t
logits_budget::block_rows(std::uint64_t rows, std::uint64_t vocab_size) const {
  constexpr std::uint64_t step = 64; // of rows, which products like
  std::uint64_t most = std::max<std::uint64_t>(block_max / vocab_size, 1);
  if (most >= step)
    most -= most % step;
  return std::min(rows, most);
}

std::uint64_t
activation_size(const model_config& c, unit_index unit, std::uint64_t tokens,
                const logits_budget& logits) {
  const family& kind = family_of(c);
  const std::uint64_t d = c.hidden_size;
  const std::uint64_t stats = kind.layer_norm ? 2 : 1; // of one norm
  if (unit == 0) // ids and the gradient of the hidden states
    return tokens * (d + 1);
  if (unit == c.num_hidden_layers + 1) { // input, norm, its gradient, logits
    const std::uint64_t rows = logits.keeps(tokens, c.vocab_size)
                                 ? tokens
                                 : logits.block_rows(tokens, c.vocab_size);
    return tokens * (3 * d + 1 + stats) + rows * c.vocab_size;
  }
  const std::uint64_t q = c.num_attention_heads * c.head_dim;
  const std::uint64_t kv = c.num_key_value_heads * c.head_dim;
  const std::uint64_t k = c.num_experts_per_tok;
  // For each expert that serves a token: its input, its output and the MLP.
  const std::uint64_t inner =
    k == 0 ? (kind.gated ? 3 : 2) * c.intermediate_size
           : k * (2 * d + 1 + 3 * c.intermediate_size) + c.num_experts;
  std::uint64_t forward =
    2 * d + 2 * stats + 2 * q + 2 * kv + c.num_attention_heads + inner;
  std::uint64_t backward = 4 * d + q + 2 * kv + k;
  if (kind.head_norms) { // the values and gradients before and after
    forward += q + kv + c.num_attention_heads + c.num_key_value_heads;
    backward += q + kv;
  }
  if (kind.post_norms) { // the normalized value, and its gradient
    forward += 2 * d + 2 * stats;
    backward += 2 * d;
  }
  return tokens * (forward + backward);
}

std::uint64_t
unit_operations(const model_config& c, unit_index unit, std::uint64_t length) {
  const family& kind = family_of(c);
  const std::uint64_t d = c.hidden_size;
  if (unit == 0) // a copy, and an addition in the backward pass
    return 2 * d;
  if (unit == c.num_hidden_layers + 1)
    return 6 * d * c.vocab_size;
  const std::uint64_t q = c.num_attention_heads * c.head_dim;
  const std::uint64_t kv = c.num_key_value_heads * c.head_dim;
  const std::uint64_t mlps = std::max<std::uint64_t>(c.num_experts_per_tok, 1);
  const std::uint64_t weights =
    2 * d * q + 2 * d * kv + d * c.num_experts
    + mlps * (kind.gated ? 3 : 2) * d * c.intermediate_size;
  // Scores: 2 products forward and 5 backward over half of length^2, or over
  // the part inside a window: length * window - window^2 / 2.
  const std::uint64_t w = std::min(c.sliding_window, length);
  const std::uint64_t all = 7 * q * length;
  if (w == 0)
    return 6 * weights + all;
  std::uint64_t windowed = c.num_hidden_layers;
  if (!c.sliding_layers.empty())
    windowed = static_cast<std::uint64_t>(
      std::count(c.sliding_layers.begin(), c.sliding_layers.end(), true));
  const std::uint64_t some = 7 * q * (2 * w - w * w / length);
  const std::uint64_t layers = c.num_hidden_layers;
  return 6 * weights + (windowed * some + (layers - windowed) * all) / layers;
}

} // namespace shoal::model
