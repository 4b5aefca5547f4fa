// runtime/model/data/result_names.cpp -- the list of names.
#include "runtime/model/data/result_names.hpp"

#include "runtime/model/files/checksums.hpp"

#include <algorithm>
#include <iterator>

namespace shoal::model {

bool is_result_name(const std::string& name) {
  static constexpr const char* names[] = {
    // the run
    "run.json", "run.toml", "metrics.jsonl", "tb", "checkpoint",
    // the model
    checksums_name, "config.json", "model.safetensors",
    "model.safetensors.index.json",
    // what comes with a model: actors::carried_names
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
    "chat_template.jinja", "generation_config.json"};
  return std::ranges::find(names, name) != std::end(names)
         || (name.starts_with("model-") && name.ends_with(".safetensors"));
}

} // namespace shoal::model
