// apps/chaos/chaos_events.cpp -- events of a harmed run, and their fields.
#include "apps/chaos/chaos_events.hpp"

#include "apps/chaos/chaos_nodes.hpp"
#include "apps/chaos/chaos_report.hpp"
#include "apps/common/json_documents.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/files/json_table.hpp"

#include <algorithm>

namespace shoal::apps {
namespace {

namespace chaos = core::chaos;
using json = runtime::json_value;
using runtime::json_table;

struct said {
  const std::string& event;
  double seconds;
  const std::string& text;
};

const json_table<said>& said_table() {
  using s = const said&;
  static const json_table<said> table{
    {"event", "text", "", "which kind of event this is",
     [](s v) { return json(v.event); }},
    {"seconds", "number", "s", "since the begin",
     [](s v) { return json(v.seconds); }},
    {"text", "text", "", "the line, in words",
     [](s v) { return json(v.text); }}};
  return table;
}

const json_table<chaos::fault>& fault_table() {
  using f = const chaos::fault&;
  static const json_table<chaos::fault> table{
    {"kind", "text", "", "`kill`, `stop`, `slow` or `cut`",
     [](f v) { return json(chaos::name_of(v.kind)); }},
    {"peer", "text", "", "name of the peer that is harmed",
     [](f v) { return json(chaos_nodes::name(v.peer)); }},
    {"lasts_s", "number", "s", "until it is taken back",
     [](f v) { return json(chaos::seconds_of(v.lasts)); }},
    {"other", "text, optional", "", "of a cut: from this peer alone",
     [](f v) {
       return v.other ? json(chaos_nodes::name(*v.other)) : runtime::left_out();
     }},
    {"runs_permille", "whole number, optional", "1/1000",
     "of a slow peer: part of the time that it runs", [](f v) {
       return v.kind == chaos::fault_kind::slow ? json(v.runs_permille)
                                                : runtime::left_out();
     }}};
  return table;
}

const json_table<double>& capacity_table() {
  static const json_table<double> table{
    {"tokens_per_s", "number", "tokens/s", "of the undisturbed run",
     [](const double& v) { return json(v); }}};
  return table;
}

const json_table<double>& whole_table() {
  static const json_table<double> table{
    {"pause_s", "number", "s",
     "longest time without a step since the fault, so far: it "
     "may grow until the next one",
     [](const double& v) { return json(v); }}};
  return table;
}

struct kind {
  std::string_view name;
  const char* meaning;
  const json_table<double>& (*figure)() = nullptr;
};
constexpr std::string_view fault_event = "fault";
constexpr kind kinds[] = {
  {"notice", "something that people should know"},
  {"together", "all peers have found each other"},
  {"capacity", "what the undisturbed shoal can do", capacity_table},
  {"run", "the run begins that is harmed"},
  {fault_event, "a peer is harmed"},
  {"whole", "the fault is over, and all peers are together again", whole_table},
};

} // namespace

json chaos_line(const std::string& event, double seconds,
                const std::string& text, const chaos_more& more) {
  const auto* const known = std::ranges::find(kinds, event, &kind::name);
  SHOAL_ASSERT(known != std::end(kinds));
  SHOAL_ASSERT((more.fault != nullptr) == (event == fault_event));
  SHOAL_ASSERT((more.figure != nullptr) == (known->figure != nullptr));
  json line = runtime::written<said>(said_table(), {event, seconds, text});
  if (more.fault)
    line.update(runtime::written(fault_table(), *more.fault));
  if (more.figure)
    line.update(runtime::written(known->figure(), *more.figure));
  return line;
}

std::vector<runtime::event_text> chaos_events() {
  std::vector<runtime::event_text> out;
  for (const kind& k : kinds) {
    auto fields = runtime::texts_of(said_table());
    auto more = k.name == fault_event ? runtime::texts_of(fault_table())
                : k.figure            ? runtime::texts_of(k.figure())
                                      : std::vector<runtime::field_text>{};
    std::ranges::move(more, std::back_inserter(fields));
    out.push_back({std::string(k.name), k.meaning, fields});
  }
  out.push_back(
    {"report", "what it all came to: the last line", chaos_report_fields()});
  return out;
}

} // namespace shoal::apps
