// runtime/model/gguf/gguf_model.cpp -- keys to config.json, names to names.
#include "runtime/model/gguf/gguf_model.hpp"

#include "runtime/files/json.hpp"
#include "runtime/model/gguf/gguf_blocks.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>

namespace shoal::model::gguf {

namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view factors_name = "rope_freqs.weight";

/// The frequencies of llama 3's scaling, as factors by which they are divided.
struct llama3_scaling {
  double factor = 1;
  double positions = 8192; ///< that the model had before
  static constexpr double low = 1, high = 4;

  double of(double theta, std::uint64_t dim, std::uint64_t i) const {
    const double wave =
      2 * std::numbers::pi * std::pow(theta, 2 * double(i) / double(dim));
    if (wave < positions / high)
      return 1;
    if (wave > positions / low)
      return factor;
    const double smooth = (positions / wave - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  }
  bool fits(std::span<const float> factors, double theta) const {
    for (std::uint64_t i = 0; i < factors.size(); ++i)
      if (!(std::abs(of(theta, 2 * factors.size(), i) - double(factors[i]))
            <= 1e-3 * double(factors[i])))
        return false;
    return true;
  }
};

/// The rule of which these are the factors; nothing where there is none.
std::optional<llama3_scaling>
llama3_rule(std::span<const float> factors, double theta) {
  std::vector<double> positions{8192}; // of all models of that family so far
  for (double n = 16; n <= double(1 << 20); n *= 2)
    positions.push_back(n);
  for (const double n : positions)
    if (const llama3_scaling rule{double(factors.back()), n};
        rule.fits(factors, theta))
      return rule;
  return {};
}

/// Files name the factors, not their rule; all files that have them are of llama 3.
result<json> scaling_of(const file& from, double theta, std::uint64_t dim) {
  const tensor* t = from.find_tensor(factors_name);
  const auto wrong = [&](const std::string& why) {
    return failure{from.where() + ": tensor " + std::string(factors_name) + ": "
                   + why};
  };
  if (t->type != block_type::f32 || t->count != dim / 2)
    return wrong("is no list of " + std::to_string(dim / 2) + " F32 values");
  std::vector<float> factors(t->count);
  to_floats(t->type, t->data, factors);
  const auto rule = llama3_rule(factors, theta);
  if (!rule)
    return wrong("its factors are not those of llama 3, with a "
                 "low_freq_factor of 1, a high_freq_factor of 4 and a power of "
                 "2 of positions");
  return json{
    {"rope_type", "llama3"},
    {"factor", rule->factor},
    {"low_freq_factor", llama3_scaling::low},
    {"high_freq_factor", llama3_scaling::high},
    {"original_max_position_embeddings", std::uint64_t(rule->positions)}};
}

/// The file has numbers as floats; config.json had 1e-05 before.
double as_written(double value) {
  char text[32];
  const auto end =
    std::to_chars(std::begin(text), std::end(text), float(value)).ptr;
  double out = value;
  std::from_chars(std::begin(text), end, out);
  return out;
}

/// Reads the keys of one architecture; the first fault stays.
class reader {
public:
  reader(const file& from, std::string prefix)
    : from_(from), prefix_(std::move(prefix)) {}

  std::uint64_t
  whole(const char* key, std::optional<std::uint64_t> usual = {}) {
    const std::string name = prefix_ + key;
    auto v = usual ? from_.whole(name, *usual) : from_.whole(name);
    if (v)
      return *v;
    if (!wrong)
      wrong = v.message();
    return 0;
  }
  double real(const char* key, double usual) {
    auto v = from_.real(prefix_ + key, usual);
    if (v)
      return as_written(*v);
    if (!wrong)
      wrong = v.message();
    return 0;
  }

  std::optional<std::string> wrong;

private:
  const file& from_;
  std::string prefix_;
};

} // namespace

result<model_config> config_of(const file& from) {
  const auto family = from.text("general.architecture");
  if (!family)
    return family.why();
  if (*family != "llama" && *family != "qwen2" && *family != "qwen3")
    return failure{from.where() + ": key general.architecture: is "
                   + std::string(*family) + ", must be llama, qwen2 or qwen3"};
  const std::string prefix = std::string(*family) + ".";
  reader keys(from, prefix);
  json o;
  o["model_type"] = *family;
  const std::uint64_t width = keys.whole("embedding_length");
  const std::uint64_t heads = keys.whole("attention.head_count");
  const std::uint64_t dim =
    keys.whole("attention.key_length", heads == 0 ? 0 : width / heads);
  o["hidden_size"] = width;
  o["intermediate_size"] = keys.whole("feed_forward_length");
  o["num_hidden_layers"] = keys.whole("block_count");
  o["num_attention_heads"] = heads;
  o["num_key_value_heads"] = keys.whole("attention.head_count_kv", heads);
  o["head_dim"] = dim;
  o["max_position_embeddings"] = keys.whole("context_length");
  o["rms_norm_eps"] = keys.real("attention.layer_norm_rms_epsilon", 1e-5);
  const double theta = keys.real("rope.freq_base", 10000);
  o["rope_theta"] = theta;
  if (keys.wrong)
    return failure{*keys.wrong};
  const auto same = [&](const char* key, std::uint64_t must) -> status {
    const auto is = from.whole(prefix + key, must);
    if (!is)
      return is.why();
    if (*is != must)
      return failure{from.where() + ": key " + prefix + key + ": is "
                     + std::to_string(*is) + "; only " + std::to_string(must)
                     + " can be read"};
    return done{};
  };
  for (const auto& [key, must] : {std::pair{"rope.dimension_count", dim},
                                  {"attention.value_length", dim},
                                  {"expert_count", std::uint64_t{0}}})
    if (status ok = same(key, must); !ok)
      return ok.why();
  if (const std::string key = prefix + "rope.scaling.type"; from.find(key)) {
    const auto type = from.text(key);
    if (!type)
      return type.why();
    if (*type != "none")
      return failure{from.where() + ": key " + key + ": is "
                     + std::string(*type) + ", which cannot be read"};
  }
  if (from.find_tensor(factors_name) != nullptr) {
    auto scaling = scaling_of(from, theta, dim);
    if (!scaling)
      return scaling.why();
    o["rope_scaling"] = *scaling;
  }
  const tensor* embedding = from.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    return failure{from.where()
                   + ": tensor token_embd.weight: is missing, or no matrix"};
  o["vocab_size"] = embedding->shape[0];
  o["tie_word_embeddings"] = from.find_tensor("output.weight") == nullptr;
  if (*family != "qwen2")
    o["attention_bias"] = from.find_tensor("blk.0.attn_q.bias") != nullptr;
  if (*family == "llama")
    o["mlp_bias"] = from.find_tensor("blk.0.ffn_up.bias") != nullptr;
  const auto id = [&](const char* key) -> json {
    const auto v = from.whole(key, vocabulary_max);
    return v && *v < vocabulary_max ? json(*v) : json(nullptr);
  };
  o["bos_token_id"] = id("tokenizer.ggml.bos_token_id");
  o["pad_token_id"] = id("tokenizer.ggml.padding_token_id");
  json ends = json::array();
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (const json end = id(key);
        !end.is_null() && std::ranges::find(ends, end) == ends.end())
      ends.push_back(end);
  o["eos_token_id"] = ends.empty() ? json(nullptr) : ends;
  return parse_config(json_text(o), from.where());
}

namespace {

struct name_pair {
  std::string_view file, model;
};
constexpr name_pair whole_model[] = {
  {"token_embd", "model.embed_tokens"},
  {"output_norm", "model.norm"},
  {"output", "lm_head"},
};
constexpr name_pair of_block[] = {
  {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
  {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
  {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
  {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
  {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
  {"ffn_down", "mlp.down_proj"},
};

template <std::size_t N>
std::string_view renamed(const name_pair (&table)[N], std::string_view name) {
  const auto at = std::ranges::find(table, name, &name_pair::file);
  return at == std::end(table) ? std::string_view() : at->model;
}

} // namespace

result<std::vector<named_tensor>>
tensors_of(const file& from, const model_config& config) {
  std::vector<named_tensor> out;
  const bool pairs = config.model_type == "llama";
  for (const auto& [name, t] : from.tensors()) {
    if (name == factors_name)
      continue;
    const auto unknown = [&, &name = name] {
      return failure{from.where() + ": tensor " + name
                     + ": is none that a model of family " + config.model_type
                     + " has"};
    };
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos)
      return unknown();
    const std::string_view kind = std::string_view(name).substr(dot);
    if (kind != ".weight" && kind != ".bias")
      return unknown();
    std::string_view own = std::string_view(name).substr(0, dot);
    named_tensor& to = out.emplace_back();
    to.from = &t;
    constexpr std::string_view block = "blk.";
    if (own.starts_with(block)) {
      own.remove_prefix(block.size());
      const std::size_t end = own.find('.');
      if (end == std::string_view::npos)
        return unknown();
      const std::string_view layer = own.substr(0, end);
      own.remove_prefix(end + 1);
      const std::string_view inner = renamed(of_block, own);
      if (inner.empty())
        return unknown();
      to.name = "model.layers." + std::string(layer) + "." + std::string(inner)
                + std::string(kind);
      if (pairs && own == "attn_q")
        to.rotary_heads = config.num_attention_heads;
      if (pairs && own == "attn_k")
        to.rotary_heads = config.num_key_value_heads;
      if (to.rotary_heads != 0
          && t.shape.front() != to.rotary_heads * config.head_dim)
        return failure{from.where() + ": tensor " + name + ": has "
                       + std::to_string(t.shape.front())
                       + " rows, and not those of "
                       + std::to_string(to.rotary_heads) + " heads"};
      if (to.rotary_heads != 0 && config.head_dim % 2 != 0)
        return failure{from.where() + ": tensor " + name
                       + ": its heads have an odd number of rows"};
    } else {
      const std::string_view whole = renamed(whole_model, own);
      if (whole.empty())
        return unknown();
      to.name = std::string(whole) + std::string(kind);
    }
  }
  std::ranges::sort(out, {}, &named_tensor::name);
  return out;
}

} // namespace shoal::model::gguf
