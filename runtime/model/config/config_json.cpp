// runtime/model/config/config_json.cpp -- reads and writes config.json.
#include "runtime/core/text/nearest.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/config/config.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::model {

namespace {

using json = nlohmann::json;

/// Reads keys of one object; keeps the first fault and ignores later ones.
class reader {
public:
  /// `kind` may be null: then keys have their usual spelling.
  reader(const json& object, std::string_view where,
         const family* kind = nullptr)
    : object_(object), where_(where), kind_(kind) {}

  bool failed() const { return !fault_.empty(); }
  failure why() const { return {fault_}; }
  void fail(std::string_view key, const std::string& what) {
    if (fault_.empty())
      fault_ = std::string(where_) + ": " + std::string(key) + ": " + what;
  }

  /// Takes over the fault of the reader of an inner object.
  void adopt(const reader& inner) {
    if (fault_.empty())
      fault_ = inner.fault_;
  }

  /// The family's spelling of a key if the object has it, otherwise the usual
  /// one.
  std::string spelled(std::string_view key) const {
    if (kind_ != nullptr)
      for (const key_alias& a : kind_->aliases)
        if (a.usual == key && object_.contains(a.own))
          return std::string(a.own);
    return std::string(key);
  }

  /// @returns nullptr if the key is missing or null.
  const json* find(std::string_view key) const {
    auto it = object_.find(spelled(key));
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  /// Whether the key is there and null: none, instead of the usual value.
  bool is_null(const char* key) const {
    auto it = object_.find(spelled(key));
    return it != object_.end() && it->is_null();
  }

  bool read(const char* key, std::uint64_t& into) {
    const json* value = find(key);
    if (value == nullptr)
      return false;
    if (!value->is_number_unsigned()) {
      fail(spelled(key), "must be a whole number, is " + shown(*value));
      return false;
    }
    into = value->get<std::uint64_t>();
    return true;
  }

  bool read(const char* key, double& into) {
    const json* value = find(key);
    if (value == nullptr)
      return false;
    if (!value->is_number()) {
      fail(spelled(key), "must be a number, is " + shown(*value));
      return false;
    }
    into = value->get<double>();
    return true;
  }

  bool read(const char* key, bool& into) {
    const json* value = find(key);
    if (value == nullptr)
      return false;
    if (!value->is_boolean()) {
      fail(spelled(key), "must be true or false, is " + shown(*value));
      return false;
    }
    into = value->get<bool>();
    return true;
  }

  bool read(const char* key, std::string& into) {
    const json* value = find(key);
    if (value == nullptr)
      return false;
    if (!value->is_string()) {
      fail(spelled(key), "must be a string, is " + shown(*value));
      return false;
    }
    into = value->get<std::string>();
    return true;
  }

  /// A switch of which only one value is supported.
  void only(const char* key, const json& supported) {
    const json* value = find(key);
    if (value != nullptr && *value != supported)
      fail(key, shown(*value) + " is not supported, only "
                  + json_text(supported) + " is");
  }

private:
  const json& object_;
  std::string where_;
  const family* kind_;
  std::string fault_;
};

/// Names of the scaling rules in files, in the order of the enumeration.
constexpr std::string_view rope_types[] = {"default", "linear", "dynamic",
                                           "llama3", "yarn"};

/// YaRN's rule for the factor of cos and sin.
double yarn_size(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

void read_yarn(reader& r, kernels::rope_scaling& s) {
  r.read("beta_fast", s.beta_fast);
  r.read("beta_slow", s.beta_slow);
  r.only("truncate", true);
  double top = 0;
  double bottom = 0;
  r.read("mscale", top);
  r.read("mscale_all_dim", bottom);
  s.attention_factor = top != 0 && bottom != 0 ? yarn_size(s.factor, top)
                                                   / yarn_size(s.factor, bottom)
                                               : yarn_size(s.factor, 1);
  r.read("attention_factor", s.attention_factor);
}

/// The rule and its numbers, from rope_scaling or rope_parameters.
void read_scaling(reader& r, const model_config& c, kernels::rope_scaling& s) {
  using rule = kernels::rope_scaling::rule;
  std::string type = "default";
  const char* key = r.find("rope_type") != nullptr ? "rope_type" : "type";
  r.read(key, type);
  const auto* const known = std::ranges::find(rope_types, type);
  if (known == std::end(rope_types)) {
    r.fail(key, shown(json(type))
                  + " is not supported, only default, linear, dynamic, llama3 "
                    "and yarn are");
    return;
  }
  r.only("partial_rotary_factor", 1.0);
  const auto found = static_cast<rule>(known - std::begin(rope_types));
  if (found == rule::none)
    return;
  s.type = found;
  auto need = [&](const char* name, double& value) {
    if (r.find(name) == nullptr)
      r.fail(name, "is missing");
    r.read(name, value);
  };
  need("factor", s.factor);
  std::uint64_t original = c.max_position_embeddings;
  if (s.type == rule::llama3) {
    need("low_freq_factor", s.low_freq_factor);
    need("high_freq_factor", s.high_freq_factor);
    if (r.find("original_max_position_embeddings") == nullptr)
      r.fail("original_max_position_embeddings", "is missing");
  }
  r.read("original_max_position_embeddings", original);
  s.original = static_cast<double>(original);
  if (s.type == rule::yarn)
    read_yarn(r, s);
}

void read_rope(reader& r, const json& object, std::string_view where,
               model_config& c) {
  r.read("rope_theta", c.rope_theta);
  r.only("partial_rotary_factor", 1.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const json* value = r.find(key);
    if (value == nullptr)
      continue;
    if (!value->is_object()) {
      r.fail(key, "must be an object, is " + shown(*value));
      continue;
    }
    reader inner(*value, std::string(where) + ": " + key);
    for (const auto& [name, item] : value->items())
      if (item.is_object())
        inner.fail(name, "parameters for each type of layer are not supported");
    read_scaling(inner, c, c.rope_scaling);
    double inner_theta = c.rope_theta;
    if (inner.read("rope_theta", inner_theta)) {
      if (object.contains("rope_theta") && r.find("rope_theta") != nullptr
          && inner_theta != c.rope_theta)
        inner.fail("rope_theta", "differs from the outer rope_theta");
      c.rope_theta = inner_theta;
    }
    r.adopt(inner);
  }
}

/// What layer_types says of each layer, if it is there; checked also where no layer
/// may have a window, as it may name attention of another kind.
const json* layer_types(reader& r, std::uint64_t layers) {
  const json* const types = r.find("layer_types");
  if (types == nullptr)
    return nullptr;
  if (!types->is_array() || types->size() != layers)
    r.fail("layer_types", "must be a list of one entry for each layer");
  else
    for (const json& type : *types)
      if (type != "sliding_attention" && type != "full_attention")
        r.fail("layer_types", shown(type)
                                + " is not supported, only sliding_attention "
                                  "and full_attention are");
  return types;
}

/// Which blocks have the sliding window, if any.
void read_windows(reader& r, const family& kind, model_config& c) {
  using window = family::window;
  const json* const types = layer_types(r, c.num_hidden_layers);
  if (kind.windows == window::none)
    return;
  if (r.is_null("sliding_window"))
    c.sliding_window = 0;
  r.read("sliding_window", c.sliding_window);
  const bool needs_switch =
    kind.windows == window::upper || kind.windows == window::switched;
  bool used = !needs_switch;
  if (needs_switch)
    r.read("use_sliding_window", used);
  if (!used)
    c.sliding_window = 0;
  if (c.sliding_window == 0 || kind.windows == window::all
      || kind.windows == window::switched || r.failed()
      || c.num_hidden_layers > layers_max)
    return;
  std::uint64_t first = 28; // transformers' value if it is left out
  r.read("max_window_layers", first);
  std::vector<bool> layers(c.num_hidden_layers);
  for (std::uint64_t i = 0; i < layers.size(); ++i)
    layers[i] = kind.windows == window::alternate ? i % 2 == 0 : i >= first;
  if (types != nullptr)
    for (std::size_t i = 0; i < layers.size(); ++i)
      layers[i] = (*types)[i] == "sliding_attention";
  const auto count = std::count(layers.begin(), layers.end(), true);
  if (count == 0)
    c.sliding_window = 0;
  else if (static_cast<std::size_t>(count) < layers.size())
    c.sliding_layers = std::move(layers);
}

void read_experts(reader& r, const family& kind, model_config& c) {
  r.read("num_experts", c.num_experts);
  r.read("num_experts_per_tok", c.num_experts_per_tok);
  r.read("router_aux_loss_coef", c.router_aux_loss_coef);
  if (kind.norm_topk_key)
    r.read("norm_topk_prob", c.norm_topk_prob);
  r.only("decoder_sparse_step", 1);
  r.only("mlp_only_layers", json::array());
  r.only("router_jitter_noise", 0.0);
}

/// A number that may be null or 0: none.
void read_cap(reader& r, const char* key, double& cap) {
  if (r.is_null(key))
    cap = 0;
  r.read(key, cap);
}

/// One id, or with `many` a list of them; null means none.
std::vector<std::int32_t>
read_ids(reader& r, const json& object, const char* key, std::uint64_t vocab,
         std::vector<std::int32_t> usual, bool many) {
  auto it = object.find(key);
  if (it == object.end()) {
    std::erase_if(usual, [&](std::int32_t id) {
      return static_cast<std::uint64_t>(id) >= vocab;
    });
    return usual;
  }
  if (it->is_null())
    return {};
  std::vector<std::int32_t> ids;
  auto add = [&](const json& id) {
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < vocab)
      ids.push_back(id.get<std::int32_t>());
    else
      r.fail(key, shown(id) + " is not an id below vocab_size");
  };
  if (!it->is_array() || !many)
    add(*it);
  else
    std::for_each(it->begin(), it->end(), add);
  return ids;
}

void read_switches(reader& r, const family& kind, model_config& c) {
  r.read("hidden_act", c.hidden_act);
  if (kind.attention_bias_key)
    r.read("attention_bias", c.attention_bias);
  else
    r.only("attention_bias", false);
  if (kind.mlp_bias_key)
    r.read("mlp_bias", c.mlp_bias);
  else
    r.only("mlp_bias", false);
  for (const char* key :
       {"attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"}) {
    double share = 0;
    r.read(key, share);
    if (!(share >= 0 && share < 1))
      r.fail(key, "must be in 0 .. 1");
    c.wants_dropout |= share > 0;
  }
  r.only("scale_attn_weights", true);
  r.only("scale_attn_by_inverse_layer_idx", false);
  r.only("add_cross_attention", false);
  r.only("use_bidirectional_attention", false);
  if (r.find("quantization_config") != nullptr)
    r.fail("quantization_config",
           "is not supported: weights must be F32, F16 or BF16");
}

/// The families, and the one that a misspelled name probably means.
std::string list_of_families(std::string_view type) {
  std::string names;
  std::vector<std::string_view> known;
  for (const family& f : families()) {
    names += (names.empty() ? "" : ", ") + std::string(f.model_type);
    known.push_back(f.model_type);
  }
  return names + (type.empty() ? "" : core::did_you_mean(type, known));
}

/// Fills `c` from an object whose model_type is known.
void read_keys(reader& r, const family& kind, const json& object,
               std::string_view where, model_config& c) {
  r.read("vocab_size", c.vocab_size);
  r.read("hidden_size", c.hidden_size);
  if (!r.read("intermediate_size", c.intermediate_size)
      && c.intermediate_size == 0 && c.hidden_size <= width_max)
    c.intermediate_size = 4 * c.hidden_size;
  r.read("num_hidden_layers", c.num_hidden_layers);
  r.read("num_attention_heads", c.num_attention_heads);
  if (!kind.rotary || !r.read("num_key_value_heads", c.num_key_value_heads))
    c.num_key_value_heads = c.num_attention_heads;
  if (!kind.rotary || !r.read("head_dim", c.head_dim)) {
    if (kind.usual_head_dim != 0)
      c.head_dim = kind.usual_head_dim;
    else if (c.num_attention_heads == 0
             || c.hidden_size % c.num_attention_heads != 0)
      r.fail("num_attention_heads", std::to_string(c.num_attention_heads)
                                      + " does not divide hidden_size ("
                                      + std::to_string(c.hidden_size)
                                      + ") and head_dim is not given");
    else
      c.head_dim = c.hidden_size / c.num_attention_heads;
  }
  r.read("max_position_embeddings", c.max_position_embeddings);
  r.read("rms_norm_eps", c.rms_norm_eps);
  r.read("initializer_range", c.initializer_range);
  r.read("tie_word_embeddings", c.tie_word_embeddings);
  if (!r.read("dtype", c.torch_dtype))
    r.read("torch_dtype", c.torch_dtype);
  if (kind.rotary)
    read_rope(r, object, where, c);
  read_windows(r, kind, c);
  if (kind.usual.query_pre_attn_scalar != 0
      && r.read("query_pre_attn_scalar", c.query_pre_attn_scalar)
      && c.query_pre_attn_scalar == 0)
    r.fail("query_pre_attn_scalar", "must be above 0");
  if (kind.usual.attn_logit_softcapping != 0)
    read_cap(r, "attn_logit_softcapping", c.attn_logit_softcapping);
  if (kind.usual.final_logit_softcapping != 0)
    read_cap(r, "final_logit_softcapping", c.final_logit_softcapping);
  read_switches(r, kind, c);
  if (r.read("shoal_train_seq_len", c.notes.seq_len)
      && (c.notes.seq_len == 0 || c.notes.seq_len > positions_max))
    r.fail("shoal_train_seq_len",
           "must be in 1 .. " + std::to_string(positions_max));
  r.read("shoal_train_end_of_text", c.notes.end_of_text);
  if (kind.usual.num_experts != 0)
    read_experts(r, kind, c);
  std::vector<std::int32_t> usual_bos;
  if (c.bos_token_id)
    usual_bos.push_back(*c.bos_token_id);
  auto bos =
    read_ids(r, object, "bos_token_id", c.vocab_size, usual_bos, false);
  c.bos_token_id.reset();
  if (!bos.empty())
    c.bos_token_id = bos.front();
  c.eos_token_ids =
    read_ids(r, object, "eos_token_id", c.vocab_size, c.eos_token_ids, true);
  if (const json* pad = r.find("pad_token_id");
      pad != nullptr && pad->is_number_unsigned()
      && pad->get<std::uint64_t>() < c.vocab_size)
    c.notes.pad_token_id = pad->get<std::int32_t>();
}

} // namespace

result<model_config> parse_config(std::string_view text, std::string_view where,
                                  std::string_view usual_type) {
  if (text.size() > config_bytes_max)
    return failure{std::string(where) + ": longer than "
                   + std::to_string(config_bytes_max) + " bytes"};
  const auto parsed = parse_json_object(text, where);
  if (!parsed)
    return parsed.why();
  const json& object = *parsed;
  std::string type(usual_type);
  reader naming(object, where);
  if (!naming.read("model_type", type) && type.empty())
    naming.fail("model_type", "is missing; known: " + list_of_families({}));
  const auto& all = families();
  const auto kind = std::find_if(all.begin(), all.end(), [&](const family& f) {
    return f.model_type == type;
  });
  if (kind == all.end())
    naming.fail("model_type", shown(json(type)) + " is not supported; known: "
                                + list_of_families(type));
  if (naming.failed())
    return naming.why();
  reader r(object, where, &*kind);
  model_config c = kind->usual;
  c.model_type = type;
  read_keys(r, *kind, object, where, c);
  if (r.failed())
    return r.why();
  if (status checked = check_config(c, where); !checked)
    return checked.why();
  return c;
}

namespace {

/// The rule and its numbers as rope_parameters has them.
nlohmann::ordered_json rope_of(const model_config& c) {
  using rule = kernels::rope_scaling::rule;
  const kernels::rope_scaling& s = c.rope_scaling;
  nlohmann::ordered_json o;
  o["rope_type"] = rope_types[static_cast<std::size_t>(s.type)];
  o["rope_theta"] = c.rope_theta;
  if (s.type == rule::none)
    return o;
  o["factor"] = s.factor;
  const auto original = static_cast<std::uint64_t>(s.original);
  // transformers warns of it where it has no use for it.
  if (s.type == rule::llama3 || s.type == rule::yarn
      || (s.type == rule::dynamic && original != c.max_position_embeddings))
    o["original_max_position_embeddings"] = original;
  if (s.type == rule::llama3) {
    o["low_freq_factor"] = s.low_freq_factor;
    o["high_freq_factor"] = s.high_freq_factor;
  }
  if (s.type == rule::yarn) {
    o["beta_fast"] = s.beta_fast;
    o["beta_slow"] = s.beta_slow;
    o["attention_factor"] = s.attention_factor;
  }
  return o;
}

void write_windows(nlohmann::ordered_json& o, const family& kind,
                   const model_config& c) {
  using window = family::window;
  if (kind.windows == window::none)
    return;
  const bool used = c.sliding_window != 0;
  o["sliding_window"] = nullptr;
  if (used)
    o["sliding_window"] = c.sliding_window;
  std::uint64_t first = c.num_hidden_layers; // the first that has it
  for (std::uint64_t i = c.num_hidden_layers; i-- > 0;)
    if (window_of(c, i) != 0)
      first = i;
  if (kind.windows == window::upper || kind.windows == window::switched)
    o["use_sliding_window"] = used;
  if (kind.windows == window::upper)
    o["max_window_layers"] = first;
  if (!used || kind.windows == window::all || kind.windows == window::switched)
    return;
  for (std::uint64_t i = 0; i < c.num_hidden_layers; ++i)
    o["layer_types"].push_back(window_of(c, i) != 0 ? "sliding_attention"
                                                    : "full_attention");
}

void write_caps(nlohmann::ordered_json& o, const family& kind,
                const model_config& c) {
  auto write = [&](const char* key, double usual, double value) {
    if (usual == 0)
      return;
    o[key] = nullptr;
    if (value != 0)
      o[key] = value;
  };
  const model_config& usual = kind.usual;
  write("attn_logit_softcapping", usual.attn_logit_softcapping,
        c.attn_logit_softcapping);
  write("final_logit_softcapping", usual.final_logit_softcapping,
        c.final_logit_softcapping);
  if (usual.query_pre_attn_scalar == 0)
    return;
  const double scalar = c.query_pre_attn_scalar;
  o["query_pre_attn_scalar"] = scalar;
  if (scalar == std::floor(scalar)) // transformers wants a whole number
    o["query_pre_attn_scalar"] = static_cast<std::uint64_t>(scalar);
}

} // namespace

std::string to_json(const model_config& c) {
  const family& kind = family_of(c);
  auto spelled = [&](std::string_view key) {
    for (const key_alias& a : kind.aliases)
      if (a.usual == key)
        return std::string(a.own);
    return std::string(key);
  };
  nlohmann::ordered_json o;
  o["architectures"] = {kind.architecture};
  o["model_type"] = c.model_type;
  o["vocab_size"] = c.vocab_size;
  o[spelled("hidden_size")] = c.hidden_size;
  o[spelled("intermediate_size")] = c.intermediate_size;
  o[spelled("num_hidden_layers")] = c.num_hidden_layers;
  o[spelled("num_attention_heads")] = c.num_attention_heads;
  if (kind.rotary) {
    o["num_key_value_heads"] = c.num_key_value_heads;
    o["head_dim"] = c.head_dim;
  }
  o[spelled("hidden_act")] = c.hidden_act;
  o[spelled("max_position_embeddings")] = c.max_position_embeddings;
  o["initializer_range"] = c.initializer_range;
  o[spelled("rms_norm_eps")] = c.rms_norm_eps;
  if (kind.rotary) {
    o["rope_theta"] = c.rope_theta;
    o["rope_parameters"] = rope_of(c);
    if (c.rope_scaling.type != kernels::rope_scaling::rule::none)
      o["rope_scaling"] = o["rope_parameters"]; // the older spelling
  }
  write_windows(o, kind, c);
  write_caps(o, kind, c);
  if (c.num_experts != 0) {
    o[spelled("num_experts")] = c.num_experts;
    if (kind.norm_topk_key) // transformers 4 knows this spelling, 5 both
      o["num_experts"] = c.num_experts;
    o["num_experts_per_tok"] = c.num_experts_per_tok;
    o["router_aux_loss_coef"] = c.router_aux_loss_coef;
    if (kind.norm_topk_key) {
      o["norm_topk_prob"] = c.norm_topk_prob;
      o["decoder_sparse_step"] = 1;
      o["mlp_only_layers"] = nlohmann::json::array();
    }
  }
  o["tie_word_embeddings"] = c.tie_word_embeddings;
  if (kind.attention_bias_key)
    o["attention_bias"] = c.attention_bias;
  if (kind.mlp_bias_key)
    o["mlp_bias"] = c.mlp_bias;
  if (kind.rotary)
    o["attention_dropout"] = 0.0;
  else
    for (const char* key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
      o[key] = 0.0;
  o["torch_dtype"] = "float32";
  o["bos_token_id"] = nullptr;
  if (c.bos_token_id)
    o["bos_token_id"] = *c.bos_token_id;
  o["eos_token_id"] = nullptr;
  if (c.eos_token_ids.size() == 1)
    o["eos_token_id"] = c.eos_token_ids.front();
  else if (!c.eos_token_ids.empty())
    o["eos_token_id"] = c.eos_token_ids;
  o["pad_token_id"] = nullptr;
  if (c.notes.pad_token_id)
    o["pad_token_id"] = *c.notes.pad_token_id;
  o["use_cache"] = true;
  if (c.notes.seq_len > 0)
    o["shoal_train_seq_len"] = c.notes.seq_len;
  if (c.notes.end_of_text)
    o["shoal_train_end_of_text"] = true;
  return json_text(o, 2) + "\n";
}

} // namespace shoal::model
