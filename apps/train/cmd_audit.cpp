// apps/train/cmd_audit.cpp -- audit: checks which samples a run has used.
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/common/metrics_log.hpp"
#include "apps/train/run_file.hpp"
#include "apps/train/run_record.hpp"
#include "runtime/core/training/ledger.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/model/data/corpus.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>

namespace shoal::apps {
namespace {

int refuse(const std::string& why) {
  std::cerr << "shoal: " << why << "\n";
  return 2;
}

/// "3, 4, 5 and 9 more"
std::string list(const core::findings& all) {
  constexpr std::size_t shown = 5;
  std::string out;
  for (std::size_t i = 0; i < all.listed.size() && i < shown; ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(all.listed[i]);
  if (all.count > shown)
    out += " and " + std::to_string(all.count - shown) + " more";
  return out;
}

struct verdict {
  const core::audit& of;
  const core::findings& impossible;
  std::uint64_t first_step;
  bool same_text;

  bool proven() const { return of.proven() && impossible.count == 0; }
};

const runtime::json_table<verdict>& verdict_table() {
  using json = runtime::json_value;
  using v = const verdict&;
  static const runtime::json_table<verdict> table{
    {"first_step", "whole number", "", "the first that metrics.jsonl names",
     [](v a) { return json(a.first_step); }},
    {"steps", "whole number", "", "that were committed",
     [](v a) { return json(a.of.steps); }},
    {"samples", "whole number", "", "that they used",
     [](v a) { return json(a.of.samples); }},
    {"data_epochs", "whole number", "", "times that all of the text was used",
     [](v a) { return json(a.of.epochs); }},
    {"missing", "list of whole numbers", "", "steps that are missing",
     [](v a) { return json(a.of.missing.listed); }},
    {"other", "list of whole numbers", "",
     "steps that used other samples than their own",
     [](v a) { return json(a.of.other.listed); }},
    {"unknown", "list of whole numbers", "",
     "steps whose samples are not known",
     [](v a) { return json(a.of.unknown.listed); }},
    {"repeated", "list of whole numbers", "",
     "samples that were used twice in a data epoch",
     [](v a) { return json(a.of.repeated.listed); }},
    {"same_text", "true or false", "",
     "whether the text is the one that the run was given",
     [](v a) { return json(a.same_text); }},
    {"impossible_lines", "list of whole numbers", "",
     "lines of metrics.jsonl that this run cannot have written",
     [](v a) { return json(a.impossible.listed); }},
    {"findings", "whole number", "",
     "of all five lists, which name the first ones only",
     [](v a) {
       return json(a.of.missing.count + a.of.other.count + a.of.unknown.count
                   + a.of.repeated.count + a.impossible.count);
     }},
    {"proven", "true or false", "", "whether each sample was used exactly once",
     [](v a) { return json(a.proven()); }}};
  return table;
}

void print(const core::audit& a, const core::findings& impossible,
           const runtime::run_config& run, std::uint64_t first,
           bool same_text) {
  std::printf("%llu steps (%llu to %llu) of %lld sequences of %lld tokens: "
              "%llu samples, %llu data epochs complete\n",
              (unsigned long long)a.steps, (unsigned long long)first,
              (unsigned long long)(first + a.steps - 1),
              (long long)run.sequences_per_step(), (long long)run.seq_len,
              (unsigned long long)a.samples, (unsigned long long)a.epochs);
  auto say = [](const char* what, const core::findings& which) {
    if (which.count > 0)
      std::printf("%s: %s\n", what, list(which).c_str());
  };
  say("steps that are missing", a.missing);
  say("steps that used other samples than their own", a.other);
  say("steps whose samples are not known", a.unknown);
  say("samples used twice in a data epoch", a.repeated);
  if (!same_text)
    std::printf("the text is not the one that the run was given: give that by "
                "--data\n");
  say("lines of metrics.jsonl that this run cannot have written", impossible);
  const bool proven = a.proven() && impossible.count == 0;
  std::printf("%s\n", proven ? "proven: each step was committed with its "
                               "own samples, none left out, none twice"
                             : "not proven");
}

} // namespace

std::vector<runtime::field_text> audit_fields() {
  return runtime::texts_of(verdict_table());
}

int run_audit(const audit_options& o) {
  if (auto fine = check_data(o.data); !fine)
    return refuse(fine.message());
  auto record = read_record(o.out);
  if (!record)
    return refuse(record.message()
                  + ": `shoal audit` needs the folder that `shoal train` or "
                    "`shoal attach` has written");
  record->run = with_paths_from_here(*record);
  runtime::run_config* const run = &record->run;
  if (!o.data.empty())
    run->data_paths = o.data;
  const auto metrics = o.out / "metrics.jsonl";
  std::ifstream in(metrics, std::ios::binary);
  const auto [log, impossible] =
    read_metrics(in, std::uint64_t(record->steps_max));
  if (!in.eof())
    return refuse(metrics.string() + " cannot be read");
  if (log.empty())
    return refuse(metrics.string() + " has no steps of this run");
  const auto text = read_text(*run, o.out);
  if (!text)
    return refuse("data: " + text.message());
  const bool same_text =
    record->text.empty()
    || record->text == core::to_hex(runtime::sha256(model::serialise(*text)));
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
  const verdict found{a, impossible, first, same_text};
  if (o.json) {
    std::printf(
      "%s\n",
      model::json_text(runtime::written(verdict_table(), found)).c_str());
  } else {
    print(a, impossible, *run, first, same_text);
  }
  return found.proven() ? 0 : 1;
}

} // namespace shoal::apps
