// runtime/model/config/config.hpp -- the description of a model in its
// config.json.
//
// The names are those of Hugging Face's file. A key that a file leaves out gets
// the family's usual value. A family is a row of a table of names and switches,
// not a class.
//
// Errors: a failure names the key and the possible values.
#pragma once

#include "kernels/layers/rope.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/config/word_rules.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

/// Upper bounds for a config.json: far above any existing model, and low enough
/// that no product of two of them overflows 64 bits.
inline constexpr std::uint64_t width_max = 1u << 20;
inline constexpr std::uint64_t layers_max = core::limits::blocks_max;
inline constexpr std::uint64_t vocabulary_max = 1u << 24;
inline constexpr std::uint64_t positions_max = 1u << 24;
inline constexpr std::uint64_t experts_max = 1u << 12;
/// Tensors of a model: some 200 bytes each, before any weight is read. Mixtures
/// of 400 experts in 60 layers have 72,000.
inline constexpr std::uint64_t model_tensors_max = 1u << 18;
/// A longer config.json is refused unread.
inline constexpr std::uint64_t config_bytes_max = 4u << 20;

/// What a config.json says beside what the model computes: any two of these are
/// equal.
struct model_notes {
  /// Of its training sequences, in tokens; 0: unknown. The key is
  /// "shoal_train_seq_len".
  std::uint64_t seq_len = 0;
  /// Its .jsonl documents ended with such a token. The key is
  /// "shoal_train_end_of_text".
  bool end_of_text = false;
  /// For other programs, which fill up batches with it. Values that are no id
  /// of the model (files have -1) are left out.
  std::optional<std::int32_t> pad_token_id;
  friend bool operator==(const model_notes&, const model_notes&) {
    return true;
  }
};

/// A checked configuration; the defaults are those of the llama family. A field
/// that a family does not use keeps its default.
struct model_config {
  std::string model_type = "llama";
  std::uint64_t vocab_size = 32000;
  std::uint64_t hidden_size = 4096;
  std::uint64_t intermediate_size = 11008;
  std::uint64_t num_hidden_layers = 32;
  std::uint64_t num_attention_heads = 32;
  std::uint64_t num_key_value_heads = 32; ///< left out: as many as heads
  std::uint64_t head_dim = 128;           ///< left out: hidden_size / heads
  std::uint64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6; ///< gpt2: layer_norm_epsilon
  double rope_theta = 10000;
  kernels::rope_scaling rope_scaling;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  std::string hidden_act = "silu"; ///< silu, gelu, gelu_new, ...
  bool attention_bias = false;     ///< of q, k, v and the output
  bool mlp_bias = false;
  std::uint64_t sliding_window = 0;  ///< tokens that are seen; 0: all
  std::vector<bool> sliding_layers;  ///< blocks with that window; empty: all
  double query_pre_attn_scalar = 0;  ///< 0: head_dim
  double attn_logit_softcapping = 0; ///< 0: none
  double final_logit_softcapping = 0;
  std::uint64_t num_experts = 0;         ///< of each block; 0: one MLP
  std::uint64_t num_experts_per_tok = 0; ///< of them serve a token
  bool norm_topk_prob = true;            ///< their weights add up to 1
  /// The factor of the loss of the balance between experts; 0: none. It affects
  /// the routers in training; reported losses leave it out.
  double router_aux_loss_coef = 0;
  std::string torch_dtype = "float32"; ///< of the files, not of arithmetic
  std::optional<std::int32_t> bos_token_id = 1;
  std::vector<std::int32_t> eos_token_ids = {2}; ///< may be empty
  /// The file asks for dropout in training; it is taken as 0.
  bool wants_dropout = false;
  model_notes notes;

  bool operator==(const model_config&) const = default;
};

/// A key of config.json that a family spells in its own way.
struct key_alias {
  std::string_view usual;
  std::string_view own;
};

/// Names and switches of one model family.
struct family {
  std::string_view model_type;   ///< the value of "model_type"
  std::string_view architecture; ///< the entry of "architectures"
  model_config usual;            ///< what a file leaves out
  std::vector<key_alias> aliases;
  /// For a tokenizer trained for the family: AutoTokenizer of transformers 5.1
  /// and later cuts words for qwen2 as its class does, whatever the file
  /// contains.
  text::word_rules words = text::word_rules::gpt2;
  std::uint64_t usual_head_dim = 0; ///< 0: hidden_size / heads
  bool layer_norm = false;          ///< LayerNorm with biases, not RMSNorm
  float norm_offset = 0;            ///< a norm's weight w stands for w + this
  bool post_norms = false;          ///< each half block's sum is normalized
  bool head_norms = false;          ///< RMSNorm of each query and key head
  bool rotary = true;               ///< or learned position embeddings
  bool gated = true;                ///< MLP: act(gate) * up, or act(up)
  bool scaled_embeddings = false;   ///< multiplied by sqrt(hidden_size)
  bool qkv_bias = false;            ///< always; otherwise see attention_bias
  bool output_bias = false;         ///< of the attention; as above
  bool mlp_bias = false;            ///< always; otherwise see mlp_bias
  bool in_out_weights = false;      ///< blocks' weights lie [in, out] in files
  bool attention_bias_key = false;  ///< config.json has attention_bias
  bool mlp_bias_key = false;        ///< config.json has mlp_bias
  bool norm_topk_key = false;       ///< config.json has norm_topk_prob
  /// Which blocks have the sliding window if layer_types is missing.
  enum class window : std::uint8_t {
    none,      ///< no such key
    all,       ///< sliding_window: all blocks
    switched,  ///< use_sliding_window: all blocks
    upper,     ///< use_sliding_window: from max_window_layers on
    alternate, ///< the first, the third, ...
  } windows = window::none;
};

/// The supported families.
const std::vector<family>& families();

/// The row of a configuration. @pre its model_type is one of them
const family& family_of(const model_config& config);

/// The number of tensors of a model, or a few more for each layer: some
/// families hold q, k and v in one. unit_layout makes as many descriptions.
std::uint64_t tensor_count(const model_config& config);

/// The function that the MLP applies to its hidden values.
enum class mlp_function : std::uint8_t { silu, gelu, gelu_tanh };
/// @returns nothing if the name is not known.
std::optional<mlp_function> mlp_function_of(std::string_view hidden_act);

/// The number of tokens, including itself, that a token sees in block `layer`,
/// counted from 0; 0: all.
std::uint64_t window_of(const model_config& config, std::uint64_t layer);

/// Reads the text of a config.json. `where` (a path, or "[model]" of a run
/// file) begins every failure. Unknown keys are ignored, since files carry
/// many; `known_keys()` lists the others, for callers that want to refuse
/// misspelt ones. A text without model_type is of `usual_type`, or a failure if
/// that is empty.
result<model_config>
parse_config(std::string_view json, std::string_view where = "config.json",
             std::string_view usual_type = "llama");

/// Checks what parse_config() checks, for a configuration made by hand.
status check_config(const model_config& config,
                    std::string_view where = "config.json");

/// The text of a config.json that transformers can load. It names float32, the
/// type that is written.
std::string to_json(const model_config& config);

/// Every key that parse_config() uses.
const std::vector<std::string_view>& known_keys();

/// What to suggest for a mistyped key: the nearest one as most families spell it, but
/// for a slip in another's. "layers" is near gpt2's "n_layer", and most families call
/// that "num_hidden_layers".
std::string_view
suggested_key(std::string_view mistyped, std::string_view nearest);

} // namespace shoal::model
