// apps/cli/reference.cpp -- makes each chapter from its table.
#include "apps/cli/reference.hpp"

#include "actors/gateway/gateway_metrics.hpp"
#include "apps/chat/chat_answer.hpp" // chat_events
#include "apps/cli/cli_words.hpp"
#include "apps/cli/help_format.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/plan/plan_table.hpp"
#include "apps/plan/served_plan.hpp"
#include "apps/plan/view_file.hpp"
#include "apps/remote/shoal_traffic.hpp"
#include "apps/terminal/exit_codes.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/model/config/default_sizes.hpp"
#include "runtime/node/status/node_metrics.hpp"
#include "runtime/node/status/status.hpp"
#include "runtime/observe/tensorboard.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <span>
#include <utility>

namespace shoal::apps {
namespace {

using runtime::event_text;
using runtime::field_text;

// Commands.

/// The description, and the default at its end.
std::pair<std::string, std::string> split_default(std::string text) {
  constexpr std::string_view begin = "(default: ";
  const auto at = text.rfind(begin);
  if (at == std::string::npos || !text.ends_with(')'))
    return {text, {}};
  std::string usual = text.substr(at + begin.size());
  usual.pop_back();
  text.erase(at);
  while (text.ends_with(' ') || text.ends_with('\n'))
    text.pop_back();
  return {text, usual};
}

std::string name_of(const CLI::Option& o) {
  if (!o.get_lnames().empty())
    return (o.get_snames().empty() ? "" : "-" + o.get_snames()[0] + ", ") + "--"
           + o.get_lnames()[0];
  return o.get_name();
}

std::vector<std::string> row_of(const CLI::Option& o) {
  const bool flag = o.get_type_size() == 0;
  auto [text, usual] = split_default(o.get_description());
  std::string value;
  if (!flag) {
    value = value_of(o);
    if (const std::string bounds = bounds_of(o); !bounds.empty())
      value += ", " + bounds;
    if (o.get_required())
      usual = "required";
    else if (usual.empty() && text.find("default") == std::string::npos)
      usual = default_of(o);
  }
  // A name that is also positional (chaos --run) is shown as a flag.
  return {name_of(o), value, usual,
          o.get_lnames().empty() ? "" : variable_of(o.get_lnames()[0]), text};
}

const std::vector<std::string> option_columns{"option", "value", "default",
                                              "variable", "meaning"};

/// Options for keys of a run file are in groups named [section].
bool is_run_key(const CLI::Option& o) {
  return o.get_group().starts_with("[");
}

page_part command_part(const CLI::App& c) {
  page_part out{false, "shoal " + c.get_name(), {}, {option_columns, {}}};
  std::string usage = "    shoal " + c.get_name();
  bool run_keys = false;
  for (const CLI::Option* o : c.get_options()) {
    if (o->get_positional())
      usage += o->get_required() ? " " + o->get_name(true)
                                 : " [" + o->get_name(true) + "]";
    run_keys = run_keys || is_run_key(*o);
    if (!is_run_key(*o) && !o->check_lname("help"))
      out.table.rows.push_back(row_of(*o));
  }
  out.paragraphs = {usage + " [options]", c.get_description() + "."};
  if (run_keys)
    out.paragraphs.push_back(
      "Each key of a run file is an option as well: `--training.steps 100`.");
  return out;
}

void add_commands(page& to, const CLI::App& app) {
  to.parts.push_back(
    {true,
     "Commands",
     {"Each option may also be set by the variable that is named with it, or "
      "by a key of its own name in the configuration file. The command line "
      "comes first, then variables, then the file, then defaults. The keys of "
      "a "
      "run file come after all three: where a variable or the file changes "
      "one, "
      "`train` and `plan` say so. A flag "
      "without a value is set by `true`.",
      "`shoal COMMAND --help` prints the options of a command."},
     {option_columns,
      {{"--config", "FILE", "~/.config/shoal/shoal.toml", "SHOAL_CONFIG",
        "configuration file with a table for each command"},
       {"--version", "", "", "", "print the version"}}}});
  for (const CLI::App* c : app.get_subcommands(
         [](const CLI::App* each) { return !each->get_name().empty(); }))
    to.parts.push_back(command_part(*c));
}

// Files.

void add_configuration(page& to) {
  to.parts.push_back(
    {true,
     "Configuration file",
     {"`shoal.toml` has a table for each command. Its keys are the command's "
      "options without the dashes, as above; a table or key that does not "
      "exist is an error.",
      "    [node]\n    name = \"left\"\n    memory = \"8GiB\"\n\n    [train]\n "
      "   out = \"results\"\n    training.steps = 2000"},
     {}});
}

page_part run_section(std::string_view section) {
  page_part out{false,
                "[" + std::string(section) + "]",
                {},
                {{"key", "type", "range", "default", "meaning"}, {}}};
  for (const runtime::run_key& k : runtime::keys())
    if (k.section == section)
      out.table.rows.push_back({std::string(k.name),
                                std::string(runtime::type_text(k)),
                                runtime::range_text(k),
                                runtime::default_text(k), std::string(k.help)});
  return out;
}

void add_run_file(page& to) {
  to.parts.push_back(
    {true,
     "Run file",
     {"TOML, for `train`, `plan`, `init` and `chaos`. Every key has a default; "
      "`shoal train --example` prints a file to start from. Each key is an "
      "option, too (`--training.steps 100`), and a variable "
      "(`SHOAL_TRAINING_STEPS`). Units are in the meaning."},
     {}});
  page_part model{false,
                  "[model]",
                  {std::string("Either `path`, or keys by the names that a "
                               "Hugging Face `config.json` has, with the same "
                               "meaning. ")
                   + model::default_sizes_text},
                  {{"key", "default", "meaning"},
                   {{"path", "",
                     "start from this Hugging Face directory, or ORG/NAME of "
                     "the Hugging Face hub"}}}};
  for (const std::string_view k : model::known_keys())
    model.table.rows.push_back(
      {std::string(k), runtime::model_default_text(k), ""});
  to.parts.push_back(std::move(model));
  std::string_view last;
  for (const runtime::run_key& k : runtime::keys())
    if (std::exchange(last, k.section) != k.section)
      to.parts.push_back(run_section(k.section));
  page_part roles{false,
                  "[[roles]]",
                  {"Actors of plug-ins that go with the job."},
                  {{"key", "type", "default", "meaning"}, {}}};
  for (const runtime::role_key& k : runtime::role_keys())
    roles.table.rows.push_back(
      {std::string(k.name), std::string(k.type),
       k.usual.empty() ? "required" : std::string(k.usual),
       std::string(k.help)});
  to.parts.push_back(std::move(roles));
}

std::string short_number(double value) {
  char text[32];
  const bool whole = value == std::floor(value);
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.6g", value);
  return text;
}

page_part view_part(const std::string& title, std::span<const view_key> keys) {
  constexpr const char* types[] = {"text", "number", "whole number",
                                   "list of tables"};
  page_part out{false,
                title,
                {},
                {{"key", "type", "unit", "range", "default", "meaning"}, {}}};
  for (const view_key& k : keys)
    out.table.rows.push_back(
      {std::string(k.name), types[std::size_t(k.kind)], std::string(k.unit),
       k.high > k.low ? short_number(k.low) + " to " + short_number(k.high)
                      : "",
       k.usual ? k.usual : "required", std::string(k.help)});
  return out;
}

void add_view_file(page& to) {
  to.parts.push_back(
    {true,
     "View file",
     {"TOML, for `plan --view`: a shoal that need not exist.",
      "    [[members]]\n    count = 128\n    name = \"gpu\"\n    kind = "
      "\"cuda\"\n    per_host = 8\n    tflops = 380\n    memory_gib = 180\n    "
      "networks = [{ name = \"host\", latency_us = 5, gb_per_s = 400 },\n      "
      "          { name = \"ib\", latency_us = 8, gb_per_s = 45 }]"},
     {}});
  to.parts.push_back(view_part("[[members]]", member_keys()));
  to.parts.push_back(view_part("networks of [[members]]", network_keys()));
}

// JSON.

void add_fields(page_table& to, const std::vector<field_text>& fields,
                const std::string& prefix) {
  for (const field_text& f : fields) {
    to.rows.push_back({prefix + f.name, f.type, f.unit, f.meaning});
    const std::string lists = f.type.starts_with("list of lists") ? "[][]"
                              : f.type.starts_with("list")        ? "[]"
                                                                  : "";
    add_fields(to, f.inside, prefix + f.name + lists + ".");
  }
}

page_part json_part(const std::string& title, std::string text,
                    const std::vector<field_text>& fields) {
  page_part out{false,
                "JSON of " + title,
                {std::move(text)},
                {{"field", "type", "unit", "meaning"}, {}}};
  add_fields(out.table, fields, "");
  return out;
}

bool same(const std::vector<field_text>& a, const std::vector<field_text>& b) {
  return std::ranges::equal(a, b, {}, &field_text::name, &field_text::name)
         && std::ranges::equal(a, b, {}, &field_text::meaning,
                               &field_text::meaning);
}

/// One section for each kind of event, or for several with the same fields.
void add_events(page& to, const std::string& commands,
                const std::vector<event_text>& events) {
  std::vector<bool> shown(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (shown[i])
      continue;
    std::string names, text;
    for (std::size_t k = i; k < events.size(); ++k)
      if (!shown[k] && same(events[k].fields, events[i].fields)) {
        shown[k] = true;
        names += (names.empty() ? "" : ", ") + events[k].name;
        text += (text.empty() ? "`" : "; `") + events[k].name
                + "`: " + events[k].meaning;
      }
    to.parts.push_back(
      json_part(commands + ": " + names, text + ".", events[i].fields));
  }
}

void add_json(page& to) {
  to.parts.push_back(
    {true,
     "JSON",
     {"With --json a command prints JSON to stdout and nothing else; errors "
      "are lines on stderr as always. Commands that go on for a while print "
      "events, one object on each line; other commands print one object, or "
      "one list. A field is there whenever its object is, unless its type says "
      "optional. A whole number counts unless it has a unit. New fields may be "
      "added; readers should skip those that they do not know."},
     {}});
  auto events = said_events();
  std::ranges::move(runtime::event_texts(), std::back_inserter(events));
  add_events(to, "`train` and `attach`", events);
  to.parts.push_back(
    json_part("`status`", "One object.", runtime::status_fields()));
  to.parts.push_back(json_part(
    "`status --traffic`",
    "The object of `status`, and in it \"traffic\" with these fields.",
    traffic_fields()));
  to.parts.push_back(json_part(
    "`jobs`", "A list, with one object for each job.", runtime::job_fields()));
  to.parts.push_back(json_part("`plan`", "One object.", plan_fields()));
  to.parts.push_back(
    json_part("`plan --serve`", "One object.", served_plan_fields()));
  to.parts.push_back(json_part(
    "`doctor`", "A list, with one object for each finding.", doctor_fields()));
  to.parts.push_back(json_part("`eval`", "One object.", eval_fields()));
  add_events(to, "`generate`", generate_events());
  add_events(to, "`serve`", serve_events());
  add_events(to, "`chat`", chat_events());
  to.parts.push_back(json_part("`pull`", "One object.", pull_fields()));
  to.parts.push_back(json_part("`audit`", "One object.", audit_fields()));
  to.parts.push_back(json_part("`bench link`",
                               "A list, with one object for each fabric.",
                               bench_link_fields()));
  to.parts.push_back(json_part("`bench allreduce`",
                               "A list, with one object for each size.",
                               bench_all_reduce_fields()));
  to.parts.push_back(
    json_part("`bench pipeline`", "One object.", bench_pipeline_fields()));
  to.parts.push_back(json_part(
    "`bench memory`, `bench gemm`, `bench prefill`, `bench decode`, "
    "`bench train`",
    "A list, with one object for each figure.", bench_compute_fields()));
  add_events(to, "`node`", node_events());
  add_events(to, "`chaos`", chaos_events());
}

// Metrics, exit codes.

void add_metrics(page& to) {
  to.parts.push_back({true,
                      "Metrics",
                      {"`OUT_DIR/metrics.jsonl` has the events of the job, as "
                       "`train --json` prints them, one object on each line. "
                       "What the command itself says is a `notice` there.",
                       "`OUT_DIR/tb/` has event files for TensorBoard, with "
                       "these tags, by step. A run file turns them off by "
                       "`metrics.enable_tensorboard = false`."},
                      {{"tag", "unit", "of", "meaning"}, {}}});
  for (const runtime::tensorboard_tag& t : runtime::tensorboard_tags())
    to.parts.back().table.rows.push_back(
      {std::string(t.tag), std::string(t.unit),
       t.kind == runtime::job_event_kind::step ? "each step"
                                               : "each evaluation",
       std::string(t.meaning)});
}

/// Of Prometheus.
void add_scraped(page& to) {
  page_part part{false,
                 "GET /metrics",
                 {"Every node answers Prometheus at `/metrics` of its `--http` "
                  "address. With `--metrics-compat vllm` some have the name of "
                  "vLLM besides."},
                 {{"name", "type", "labels", "name of vLLM", "meaning"}, {}}};
  const char* const types[] = {"counter", "gauge", "histogram"};
  for (const auto* kinds :
       {&actors::gateway_metric_kinds(), &runtime::node_metric_kinds()})
    for (const runtime::metric_kind& k : *kinds)
      part.table.rows.push_back(
        {k.name, types[std::size_t(k.type)], k.labels,
         k.vllm == nullptr ? "" : std::string("`") + k.vllm + "`", k.help});
  to.parts.push_back(std::move(part));
}

void add_exit_codes(page& to) {
  to.parts.push_back(
    {true, "Exit codes", {exit_codes_note}, {{"code", "name", "meaning"}, {}}});
  for (const exit_code& e : exit_code_table)
    to.parts.back().table.rows.push_back(
      {std::to_string(e.code), e.name, e.meaning});
}

} // namespace

page make_reference(const CLI::App& app) {
  const std::string description = app.get_description();
  page out;
  out.name = app.get_name();
  out.version = SHOAL_VERSION;
  out.usage = "`shoal` COMMAND [options]";
  // "shoal -- what it is."
  const std::string line = description.substr(0, description.find('\n'));
  const std::string_view begin = " -- ";
  out.summary = line.substr(line.find(begin) + begin.size());
  while (out.summary.ends_with('.'))
    out.summary.pop_back();
  add_commands(out, app);
  add_configuration(out);
  add_run_file(out);
  add_view_file(out);
  add_json(out);
  add_metrics(out);
  add_scraped(out);
  add_exit_codes(out);
  return out;
}

int run_reference(const CLI::App& app, bool man) {
  const page all = make_reference(app);
  std::cout << (man
                  ? to_man(all)
                  : to_markdown(
                    all, "Printed by `shoal reference` from the program's own "
                         "tables; do not edit. `man shoal` has the same."));
  return std::cout.flush() ? exit_done : exit_failed;
}

} // namespace shoal::apps
