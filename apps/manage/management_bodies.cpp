// apps/manage/management_bodies.cpp -- a table of fields for each body.
#include "apps/manage/management_bodies.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

namespace shoal::apps {
namespace {

/// A field: how it is set. The setter says what a value must be, or "".
template <class Request>
struct body_field {
  const char* name;
  const char* type;
  bool required;
  const char* meaning;
  const char* schema; ///< in JSON
  std::string (*set)(const nlohmann::json& value, Request& out);
};

std::string
take_text(const nlohmann::json& v, std::string& out, std::size_t bytes_max) {
  const auto* const text = v.get_ptr<const std::string*>();
  if (!text || text->empty() || text->size() > bytes_max
      || text->find('\0') != text->npos)
    return "a text of 1 to " + std::to_string(bytes_max) + " bytes";
  out = *text;
  return {};
}

template <class Number>
std::string
take_number(const nlohmann::json& v, Number& out, Number low, Number high) {
  if (!v.is_number_unsigned() || v.get<std::uint64_t>() < std::uint64_t(low)
      || v.get<std::uint64_t>() > std::uint64_t(high))
    return "a whole number from " + std::to_string(low) + " to "
           + std::to_string(high);
  out = Number(v.get<std::uint64_t>());
  return {};
}

std::string take_one_of(const nlohmann::json& v, std::string& out,
                        std::span<const std::string_view> all) {
  std::string list;
  for (const std::string_view one : all) {
    list += (list.empty() ? "" : ", ") + std::string(one);
    if (v.is_string() && v.get_ref<const std::string&>() == one) {
      out = one;
      return {};
    }
  }
  return "one of " + list;
}

constexpr std::size_t run_bytes_max = 1u << 20; ///< as of a run file
constexpr std::size_t path_bytes_max = 4096;
constexpr std::uint32_t replicas_max = 64;
constexpr std::uint64_t context_max = 1u << 17;

const body_field<train_request> train_table[] = {
  {"kind", "text", true, "`train`: a model is served by POST /models/load",
   R"({"const":"train"})",
   [](const nlohmann::json& v, train_request&) {
     std::string kind;
     return v == "serve" ? "\"train\": a model is served by POST /models/load"
                         : take_one_of(v, kind, {{"train"}});
   }},
  {"run", "text", true,
   "a run file, as `shoal train FILE` takes it; its data.paths, and a "
   "model.path that is a folder, are absolute paths on the node",
   R"({"type":"string","minLength":1,"maxLength":1048576})",
   [](const nlohmann::json& v, train_request& out) {
     return take_text(v, out.run, run_bytes_max);
   }},
  {"name", "text, optional", false,
   "of the job; a number is appended if one of that name runs",
   R"({"type":["string","null"],"minLength":1,"maxLength":128})",
   [](const nlohmann::json& v, train_request& out) {
     return take_text(v, out.name, core::limits::name_bytes_max);
   }},
};

const body_field<cancel_request> cancel_table[] = {
  {"now", "true or false, optional", false,
   "end at once, without a checkpoint of the step under way",
   R"({"type":["boolean","null"]})",
   [](const nlohmann::json& v, cancel_request& out) -> std::string {
     if (!v.is_boolean())
       return "true or false";
     out.now = v.get<bool>();
     return {};
   }},
};

const body_field<serve_options> load_table[] = {
  {"model", "text", true,
   "the absolute path of a folder or GGUF file on the node, ORG/NAME of the "
   "Hugging Face hub, or a training job, by name or id",
   R"({"type":"string","minLength":1,"maxLength":4096})",
   [](const nlohmann::json& v, serve_options& out) {
     std::string text;
     std::string wrong = take_text(v, text, path_bytes_max);
     out.model = text;
     return wrong;
   }},
  {"as", "text, optional", false,
   "name by which clients ask for it; without it that of the folder or job",
   R"({"type":["string","null"],"minLength":1,"maxLength":128})",
   [](const nlohmann::json& v, serve_options& out) {
     return take_text(v, out.name, core::limits::name_bytes_max);
   }},
  {"replicas", "whole number or text, optional", false,
   "pipelines that serve it side by side; `auto`: as many as requests ask for",
   R"({"anyOf":[{"type":["integer","null"],"minimum":1,"maximum":64},)"
   R"({"const":"auto"}]})",
   [](const nlohmann::json& v, serve_options& out) -> std::string {
     if (v == "auto") {
       out.pipelines = 0;
       return {};
     }
     std::string wrong = take_number(v, out.pipelines, 1u, replicas_max);
     return wrong.empty() ? wrong : wrong + ", or \"auto\"";
   }},
  {"stages", "whole number, optional", false,
   "peers that share the layers of a pipeline",
   R"({"type":["integer","null"],"minimum":1,"maximum":64})",
   [](const nlohmann::json& v, serve_options& out) {
     return take_number(v, out.stages, 1, std::int32_t(replicas_max));
   }},
  {"quantize", "text, optional", false,
   "convert weights at load: `bf16`, `q8`, `q4`",
   R"({"enum":["bf16","q8","q4",null]})",
   [](const nlohmann::json& v, serve_options& out) {
     static constexpr std::string_view all[] = {"bf16", "q8", "q4"};
     return take_one_of(v, out.quantize, all);
   }},
  {"kv_type", "text, optional", false,
   "data type of the KV cache: `f32`, `bf16`, `q8`",
   R"({"enum":["f32","bf16","q8",null]})",
   [](const nlohmann::json& v, serve_options& out) {
     static constexpr std::string_view all[] = {"f32", "bf16", "q8"};
     return take_one_of(v, out.kv_type, all);
   }},
  {"context", "whole number, optional", false,
   "most tokens of a prompt and its completion",
   R"({"type":["integer","null"],"minimum":1,"maximum":131072})",
   [](const nlohmann::json& v, serve_options& out) {
     return take_number(v, out.context, std::uint64_t{1}, context_max);
   }},
};

const body_field<unload_request> unload_table[] = {
  {"model", "text", true, "its name, as in GET /v1/models",
   R"({"type":"string","minLength":1,"maxLength":4096})",
   [](const nlohmann::json& v, unload_request& out) {
     return take_text(v, out.model, path_bytes_max);
   }},
};

template <class Request, std::size_t N>
parsed<Request>
parse(std::string_view body, const body_field<Request> (&table)[N]) {
  nlohmann::json all = nlohmann::json::object();
  if (!body.empty()) {
    auto read = model::parse_json_object<nlohmann::json>(body, "the body");
    if (!read)
      return openai::invalid_request(read.message());
    all = *std::move(read);
  }
  Request out;
  for (const auto& item : all.items()) {
    const std::string& name = item.key();
    if (!std::ranges::any_of(
          table, [&](const body_field<Request>& f) { return name == f.name; }))
      return openai::invalid_request(
        "there is no field \"" + core::shown(name, model::json_shown_max)
          + "\" here",
        core::shown(name, model::json_shown_max), "unknown_parameter");
  }
  for (const body_field<Request>& f : table) {
    const auto found = all.find(f.name);
    if (found == all.end() || found->is_null()) {
      if (f.required)
        return openai::invalid_request(std::string(f.name)
                                         + " is missing: " + f.meaning,
                                       f.name, "missing_required_parameter");
      continue;
    }
    if (const std::string wanted = f.set(*found, out); !wanted.empty())
      return openai::invalid_request(std::string(f.name) + " is "
                                       + model::shown(*found) + ", must be "
                                       + wanted,
                                     f.name, "invalid_value");
  }
  return out;
}

template <class Request, std::size_t N>
nlohmann::ordered_json schema_of(const body_field<Request> (&table)[N]) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  nlohmann::ordered_json required = nlohmann::ordered_json::array();
  for (const body_field<Request>& f : table) {
    auto one = model::parse_json<nlohmann::ordered_json>(f.schema);
    SHOAL_ASSERT(one.is_object());
    one["description"] = f.meaning;
    fields[f.name] = std::move(one);
    if (f.required)
      required.push_back(f.name);
  }
  nlohmann::ordered_json out{{"type", "object"},
                             {"properties", std::move(fields)},
                             {"additionalProperties", false}};
  if (!required.empty())
    out["required"] = std::move(required);
  return out;
}

} // namespace

parsed<train_request> parse_train(std::string_view body) {
  return parse(body, train_table);
}
parsed<cancel_request> parse_cancel(std::string_view body) {
  return parse(body, cancel_table);
}
parsed<serve_options> parse_load(std::string_view body) {
  return parse(body, load_table);
}
parsed<unload_request> parse_unload(std::string_view body) {
  return parse(body, unload_table);
}

nlohmann::ordered_json train_request_schema() {
  return schema_of(train_table);
}
nlohmann::ordered_json cancel_request_schema() {
  return schema_of(cancel_table);
}
nlohmann::ordered_json load_request_schema() {
  return schema_of(load_table);
}
nlohmann::ordered_json unload_request_schema() {
  return schema_of(unload_table);
}

} // namespace shoal::apps
