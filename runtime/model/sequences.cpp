// runtime/model/sequences.cpp -- documents as sequences of tokens.
#include "runtime/model/sequences.hpp"

#include <algorithm>

namespace shoal::model {

result<std::vector<std::vector<token_id>>>
read_sequences(std::span<const std::string> paths, const model_config& config,
               const tokenizer* by, reading_report* report, const watch& told) {
  auto files = find_files(paths);
  if (!files)
    return files.why();
  std::optional<text_encoder> encoder;
  if (by != nullptr)
    encoder.emplace(*by);
  reading_report own_report;
  reading_report& seen = report != nullptr ? *report : own_report;
  std::vector<std::vector<token_id>> all;
  reading_options options;
  options.vocab_size = config.vocab_size;
  const auto take = [&](const corpus_file&, document d) -> status {
    if (status on = tell(told, "reading text", seen.bytes, 0); !on)
      return on;
    if (!d.ids.empty()) {
      all.push_back(std::move(d.ids));
      return done{};
    }
    if (!encoder)
      return failure{d.where
                     + ": is text, but the model has no tokenizer; give .jsonl "
                       "files with input_ids"};
    auto ids = encoder->encode(d.text);
    if (!ids)
      return failure{d.where + ": " + ids.message()};
    all.push_back(std::move(*ids));
    return done{};
  };
  if (status read = read_documents(*files, options, seen, take); !read)
    return read.why();
  const bool enough = std::ranges::any_of(
    all, [](const auto& sequence) { return sequence.size() >= 2; });
  if (!enough)
    return failure{(paths.empty() ? std::string("no path") : paths.front())
                   + ": has no text of two tokens or more"};
  return all;
}

} // namespace shoal::model
