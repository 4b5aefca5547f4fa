// transport/line_budget.cpp -- tokens by time, and a count of the lines without.
#include "transport/line_budget.hpp"

#include "transport/assert.hpp"

#include <algorithm>
#include <utility>

namespace shoal::transport {
namespace {

constexpr std::uint64_t one_token = 1'000'000'000;

std::string more(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " more line" : " more lines");
}

} // namespace

line_budget::line_budget(line_limits limits)
  : limits_(limits), tokens_(limits.burst * one_token) {
  SHOAL_ASSERT(limits.burst > 0 && limits.per_second > 0);
}

bool line_budget::take(time now) {
  const auto since = counted_.value_or(now);
  counted_ = std::max(since, now);
  const auto passed = static_cast<std::uint64_t>((*counted_ - since).count());
  const auto most = limits_.burst * one_token;
  const auto rate = limits_.per_second;
  tokens_ =
    passed >= most / rate ? most : std::min(most, tokens_ + passed * rate);
  if (tokens_ < one_token)
    return false;
  tokens_ -= one_token;
  return true;
}

std::optional<std::string>
line_budget::pass(const std::string& line, time now) {
  if (!take(now)) {
    ++left_out_;
    return {};
  }
  const auto before = std::exchange(left_out_, 0);
  return before == 0 ? line : line + " (" + more(before) + " left out)";
}

std::optional<std::string> line_budget::rest(time now) {
  if (left_out_ == 0 || !take(now))
    return {};
  return more(std::exchange(left_out_, 0)) + " like these left out";
}

} // namespace shoal::transport
