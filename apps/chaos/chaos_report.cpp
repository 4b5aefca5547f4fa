// apps/chaos/chaos_report.cpp -- formats the figures as text and JSON.
#include "apps/chaos/chaos_report.hpp"

#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"

#include <cinttypes>
#include <cstdio>
#include <iostream>

namespace shoal::apps {

namespace chaos = core::chaos;
using json = runtime::json_value;

namespace {

json shape(const chaos::pauses& p) {
  return {{"median", chaos::seconds_of(p.median)},
          {"longest", chaos::seconds_of(p.longest)}};
}

json counts_json(const chaos_figures& f) {
  json out = json::object();
  for (chaos::fault_kind kind : chaos::all_kinds)
    out[std::string(chaos::name_of(kind))] =
      f.account.after[std::size_t(kind)].count;
  return out;
}

json pauses_json(const chaos_figures& f) {
  json out = json::object();
  for (chaos::fault_kind kind : chaos::all_kinds)
    out[std::string(chaos::name_of(kind))] =
      shape(f.account.after[std::size_t(kind)]);
  out["all"] = shape(f.account.after_all);
  return out;
}

const runtime::json_table<chaos_figures>& report_table() {
  using f = const chaos_figures&;
  static const runtime::json_table<chaos_figures> table{
    {"event", "text", "", "`report`", [](f) { return json("report"); }},
    {"good", "true or false", "",
     "whether the run was completed and no committed step was lost",
     [](f v) { return json(v.good()); }},
    {"state", "text", "", "of the job: `done`, `cancelled` or `failed`",
     [](f v) { return json(v.state); }},
    {"seed", "whole number", "", "--seed", [](f v) { return json(v.seed); }},
    {"faults", "object", "", "how many there were, by kind", counts_json},
    {"steps", "whole number", "", "that were committed",
     [](f v) { return json(v.account.steps); }},
    {"repeated", "whole number", "", "committed again, as they were lost",
     [](f v) { return json(v.account.repeated); }},
    {"missing", "whole number", "", "that nobody reported",
     [](f v) { return json(v.account.missing); }},
    {"forks", "whole number", "", "views that differed between peers",
     [](f v) { return json(v.forks); }},
    {"views", "whole number", "", "epoch of the newest view",
     [](f v) { return json(v.views); }},
    {"pauses_s", "object", "s",
     "by kind of fault, and of all: `median` and `longest` time without a "
     "step between a fault and the next",
     pauses_json},
    {"capacity_tokens_per_s", "number", "tokens/s", "of the undisturbed run",
     [](f v) { return json(v.capacity.tokens_per_s); }},
    {"processors", "whole number", "", "of this machine that it may use",
     [](f v) { return json(v.capacity.processors); }},
    {"goodput", "number", "", "part, of 1, of what the peers left could do",
     [](f v) { return json(v.account.goodput); }},
    {"loss", "number or null", "nats", "of the last step",
     [](f v) { return json(v.loss); }}};
  return table;
}

void print_json(const chaos_figures& f) {
  std::cout << model::json_text(runtime::written(report_table(), f))
            << std::endl;
}

void print_pauses(std::string_view name, const chaos::pauses& p) {
  if (p.count > 0)
    std::printf("%-8.*s %" PRIu64 ", pauses: median %.2f s, longest %.2f s\n",
                int(name.size()), name.data(), p.count,
                chaos::seconds_of(p.median), chaos::seconds_of(p.longest));
}

} // namespace

std::vector<runtime::field_text> chaos_report_fields() {
  return runtime::texts_of(report_table());
}

void print(const chaos_figures& f, bool as_json) {
  if (as_json)
    return print_json(f);
  std::printf("\nseed     %" PRIu64 "\n", f.seed);
  std::printf("run      %s after %" PRIu64 " steps, loss %.4f\n",
              f.state.c_str(), f.account.steps, f.loss);
  std::printf("lost     %" PRIu64 " committed steps run again, %" PRIu64
              " never told; %" PRIu64 " forks in %" PRIu64 " views\n",
              f.account.repeated, f.account.missing, f.forks, f.views);
  for (chaos::fault_kind kind : chaos::all_kinds)
    print_pauses(chaos::name_of(kind), f.account.after[std::size_t(kind)]);
  print_pauses("all", f.account.after_all);
  std::printf("goodput  %.0f %% of what the peers left could do (all of them: "
              "%.0f tokens/s, on %u processors)\n",
              f.account.goodput * 100, f.capacity.tokens_per_s,
              f.capacity.processors);
  if (f.account.goodput > 1)
    std::printf("         more than undisturbed: other programs were busy "
                "while that was measured\n");
}

} // namespace shoal::apps
