// runtime/core/state/part_set.cpp -- sets as sorted runs.
#include "runtime/core/state/part_set.hpp"

#include <algorithm>

namespace shoal::core {
namespace {

/// The first run that does not end before `p`, or at it.
auto run_at(const std::vector<part_range>& runs, part_index p) {
  return std::ranges::upper_bound(runs, p, {}, &part_range::last);
}

} // namespace

void part_set::add(const part_range& r) {
  if (r.empty())
    return;
  // Runs that touch r become one with it.
  const auto from =
    std::ranges::lower_bound(runs_, r.first, {}, &part_range::last);
  part_range all = r;
  auto to = from;
  for (; to != runs_.end() && to->first <= r.last; ++to) {
    all.first = std::min(all.first, to->first);
    all.last = std::max(all.last, to->last);
  }
  if (from == to) {
    runs_.insert(from, all);
    return;
  }
  *from = all;
  runs_.erase(from + 1, to);
}

void part_set::add(const part_set& s) {
  for (const part_range& r : s.runs_)
    add(r);
}

void part_set::remove(const part_range& r) {
  if (r.empty())
    return;
  std::vector<part_range> left;
  for (const part_range& run : runs_)
    for (const part_range& rest :
         {part_range{run.first, std::min(run.last, r.first)},
          part_range{std::max(run.first, r.last), run.last}})
      if (!rest.empty())
        left.push_back(rest);
  runs_ = std::move(left);
}

void part_set::remove(const part_set& s) {
  for (const part_range& r : s.runs_)
    remove(r);
}

std::uint32_t part_set::size() const noexcept {
  std::uint32_t n = 0;
  for (const part_range& r : runs_)
    n += r.size();
  return n;
}

bool part_set::contains(part_index p) const noexcept {
  const auto at = run_at(runs_, p);
  return at != runs_.end() && at->first <= p;
}

bool part_set::includes(const part_set& s) const noexcept {
  return std::ranges::all_of(
    s.runs_, [&](const part_range& r) { return count(r) == r.size(); });
}

bool part_set::overlaps(const part_range& r) const noexcept {
  const auto at = run_at(runs_, r.first);
  return !r.empty() && at != runs_.end() && at->first < r.last;
}

std::uint32_t part_set::count(const part_range& r) const noexcept {
  std::uint32_t n = 0;
  for (auto at = run_at(runs_, r.first);
       at != runs_.end() && at->first < r.last; ++at)
    n += common(*at, r).size();
  return n;
}

std::vector<part_index> part_set::list() const {
  return {begin(), end()};
}

} // namespace shoal::core
