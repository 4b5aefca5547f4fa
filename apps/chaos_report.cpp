// apps/chaos_report.cpp -- figures as text and JSON.
#include "apps/chaos_report.hpp"

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

void print_json(const chaos_figures& f) {
  json faults = json::object(), pauses = json::array();
  for (chaos::fault_kind kind : chaos::all_kinds)
    faults[std::string(chaos::name_of(kind))] =
      f.account.faults[std::size_t(kind)];
  for (core::nanoseconds p : f.account.pauses)
    pauses.push_back(seconds(p));
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
                  {"pauses_s", pauses},
                  {"median_pause_s", seconds(f.account.median_pause)},
                  {"longest_pause_s", seconds(f.account.longest_pause)},
                  {"capacity_tokens_per_s", f.capacity.tokens_per_s},
                  {"processors", f.capacity.processors},
                  {"goodput", f.account.goodput},
                  {"loss", f.loss}};
  std::cout << line.dump() << std::endl;
}

} // namespace

void print(const chaos_figures& f, bool as_json) {
  if (as_json)
    return print_json(f);
  std::string faults;
  for (chaos::fault_kind kind : chaos::all_kinds)
    if (const std::uint64_t count = f.account.faults[std::size_t(kind)])
      faults += (faults.empty() ? "" : ", ") + std::string(chaos::name_of(kind))
                + " " + std::to_string(count);
  std::printf("\nfaults   %s; seed %" PRIu64 "\n",
              faults.empty() ? "none" : faults.c_str(), f.seed);
  std::printf("run      %s after %" PRIu64 " steps, loss %.4f\n",
              f.state.c_str(), f.account.steps, f.loss);
  std::printf("lost     %" PRIu64 " committed steps run again, %" PRIu64
              " never told; %" PRIu64 " forks in %" PRIu64 " views\n",
              f.account.repeated, f.account.missing, f.forks, f.views);
  std::printf("pauses   median %.2f s, longest %.2f s\n",
              seconds(f.account.median_pause),
              seconds(f.account.longest_pause));
  std::printf("goodput  %.0f %% of what the peers left could do (all of them: "
              "%.0f tokens/s, on %u processors)\n",
              f.account.goodput * 100, f.capacity.tokens_per_s,
              f.capacity.processors);
}

} // namespace shoal::apps
