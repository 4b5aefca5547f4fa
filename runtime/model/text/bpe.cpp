// runtime/model/text/bpe.cpp -- byte pair encoding of one piece of text.
#include "runtime/model/text/bpe.hpp"

#include "runtime/model/text/utf8.hpp"

#include <algorithm>
#include <cstdio>

namespace shoal::model::text {

namespace {

std::uint64_t pair_key(token_id left, token_id right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32
         | static_cast<std::uint32_t>(right);
}

constexpr std::uint32_t end = ~std::uint32_t{0};

/// A node of the linked list of symbols.
struct link {
  token_id id = 0;
  std::uint32_t previous = end;
  std::uint32_t next = end;
  bool gone = false;
};

/// Neighbours that may merge: the node on the left, and what they become.
struct candidate {
  std::uint32_t rank = 0;
  std::uint32_t at = 0;
  token_id id = 0;

  bool operator<(const candidate& other) const { // std heaps: largest first
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

} // namespace

std::size_t word_cache::place(std::string_view word) {
  return std::hash<std::string_view>()(word) % words_max;
}

const std::vector<token_id>* word_cache::find(std::string_view word) const {
  const entry& e = entries_[place(word)];
  return e.word == word ? &e.tokens : nullptr;
}

void word_cache::put(std::string_view word, const token_id* first,
                     std::size_t count) {
  if (word.size() > word_bytes_max || word.empty())
    return;
  entry& e = entries_[place(word)];
  e.word = word;
  e.tokens.assign(first, first + count);
}

status bpe::symbols_of(std::string_view piece, std::vector<symbol>& into,
                       bool& unknown) const {
  std::optional<symbol> waiting; // an unknown token that others may join
  auto flush = [&] {
    if (waiting)
      into.push_back(*waiting);
    waiting.reset();
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t first = at;
    const auto first32 = static_cast<std::uint32_t>(first);
    const char32_t code = next_code(piece, at);
    if (const token_id* id = characters_.find(code)) {
      flush();
      into.push_back({*id, first32});
      continue;
    }
    if (byte_fallback_) {
      const std::string_view bytes = piece.substr(first, at - first);
      auto token = [&](char c) {
        return bytes_[static_cast<unsigned char>(c)];
      };
      if (std::ranges::all_of(bytes, [&](char c) { return token(c) >= 0; })) {
        // A waiting unknown token comes behind these bytes, as it does in
        // `tokenizers`; it takes a vocabulary with some bytes missing.
        for (std::size_t i = 0; i < bytes.size(); ++i)
          into.push_back(
            {token(bytes[i]), first32 + static_cast<std::uint32_t>(i)});
        continue;
      }
    }
    if (!has_unk_)
      continue; // a character that nothing stands for is left out
    if (!unk_)
      return failure{"the text has the character '"
                     + std::string(piece.substr(first, at - first))
                     + "', which has no token, and unk_token \"" + unk_token_
                     + "\" is not in the vocabulary"};
    unknown = true;
    if (waiting && fuse_unk_)
      continue;
    flush();
    waiting = symbol{*unk_, first32};
  }
  flush();
  return done{};
}

status bpe::encode(std::string_view piece, word_cache& cache,
                   std::vector<token_id>& into) const {
  if (piece.size() > piece_bytes_max)
    return failure{"a piece of text of " + std::to_string(piece.size())
                   + " bytes that nothing cuts; more than "
                   + std::to_string(piece_bytes_max) + " are not possible"};
  const bool short_piece = piece.size() <= word_cache::word_bytes_max;
  if (short_piece) {
    if (const auto* known = cache.find(piece)) {
      into.insert(into.end(), known->begin(), known->end());
      return done{};
    }
  }
  const std::size_t before = into.size();
  if (ignore_merges_) {
    if (auto whole = vocabulary_.find(piece); whole != vocabulary_.end()) {
      into.push_back(whole->second);
      cache.put(piece, &whole->second, 1);
      return done{};
    }
  }
  std::vector<symbol> symbols;
  symbols.reserve(piece.size());
  bool unknown = false;
  if (status cut = symbols_of(piece, symbols, unknown); !cut)
    return cut;
  for (std::size_t first = 0; first < symbols.size();) {
    std::size_t last = first + 1;
    while (
      last < symbols.size()
      && (!cuts_
          || joins_.find(pair_key(symbols[last - 1].id, symbols[last].id))))
      ++last;
    // Words of a long piece; what they become depends on their text only, but
    // for unknown tokens, which may stand for more text than their own.
    const std::size_t byte_last =
      last == symbols.size() ? piece.size() : symbols[last].first;
    const std::string_view word =
      piece.substr(symbols[first].first, byte_last - symbols[first].first);
    const bool cached = !short_piece && !unknown && !ignore_merges_
                        && last - first > 1
                        && word.size() <= word_cache::word_bytes_max;
    const auto* known = cached ? cache.find(word) : nullptr;
    if (known != nullptr) {
      into.insert(into.end(), known->begin(), known->end());
    } else {
      const std::size_t word_before = into.size();
      merge_word(symbols.data() + first, last - first, into);
      if (cached)
        cache.put(word, into.data() + word_before, into.size() - word_before);
    }
    first = last;
  }
  if (short_piece)
    cache.put(piece, into.data() + before, into.size() - before);
  return done{};
}

void bpe::merge_word(const symbol* first, std::size_t count,
                     std::vector<token_id>& into) const {
  if (count == 1) {
    into.push_back(first->id);
    return;
  }
  std::vector<link> list(count);
  for (std::size_t i = 0; i < count; ++i) {
    list[i].id = first[i].id;
    list[i].previous = i == 0 ? end : static_cast<std::uint32_t>(i - 1);
    list[i].next = i + 1 == count ? end : static_cast<std::uint32_t>(i + 1);
  }
  std::vector<candidate> queue;
  queue.reserve(count);
  auto candidate_at = [&](std::uint32_t at) -> const merge* {
    return merges_.find(pair_key(list[at].id, list[list[at].next].id));
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    if (const merge* m = candidate_at(i))
      queue.push_back({m->rank, i, m->id});
  }
  std::make_heap(queue.begin(), queue.end());
  auto push = [&](std::uint32_t at) {
    if (at == end || list[at].next == end)
      return;
    if (const merge* m = candidate_at(at)) {
      queue.push_back({m->rank, at, m->id});
      std::push_heap(queue.begin(), queue.end());
    }
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end());
    const candidate top = queue.back();
    queue.pop_back();
    link& left = list[top.at];
    if (left.gone || left.next == end)
      continue;
    const merge* still = candidate_at(top.at);
    if (still == nullptr || still->id != top.id)
      continue; // either side has become something else
    link& right = list[left.next];
    left.id = top.id;
    left.next = right.next;
    right.gone = true;
    if (right.next != end)
      list[right.next].previous = top.at;
    push(left.previous);
    push(top.at);
  }
  for (std::uint32_t at = 0; at != end; at = list[at].next)
    into.push_back(list[at].id);
}

} // namespace shoal::model::text
