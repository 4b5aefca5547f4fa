// runtime/model/data/sequences.cpp -- documents as sequences of tokens.
#include "runtime/model/data/sequences.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

/// The number of tokens of the text itself.
/// @param ended  its last one has been put there to end it
std::uint64_t text_tokens(std::span<const token_id> ids, const tokenizer& by,
                          bool ended = false) {
  if (by.file() == nullptr)
    return ids.size();
  if (ended)
    ids = ids.first(ids.size() - 1);
  const auto begin = by.file()->bos();
  const auto end = ended ? std::nullopt : by.file()->eos();
  if (!ids.empty() && begin && ids.front() == *begin)
    ids = ids.subspan(1);
  if (!ids.empty() && end && ids.back() == *end)
    ids = ids.first(ids.size() - 1);
  return ids.size();
}

std::uint64_t
decoded_bytes(std::span<const token_id> ids, const tokenizer& by) {
  if (by.file() == nullptr)
    return byte_tokenizer().bytes(ids).size();
  return by.file()->decode(ids, true).size();
}

} // namespace

result<text_sequences>
read_sequences(std::span<const std::string> paths, const model_config& config,
               const tokenizer* by, std::string_view no_text,
               const sequence_limits& limits, reading_report* report,
               const watch& told) {
  reading_report own_report;
  reading_report& seen = report != nullptr ? *report : own_report;
  auto files = find_files(paths, &seen.left);
  if (!files)
    return files.why();
  std::optional<text_encoder> encoder;
  if (by != nullptr)
    encoder.emplace(*by);
  text_sequences out;
  reading_options options;
  options.vocab_size = config.vocab_size;
  std::uint64_t windows = 0;
  const auto enough_read = [&] {
    return out.all.size() >= limits.documents || windows >= limits.windows;
  };
  /// @returns whether it was cut to what the limit leaves
  const auto cut = [&](std::vector<token_id>& ids) {
    const std::uint64_t left = limits.windows - windows;
    const std::uint64_t own = (ids.size() + limits.window - 1) / limits.window;
    windows += std::min(own, left);
    if (own <= left)
      return false;
    ids.resize(std::size_t(left * limits.window));
    return true;
  };
  const auto take = [&](const corpus_file&, document d) -> status {
    if (enough_read())
      return done{};
    if (status on = tell(told, "reading text", seen.bytes, 0); !on)
      return on;
    if (!d.ids.empty()) {
      cut(d.ids);
      if (by != nullptr) {
        out.tokens += text_tokens(d.ids, *by);
        out.bytes += decoded_bytes(d.ids, *by);
      }
      out.all.push_back(std::move(d.ids));
      return done{};
    }
    if (!encoder)
      return failure{
        d.where
        + ": is text, but the model has no tokenizer: give .jsonl "
          "files with input_ids"
        + (no_text.empty() ? "" : " (" + std::string(no_text) + ")")};
    auto ids = encoder->encode(d.text);
    if (!ids)
      return failure{d.where + ": " + ids.message()};
    const std::size_t own = ids->size();
    if (d.ends)
      end_text(*ids, limits.ends);
    const bool ended = ids->size() > own;
    const bool is_cut = cut(*ids);
    out.tokens += text_tokens(*ids, *by, ended && !is_cut);
    out.bytes += is_cut ? decoded_bytes(*ids, *by) : d.text.size();
    out.all.push_back(std::move(*ids));
    return done{};
  };
  for (const corpus_file& file : *files) {
    if (enough_read())
      break;
    if (status read = read_documents({&file, 1}, options, seen, take); !read)
      return read.why();
  }
  const bool enough = std::ranges::any_of(
    out.all, [](const auto& sequence) { return sequence.size() >= 2; });
  if (!enough)
    return failure{(paths.empty() ? std::string("no path") : paths.front())
                   + ": has no text of two tokens or more"};
  return out;
}

} // namespace shoal::model
