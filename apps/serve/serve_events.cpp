// apps/serve/serve_events.cpp -- tables of the events.
#include "apps/serve/serve_events.hpp"

#include "apps/common/json_documents.hpp"
#include "apps/common/report.hpp" // unix_ms
#include "runtime/core/assert.hpp"
#include "runtime/files/json_table.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

struct said {
  const std::string& event;
  const std::string& text;
};

const runtime::json_table<said>& said_table() {
  using s = const said&;
  static const runtime::json_table<said> table{
    {"event", "text", "", "which kind of event this is",
     [](s v) { return json(v.event); }},
    {"text", "text", "", "the line, in words",
     [](s v) { return json(v.text); }},
    {"unix_ms", "whole number", "ms", "when, since 1970 (UTC)",
     [](s) { return json(unix_ms()); }}};
  return table;
}

const runtime::json_table<serve_ready>& ready_table() {
  using r = const serve_ready&;
  static const runtime::json_table<serve_ready> table{
    {"model", "text", "", "its name in requests",
     [](r v) { return json(v.model); }},
    {"url", "text", "", "for the `base_url` of a client of OpenAI's API",
     [](r v) { return json(v.url); }},
    {"job", "text", "", "its id, 16 hexadecimal digits",
     [](r v) { return json(v.job); }}};
  return table;
}

struct kind {
  std::string_view name;
  const char* meaning;
};
constexpr std::string_view ready_event = "ready";
constexpr kind kinds[] = {
  {"notice", "something that people should know, or a request that was "
             "answered"},
  {"view", "another view of the shoal, and so another plan, is in effect"},
  {ready_event, "the model is loaded and answers"},
};

} // namespace

json serve_line(const std::string& event, const std::string& text,
                const serve_ready* ready) {
  SHOAL_ASSERT(std::ranges::find(kinds, event, &kind::name) != std::end(kinds));
  SHOAL_ASSERT((ready != nullptr) == (event == ready_event));
  json line = runtime::written<said>(said_table(), {event, text});
  if (ready)
    line.update(runtime::written(ready_table(), *ready));
  return line;
}

std::vector<runtime::event_text> serve_events() {
  std::vector<runtime::event_text> out;
  for (const kind& k : kinds) {
    auto fields = runtime::texts_of(said_table());
    if (k.name == ready_event)
      std::ranges::move(runtime::texts_of(ready_table()),
                        std::back_inserter(fields));
    out.push_back({std::string(k.name), k.meaning, fields});
  }
  return out;
}

} // namespace shoal::apps
