// actors/gateway/description/api_document.cpp -- operations become JSON.
#include "actors/gateway/description/api_document.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/files/json.hpp"
#include "runtime/http/response_text.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shoal::actors {
namespace {

constexpr const char* json_type = "application/json";

json reference_to(const std::string& name) {
  return {{"$ref", "#/components/schemas/" + name}};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return char(std::tolower(c)); });
  return text;
}

/// "postV1ChatCompletions"
std::string id_of(const api_operation& o) {
  std::string out = lower(o.method);
  bool begins = true;
  for (const char c : o.path)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0)
      begins = true;
    else if (std::exchange(begins, false))
      out += char(std::toupper(static_cast<unsigned char>(c)));
    else
      out += c;
  return out;
}

/// Names in braces of "/shoal/jobs/{job}/events".
std::vector<std::string> parameters_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = path.find('{', at)) != path.npos;) {
    const auto end = path.find('}', at);
    out.push_back(path.substr(at + 1, end - at - 1));
    at = end;
  }
  return out;
}

/// Whether a route answers a path: its last parameter may be a star there.
bool matches_route(const std::string& route, const std::string& path) {
  const auto brace = path.rfind('{');
  return route == path
         || (brace != path.npos && path.ends_with('}')
             && route == path.substr(0, brace) + "*");
}

/// Headers that tell what a key has left, in the words of the API of a path.
json limit_headers(const std::string& path) {
  json out = json::object();
  for (const std::string which : {"limit", "remaining", "reset"})
    for (const std::string what : {"requests", "tokens"}) {
      std::vector<std::string> names{"x-ratelimit-" + which + "-" + what};
      if (runtime::is_anthropics(path))
        names.push_back("anthropic-ratelimit-" + what + "-" + which);
      for (const std::string& name : names)
        out[name] = {{"$ref", "#/components/headers/" + name}};
    }
  return out;
}

json header_components() {
  json out = json::object();
  const auto add = [&](const std::string& name, const char* meaning,
                       json schema) {
    out[name] = {{"description", meaning}, {"schema", std::move(schema)}};
  };
  const json count{{"type", "integer"}, {"minimum", 0}};
  const json time{{"type", "string"}, {"examples", {"1m30s", "120ms"}}};
  for (const std::string what : {"requests", "tokens"}) {
    add("x-ratelimit-limit-" + what,
        "most of them in a minute; only if the API key has that limit", count);
    add("x-ratelimit-remaining-" + what, "what is left now", count);
    add("x-ratelimit-reset-" + what, "time until all of it is there again",
        time);
    add("anthropic-ratelimit-" + what + "-limit",
        "most of them in a minute; only if the API key has that limit", count);
    add("anthropic-ratelimit-" + what + "-remaining", "what is left now",
        count);
    add("anthropic-ratelimit-" + what + "-reset",
        "when all of it is there again",
        {{"type", "string"}, {"format", "date-time"}});
  }
  add("retry-after", "seconds after which another try makes sense", count);
  return out;
}

json response(const std::string& schema, const std::string& meaning) {
  return {{"description", meaning},
          {"content", {{json_type, {{"schema", reference_to(schema)}}}}}};
}

/// Of each event of a stream: the fields that its lines have.
json event_schema(const std::string& meaning) {
  return {{"type", "object"},
          {"description", meaning},
          {"required", {"data"}},
          {"properties",
           {{"data", {{"type", "string"}, {"description", "JSON, or [DONE]"}}},
            {"event", {{"type", "string"}, {"description", "its type"}}},
            {"id",
             {{"type", "string"},
              {"description", "for Last-Event-ID, where the stream can be "
                              "continued"}}}}}};
}

json parameters(const api_operation& o) {
  json out = json::array();
  for (const std::string& name : parameters_of(o.path))
    out.push_back({{"name", name},
                   {"in", "path"},
                   {"required", true},
                   {"schema", {{"type", "string"}, {"minLength", 1}}}});
  if (!o.continues)
    return out;
  out.push_back({{"name", "Idempotency-Key"},
                 {"in", "header"},
                 {"description", "a request that is sent again with the same "
                                 "key gets the same tokens"},
                 {"schema", {{"type", "string"}}}});
  out.push_back(
    {{"name", "Last-Event-ID"},
     {"in", "header"},
     {"description", "id of the last event that the client has of a "
                     "stream: the answer goes on behind it"},
     {"schema",
      {{"type", "string"}, {"pattern", "^[0-9]{1,19}(@[0-9]{1,19})?$"}}}});
  return out;
}

json responses(const api_operation& o) {
  json whole{{"description", o.summary}};
  if (!o.answer.empty())
    whole = response(o.answer, o.summary);
  if (!o.other_type.empty())
    whole["content"][o.other_type] = {
      {"schema",
       o.other_type == "text/event-stream"
         ? event_schema(o.other_meaning)
         : json{{"type", "string"}, {"description", o.other_meaning}}}};
  if (o.method != "GET")
    whole["headers"] = limit_headers(o.path);
  json out{{std::to_string(o.status), std::move(whole)}};
  std::vector<unsigned> errors{403, 503};
  errors.insert(errors.end(), o.errors.begin(), o.errors.end());
  if (!o.body.empty())
    errors.insert(errors.end(), {400, 413, 415, 429});
  if (o.continues)
    errors.push_back(410);
  if (!parameters_of(o.path).empty())
    errors.push_back(404);
  std::ranges::sort(errors);
  errors.erase(std::unique(errors.begin(), errors.end()), errors.end());
  for (const unsigned status : errors) {
    json& one = out[std::to_string(status)];
    one = response(o.error, std::string(runtime::reason_of(status)));
    if (status != 429)
      continue;
    one["headers"] = limit_headers(o.path);
    one["headers"]["retry-after"] = {
      {"$ref", "#/components/headers/retry-after"}};
  }
  out["default"] = response(o.error, "another error");
  return out;
}

/// Names of the schemas that a value refers to.
void collect(const json& value, std::vector<std::string>& into) {
  constexpr std::string_view before = "#/components/schemas/";
  if (value.is_object())
    if (const auto at = value.find("$ref");
        at != value.end() && at->is_string()
        && at->get_ref<const std::string&>().starts_with(before))
      into.push_back(at->get<std::string>().substr(before.size()));
  if (value.is_structured())
    for (const json& each : value)
      collect(each, into);
}

} // namespace

void api_document::add(api_operation operation) {
  operations_.push_back(std::move(operation));
}

void api_document::add_schema(const std::string& name, json schema) {
  SHOAL_ASSERT(!schemas_.contains(name));
  schemas_[name] = std::move(schema);
}

void api_document::add_schemas(std::string_view object) {
  auto all = model::parse_json_object<json>(object, "schemas");
  SHOAL_ASSERT(bool(all));
  for (auto& [name, schema] : all->items())
    add_schema(name, std::move(schema));
}

json api_document::whole(bool keys,
                         const std::vector<std::string>& open_paths) const {
  json paths = json::object();
  for (const api_operation& o : operations_) {
    json one{
      {"operationId", id_of(o)}, {"tags", {o.tag}}, {"summary", o.summary}};
    if (json list = parameters(o); !list.empty())
      one["parameters"] = std::move(list);
    if (!o.body.empty())
      one["requestBody"] = {
        {"required", !o.body_optional},
        {"content", {{json_type, {{"schema", reference_to(o.body)}}}}}};
    one["responses"] = responses(o);
    const bool open = std::ranges::find(open_paths, o.path) != open_paths.end();
    if (keys && open)
      one["security"] = json::array();
    else if (keys)
      one["responses"]["401"] = response(o.error, "no key, or an unknown one");
    paths[o.path][lower(o.method)] = std::move(one);
  }
  json out{
    {"openapi", "3.1.0"},
    {"info",
     {{"title", "Shoal"},
      {"version", version_},
      {"description",
       "A node of a shoal: served models by the APIs of OpenAI and "
       "Anthropic, and the shoal itself. Fields that are not listed are "
       "ignored, except by /shoal/... and /models/..., and null counts "
       "as a field that is left out."}}},
    {"servers", {{{"url", "/"}}}},
    {"paths", std::move(paths)},
    {"components",
     {{"schemas", schemas_},
      {"headers", header_components()},
      {"securitySchemes",
       {{"bearer",
         {{"type", "http"},
          {"scheme", "bearer"},
          {"description", "an API key, where the node was started with some"}}},
        {"x-api-key",
         {{"type", "apiKey"},
          {"in", "header"},
          {"name", "X-Api-Key"},
          {"description", "the same by another header"}}}}}}}};
  if (keys)
    out["security"] = {{{"bearer", json::array()}},
                       {{"x-api-key", json::array()}}};
  return out;
}

std::vector<std::string>
api_document::gaps(const runtime::http_routes& routes) const {
  std::vector<std::string> out;
  const auto all = routes.all();
  for (const auto& r : all)
    if (!std::ranges::any_of(operations_, [&](const api_operation& o) {
          return o.method == r.first && matches_route(r.second, o.path);
        }))
      out.push_back("not described: " + r.first + " " + r.second);
  for (const api_operation& o : operations_) {
    if (!std::ranges::any_of(all, [&](const auto& r) {
          return r.first == o.method && matches_route(r.second, o.path);
        }))
      out.push_back("not a route: " + o.method + " " + o.path);
  }
  std::vector<std::string> named;
  collect(whole(false, {}), named);
  for (const std::string& name : named)
    if (!schemas_.contains(name))
      out.push_back("no schema: " + name);
  for (const auto& [name, schema] : schemas_.items())
    if (std::ranges::find(named, name) == named.end())
      out.push_back("a schema that nothing refers to: " + name);
  return out;
}

} // namespace shoal::actors
