// runtime/openai/rules/json_numbers.cpp -- digits between digits.
#include "runtime/openai/rules/json_numbers.hpp"

#include "runtime/files/json.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::openai {

namespace {

namespace g = core::grammar;
using g::expression;

/// Digits before the point, and behind it.
constexpr int digits_max = 15;
constexpr std::int64_t largest = 999'999'999'999'999;
/// Decimals of a bound.
constexpr int decimals_max = 6;
/// More of them where a bound is excluded: how near it numbers come.
constexpr int decimals_nearer = 2;
/// Digits behind the point of a number with bounds. More of them might make a
/// number that is read as the bound itself.
constexpr std::uint32_t behind_max = 6;

std::int64_t power_of_10(int n) {
  std::int64_t out = 1;
  for (; n > 0; --n)
    out *= 10;
  return out;
}

expression
digits(char first, char last, std::uint32_t least = 1, std::uint32_t most = 1) {
  expression one = g::characters(
    {{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
  return least == 1 && most == 1 ? one : g::repetition(one, least, most);
}

expression any_digits(std::size_t count) {
  const auto n = static_cast<std::uint32_t>(count);
  return digits('0', '9', n, n);
}

/// Texts of as many digits, from `low` or up to `high` (an end without digits is
/// no bound).
expression
same_length(std::string_view low, std::string_view high, bool from, bool to) {
  const std::size_t left = from ? low.size() : high.size();
  if (left == 0)
    return g::literal("");
  const auto all = [](std::string_view text, char c) {
    return text.find_first_not_of(c) == text.npos;
  };
  from = from && !all(low, '0');
  to = to && !all(high, '9');
  if (!from && !to)
    return any_digits(left);
  const char a = from ? low[0] : '0', b = to ? high[0] : '9';
  const auto rest = [](std::string_view text) {
    return text.empty() ? text : text.substr(1);
  };
  const auto head = [](char c) { return g::literal(std::string(1, c)); };
  if (a == b)
    return g::sequence({head(a), same_length(rest(low), rest(high), from, to)});
  std::vector<expression> ways;
  const char first = from ? char(a + 1) : a, last = to ? char(b - 1) : b;
  if (from)
    ways.push_back(
      g::sequence({head(a), same_length(rest(low), rest(high), true, false)}));
  if (first <= last)
    ways.push_back(g::sequence({digits(first, last), any_digits(left - 1)}));
  if (to)
    ways.push_back(
      g::sequence({head(b), same_length(rest(low), rest(high), false, true)}));
  return g::choice(std::move(ways));
}

/// Whole numbers from low to high without leading zeros. @pre low >= 0
expression from_to(std::int64_t low, std::int64_t high) {
  std::vector<expression> ways;
  for (int n = 1; n <= digits_max; ++n) {
    const std::int64_t a = std::max(low, n == 1 ? 0 : power_of_10(n - 1));
    const std::int64_t b = std::min(high, power_of_10(n) - 1);
    if (a <= b)
      ways.push_back(
        same_length(std::to_string(a), std::to_string(b), true, true));
  }
  return g::choice(std::move(ways));
}

std::string padded(std::int64_t value, int width) {
  std::string text = std::to_string(value);
  return std::string(std::size_t(width) - text.size(), '0') + text;
}

/// Numbers from low to high, both in units of 10^-decimals, the last one alone or
/// not at all. @pre 0 <= low
expression decimals_from_to(std::int64_t low, std::int64_t high, bool with_high,
                            int decimals) {
  const std::int64_t unit = power_of_10(decimals);
  std::vector<expression> ways;
  // Whole numbers, also with a point where all behind it is in bounds.
  const std::int64_t first = (low + unit - 1) / unit;
  const std::int64_t last = high / unit - (high % unit == 0 && !with_high);
  if (first <= last)
    ways.push_back(from_to(first, last));
  if (first <= high / unit - 1)
    ways.push_back(
      g::sequence({from_to(first, high / unit - 1), g::literal("."),
                   digits('0', '9', 1, behind_max)}));
  if (decimals == 0)
    return g::choice(std::move(ways));
  // The parts of a whole number at both ends: with each number of decimals, and
  // with more of them where they lead to no bound.
  const auto part = [&](std::int64_t whole, std::int64_t from,
                        std::int64_t to) {
    for (int n = 1; n <= decimals && from <= to; ++n) {
      const std::int64_t step = power_of_10(decimals - n);
      const std::int64_t a = (from + step - 1) / step, b = to / step;
      if (a > b)
        continue;
      std::vector<expression> parts{
        g::literal(std::to_string(whole) + "."),
        same_length(padded(a, n), padded(b, n), true, true)};
      if (n == decimals && n < int(behind_max))
        parts.push_back(digits('0', '9', 0, behind_max - std::uint32_t(n)));
      ways.push_back(g::sequence(std::move(parts)));
    }
  };
  const std::int64_t low_whole = low / unit, high_whole = high / unit;
  if (low_whole == high_whole) {
    part(low_whole, low % unit, high % unit - 1);
  } else {
    if (low % unit != 0)
      part(low_whole, low % unit, unit - 1);
    part(high_whole, 0, high % unit - 1);
  }
  if (with_high && high % unit != 0)
    for (int n = 1; n <= decimals; ++n)
      if (const std::int64_t step = power_of_10(decimals - n);
          high % unit % step == 0)
        ways.push_back(g::literal(std::to_string(high_whole) + "."
                                  + padded(high % unit / step, n)));
  return g::choice(std::move(ways));
}

std::int64_t scaled(const number_bound& b, int decimals) {
  return b.value * power_of_10(decimals - b.decimals);
}

number_bound bound_of(const schema& value, const std::string& path) {
  const model::failure no{"must be a number of at most "
                          + std::to_string(digits_max - 1 - decimals_max)
                          + " digits, and of at most "
                          + std::to_string(decimals_max) + " behind the point"};
  if (!value.is_number())
    throw bad_schema{path, no.message};
  const std::string text = model::json_text(value);
  number_bound out;
  bool behind = false;
  std::int64_t limit = power_of_10(digits_max - 1 - decimals_max);
  for (const char c : text) {
    if (c == '.')
      behind = true;
    else if (c != '-' && (c < '0' || c > '9'))
      throw bad_schema{path, no.message};
    else if (c != '-') {
      out.value = out.value * 10 + (c - '0');
      out.decimals += behind;
      limit *= behind ? 10 : 1;
      if (out.decimals > decimals_max || out.value >= limit)
        throw bad_schema{path, no.message};
    }
  }
  if (text.starts_with('-'))
    out.value = -out.value;
  return out;
}

std::int64_t rounded(const number_bound& b, bool up) {
  const std::int64_t unit = power_of_10(b.decimals);
  std::int64_t whole = b.value / unit;
  const std::int64_t rest = b.value % unit;
  if (rest == 0)
    return b.excluded ? whole + (up ? 1 : -1) : whole;
  if (up && rest > 0)
    ++whole;
  if (!up && rest < 0)
    --whole;
  return whole;
}

} // namespace

number_bounds bounds_of(const schema& s, const std::string& path) {
  number_bounds out;
  const auto take = [&](const char* key, bool excluded, auto& to,
                        auto tighter) {
    if (!s.contains(key))
      return;
    number_bound b = bound_of(s[key], path + "/" + key);
    b.excluded = excluded;
    const auto at = [](const number_bound& x) {
      return scaled(x, decimals_max);
    };
    if (!to || tighter(at(b), at(*to)) || (at(b) == at(*to) && excluded))
      to = b;
  };
  take("minimum", false, out.low, std::greater<>());
  take("exclusiveMinimum", true, out.low, std::greater<>());
  take("maximum", false, out.high, std::less<>());
  take("exclusiveMaximum", true, out.high, std::less<>());
  return out;
}

expression any_integer() {
  return g::sequence(
    {g::optional(g::literal("-")),
     g::choice(
       {g::literal("0"), g::sequence({digits('1', '9'),
                                      digits('0', '9', 0, digits_max - 1)})})});
}

expression any_number() {
  return g::sequence(
    {any_integer(),
     g::optional(
       g::sequence({g::literal("."), digits('0', '9', 1, digits_max)})),
     g::optional(
       g::sequence({g::characters({{U'E', U'E'}, {U'e', U'e'}}),
                    g::optional(g::characters({{U'+', U'+'}, {U'-', U'-'}})),
                    digits('0', '9', 1, 2)}))});
}

model::result<expression> integers_between(const number_bounds& bounds) {
  const std::int64_t low = bounds.low ? rounded(*bounds.low, true) : -largest;
  const std::int64_t high =
    bounds.high ? rounded(*bounds.high, false) : largest;
  if (low > high)
    return model::failure{"no whole number lies between its bounds"};
  std::vector<expression> ways;
  if (high >= 0)
    ways.push_back(from_to(std::max<std::int64_t>(low, 0), high));
  if (low < 0)
    ways.push_back(g::sequence(
      {g::literal("-"), from_to(std::max<std::int64_t>(-high, 1), -low)}));
  return g::choice(std::move(ways));
}

model::result<expression> numbers_between(const number_bounds& bounds) {
  int decimals = 0;
  bool excluded = false;
  for (const auto& b : {bounds.low, bounds.high})
    if (b) {
      decimals = std::max(decimals, b->decimals);
      excluded = excluded || b->excluded;
    }
  if (excluded)
    decimals += decimals_nearer;
  const std::int64_t unit = power_of_10(decimals);
  // Far enough, and yet 15 digits with the decimals.
  const std::int64_t far = (largest / unit / 10) * unit;
  std::int64_t low = bounds.low ? scaled(*bounds.low, decimals) : -far;
  std::int64_t high = bounds.high ? scaled(*bounds.high, decimals) : far;
  if (bounds.low && bounds.low->excluded)
    ++low;
  const bool with_high = !(bounds.high && bounds.high->excluded);
  if (low > high || (low == high && !with_high))
    return model::failure{"no number that can be written lies between its "
                          "bounds"};
  std::vector<expression> ways;
  if (high > 0 || (high == 0 && with_high))
    ways.push_back(decimals_from_to(std::max<std::int64_t>(low, 0), high,
                                    with_high, decimals));
  if (low < 0) {
    // The other way round: -low is the greatest, and is allowed.
    std::int64_t least = std::max<std::int64_t>(-high, 0);
    if (!with_high && high <= 0)
      ++least;
    if (least <= -low)
      ways.push_back(g::sequence(
        {g::literal("-"), decimals_from_to(least, -low, true, decimals)}));
  }
  return g::choice(std::move(ways));
}

} // namespace shoal::openai
