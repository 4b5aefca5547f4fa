// runtime/model/sequences.cpp -- texts and lists of ids, from files.
#include "runtime/model/sequences.hpp"

#include "runtime/model/corpus.hpp"
#include "runtime/model/file_io.hpp"
#include "runtime/model/json.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

using sequences = std::vector<std::vector<token_id>>;

failure needs_tokenizer(const std::string& where) {
  return {where
          + ": is text, but the model has no tokenizer; give .jsonl "
            "files with input_ids"};
}

/// Adds one line of a .jsonl file.
status
read_line(std::string_view line, const std::string& where,
          const model_config& config, text_encoder* encoder, sequences& into) {
  const auto object = parse_json_object(line, where);
  if (!object)
    return object.why();
  if (auto given = object->find("input_ids"); given != object->end()) {
    std::vector<token_id> sequence;
    if (!given->is_array())
      return failure{where + ": input_ids is not a list"};
    for (const auto& id : *given) {
      if (!id.is_number_unsigned()
          || id.get<std::uint64_t>() >= config.vocab_size)
        return failure{where + ": input_ids: " + shown(id)
                       + " is not an id below vocab_size ("
                       + std::to_string(config.vocab_size) + ")"};
      sequence.push_back(id.get<token_id>());
    }
    into.push_back(std::move(sequence));
    return done{};
  }
  auto text = object->find("text");
  if (text == object->end() || !text->is_string())
    return failure{where + ": has neither text nor input_ids"};
  if (encoder == nullptr)
    return needs_tokenizer(where);
  auto ids = encoder->encode(text->get_ref<const std::string&>());
  if (!ids)
    return failure{where + ": " + ids.message()};
  into.push_back(std::move(*ids));
  return done{};
}

} // namespace

status
read_jsonl(const std::string& path, std::string_view content,
           const model_config& config, text_encoder* encoder, sequences& into) {
  std::size_t number = 0;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const std::string where = path + ":" + std::to_string(++number);
    if (line.size() > jsonl_line_bytes_max)
      return failure{where + ": is longer than "
                     + std::to_string(jsonl_line_bytes_max) + " bytes"};
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    if (status read = read_line(line, where, config, encoder, into); !read)
      return read;
  }
  return done{};
}

result<sequences>
read_sequences(std::span<const std::string> paths, const model_config& config,
               const tokenizer* by) {
  auto files = find_files(paths);
  if (!files)
    return files.why();
  std::optional<text_encoder> encoder;
  if (by != nullptr)
    encoder.emplace(*by);
  sequences all;
  std::uint64_t bytes = 0;
  for (const corpus_file& file : *files) {
    auto content = read_file(file.path, corpus_file_bytes_max);
    if (!content)
      return content.why();
    bytes += content->size();
    if (bytes > corpus_bytes_max)
      return failure{file.path + ": with this file there are more than "
                     + std::to_string(corpus_bytes_max) + " bytes"};
    if (file.path.ends_with(".jsonl")) {
      status read = read_jsonl(file.path, *content, config,
                               encoder ? &*encoder : nullptr, all);
      if (!read)
        return read.why();
    } else if (content->find('\0') == std::string::npos) {
      if (!encoder)
        return needs_tokenizer(file.path);
      auto ids = encoder->encode(*content);
      if (!ids)
        return failure{file.path + ": " + ids.message()};
      all.push_back(std::move(*ids));
    }
  }
  const bool enough = std::ranges::any_of(
    all, [](const auto& sequence) { return sequence.size() >= 2; });
  if (!enough)
    return failure{(paths.empty() ? std::string("no path") : paths.front())
                   + ": has no text of two tokens or more"};
  return all;
}

} // namespace shoal::model
