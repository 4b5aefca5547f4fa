// runtime/model/units.hpp -- the state of a model as numbered units of tensors.
//
// A pipeline stage consists of units: unit 0 is the embedding, units 1..L are
// the decoder blocks, unit L+1 is the final norm with the head. Unit u is part u
// of a job's state (core/state/parts.hpp). Each tensor has one place in the global
// order, one unit, and one range of the unit's contiguous values: loading,
// transfer, reduction, optimizer and checkpoint all use the same spans.
//
// Tied embeddings: the head's weight is the same tensor as the embedding. The
// last unit then holds its own copy of it ("lm_head.weight", marked copy_of),
// which is in no file and not in the parameter count. After each step's
// reduction the gradients of both must be exchanged: the holder of unit 0 sends
// its gradient of tied()->embedding to the holder of the last unit and receives
// that of tied()->head, and both compute embedding + head, in this order
// (sum_tied() in unit_state.hpp), before the norm is computed. Then both apply
// the same optimizer step and so keep the same bits. The norm counts the tensor
// once: sums_of_squares() leaves copies out.
//
// Units: sizes and offsets count values (floats), not bytes.
#pragma once

#include "runtime/model/config/config.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace shoal::model {

/// Position of a tensor in the global order.
using tensor_index = std::uint32_t;
/// Position of a unit: 0 .. L + 1.
using unit_index = std::uint32_t;

/// The role of a tensor. A bias is the role after that of its weight.
enum class tensor_role : std::uint8_t {
  embedding,
  position_embedding,
  attention_norm,
  attention_norm_bias,
  q,
  q_bias,
  k,
  k_bias,
  v,
  v_bias,
  qkv, ///< q, k and v in one tensor
  qkv_bias,
  q_norm,
  k_norm,
  o,
  o_bias,
  attention_post_norm,
  mlp_norm,
  mlp_norm_bias,
  gate,
  gate_bias,
  up,
  up_bias,
  down,
  down_bias,
  mlp_post_norm,
  router, ///< logits of the experts
  final_norm,
  final_norm_bias,
  head
};

/// tensor_info::expert of a tensor that belongs to no expert.
inline constexpr std::uint32_t no_expert = 0xffffffff;

/// The fixed properties of one tensor.
struct tensor_info {
  std::string name;                 ///< as Hugging Face files name it
  std::vector<std::uint64_t> shape; ///< rows first
  unit_index unit = 0;
  tensor_role role = tensor_role::embedding;
  std::uint32_t expert = no_expert; ///< that gate, up or down belongs to
  std::size_t offset = 0;           ///< first value within the unit
  std::size_t size = 0;             ///< product of the shape
  /// The tensor that this one must always equal (tied embeddings).
  std::optional<tensor_index> copy_of;
};

/// Part of a tensor: [first, last) of one dimension.
struct slice {
  tensor_index tensor = 0;
  std::uint32_t dimension = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  bool operator==(const slice&) const = default;
};

/// The two tensors that share values.
struct tied_pair {
  tensor_index embedding = 0; ///< in unit 0
  tensor_index head = 0;      ///< in the last unit
};

/// The tensors of each unit, in order. Immutable; share it by shared_ptr.
class unit_layout {
public:
  /// @pre check_config(config) succeeds
  explicit unit_layout(const model_config& config);

  const model_config& config() const noexcept { return config_; }
  unit_index unit_count() const noexcept {
    return unit_index(first_.size()) - 1;
  }
  unit_index head_unit() const noexcept { return unit_count() - 1; }
  /// All tensors in the global order, copies included.
  std::span<const tensor_info> tensors() const noexcept { return tensors_; }
  std::span<const tensor_info> tensors_of(unit_index unit) const;
  /// Index of the first tensor of `unit` in the global order.
  tensor_index first_tensor(unit_index unit) const { return first_.at(unit); }
  /// Values in the buffer of `unit`.
  std::size_t unit_size(unit_index unit) const;
  /// Parameters of the model; a tied tensor counts once.
  std::uint64_t parameter_count() const noexcept { return parameters_; }
  std::optional<tied_pair> tied() const noexcept { return tied_; }
  /// @returns nothing if no tensor has this name.
  std::optional<tensor_index> find(std::string_view name) const;

  /// The slice that covers all of `tensor`.
  slice whole(tensor_index tensor) const;

private:
  void add(std::string name, std::vector<std::uint64_t> shape, unit_index unit,
           tensor_role role, std::uint32_t expert = no_expert);
  void add_block(std::uint64_t layer);

  model_config config_;
  std::vector<tensor_info> tensors_;
  std::vector<tensor_index> first_; ///< of each unit, and one past the last
  std::uint64_t parameters_ = 0;
  std::optional<tied_pair> tied_;
};

/// The name in files that lack the first part of a tensor's name, as some GPT-2
/// files do: "h.0.ln_1.weight". @returns the name itself if it has no such part
std::string_view short_name(const tensor_info& tensor);

/// The number of logits, or gradients of logits, of a microbatch that exist at
/// once, in floats. All of them, from the forward pass to W, if they are few
/// enough. Otherwise a block of rows at a time: the forward pass computes it
/// for losses and input gradients, and W once more, which is a fourth product
/// beside the head's three. Without training, rows are always processed in
/// blocks. Shapes alone decide.
struct logits_budget {
  /// 256 MiB: 1,024 tokens of GPT-2 (206 MB), 4,096 of a vocabulary of 16,384.
  std::uint64_t kept_max = 1u << 26;
  /// 64 MiB: 320 rows of GPT-2, 128 of Llama 3. Each block packs the head's
  /// weight again, which costs about a third of a product of 128 rows.
  std::uint64_t block_max = 1u << 24;

  bool keeps(std::uint64_t rows, std::uint64_t vocab_size) const {
    return rows * vocab_size <= kept_max;
  }
  /// Rows of a block, at least one; the last block may have fewer.
  std::uint64_t block_rows(std::uint64_t rows, std::uint64_t vocab_size) const;
};

/// Floats that a microbatch of `tokens` (sequences * length) keeps for one unit
/// between forward and W, and a block of logits; the planner uses it for
/// memory.
std::uint64_t
activation_size(const model_config& config, unit_index unit,
                std::uint64_t tokens, const logits_budget& logits = {});

/// Floating-point operations of forward, B and W together for one token of a
/// sequence of `length`; if `unit` is a block, the mean over all blocks.
std::uint64_t unit_operations(const model_config& config, unit_index unit,
                              std::uint64_t length);

} // namespace shoal::model
