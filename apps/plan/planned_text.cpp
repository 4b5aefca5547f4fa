// apps/plan/planned_text.cpp -- finds the files, and reads them if they are
// few.
#include "apps/plan/planned_text.hpp"

#include "apps/submit/run_file.hpp"
#include "apps/terminal/slow_work.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/files/json_table.hpp"

#include <filesystem>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using model::failure;

namespace {

model::watch watch_on(slow_work& slow) {
  return [&slow](std::string_view what, std::uint64_t n, std::uint64_t all) {
    slow.at(what, n, all);
    return true;
  };
}

/// For text that is too large to read here: files that were named must be
/// readable.
model::result<planned_text>
found(const std::vector<model::corpus_file>& files, std::uint64_t bytes) {
  for (const model::corpus_file& file : files) {
    if (!file.named)
      continue;
    if (auto opened = model::open_file(file.path); !opened)
      return opened.why();
  }
  planned_text out;
  out.files = files.size();
  out.bytes = bytes;
  return out;
}

/// A tokenizer that is to be trained makes tokens of it later.
model::result<planned_text> read_raw(const runtime::run_config& run) {
  slow_work slow;
  model::corpus_options options = corpus_options_of(run, watch_on(slow));
  options.whole_characters = true;
  model::reading_report report;
  const auto texts = model::read_text_files(run.data_paths, options, report);
  if (!texts)
    return texts.why();
  return planned_text{report.files, report.bytes, true,
                      {},           {},           model::notices_of(report)};
}

model::result<planned_text> read_tokens(const runtime::run_config& run) {
  slow_work slow;
  model::corpus_report report;
  const auto text = read_text(run, {}, &report, watch_on(slow));
  if (!text)
    return text.why();
  if (auto enough = enough_text(run, *text); !enough)
    return enough.why();
  return planned_text{
    report.read.files,  report.read.bytes,       true,
    text->train_size(), text->validation_size(), report.notices};
}

model::result<planned_text> look(const runtime::run_config& run) {
  const auto files =
    model::find_files(run.data_paths, nullptr, run.data_hidden);
  if (!files)
    return files.why();
  std::uint64_t bytes = 0, unpacked = 0;
  for (const model::corpus_file& file : *files) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(file.path, error);
    if (error)
      continue;
    bytes += size;
    const bool packed = model::packing_of(file.path) != model::packing::none;
    unpacked += packed ? packed_factor * size : size;
  }
  if (unpacked > planned_text_bytes_max)
    return found(*files, bytes);
  return run.data_tokenizer == "bpe" ? read_raw(run) : read_tokens(run);
}

json count_json(const std::optional<std::uint64_t>& count) {
  return count ? json(*count) : json(nullptr);
}

const runtime::json_table<planned_text>& text_table() {
  using t = const planned_text&;
  static const runtime::json_table<planned_text> table{
    {"files", "whole number", "", "that it is in",
     [](t v) { return json(v.files); }},
    {"bytes", "whole number", "bytes",
     "decompressed, where it was read; else as the files are",
     [](t v) { return json(v.bytes); }},
    {"read", "true or false", "",
     "whether it was read: a large text is only looked for",
     [](t v) { return json(v.read); }},
    {"train_tokens", "whole number or null", "tokens",
     "to train on; null: not known before `train` makes them",
     [](t v) { return count_json(v.train_tokens); }},
    {"held_out_tokens", "whole number or null", "tokens", "held out",
     [](t v) { return count_json(v.held_out_tokens); }}};
  return table;
}

} // namespace

model::result<planned_text> look_at_text(const runtime::run_config& run) {
  auto text = look(run);
  return text ? text : failure{"data: " + text.message()};
}

std::string to_text(const planned_text& t) {
  const std::string files = core::count_text(t.files, "file") + ", ";
  if (!t.train_tokens)
    return files + core::size_text(t.bytes)
           + (t.read ? "" : " (so much is read by `train` only)");
  return files + core::count_text(*t.train_tokens, "token") + " to train on, "
         + std::to_string(t.held_out_tokens.value_or(0)) + " held out";
}

json text_json(const planned_text& t) {
  return runtime::written(text_table(), t);
}

std::vector<runtime::field_text> text_fields() {
  return runtime::texts_of(text_table());
}

} // namespace shoal::apps
