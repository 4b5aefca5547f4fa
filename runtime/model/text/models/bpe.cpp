// runtime/model/text/models/bpe.cpp -- byte pair encoding of one piece of text.
#include "runtime/model/text/models/bpe.hpp"

#include "runtime/core/text/utf8.hpp"

#include <algorithm>
#include <cstdio>

namespace shoal::model::text {

namespace {

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

/// A piece in progress: the symbols of the word that is being read, and the
/// result of the words before.
struct bpe::reading {
  std::string_view piece;
  word_cache& cache;
  std::vector<token_id>& into;
  bool cached;               ///< words may come from the cache
  std::vector<symbol> word;  ///< neighbours that some merge joins
  std::optional<symbol> unk; ///< an unknown token that others may join
};

/// Adds a symbol; if no merge joins it with the last one, that word is
/// complete.
status bpe::add(reading& r, symbol next) const {
  if (!r.word.empty() && cuts_
      && joins_.find(pair_key(r.word.back().id, next.id)) == nullptr)
    end_word(r, next.first);
  if (r.word.size() == word_symbols_max)
    return failure{"text has a run of more than "
                   + std::to_string(word_symbols_max)
                   + " characters without a word boundary"};
  r.word.push_back(next);
  return done{};
}

/// Merges the word that ends before this byte of the piece.
void bpe::end_word(reading& r, std::size_t last) const {
  if (r.word.empty())
    return;
  // The result of a word depends on its text only, except for unknown tokens,
  // which may stand for more text than their own.
  const std::size_t first = r.word.front().first;
  const bool cached = r.cached && r.word.size() > 1 && last > first
                      && last - first <= word_cache::word_bytes_max;
  const std::string_view text =
    cached ? r.piece.substr(first, last - first) : std::string_view();
  if (!cached || !r.cache.append(text, r.into)) {
    const std::size_t before = r.into.size();
    merge_word(r.word, r.into);
    if (cached)
      r.cache.put(text, r.into.data() + before, r.into.size() - before);
  }
  r.word.clear();
}

status bpe::read_characters(reading& r) const {
  auto flush = [&]() -> status {
    if (!r.unk)
      return done{};
    const symbol waiting = *r.unk;
    r.unk.reset();
    return add(r, waiting);
  };
  for (std::size_t at = 0; at < r.piece.size();) {
    const std::size_t first = at;
    const char32_t code = core::next_code(r.piece, at);
    if (const token_id* id = characters_.find(code)) {
      if (status added = flush(); !added)
        return added;
      if (status added = add(r, {*id, first}); !added)
        return added;
      continue;
    }
    const std::string_view bytes = r.piece.substr(first, at - first);
    auto token = [&](char c) { return bytes_[static_cast<unsigned char>(c)]; };
    if (byte_fallback_
        && std::ranges::all_of(bytes, [&](char c) { return token(c) >= 0; })) {
      // A waiting unknown token comes after these bytes, as in `tokenizers`.
      // This only happens if the vocabulary lacks some bytes.
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (status added = add(r, {token(bytes[i]), first + i}); !added)
          return added;
      }
      continue;
    }
    if (!has_unk_)
      continue; // a character without any token is left out
    if (!unk_)
      return failure{"the text has the character '" + std::string(bytes)
                     + "', which has no token, and unk_token \"" + unk_token_
                     + "\" is not in the vocabulary"};
    r.cached = false;
    if (r.unk && fuse_unk_)
      continue;
    if (status added = flush(); !added)
      return added;
    r.unk = symbol{*unk_, first};
  }
  return flush();
}

status bpe::encode(std::string_view piece, word_cache& cache,
                   std::vector<token_id>& into, banned_tokens banned) const {
  if (cache.append(piece, into))
    return done{};
  const bool short_piece = piece.size() <= word_cache::word_bytes_max;
  if (ignore_merges_) {
    if (auto whole = vocabulary_.find(piece);
        whole != vocabulary_.end() && !is_banned(banned, whole->second)) {
      into.push_back(whole->second);
      cache.put(piece, &whole->second, 1);
      return done{};
    }
  }
  const std::size_t before = into.size();
  reading r{piece, cache, into, !short_piece && !ignore_merges_, {}, {}};
  if (status read = read_characters(r); !read)
    return read;
  end_word(r, piece.size());
  if (short_piece)
    cache.put(piece, into.data() + before, into.size() - before);
  return done{};
}

void bpe::merge_word(const std::vector<symbol>& word,
                     std::vector<token_id>& into) const {
  const std::size_t count = word.size();
  if (count == 1) {
    into.push_back(word.front().id);
    return;
  }
  std::vector<link> list(count);
  for (std::size_t i = 0; i < count; ++i) {
    list[i].id = word[i].id;
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
      continue; // one of the sides has merged already
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
