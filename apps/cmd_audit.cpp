// apps/cmd_audit.cpp -- shoal audit: which samples a run has used.
#include "apps/commands.hpp"
#include "apps/run_file.hpp"
#include "runtime/core/training/ledger.hpp"
#include "runtime/metrics/event_json.hpp"
#include "runtime/model/corpus.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>

namespace shoal::apps {
namespace {

int refuse(const std::string& why) {
  std::fprintf(stderr, "shoal audit: %s\n", why.c_str());
  return 2;
}

/// "3, 4, 5 and 9 more"
std::string list(const std::vector<std::uint64_t>& all) {
  constexpr std::size_t shown = 5;
  std::string out;
  for (std::size_t i = 0; i < all.size() && i < shown; ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(all[i]);
  if (all.size() > shown)
    out += " and " + std::to_string(all.size() - shown) + " more";
  return out;
}

bool read_steps(const std::filesystem::path& file,
                std::vector<core::used_data>& out) {
  std::ifstream in(file, std::ios::binary);
  runtime::job_event event;
  for (std::string line; std::getline(in, line);)
    if (runtime::from_json_line(line, event)
        && event.kind == runtime::job_event_kind::step)
      out.push_back({event.step, event.data});
  return in.eof();
}

void print(const core::audit& a, const runtime::run_config& run,
           std::uint64_t first) {
  std::printf("%llu steps (%llu to %llu) of %lld sequences of %lld tokens: "
              "%llu samples, %llu data epochs complete\n",
              (unsigned long long)a.steps, (unsigned long long)first,
              (unsigned long long)(first + a.steps - 1),
              (long long)run.sequences_per_step(), (long long)run.seq_len,
              (unsigned long long)a.samples, (unsigned long long)a.epochs);
  auto say = [](const char* what, const std::vector<std::uint64_t>& which) {
    if (!which.empty())
      std::printf("%s: %s\n", what, list(which).c_str());
  };
  say("steps that are missing", a.missing);
  say("steps that used other samples than their own", a.other);
  say("steps whose samples are not known", a.unknown);
  say("samples used twice in a data epoch", a.repeated);
  std::printf("%s\n", a.proven() ? "proven: each step was committed with its "
                                   "own samples, none left out, none twice"
                                 : "not proven");
}

} // namespace

int run_audit(const audit_options& o) {
  run_options from;
  from.run_file = o.out / "run.toml";
  from.data = o.data;
  from.resolved = true;
  if (!std::filesystem::exists(from.run_file))
    return refuse(from.run_file.string() + " does not exist");
  const auto run = load_run(from);
  if (!run)
    return refuse(run.message());
  std::vector<core::used_data> log;
  if (!read_steps(o.out / "metrics.jsonl", log))
    return refuse((o.out / "metrics.jsonl").string() + " cannot be read");
  if (log.empty())
    return refuse((o.out / "metrics.jsonl").string() + " has no steps");
  const auto text = read_text(*run);
  if (!text)
    return refuse("data: " + text.message());
  const auto length = std::size_t(run->seq_len);
  const std::uint64_t windows = core::windows_in(text->train_size(), length);
  if (windows == 0)
    return refuse("data: fewer tokens than training.seq_len + 1");
  const core::data_order order(std::uint64_t(run->seed), windows,
                               std::uint32_t(run->sequences_per_step()));
  const core::audit a = core::audit_run(
    order, std::uint32_t(run->microbatches_per_step()), length, log,
    [&](std::uint64_t window, std::span<std::int32_t> targets) {
      text->copy_train(window * length + 1, targets);
    });
  std::uint64_t first = log.front().step;
  for (const core::used_data& u : log)
    first = std::min(first, u.step);
  if (o.json) {
    nlohmann::ordered_json out;
    out["first_step"] = first;
    out["steps"] = a.steps;
    out["samples"] = a.samples;
    out["data_epochs"] = a.epochs;
    out["missing"] = a.missing;
    out["other"] = a.other;
    out["unknown"] = a.unknown;
    out["repeated"] = a.repeated;
    out["proven"] = a.proven();
    std::printf("%s\n", out.dump().c_str());
  } else {
    print(a, *run, first);
  }
  return a.proven() ? 0 : 1;
}

} // namespace shoal::apps
