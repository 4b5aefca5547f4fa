// runtime/model/text/added_tokens.cpp -- "added_tokens": found before all else.
#include "runtime/model/text/added_tokens.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <unordered_map>

namespace shoal::model::text {

added_tokens::tree::tree() {
  roots_.fill(-1);
}

void added_tokens::tree::add(std::string_view text, std::size_t index) {
  std::int32_t at = -1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::int32_t next = at < 0 ? roots_[byte] : nodes_[at].child;
    while (at >= 0 && next >= 0 && nodes_[next].byte != byte)
      next = nodes_[next].sibling;
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({-1, at < 0 ? -1 : nodes_[at].child, -1, byte});
      (at < 0 ? roots_[byte] : nodes_[at].child) = next;
    }
    at = next;
  }
  if (at >= 0 && nodes_[at].token < 0)
    nodes_[at].token = static_cast<std::int32_t>(index);
}

std::ptrdiff_t
added_tokens::tree::longest(std::string_view text, std::size_t at,
                            std::size_t& bytes) const {
  std::ptrdiff_t found = -1;
  std::int32_t node = roots_[static_cast<unsigned char>(text[at])];
  for (std::size_t i = at + 1; node >= 0; ++i) {
    if (nodes_[node].token >= 0) {
      found = nodes_[node].token;
      bytes = i - at;
    }
    if (i == text.size())
      break;
    const auto byte = static_cast<unsigned char>(text[i]);
    node = nodes_[node].child;
    while (node >= 0 && nodes_[node].byte != byte)
      node = nodes_[node].sibling;
  }
  return found;
}

void added_tokens::add(const json_view& from, const vocabulary& tokens,
                       const normalizer& normal, std::uint64_t& next_id) {
  added_token token;
  token.content = from["content"].string();
  token.single_word = from["single_word"].boolean(false);
  token.lstrip = from["lstrip"].boolean(false);
  token.rstrip = from["rstrip"].boolean(false);
  token.special = from["special"].boolean(false);
  token.normalized = from["normalized"].boolean(!token.special);
  const std::uint64_t id =
    from["id"].number(vocabulary_tokens_max + id_gap_max);
  if (from.ok()
      && (token.content.empty()
          || token.content.size() > added_token_bytes_max))
    from["content"].fail("has no bytes, or more than "
                         + std::to_string(added_token_bytes_max));
  if (!from.ok())
    return;
  std::uint64_t expected = next_id;
  if (auto it = tokens.find(token.content); it != tokens.end())
    expected = static_cast<std::uint64_t>(it->second);
  else
    ++next_id;
  if (id != expected)
    return from["id"].fail("is " + std::to_string(id) + ", but "
                           + shown(nlohmann::json(token.content)) + " has "
                           + std::to_string(expected)
                           + " by the vocabulary or the order of added tokens");
  token.id = static_cast<token_id>(id);
  token.form = token.content;
  if (token.normalized) {
    bool cut_left = false;
    if (status done = normal.apply(token.form, cut_left); !done)
      return from["content"].fail(done.message());
  }
  forms_bytes_ += token.form.size();
  if (forms_bytes_ > added_forms_bytes_max)
    return from["content"].fail("the normalizer makes more than "
                                + std::to_string(added_forms_bytes_max)
                                + " bytes of the tokens up to here");
  (token.normalized ? normalized_ : plain_).add(token.form, all_.size());
  all_.push_back(std::move(token));
}

added_tokens
added_tokens::parse(const json_view& from, const vocabulary& tokens,
                    const normalizer& normal) {
  added_tokens made;
  if (from.is_null())
    return made;
  const std::size_t count = from.array(added_tokens_max);
  std::uint64_t next_id = tokens.size();
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < count && from.ok(); ++i) {
    const json_view at = from[i];
    if (const auto [it, fresh] =
          seen.emplace(std::string(at["content"].string()), i);
        !fresh)
      at["content"].fail("is also that of " + from[it->second].path());
    if (from.ok())
      made.add(at, tokens, normal, next_id);
  }
  return made;
}

namespace {

/// Whether bytes [first, last) share any with one of the ranges.
bool touches(std::span<const core::text_range> ranges, std::size_t first,
             std::size_t last) {
  const auto behind =
    std::ranges::upper_bound(ranges, first, {}, &core::text_range::last);
  return behind != ranges.end() && behind->first < last;
}

} // namespace

std::vector<section>
added_tokens::cut(std::string_view text, bool normalized,
                  std::span<const core::text_range> foreign) const {
  const tree& tokens = normalized ? normalized_ : plain_;
  std::vector<section> out;
  std::size_t covered = 0;
  for (std::size_t at = 0; !tokens.empty() && at < text.size();) {
    std::size_t bytes = 0;
    const std::ptrdiff_t index = tokens.longest(text, at, bytes);
    if (index < 0) {
      ++at;
      continue;
    }
    const added_token& token = all_[static_cast<std::size_t>(index)];
    if (token.special && touches(foreign, at, at + bytes)) {
      ++at; // another token may begin within it
      continue;
    }
    std::size_t first = at;
    std::size_t last = at + bytes;
    at = last;
    if (token.single_word) {
      std::size_t before = first;
      std::size_t after = last;
      if ((first > 0 && is_word(core::previous_code(text, before)))
          || (last < text.size() && is_word(core::next_code(text, after))))
        continue;
    }
    if (token.lstrip) {
      for (std::size_t to = first; to > 0; first = to) {
        if (!is_space(core::previous_code(text, to)))
          break;
      }
      first = std::max(first, covered); // what a token before it took
    }
    if (token.rstrip) {
      for (std::size_t to = last; to < text.size(); last = to) {
        if (!is_space(core::next_code(text, to)))
          break;
      }
    }
    if (covered < first)
      out.push_back({covered, first, -1});
    out.push_back({first, last, token.id});
    covered = last;
  }
  if (covered < text.size())
    out.push_back({covered, text.size(), -1});
  return out;
}

} // namespace shoal::model::text
