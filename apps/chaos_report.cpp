// apps/chaos_report.cpp -- figures as text and JSON.
#include "apps/chaos_report.hpp"

#include "runtime/model/json.hpp"

#include <nlohmann/json.hpp>

#include <cinttypes>
#include <cstdio>
#include <iostream>

namespace shoal::apps {

namespace chaos = core::chaos;
using json = nlohmann::ordered_json;

namespace {

double seconds(core::nanoseconds t) {
  return double(t) / 1e9;
}

json shape(const chaos::pauses& p) {
  return {{"median", seconds(p.median)}, {"longest", seconds(p.longest)}};
}

void print_json(const chaos_figures& f) {
  json faults = json::object(), after = json::object();
  for (chaos::fault_kind kind : chaos::all_kinds) {
    const chaos::pauses& p = f.account.after[std::size_t(kind)];
    faults[std::string(chaos::name_of(kind))] = p.count;
    after[std::string(chaos::name_of(kind))] = shape(p);
  }
  after["all"] = shape(f.account.after_all);
  const json line{{"event", "report"},
                  {"good", f.good()},
                  {"state", f.state},
                  {"seed", f.seed},
                  {"faults", faults},
                  {"steps", f.account.steps},
                  {"repeated", f.account.repeated},
                  {"missing", f.account.missing},
                  {"forks", f.forks},
                  {"views", f.views},
                  {"pauses_s", after},
                  {"capacity_tokens_per_s", f.capacity.tokens_per_s},
                  {"processors", f.capacity.processors},
                  {"goodput", f.account.goodput},
                  {"loss", f.loss}};
  std::cout << model::json_text(line) << std::endl;
}

void print_pauses(std::string_view name, const chaos::pauses& p) {
  if (p.count > 0)
    std::printf("%-8.*s %" PRIu64 ", pauses: median %.2f s, longest %.2f s\n",
                int(name.size()), name.data(), p.count, seconds(p.median),
                seconds(p.longest));
}

} // namespace

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
