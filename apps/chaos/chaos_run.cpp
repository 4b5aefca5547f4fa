// apps/chaos/chaos_run.cpp -- defines a small model and writes sentences.
#include "apps/chaos/chaos_run.hpp"

#include "apps/submit/run_file.hpp"
#include "runtime/model/data/corpus.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace shoal::apps {

namespace fs = std::filesystem;

namespace {

/// 0.9 million parameters: a step takes a few tenths of a second.
const std::map<std::string, std::string> usual_run{
  {"model.hidden_size", "128"},
  {"model.intermediate_size", "352"},
  {"model.num_hidden_layers", "4"},
  {"model.num_attention_heads", "4"},
  {"model.max_position_embeddings", "128"},
  {"training.seq_len", "128"},
  {"training.local_batch_size", "4"},
  {"training.global_batch_size", "16"},
  {"optimizer.lr", "1e-3"},
  {"validation.enable", "false"},
  {"checkpoint.enable", "false"},
};

/// Sentences with some structure, so that the loss falls.
void write_text(const fs::path& folder) {
  static const char* const kinds[] = {"small",  "quick", "silver", "old",
                                      "hungry", "blue",  "shy",    "young"};
  static const char* const fishes[] = {"herring", "cod",   "sprat", "tuna",
                                       "salmon",  "perch", "trout", "smelt"};
  static const char* const acts[] = {"follows", "passes", "leads",
                                     "meets",   "loses",  "finds"};
  fs::create_directories(folder);
  std::uint32_t state = 1;
  auto pick = [&state](const auto& words) {
    state = state * 1664525u + 1013904223u;
    return words[(state >> 16) % std::size(words)];
  };
  for (int file = 0; file < 16; ++file) {
    std::ofstream out(folder / (std::to_string(file) + ".txt"));
    for (int line = 0; line < 300; ++line)
      out << "The " << pick(kinds) << " " << pick(fishes) << " " << pick(acts)
          << " the " << pick(kinds) << " " << pick(fishes) << ".\n";
  }
}

} // namespace

model::result<runtime::run_config>
load_chaos_run(const run_options& o, int peers) {
  run_options wanted = o;
  const bool own = wanted.run_file.empty();
  if (own)
    for (const auto& [key, value] : usual_run)
      wanted.overrides.try_emplace(key, value);
  auto run = load_run(wanted);
  if (!run)
    return run;
  if (!run->model_path.empty())
    return model::failure{"chaos trains from random weights: leave out "
                          "model.path"};
  if (run->data_tokenizer == "bpe")
    return model::failure{"chaos trains on bytes: leave out data.tokenizer"};
  if (run->replicate_degree == -1)
    run->replicate_degree = 2;
  if (own && run->pipeline_degree == -1)
    run->pipeline_degree = std::clamp<std::int64_t>(
      peers / 2, 1, std::int64_t(run->model.num_hidden_layers));
  return run;
}

std::vector<std::byte>
read_chaos_text(runtime::run_config& run, const fs::path& folder) {
  if (run.data_paths.empty()) {
    write_text(folder);
    run.data_paths = {folder.string()};
  }
  auto text = read_text(run);
  if (!text)
    throw std::runtime_error("data: " + text.message());
  return model::serialise(*text);
}

} // namespace shoal::apps
