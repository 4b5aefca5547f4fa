// runtime/model/hf/generation_config.cpp -- reads a model's sampling defaults.
#include "runtime/model/hf/generation_config.hpp"

#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::model {

namespace {

using json = nlohmann::json;

/// The keys of one file; remembers the first that is wrong.
class reader {
public:
  reader(const json& object, std::string_view where)
    : object_(object), where_(where) {}

  bool failed() const { return !why_.message.empty(); }
  const failure& why() const { return why_; }

  /// @returns nullptr if the key is absent or null.
  const json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  void refuse(const char* key, const char* needs) {
    if (!failed())
      why_ = {where_ + ": " + key + ": must be " + needs};
  }

  void number(const char* key, std::optional<float>& into, const char* needs,
              bool (*good)(double)) {
    const json* const value = find(key);
    if (value == nullptr)
      return;
    if (!value->is_number() || !good(value->get<double>()))
      return refuse(key, needs);
    into = value->get<float>();
  }

  template <class Count>
  void count(const char* key, std::optional<Count>& into, std::uint64_t least,
             const char* needs) {
    const json* const value = find(key);
    if (value == nullptr)
      return;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least
        || value->get<std::uint64_t>() > (1u << 24))
      return refuse(key, needs);
    into = value->get<Count>();
  }

private:
  const json& object_;
  std::string where_;
  failure why_;
};

bool is_id(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= INT32_MAX;
}

void read_eos(reader& r, generation_defaults& out) {
  const json* const value = r.find("eos_token_id");
  if (value == nullptr)
    return;
  out.eos_token_ids.emplace();
  auto add = [&](const json& id) {
    if (is_id(id))
      out.eos_token_ids->push_back(id.get<std::int32_t>());
    else
      r.refuse("eos_token_id", "a token id or a list of them");
  };
  if (value->is_array())
    std::for_each(value->begin(), value->end(), add);
  else
    add(*value);
}

} // namespace

result<generation_defaults>
parse_generation_config(std::string_view text, std::string_view where) {
  const auto object = parse_json_object(text, where);
  if (!object)
    return object.why();
  reader r(*object, where);
  generation_defaults out;
  r.count("max_new_tokens", out.max_tokens, 1, "a number from 1 to 2^24");
  r.number("temperature", out.temperature, "0 or more", [](double x) {
    return x >= 0 && std::isfinite(static_cast<float>(x));
  });
  r.count("top_k", out.top_k, 0, "a number from 0 to 2^24");
  r.number("top_p", out.top_p, "above 0 and at most 1",
           [](double x) { return static_cast<float>(x) > 0 && x <= 1; });
  r.number("min_p", out.min_p, "from 0 to 1",
           [](double x) { return x >= 0 && x <= 1; });
  r.number("repetition_penalty", out.repetition_penalty, "above 0",
           [](double x) {
             const auto f = static_cast<float>(x);
             return f > 0 && std::isfinite(f) && std::isfinite(1 / f);
           });
  read_eos(r, out);
  if (const json* const sample = r.find("do_sample")) {
    if (!sample->is_boolean())
      r.refuse("do_sample", "true or false");
    else if (!sample->get<bool>())
      out.temperature = 0;
    else if (!out.temperature)
      out.temperature = 1;
  }
  if (r.failed())
    return r.why();
  return out;
}

result<generation_defaults>
load_generation_config(const std::filesystem::path& directory) {
  const auto path = directory / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return generation_defaults{};
  auto text = read_file(path, generation_config_bytes_max);
  if (!text)
    return text.why();
  return parse_generation_config(*text, path.string());
}

} // namespace shoal::model
