// runtime/model/text/patterns/charsmap.cpp -- SentencePiece's precompiled table
// of characters and what they become.
#include "runtime/model/text/patterns/charsmap.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/model/text/patterns/regex.hpp" // grows_too_much
#include "runtime/model/text/patterns/unicode.hpp"

#include <vector>

namespace shoal::model::text {

namespace {

/// A user-perceived character of as many bytes is not looked up as a whole.
constexpr std::size_t whole_bytes_limit = 6;

/// A unit of the double array.
struct unit {
  std::uint32_t bits = 0;

  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7fffffffu; }
  std::uint32_t label() const { return bits & 0x800000ffu; }
  std::uint32_t offset() const { return bits >> 10 << ((bits & 0x200u) >> 6); }
};

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 4; i-- > 0;)
    out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

/// @returns the bytes, or nothing if the text is not base 64.
std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  std::size_t missing = 0; // bytes of the last group
  while (missing != 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++missing;
  }
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::uint32_t digit = 0;
    if (c >= 'A' && c <= 'Z')
      digit = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      digit = static_cast<std::uint32_t>(c - 'a' + 26);
    else if (c >= '0' && c <= '9')
      digit = static_cast<std::uint32_t>(c - '0' + 52);
    else if (c == '+' || c == '/')
      digit = c == '+' ? 62 : 63;
    else
      return std::nullopt;
    bits = (bits << 6 | digit) & 0xffffffu;
    const std::size_t used = i % 4; // 6, 12, 18, 24 bits so far
    if (used != 0)
      out.push_back(static_cast<char>(bits >> (6 - 2 * used) & 0xff));
  }
  const std::uint32_t rest = missing == 1 ? 0x3u : missing == 2 ? 0xfu : 0u;
  return (bits & rest) == 0 ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace

struct charsmap::table {
  std::vector<unit> units;
  std::string texts;

  /// Where the children of a node are, by their bytes.
  std::uint32_t below(std::uint32_t base, unit of) const {
    return base ^ of.offset();
  }

  /// Whether a leaf points to a whole text.
  bool leads_to_text(std::uint32_t value) const {
    return value == texts.size()
           || (value < texts.size()
               && (static_cast<unsigned char>(texts[value]) & 0xc0) != 0x80);
  }

  status check() const;
};

/// Visits all that a key can reach, depth first.
status charsmap::table::check() const {
  enum class state : char { fresh, open, done };
  struct place {
    std::uint32_t base;
    std::uint32_t label;
  };
  std::vector<state> states(units.size(), state::fresh);
  std::vector<place> way;
  const auto enter = [&](std::uint32_t base, bool has_leaf) -> status {
    // All children of a node are in one block of 256 units.
    if ((base | 0xffu) >= units.size())
      return failure{"a node points beyond the end of the table"};
    if (has_leaf && !leads_to_text(units[base].value()))
      return failure{"a leaf points to no text"};
    if (states[base] == state::open)
      return failure{"the tree has a cycle"};
    if (states[base] == state::fresh) {
      states[base] = state::open;
      way.push_back({base, 0});
    }
    return done{};
  };
  if (status root = enter(below(0, units.front()), false); !root)
    return root;
  while (!way.empty()) {
    place& at = way.back();
    if (++at.label == 256) {
      states[at.base] = state::done;
      way.pop_back();
      continue;
    }
    const std::uint32_t child = at.base ^ at.label;
    const unit of = units[child];
    if (of.label() != at.label)
      continue;
    if (status next = enter(below(child, of), of.has_leaf()); !next)
      return next;
  }
  return done{};
}

result<charsmap> charsmap::parse(std::string_view bytes) {
  if (bytes.size() > charsmap_bytes_max)
    return failure{"has more than " + std::to_string(charsmap_bytes_max)
                   + " bytes"};
  if (bytes.size() < 4)
    return failure{"is too short for a table"};
  const std::uint32_t array_bytes = number_at(bytes, 0);
  bytes.remove_prefix(4);
  if (array_bytes == 0 || array_bytes % 4 != 0 || array_bytes > bytes.size())
    return failure{"claims a tree of " + std::to_string(array_bytes)
                   + " bytes, and has " + std::to_string(bytes.size())};
  auto made = std::make_shared<table>();
  made->units.reserve(array_bytes / 4);
  for (std::size_t at = 0; at != array_bytes; at += 4)
    made->units.push_back({number_at(bytes, at)});
  made->texts = bytes.substr(array_bytes);
  if (!core::is_utf8(made->texts))
    return failure{"has texts that are not UTF-8"};
  if (status sound = made->check(); !sound)
    return sound.why();
  charsmap out;
  out.table_ = std::move(made);
  return out;
}

result<charsmap> charsmap::parse_base64(std::string_view text) {
  if (text.size() > charsmap_bytes_max / 3 * 4 + 4)
    return failure{"has more than " + std::to_string(charsmap_bytes_max)
                   + " bytes"};
  const auto bytes = from_base64(text);
  if (!bytes)
    return failure{"is not base 64"};
  return parse(*bytes);
}

/// The text of the shortest entry that the key begins with.
std::optional<std::string_view> charsmap::entry(std::string_view key) const {
  const std::vector<unit>& units = table_->units;
  std::uint32_t base = table_->below(0, units.front());
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0)
      break;
    const std::uint32_t child = base ^ byte;
    SHOAL_DASSERT(child < units.size()); // check()
    const unit of = units[child];
    if (of.label() != byte)
      break;
    base = table_->below(child, of);
    if (of.has_leaf()) {
      const std::string_view from =
        std::string_view(table_->texts).substr(units[base].value());
      return from.substr(0, from.find('\0'));
    }
  }
  return std::nullopt;
}

status charsmap::apply(std::string& text, std::size_t bytes_max) const {
  std::string out;
  out.reserve(text.size());
  const std::string_view from = text;
  for (std::size_t at = 0; at < from.size();) {
    const std::size_t end = grapheme_end(from, at);
    const auto whole = end - at < whole_bytes_limit
                         ? entry(from.substr(at, end - at))
                         : std::nullopt;
    if (whole)
      out += *whole;
    while (!whole && at < end) {
      const std::size_t first = at;
      core::next_code(from, at);
      const std::string_view one = from.substr(first, at - first);
      out += entry(one).value_or(one);
    }
    at = end;
    if (out.size() > bytes_max)
      return grows_too_much("Precompiled", bytes_max);
  }
  text = std::move(out);
  return done{};
}

} // namespace shoal::model::text
