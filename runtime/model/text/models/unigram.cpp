// runtime/model/text/models/unigram.cpp -- Unigram: the likeliest tokens.
#include "runtime/model/text/models/unigram.hpp"

#include "runtime/core/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace shoal::model::text {

namespace {

/// 10 to the power of 0 up to 308.
const std::array<double, 309>& powers_of_ten() {
  static const auto powers = [] {
    std::array<double, 309> out{};
    for (std::size_t i = 0; i != out.size(); ++i) {
      const std::string text = "1e" + std::to_string(i);
      std::from_chars(text.data(), text.data() + text.size(), out[i]);
    }
    return out;
  }();
  return powers;
}

/// The number that the package reads where the file has the shortest digits of
/// this one: it takes the digits for a whole number and divides that by a power
/// of ten. With two roundings the result may be a neighbour of the nearest
/// double, and on that depends which of two almost equal sums is larger.
/// @pre value is finite
double as_read_by_the_package(double value) {
  char text[40];
  const auto end = std::to_chars(std::begin(text), std::end(text),
                                 std::abs(value), std::chars_format::scientific)
                     .ptr;
  std::uint64_t digits = 0;
  int exponent = 0;
  const char* at = text;
  for (bool behind_point = false; *at != 'e'; ++at) {
    if (*at == '.') {
      behind_point = true;
      continue;
    }
    digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    exponent -= behind_point;
  }
  int power = 0;
  ++at;
  std::from_chars(at + (*at == '+'), end, power);
  exponent += power;
  double out = static_cast<double>(digits);
  for (; exponent < -308; exponent += 308)
    out /= 1e308;
  const double by =
    powers_of_ten()[static_cast<std::size_t>(std::abs(exponent))];
  out = exponent < 0 ? out / by : out * by;
  return std::signbit(value) ? -out : out;
}

} // namespace

void unigram::read_vocabulary(const json_view& from) {
  const std::size_t count = from.array(vocabulary_tokens_max);
  if (from.ok() && count == 0)
    from.fail("is not an array with tokens");
  double lowest = token_score_max;
  vocabulary_.reserve(count);
  scores_.reserve(count);
  for (std::size_t i = 0; i < count && from.ok(); ++i) {
    const json_view at = from[i];
    if (at.array(2) != 2 || !at[0u].raw().is_string()
        || !at[1u].raw().is_number()) {
      at.fail("is not a token and its score");
      return;
    }
    const std::string token(at[0u].string());
    const double given = at[1u].raw().get<double>();
    if (token.size() > searched_token_bytes_max)
      return at.fail("the token " + in_quotes(token) + " has more than "
                     + std::to_string(searched_token_bytes_max) + " bytes");
    if (!(std::abs(given) <= token_score_max))
      return at.fail("the score of " + in_quotes(token)
                     + " is not a number up to 1e100");
    const auto [it, fresh] =
      vocabulary_.emplace(token, static_cast<token_id>(i));
    if (!fresh)
      return at.fail("the token " + in_quotes(token) + " is also that of "
                     + from[static_cast<std::size_t>(it->second)].path());
    const double score = as_read_by_the_package(given);
    scores_.push_back(score);
    lowest = std::min(lowest, score);
  }
  unknown_score_ = lowest - unknown_penalty;
}

unigram unigram::parse(const json_view& from) {
  unigram made;
  made.byte_fallback_ = from["byte_fallback"].boolean(false);
  if (from.ok())
    made.read_vocabulary(from["vocab"]);
  if (!from.ok())
    return made;
  if (const json_view unk = from["unk_id"]; !unk.is_null())
    made.unk_ = static_cast<token_id>(unk.number(made.scores_.size() - 1));
  made.bytes_ = byte_tokens_of(made.vocabulary_);
  made.trie_ = byte_trie(made.vocabulary_);
  return made;
}

/// The best ways to the places of a piece, from the last place on which every
/// way must pass.
class unigram::reading {
public:
  reading(const unigram& by, std::string_view piece,
          std::vector<token_id>& into, banned_tokens banned)
    : by_(by), piece_(piece), into_(into), banned_(banned) {}

  status run() {
    for (std::size_t at = 0; at < piece_.size();) {
      if (at == base_ + ways_.size() - 1)
        decide();
      std::size_t next = at;
      core::next_code(piece_, next);
      if (status found = look_from(at, next); !found)
        return found;
      at = next;
    }
    decide();
    end_unknown();
    return done{};
  }

private:
  /// The best way to a place: the sum of its tokens, and the last of them.
  struct way {
    double score = 0;
    token_id last = -1;
    std::uint32_t bytes = 0; ///< of that token; 0: no way is known
  };

  /// @returns whether the way with this token is the best so far to its end.
  bool offer(std::size_t first, std::size_t last, token_id id, double score) {
    if (last - base_ >= ways_.size())
      ways_.resize(last - base_ + 1);
    const double sum = score + ways_[first - base_].score;
    way& old = ways_[last - base_];
    if (old.bytes != 0 && !(sum > old.score))
      return false;
    old = {sum, id, static_cast<std::uint32_t>(last - first)};
    return true;
  }

  /// Takes every token that begins at `first`, whose character ends at `next`.
  status look_from(std::size_t first, std::size_t next) {
    if (first - base_ > overlap_bytes_max)
      return failure{"text has a run of more than "
                     + std::to_string(overlap_bytes_max)
                     + " bytes in which tokens overlap everywhere"};
    bool has_own = false;
    byte_trie::node node = byte_trie::root;
    for (std::size_t at = first; at < piece_.size();) {
      node = by_.trie_.child(node, piece_[at++]);
      if (node == byte_trie::none)
        break;
      const token_id id = by_.trie_.token(node);
      if (id < 0 || is_banned(banned_, id))
        continue;
      offer(first, at, id, by_.scores_[static_cast<std::size_t>(id)]);
      has_own = has_own || at == next;
    }
    if (has_own)
      return done{};
    if (offer(first, next, by_.unk_.value_or(-1), by_.unknown_score_)
        && !by_.unk_)
      return failure{"the text has the character '"
                     + std::string(piece_.substr(first, next - first))
                     + "', which has no token, and there is no unk_id"};
    return done{};
  }

  /// All ways pass the last place: appends the best one, and begins there.
  void decide() {
    chosen_.clear();
    for (std::size_t at = ways_.size() - 1; at != 0; at -= ways_[at].bytes)
      chosen_.push_back(ways_[at]);
    std::size_t at = base_;
    for (auto w = chosen_.rbegin(); w != chosen_.rend(); at += w++->bytes) {
      if (by_.unk_ == w->last) {
        unknown_from_ = unknown_from_.value_or(at);
        unknown_to_ = at + w->bytes;
      } else {
        end_unknown();
        into_.push_back(w->last);
      }
    }
    base_ += ways_.size() - 1;
    ways_.assign(1, {ways_.back().score, -1, 0});
  }

  /// Appends the unknown tokens so far, as one.
  void end_unknown() {
    if (!unknown_from_)
      return;
    const std::string_view text =
      piece_.substr(*unknown_from_, unknown_to_ - *unknown_from_);
    unknown_from_.reset();
    const auto id_of = [&](char c) {
      return by_.bytes_[static_cast<unsigned char>(c)];
    };
    if (const auto it = by_.vocabulary_.find(text);
        it != by_.vocabulary_.end() && !is_banned(banned_, it->second))
      into_.push_back(it->second);
    else if (by_.byte_fallback_ && std::ranges::all_of(text, [&](char c) {
               return id_of(c) >= 0;
             }))
      std::ranges::transform(text, std::back_inserter(into_), id_of);
    else
      into_.push_back(*by_.unk_);
  }

  const unigram& by_;
  std::string_view piece_;
  std::vector<token_id>& into_;
  banned_tokens banned_;
  std::size_t base_ = 0; ///< what is before it has its tokens
  std::vector<way> ways_ = std::vector<way>(1); ///< to base_ and behind it
  std::vector<way> chosen_;
  std::optional<std::size_t> unknown_from_;
  std::size_t unknown_to_ = 0;
};

status
unigram::encode(std::string_view piece, word_cache& cache,
                std::vector<token_id>& into, banned_tokens banned) const {
  if (cache.append(piece, into))
    return done{};
  const std::size_t before = into.size();
  if (status read = reading(*this, piece, into, banned).run(); !read)
    return read;
  cache.put(piece, into.data() + before, into.size() - before);
  return done{};
}

} // namespace shoal::model::text
