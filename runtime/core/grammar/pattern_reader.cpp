// runtime/core/grammar/pattern_reader.cpp -- characters, numbers, repetitions.
#include "runtime/core/grammar/pattern_reader.hpp"

#include "runtime/core/grammar/gbnf.hpp"
#include "runtime/core/text/utf8.hpp"

#include <algorithm>

namespace shoal::core::grammar {

pattern_reader::pattern_reader(std::string_view text) {
  if (text.size() > pattern_bytes_max)
    throw bad_pattern{"it is longer than " + std::to_string(pattern_bytes_max)
                      + " bytes"};
  if (!is_utf8(text))
    throw bad_pattern{"it is not UTF-8"};
  for (std::size_t at = 0; at < text.size();)
    codes_ += next_code(text, at);
}

char32_t pattern_reader::take() {
  if (at_end())
    fail("it ends too early");
  return codes_[at_++];
}

bool pattern_reader::take_if(char32_t c) {
  if (at_end() || codes_[at_] != c)
    return false;
  ++at_;
  return true;
}

bool pattern_reader::take_if(std::string_view ascii) {
  for (std::size_t k = 0; k != ascii.size(); ++k)
    if (peek(k) != static_cast<unsigned char>(ascii[k]))
      return false;
  at_ += ascii.size();
  return true;
}

void pattern_reader::expect(char32_t c, const char* what) {
  if (!take_if(c))
    fail(std::string("expected ") + what);
}

void pattern_reader::fail(std::string why) const {
  throw bad_pattern{std::move(why), at_};
}

char32_t pattern_reader::take_hex(int digits) {
  char32_t value = 0;
  for (int k = 0; k != digits; ++k) {
    const char32_t c = take();
    const char32_t lower = c | 0x20;
    const bool letter = lower >= U'a' && lower <= U'f';
    if (!letter && !(c >= U'0' && c <= U'9'))
      fail("expected a hexadecimal digit");
    value = value * 16 + (letter ? lower - U'a' + 10 : c - U'0');
  }
  if (value > code_point_max || (value >= 0xd800 && value <= 0xdfff))
    fail("this number is no character");
  return value;
}

std::optional<std::uint32_t> pattern_reader::take_number() {
  if (peek() < U'0' || peek() > U'9')
    return std::nullopt;
  std::uint32_t value = 0;
  while (peek() >= U'0' && peek() <= U'9') {
    value = value * 10 + (take() - U'0');
    if (value > repetitions_max)
      fail("a repetition is at most " + std::to_string(repetitions_max));
  }
  return value;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>>
pattern_reader::take_repetition() {
  using both = std::pair<std::uint32_t, std::uint32_t>;
  if (take_if(U'*'))
    return both{0, unbounded};
  if (take_if(U'+'))
    return both{1, unbounded};
  if (take_if(U'?'))
    return both{0, 1};
  const std::size_t begin = at_;
  if (!take_if(U'{'))
    return std::nullopt;
  const auto least = take_number();
  auto most = least;
  if (take_if(U',')) {
    most = take_number();
    if (!most)
      most = unbounded;
  }
  if (!take_if(U'}') || (!least && (!most || *most == unbounded))) {
    at_ = begin;
    return std::nullopt;
  }
  if (least && *most < *least)
    fail("a repetition from more to less");
  return both{least.value_or(0), *most};
}

std::size_t pattern_reader::line_of(std::size_t at) const {
  const auto end = codes_.begin() + std::ptrdiff_t(std::min(at, codes_.size()));
  return 1 + std::size_t(std::count(codes_.begin(), end, U'\n'));
}

} // namespace shoal::core::grammar
