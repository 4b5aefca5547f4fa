// apps/bench/cmd_bench.cpp -- bench: the speed of this machine's fabrics and
// sums.
//
// link: two nodes of this process per fabric; runs of the fabrics alternate, so
// that all of them see the machine in the same state. allreduce, pipeline:
// nodes in processes of their own.
#include "apps/bench/compute_meter.hpp"
#include "apps/bench/link_meter.hpp"
#include "apps/bench/pipeline_meter.hpp"
#include "apps/bench/reduce_meter.hpp"
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "runtime/core/measure/median.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/files/mapped_file.hpp"
#include "runtime/host/host_limits.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/tls/fabric.hpp"
#include "transport/ucx/fabric.hpp"

#include <cstdio>
#include <iostream>

namespace shoal::apps {

namespace {

using json = runtime::json_value;
namespace tls = transport::tls;
namespace shm = transport::shm;
namespace ucx = transport::ucx;

struct size_row {
  const char* name;
  std::size_t bytes;
  int count; ///< per run: at most 64 MiB
};
constexpr size_row sizes[] = {
  {"4 KiB", std::size_t{4} << 10, 512},
  {"64 KiB", std::size_t{64} << 10, 512},
  {"1 MiB", std::size_t{1} << 20, 64},
  {"4 MiB", std::size_t{4} << 20, 16},
};
constexpr int round_trips = 500;

link_meter::maker tls_node(const tls::shared_key& key) {
  return [key](transport::fabric_handler& handler) {
    tls::config c;
    c.identity = tls::make_private_key();
    c.cluster_key = key;
    c.instance = tls::make_instance();
    return std::make_unique<tls::fabric>(c, handler);
  };
}

/// shm::fabric or ucx::fabric.
template <class Fabric, class Config>
link_meter::maker paired_node(std::uint8_t who) {
  return [who](transport::fabric_handler& handler) {
    Config c;
    c.self[0] = who;
    c.instance = tls::make_instance();
    return std::make_unique<Fabric>(c, handler);
  };
}

struct measured {
  std::string name;
  std::unique_ptr<link_meter> meter;
  std::vector<std::vector<double>> rates{std::size(sizes)}; ///< GB/s
  std::vector<double> progress = {}, threads = {};          ///< us
};

void run_once(measured& m) {
  for (std::size_t i = 0; i < std::size(sizes); ++i)
    m.rates[i].push_back(static_cast<double>(sizes[i].bytes) * sizes[i].count
                         / m.meter->bulk(sizes[i].bytes, sizes[i].count) / 1e9);
  m.progress.push_back(m.meter->round_trip(round_trips) * 1e6);
  m.threads.push_back(m.meter->round_trip_of_threads(round_trips) * 1e6);
}

void print_text(const std::vector<measured>& all) {
  std::printf("%-8s", "FABRIC");
  for (const size_row& s : sizes)
    std::printf(" %8s", s.name);
  std::printf("  %s\n", "GB/s; round trip of 64 bytes in us, on the progress "
                        "threads and between threads");
  for (const measured& m : all) {
    std::printf("%-8s", m.name.c_str());
    for (const auto& rates : m.rates)
      std::printf(" %8.2f", core::median(rates));
    std::printf("  %.1f %.1f\n", core::median(m.progress),
                core::median(m.threads));
  }
}

const runtime::json_table<measured>& link_table() {
  using m = const measured&;
  static const runtime::json_table<measured> table{
    {"fabric", "text", "", "`tls`, `shm` or `ucx`",
     [](m v) { return json(v.name); }},
    {"gb_per_s", "object", "GB/s", "speed of transfers, by their size in bytes",
     [](m v) {
       json by_size = json::object();
       for (std::size_t i = 0; i < std::size(sizes); ++i)
         by_size[std::to_string(sizes[i].bytes)] = core::median(v.rates[i]);
       return by_size;
     }},
    {"round_trip_us", "number", "us", "of 64 bytes, on the progress threads",
     [](m v) { return json(core::median(v.progress)); }},
    {"round_trip_of_threads_us", "number", "us", "and between threads",
     [](m v) { return json(core::median(v.threads)); }}};
  return table;
}

struct all_reduce_row {
  int processes;
  std::size_t bytes;
  double seconds;
};

const runtime::json_table<all_reduce_row>& all_reduce_table() {
  using r = const all_reduce_row&;
  static const runtime::json_table<all_reduce_row> table{
    {"processes", "whole number", "", "that summed",
     [](r v) { return json(v.processes); }},
    {"bytes", "whole number", "bytes", "of the array of floats",
     [](r v) { return json(v.bytes); }},
    {"seconds", "number", "s", "median of the runs",
     [](r v) { return json(v.seconds); }}};
  return table;
}

int bench_all_reduce(const bench_options& o) {
  std::vector<std::size_t> sizes;
  for (int mib : o.mebibytes)
    sizes.push_back(std::size_t(mib) << 20);
  json out = json::array();
  if (!o.json)
    std::printf("%-10s %8s %10s %8s\n", "PROCESSES", "MIB", "MS", "GB/S");
  for (int processes : o.processes)
    for (const auto& [bytes, seconds] :
         measure_all_reduce(processes, sizes, o.runs)) {
      const double took = core::median(seconds);
      if (o.json)
        out.push_back(runtime::written<all_reduce_row>(
          all_reduce_table(), {processes, bytes, took}));
      else
        std::printf("%-10d %8zu %10.1f %8.2f\n", processes, bytes >> 20,
                    took * 1e3, double(bytes) / took / 1e9);
      std::fflush(stdout);
    }
  if (o.json)
    std::cout << model::json_text(out) << "\n";
  return exit_done;
}

const runtime::json_table<pipeline_figures>& schedule_table() {
  using f = const pipeline_figures&;
  static const runtime::json_table<pipeline_figures> table{
    {"schedule", "text", "", "as parallelism.pipeline_parallel_schedule",
     [](f v) { return json(v.schedule); }},
    {"step_seconds", "number", "s", "of a step, median",
     [](f v) { return json(v.step); }},
    {"computing_seconds", "number", "s",
     "of that, until the last backward pass",
     [](f v) { return json(v.computing); }},
    {"bubble_percent", "number", "%", "of it, in which stages idle; median",
     [](f v) { return json(v.bubble); }}};
  return table;
}

const runtime::json_table<pipeline_times>& pipeline_table() {
  using t = const pipeline_times&;
  static const runtime::json_table<pipeline_times> table{
    {"stages", "whole number", "", "of the pipeline",
     [](t v) { return json(v.stages); }},
    {"microbatches", "whole number", "", "of a step",
     [](t v) { return json(v.microbatches); }},
    {"ideal_bubble_percent", "number", "%",
     "of 1f1b with equal stages and no transfers",
     [](t v) { return json(v.ideal_bubble); }},
    {"over_ideal", "number", "",
     "computing phase of 1f1b, over the ideal of its stages' own times",
     [](t v) { return json(v.over_ideal()); }},
    {"schedules", "list of objects", "", "what was measured",
     [](t v) { return runtime::written_each(schedule_table(), v.schedules); },
     runtime::texts_of(schedule_table())}};
  return table;
}

int bench_pipeline(const bench_options& o) {
  const pipeline_times t = measure_pipeline(o.stages, o.runs);
  if (o.json) {
    std::cout << model::json_text(runtime::written(pipeline_table(), t))
              << "\n";
    return exit_done;
  }
  std::printf("%d stages, %d microbatches\n%-12s %9s %12s %8s\n", t.stages,
              t.microbatches, "SCHEDULE", "STEP MS", "COMPUTING MS", "BUBBLE");
  for (const pipeline_figures& f : t.schedules)
    std::printf("%-12s %9.1f %12.1f %6.1f %%\n", f.schedule.c_str(),
                f.step * 1e3, f.computing * 1e3, f.bubble);
  std::printf("equal stages without transfers would have %.1f %% by 1f1b: the "
              "computing phase is %.2fx that ideal\n",
              t.ideal_bubble, t.over_ideal());
  return exit_done;
}

compute_options compute_of(const bench_options& o) {
  using enum kernels::weight_type;
  compute_options c;
  c.shape = o.shape;
  c.model = o.model;
  c.runs = o.runs;
  c.prompt = std::size_t(o.prompt);
  c.tokens = std::size_t(o.tokens);
  c.say = [](const std::string& text) {
    std::cerr << "shoal: " << text << std::endl;
  };
  auto names = o.types;
  if (names.empty() && o.model.empty())
    names = o.what == "train" ? std::vector<std::string>{"f32", "bf16"}
                              : std::vector<std::string>{"bf16", "q8", "q4"};
  for (const std::string& name : names)
    for (const auto type : {f32, bf16, q8, q4})
      if (name == kernels::name_of(type))
        c.types.push_back(type);
  return c;
}

const runtime::json_table<compute_figure>& compute_table() {
  using f = const compute_figure&;
  static const runtime::json_table<compute_figure> table{
    {"what", "text", "", "what was measured", [](f v) { return json(v.what); }},
    {"threads", "whole number", "", "that computed",
     [](f v) { return json(v.threads); }},
    {"value", "number", "as `unit` says", "median of the runs",
     [](f v) { return json(v.value); }},
    {"unit", "text", "", "of the value and of the limit",
     [](f v) { return json(v.unit); }},
    {"limit", "number, optional", "as `unit` says", "what the machine can do",
     [](f v) { return v.limit > 0 ? json(v.limit) : runtime::left_out(); }},
    {"limit_of", "text, optional", "", "what sets that limit",
     [](f v) { return v.limit > 0 ? json(v.limit_of) : runtime::left_out(); }},
    {"percent", "number, optional", "%", "the value, of the limit", [](f v) {
       return v.limit > 0 ? json(v.percent()) : runtime::left_out();
     }}};
  return table;
}

int bench_compute(const bench_options& o) {
  if (!o.model.empty() && o.what != "prefill" && o.what != "decode") {
    std::cerr << "shoal: bench " << o.what
              << " measures no directory: --model is for prefill and decode\n";
    return exit_usage;
  }
  if (o.what == "train" && !o.types.empty()
      && std::ranges::none_of(o.types, [](const std::string& t) {
           return t == "f32" || t == "bf16";
         })) {
    std::cerr << "shoal: bench train measures f32 and bf16: --type names "
                 "neither\n";
    return exit_usage;
  }
  for (const std::string& t : o.types)
    if (o.what == "train" && t != "f32" && t != "bf16")
      std::cerr << "shoal: bench train leaves " << t << " out\n";
  model::explain_truncation();
  kernels::thread_team team(o.threads > 0 ? unsigned(o.threads)
                                          : unsigned(runtime::usable_threads(
                                            runtime::read_host_limits())));
  const compute_options c = compute_of(o);
  const auto all = o.what == "memory"    ? measure_memory(team, c)
                   : o.what == "gemm"    ? measure_gemm(team, c)
                   : o.what == "prefill" ? measure_prefill(team, c)
                   : o.what == "decode"  ? measure_decode(team, c)
                                         : measure_train(team, c);
  for (const compute_figure& f : all) {
    if (!o.json && f.limit > 0)
      std::printf("%-36s %9.1f %-9s %5.1f %% of %.1f (%s)\n", f.what.c_str(),
                  f.value, f.unit.c_str(), f.percent(), f.limit,
                  f.limit_of.c_str());
    else if (!o.json)
      std::printf("%-36s %9.1f %s\n", f.what.c_str(), f.value, f.unit.c_str());
  }
  if (o.json)
    std::cout << model::json_text(runtime::written_each(compute_table(), all))
              << "\n";
  return exit_done;
}

int bench_links(const bench_options& o) {
  std::vector<measured> all;
  {
    const auto key = tls::make_shared_key();
    all.push_back(
      {"tls", std::make_unique<link_meter>(tls_node(key), tls_node(key))});
    all.push_back({"shm", std::make_unique<link_meter>(
                            paired_node<shm::fabric, shm::config>(1),
                            paired_node<shm::fabric, shm::config>(2))});
    try {
      all.push_back({"ucx", std::make_unique<link_meter>(
                              paired_node<ucx::fabric, ucx::config>(1),
                              paired_node<ucx::fabric, ucx::config>(2))});
    } catch (const std::exception& e) {
      std::cerr << "shoal: no ucx here: " << e.what() << "\n";
    }
    for (int run = 0; run < o.runs; ++run)
      for (measured& m : all)
        run_once(m);
  }
  if (o.json)
    std::cout << model::json_text(runtime::written_each(link_table(), all))
              << "\n";
  else
    print_text(all);
  return exit_done;
}

} // namespace

std::vector<runtime::field_text> bench_link_fields() {
  return runtime::texts_of(link_table());
}
std::vector<runtime::field_text> bench_all_reduce_fields() {
  return runtime::texts_of(all_reduce_table());
}
std::vector<runtime::field_text> bench_pipeline_fields() {
  return runtime::texts_of(pipeline_table());
}
std::vector<runtime::field_text> bench_compute_fields() {
  return runtime::texts_of(compute_table());
}

int run_bench(const bench_options& o) {
  try {
    return o.what == "link"        ? bench_links(o)
           : o.what == "pipeline"  ? bench_pipeline(o)
           : o.what == "allreduce" ? bench_all_reduce(o)
                                   : bench_compute(o);
  } catch (const std::exception& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
}

} // namespace shoal::apps
