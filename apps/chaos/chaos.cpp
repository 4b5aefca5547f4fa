// apps/chaos/chaos.cpp -- draws faults, compares views, computes accounts.
#include "apps/chaos/chaos.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/view.hpp"

#include <algorithm>
#include <set>

namespace shoal::core::chaos {

std::string_view name_of(fault_kind kind) {
  static constexpr std::array<std::string_view, all_kinds.size()> names{
    "kill", "stop", "slow", "cut"};
  return names[std::size_t(kind)];
}

std::optional<fault_kind> kind_named(std::string_view name) {
  for (fault_kind kind : all_kinds)
    if (name_of(kind) == name)
      return kind;
  return std::nullopt;
}

fault_sequence::fault_sequence(std::uint64_t seed, std::uint32_t peers,
                               std::vector<fault_kind> kinds)
  : state_(seed), peers_(peers), kinds_(std::move(kinds)) {
  SHOAL_ASSERT(peers_ >= 2);
  SHOAL_ASSERT(!kinds_.empty());
}

/// SplitMix64: std's distributions differ between libraries.
std::uint64_t fault_sequence::draw(std::uint64_t count) {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % count; // count is small: the bias is negligible
}

fault fault_sequence::next() {
  if (round_.empty())
    round_ = kinds_;
  const auto chosen = round_.begin() + std::ptrdiff_t(draw(round_.size()));
  fault f;
  f.kind = *chosen;
  round_.erase(chosen);
  f.peer = std::uint32_t(draw(peers_));
  f.lasts =
    lasts_min + nanoseconds(draw(std::uint64_t(lasts_max - lasts_min) + 1));
  switch (f.kind) {
  case fault_kind::kill:
  case fault_kind::stop:
    f.runs_permille = 0;
    break;
  case fault_kind::slow:
    f.runs_permille =
      slow_permille_min
      + std::uint32_t(draw(slow_permille_max - slow_permille_min + 1));
    break;
  case fault_kind::cut:
    if (peers_ > 2 && draw(2) == 0)
      f.other = std::uint32_t((f.peer + 1 + draw(peers_ - 1)) % peers_);
    break;
  }
  return f;
}

void view_watch::told(std::size_t peer, const told_view& view) {
  last_[peer] = view;
  const auto [at, first] =
    digests_.try_emplace({view.shoal, view.number}, view.digest);
  if (!first && at->second != view.digest)
    ++forks_;
}

bool view_watch::together() const {
  return std::ranges::all_of(last_, [this](const auto& view) {
    return view && view->member && view->members == last_.size()
           && view->digest == last_.front()->digest;
  });
}

epoch view_watch::newest() const {
  epoch number = 0;
  for (const auto& view : last_)
    number = std::max(number, view ? view->number : 0);
  return number;
}

void fill_in(std::vector<commit>& commits, const std::vector<commit>& others) {
  std::set<std::uint64_t> steps;
  for (const commit& c : commits)
    steps.insert(c.step);
  for (const commit& c : others)
    if (steps.insert(c.step).second)
      commits.push_back(c);
  std::ranges::stable_sort(commits, {}, &commit::at);
}

double rate_of(const std::vector<commit>& commits, double tokens_per_step) {
  if (commits.size() < 2 || commits.back().at <= commits.front().at)
    return 0;
  return tokens_per_step * double(commits.size() - 1) * 1e9
         / double(commits.back().at - commits.front().at);
}

double
left_at(const std::vector<harm>& harms, std::uint32_t peers, nanoseconds at) {
  double left = peers;
  for (const harm& h : harms) {
    if (at < h.from || at >= h.until)
      continue;
    if (h.what.kind != fault_kind::cut)
      left -= 1 - double(h.what.runs_permille) / 1000;
    else if (!h.what.other)
      left -= 1; // it runs, but cannot work with the others
  }
  return left;
}

namespace {

pauses pauses_of(std::vector<nanoseconds> all) {
  if (all.empty())
    return {};
  std::ranges::sort(all);
  const std::size_t half = all.size() / 2;
  return {all.size(),
          all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2,
          all.back()};
}

double capacity_at(const record& r, const capacity& whole, nanoseconds at) {
  const double left = left_at(r.harms, whole.peers, at);
  return whole.tokens_per_s * std::min<double>(left, whole.processors)
         / std::min<double>(whole.peers, whole.processors);
}

/// Tokens that undisturbed peers would have made with the remaining capacity.
double tokens_possible(const record& r, const capacity& whole) {
  const nanoseconds begin = r.commits.front().at;
  std::set<nanoseconds> times{begin, r.end};
  for (const harm& h : r.harms)
    for (nanoseconds at : {h.from, h.until})
      if (at > begin && at < r.end)
        times.insert(at);
  double tokens = 0;
  for (auto a = times.begin(), b = std::next(a); b != times.end(); ++a, ++b)
    tokens += capacity_at(r, whole, *a) * double(*b - *a) / 1e9;
  return tokens;
}

} // namespace

nanoseconds pause_of(const record& r, std::size_t i) {
  std::vector<nanoseconds> times;
  for (const commit& c : r.commits)
    times.push_back(c.at);
  times.push_back(r.end);
  std::ranges::sort(times);
  const nanoseconds from = r.harms[i].from;
  const nanoseconds to = i + 1 < r.harms.size() ? r.harms[i + 1].from : r.end;
  nanoseconds longest = 0;
  for (std::size_t t = 1; t < times.size(); ++t)
    if (times[t] > from && times[t - 1] < to)
      longest = std::max(longest, times[t] - times[t - 1]);
  return longest;
}

account
make_account(const record& r, const capacity& whole, double tokens_per_step) {
  account a;
  std::array<std::vector<nanoseconds>, all_kinds.size()> after;
  std::vector<nanoseconds> after_all;
  for (std::size_t i = 0; i < r.harms.size(); ++i) {
    after_all.push_back(pause_of(r, i));
    after[std::size_t(r.harms[i].what.kind)].push_back(after_all.back());
  }
  a.after_all = pauses_of(after_all);
  std::ranges::transform(after, a.after.begin(), pauses_of);
  if (r.commits.empty())
    return a;
  std::set<std::uint64_t> steps;
  for (const commit& c : r.commits) {
    if (steps.contains(c.step))
      ++a.repeated;
    steps.insert(c.step);
  }
  a.steps = steps.size();
  a.missing = *steps.rbegin() - a.steps;
  if (const double possible = tokens_possible(r, whole); possible > 0)
    a.goodput = tokens_per_step * double(a.steps - 1) / possible;
  return a;
}

} // namespace shoal::core::chaos
