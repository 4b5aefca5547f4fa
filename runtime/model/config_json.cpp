// runtime/model/config_json.cpp -- config.json, read and written.
#include "runtime/model/config.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace shoal::model {

namespace {

using json = nlohmann::json;

/// Reads keys of one object; keeps the first fault and ignores what follows.
class reader {
public:
  reader(const json& object, std::string_view where)
    : object_(object), where_(where) {}

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

  /// @returns nullptr if the key is missing or null.
  const json* find(const char* key) const {
    auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  bool read(const char* key, std::uint64_t& into) {
    const json* value = find(key);
    if (value == nullptr)
      return false;
    if (!value->is_number_unsigned()) {
      fail(key, "must be a whole number, is " + value->dump());
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
      fail(key, "must be a number, is " + value->dump());
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
      fail(key, "must be true or false, is " + value->dump());
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
      fail(key, "must be a string, is " + value->dump());
      return false;
    }
    into = value->get<std::string>();
    return true;
  }

  /// A switch that only one value of is supported.
  void only(const char* key, const json& supported) {
    const json* value = find(key);
    if (value != nullptr && *value != supported)
      fail(key, value->dump() + " is not supported, only " + supported.dump()
                  + " is");
  }

private:
  const json& object_;
  std::string where_;
  std::string fault_;
};

void read_rope(reader& r, const json& object, std::string_view where,
               double& theta) {
  r.read("rope_theta", theta);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const json* value = r.find(key);
    if (value == nullptr)
      continue;
    if (!value->is_object()) {
      r.fail(key, "must be an object, is " + value->dump());
      continue;
    }
    reader inner(*value, std::string(where) + ": " + key);
    inner.only("rope_type", "default");
    inner.only("type", "default");
    inner.only("partial_rotary_factor", 1.0);
    double inner_theta = theta;
    if (inner.read("rope_theta", inner_theta)) {
      if (object.contains("rope_theta") && r.find("rope_theta") != nullptr
          && inner_theta != theta)
        inner.fail("rope_theta", "differs from the outer rope_theta");
      theta = inner_theta;
    }
    r.adopt(inner);
  }
}

/// One id, or with `many` a list of them; null means none.
std::vector<std::int32_t>
read_ids(reader& r, const json& object, const char* key, std::uint64_t vocab,
         std::int32_t usual, bool many) {
  auto it = object.find(key);
  if (it == object.end()) {
    if (static_cast<std::uint64_t>(usual) < vocab)
      return {usual};
    return {};
  }
  if (it->is_null())
    return {};
  json list = it->is_array() && many ? *it : json::array({*it});
  std::vector<std::int32_t> ids;
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab) {
      r.fail(key, id.dump() + " is not an id below vocab_size");
      return {};
    }
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

void read_switches(reader& r) {
  r.only("hidden_act", "silu");
  r.only("attention_bias", false);
  r.only("mlp_bias", false);
  r.only("attention_dropout", 0.0);
  if (const json* value = r.find("quantization_config"))
    r.fail("quantization_config",
           value->dump()
             + " is not supported: weights must be F32, F16 or "
               "BF16");
}

std::string list_of_families() {
  std::string names;
  for (const family& f : families())
    names += (names.empty() ? "" : ", ") + std::string(f.model_type);
  return names;
}

/// Fills `c` from an object whose model_type is known.
void read_keys(reader& r, const json& object, std::string_view where,
               model_config& c) {
  r.read("vocab_size", c.vocab_size);
  r.read("hidden_size", c.hidden_size);
  r.read("intermediate_size", c.intermediate_size);
  r.read("num_hidden_layers", c.num_hidden_layers);
  r.read("num_attention_heads", c.num_attention_heads);
  if (!r.read("num_key_value_heads", c.num_key_value_heads))
    c.num_key_value_heads = c.num_attention_heads;
  if (!r.read("head_dim", c.head_dim)) {
    if (c.num_attention_heads == 0
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
  read_rope(r, object, where, c.rope_theta);
  read_switches(r);
  auto bos = read_ids(r, object, "bos_token_id", c.vocab_size, 1, false);
  c.bos_token_id.reset();
  if (!bos.empty())
    c.bos_token_id = bos.front();
  c.eos_token_ids = read_ids(r, object, "eos_token_id", c.vocab_size, 2, true);
}

} // namespace

result<model_config>
parse_config(std::string_view text, std::string_view where) {
  if (text.size() > config_bytes_max)
    return failure{std::string(where) + ": longer than "
                   + std::to_string(config_bytes_max) + " bytes"};
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded())
    return failure{std::string(where) + ": is not valid JSON"};
  if (!object.is_object())
    return failure{std::string(where) + ": is not a JSON object"};
  reader r(object, where);
  model_config c;
  r.read("model_type", c.model_type);
  const bool known =
    std::any_of(families().begin(), families().end(),
                [&](const family& f) { return f.model_type == c.model_type; });
  if (!known)
    r.fail(
      "model_type",
      json(c.model_type).dump(-1, ' ', true, json::error_handler_t::replace)
        + " is not supported; known: " + list_of_families());
  if (!r.failed())
    read_keys(r, object, where, c);
  if (r.failed())
    return r.why();
  if (status checked = check_config(c, where); !checked)
    return checked.why();
  return c;
}

std::string to_json(const model_config& c) {
  nlohmann::ordered_json o;
  for (const family& f : families()) {
    if (f.model_type == c.model_type)
      o["architectures"] = {f.architecture};
  }
  o["model_type"] = c.model_type;
  o["vocab_size"] = c.vocab_size;
  o["hidden_size"] = c.hidden_size;
  o["intermediate_size"] = c.intermediate_size;
  o["num_hidden_layers"] = c.num_hidden_layers;
  o["num_attention_heads"] = c.num_attention_heads;
  o["num_key_value_heads"] = c.num_key_value_heads;
  o["head_dim"] = c.head_dim;
  o["hidden_act"] = "silu";
  o["max_position_embeddings"] = c.max_position_embeddings;
  o["initializer_range"] = c.initializer_range;
  o["rms_norm_eps"] = c.rms_norm_eps;
  o["rope_theta"] = c.rope_theta;
  o["rope_parameters"] = {{"rope_type", "default"},
                          {"rope_theta", c.rope_theta}};
  o["tie_word_embeddings"] = c.tie_word_embeddings;
  o["attention_bias"] = false;
  o["mlp_bias"] = false;
  o["attention_dropout"] = 0.0;
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
  o["use_cache"] = true;
  return o.dump(2) + "\n";
}

} // namespace shoal::model
