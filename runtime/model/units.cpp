// runtime/model/units.cpp -- the tensors of a model, unit by unit.
#include "runtime/model/units.hpp"

#include <algorithm>

namespace shoal::model {

unit_layout::unit_layout(const model_config& config) : config_(config) {
  const model_config& c = config_;
  const std::uint64_t q = c.num_attention_heads * c.head_dim;
  const std::uint64_t kv = c.num_key_value_heads * c.head_dim;
  const std::uint64_t d = c.hidden_size;
  const std::uint64_t f = c.intermediate_size;

  first_.push_back(0);
  add("model.embed_tokens.weight", {c.vocab_size, d}, 0);
  for (std::uint64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto unit = static_cast<unit_index>(i + 1);
    const std::string p = "model.layers." + std::to_string(i) + ".";
    first_.push_back(static_cast<tensor_index>(tensors_.size()));
    add(p + "input_layernorm.weight", {d}, unit);
    add(p + "self_attn.q_proj.weight", {q, d}, unit);
    add(p + "self_attn.k_proj.weight", {kv, d}, unit);
    add(p + "self_attn.v_proj.weight", {kv, d}, unit);
    add(p + "self_attn.o_proj.weight", {d, q}, unit);
    add(p + "post_attention_layernorm.weight", {d}, unit);
    add(p + "mlp.gate_proj.weight", {f, d}, unit);
    add(p + "mlp.up_proj.weight", {f, d}, unit);
    add(p + "mlp.down_proj.weight", {d, f}, unit);
  }
  const auto head = static_cast<unit_index>(c.num_hidden_layers + 1);
  first_.push_back(static_cast<tensor_index>(tensors_.size()));
  add("model.norm.weight", {d}, head);
  add("lm_head.weight", {c.vocab_size, d}, head);
  if (c.tie_word_embeddings) {
    tied_ = tied_pair{0, static_cast<tensor_index>(tensors_.size() - 1)};
    tensors_.back().copy_of = tied_->embedding;
    parameters_ -= tensors_.back().size;
  }
  first_.push_back(static_cast<tensor_index>(tensors_.size()));
}

void unit_layout::add(std::string name, std::vector<std::uint64_t> shape,
                      unit_index unit) {
  tensor_info info;
  info.name = std::move(name);
  info.unit = unit;
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

std::uint64_t
activation_size(const model_config& c, unit_index unit, std::uint64_t tokens) {
  const std::uint64_t d = c.hidden_size;
  if (unit == 0) // ids and the gradient of the hidden states
    return tokens * (d + 1);
  if (unit == c.num_hidden_layers + 1) // input, norm, its gradient, logits
    return tokens * (3 * d + 2 + c.vocab_size);
  const std::uint64_t q = c.num_attention_heads * c.head_dim;
  const std::uint64_t kv = c.num_key_value_heads * c.head_dim;
  const std::uint64_t forward = 4 * d + 2 + 2 * q + 2 * kv
                                + c.num_attention_heads
                                + 3 * c.intermediate_size;
  const std::uint64_t backward = 4 * d + q + 2 * kv;
  return tokens * (forward + backward);
}

std::uint64_t
unit_operations(const model_config& c, unit_index unit, std::uint64_t length) {
  const std::uint64_t d = c.hidden_size;
  if (unit == 0) // a copy, and an addition in the backward pass
    return 2 * d;
  if (unit == c.num_hidden_layers + 1)
    return 6 * d * c.vocab_size;
  const std::uint64_t q = c.num_attention_heads * c.head_dim;
  const std::uint64_t kv = c.num_key_value_heads * c.head_dim;
  const std::uint64_t weights =
    2 * d * q + 2 * d * kv + 3 * d * c.intermediate_size;
  // Scores: 2 products forward and 5 backward over half of length^2.
  return 6 * weights + 7 * q * length;
}

} // namespace shoal::model
