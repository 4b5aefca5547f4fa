// runtime/model/evaluate.cpp -- the mean loss of a model over given text.
#include "runtime/model/evaluate.hpp"

#include "runtime/model/corpus.hpp"
#include "runtime/model/decoder.hpp"
#include "runtime/model/file_io.hpp"
#include "runtime/model/json.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::model {

void evaluation_sum::add(double loss, std::uint64_t predicted) {
  loss_sum += loss;
  tokens += predicted;
}

evaluation evaluation_sum::mean() const {
  if (tokens == 0)
    return {};
  const double loss = loss_sum / static_cast<double>(tokens);
  return {loss, std::exp(loss), tokens};
}

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

} // namespace

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

namespace {

/// Calls body(inputs, targets) for each window of a sequence.
template <class Body>
void each_window(const model_config& config, std::span<const token_id> sequence,
                 std::size_t window, const Body& body) {
  const std::size_t positions = config.max_position_embeddings;
  window = window == 0 ? positions : std::min(window, positions);
  for (std::size_t first = 0; first < sequence.size(); first += window) {
    const std::size_t size = std::min(window, sequence.size() - first);
    if (size >= 2)
      body(sequence.subspan(first, size - 1),
           sequence.subspan(first + 1, size - 1));
  }
}

/// Rows of logits that are computed at once.
constexpr std::size_t logits_rows_max = 128;

} // namespace

void evaluate(stage_model& model, std::span<const token_id> sequence,
              evaluation_sum& sum, std::size_t window) {
  SHOAL_ASSERT(model.has_embedding() && model.has_head());
  each_window(model.config(), sequence, window, [&](auto ids, auto targets) {
    forward_work work;
    work.microbatch = ~microbatch_id(0);
    work.tokens = ids.size();
    work.ids = ids;
    work.targets = targets;
    work.keep = false;
    const forward_result result = model.forward(work);
    sum.add(result.loss_sum, result.predicted);
  });
}

evaluation
evaluate(stage_model& model, std::span<const std::vector<token_id>> all,
         std::size_t window) {
  evaluation_sum sum;
  for (const auto& sequence : all)
    evaluate(model, sequence, sum, window);
  return sum.mean();
}

evaluation
evaluate(inference_stage& model, std::span<const std::vector<token_id>> all,
         std::size_t window) {
  SHOAL_ASSERT(model.has_embedding() && model.has_head());
  const model_config& config = model.config();
  std::size_t longest = 1;
  for (const auto& sequence : all)
    each_window(config, sequence, window, [&](auto ids, auto) {
      longest = std::max(longest, ids.size());
    });
  stage_decoder decoder(model, longest);
  aligned_buffer logits(std::min(longest, logits_rows_max) * config.vocab_size);
  std::vector<float> losses(logits_rows_max);
  evaluation_sum sum;
  const auto add = [&](std::span<const token_id> ids,
                       std::span<const token_id> targets) {
    decoder.clear();
    double loss_sum = 0;
    for (std::size_t t = 0; t < ids.size(); t += logits_rows_max) {
      const std::size_t rows = std::min(logits_rows_max, ids.size() - t);
      const auto of_rows = logits.span().first(rows * config.vocab_size);
      decoder.append(ids.subspan(t, rows), {}, {}, of_rows);
      model.device().cross_entropy({losses.data(), rows}, {},
                                   {of_rows.data(), rows, config.vocab_size},
                                   targets.subspan(t, rows), 1);
      for (std::size_t r = 0; r < rows; ++r)
        loss_sum += losses[r];
    }
    sum.add(loss_sum, ids.size());
  };
  for (const auto& sequence : all)
    each_window(config, sequence, window, add);
  return sum.mean();
}

} // namespace shoal::model
