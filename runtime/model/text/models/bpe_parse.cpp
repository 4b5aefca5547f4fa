// runtime/model/text/models/bpe_parse.cpp -- "model" of a tokenizer.json, checked.
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/text/models/bpe.hpp"

#include <algorithm>
#include <cstdio>

namespace shoal::model::text {

namespace {

/// The only character of a text, if it has one.
std::optional<char32_t> only_code(std::string_view text) {
  std::size_t at = 0;
  if (text.empty())
    return std::nullopt;
  const char32_t code = core::next_code(text, at);
  return at == text.size() ? std::optional(code) : std::nullopt;
}

} // namespace

void bpe::index_characters() {
  std::size_t count = 0;
  for (const auto& [token, id] : vocabulary_)
    count += only_code(token).has_value();
  characters_ = flat_map<token_id>(count);
  for (const auto& [token, id] : vocabulary_) {
    if (const auto code = only_code(token))
      characters_.set(*code, id);
  }
  bytes_ = byte_tokens_of(vocabulary_);
}

void bpe::add_merge(const json_view& at, std::string_view left,
                    std::string_view right, std::uint32_t rank) {
  const auto l = vocabulary_.find(left);
  const auto r = vocabulary_.find(right);
  const std::string both = std::string(left) + std::string(right);
  const auto joined = vocabulary_.find(both);
  if (left.empty() || right.empty())
    return at.fail("merges an empty text");
  for (const auto& [it, text] : {std::pair(l, left), std::pair(r, right),
                                 std::pair(joined, std::string_view(both))}) {
    if (it == vocabulary_.end())
      return at.fail("merges to or from " + in_quotes(text)
                     + ", which is not in the vocabulary");
  }
  merges_.set(pair_key(l->second, r->second), {rank, joined->second});
  std::size_t end = left.size();
  std::size_t begin = 0;
  const token_id* a = characters_.find(core::previous_code(left, end));
  const token_id* b = characters_.find(core::next_code(right, begin));
  if (a != nullptr && b != nullptr) // else it never comes to this merge
    joins_.set(pair_key(*a, *b), 1);
  for (const token_id id : {l->second, r->second})
    cuts_ =
      cuts_ && id != unk_
      && !(byte_fallback_ && std::ranges::find(bytes_, id) != bytes_.end());
}

void bpe::read_merges(const json_view& from) {
  const std::size_t count = from.array(merges_max);
  merges_ = flat_map<merge>(count);
  joins_ = flat_map<char>(count);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < count && from.ok(); ++i) {
    const json_view at = from[i];
    if (at.raw().is_array()) {
      if (at.array(2) != 2 || !at[0u].raw().is_string()
          || !at[1u].raw().is_string())
        at.fail("is not two tokens");
      else
        add_merge(at, at[0u].string(), at[1u].string(), rank++);
      continue;
    }
    const std::string_view line = at.string(); // the older form "left right"
    if (line.starts_with("#version"))
      continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos
        || line.find(' ', space + 1) != std::string_view::npos)
      at.fail("is not two tokens with one space between");
    else
      add_merge(at, line.substr(0, space), line.substr(space + 1), rank++);
  }
}

bpe bpe::parse(const json_view& from, std::vector<std::string>& notices) {
  bpe made;
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json_view view = from[key];
    if (!view.is_null() && !view.string().empty())
      view.fail("is not supported");
  }
  if (const json_view dropout = from["dropout"]; !dropout.is_null()) {
    if (!dropout.raw().is_number())
      dropout.fail("is not a number");
    else if (dropout.raw().get<double>() != 0)
      notices.push_back(dropout.path()
                        + " is taken as 0: the same text always gives the "
                          "same tokens");
  }
  made.fuse_unk_ = from["fuse_unk"].boolean(false);
  made.byte_fallback_ = from["byte_fallback"].boolean(false);
  made.ignore_merges_ = from["ignore_merges"].boolean(false);
  if (from.ok())
    made.vocabulary_ = read_vocabulary(from["vocab"], token_bytes_max);
  if (!from.ok())
    return made;
  made.index_characters();
  if (const json_view unk = from["unk_token"]; !unk.is_null()) {
    made.has_unk_ = true;
    made.unk_token_ = unk.string();
    if (auto it = made.vocabulary_.find(made.unk_token_);
        it != made.vocabulary_.end())
      made.unk_ = it->second;
  }
  made.read_merges(from["merges"]);
  return made;
}

} // namespace shoal::model::text
