// transport/tls/admission.cpp -- places by address, tokens by time.
#include "transport/tls/admission.hpp"

#include "transport/assert.hpp"

#include <algorithm>

namespace shoal::transport::tls {
namespace {

constexpr std::uint64_t one_token = 1'000'000'000;
constexpr std::int64_t one_ns = 1000;
/// Cost beyond this does not count: an hour for one turn is an error of the
/// clock.
constexpr admission::time cost_max = std::chrono::hours(1);

admission::time least(std::uint64_t missing, std::uint64_t per_ns) {
  return admission::time(
    static_cast<std::int64_t>((missing + per_ns - 1) / per_ns));
}

} // namespace

admission::admission(admission_limits limits)
  : limits_(limits), tokens_(limits.handshakes_burst * one_token),
    work_(time(limits.work_burst).count() * one_ns) {
  SHOAL_ASSERT(limits.unproved > 0 && limits.unproved_per_address > 0
               && limits.handshakes_burst > 0
               && limits.handshakes_per_second > 0 && limits.work_permille > 0
               && limits.work_burst.count() > 0);
}

admission::ticket admission::push_out(group& from) {
  const ticket gone = from.places.begin()->second;
  leave(gone);
  return gone;
}

std::optional<admission::ticket>
admission::arrive(ticket id, const std::string& address) {
  std::optional<ticket> gone;
  const auto own = groups_.find(address);
  if (own != groups_.end()
      && own->second.places.size() >= limits_.unproved_per_address) {
    gone = push_out(own->second);
  } else if (where_.size() >= limits_.unproved) {
    const auto most = std::max_element(
      groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
        const auto& left = a.second.places;
        const auto& right = b.second.places;
        return left.size() != right.size() ? left.size() < right.size()
                                           : *left.begin() > *right.begin();
      });
    gone = push_out(most->second);
  }
  groups_[address].places.insert({progress::silent, id});
  where_[id] = {address, progress::silent};
  return gone;
}

void admission::advance(ticket id, progress to) {
  const auto at = where_.find(id);
  if (at == where_.end() || to <= at->second.at)
    return;
  auto& places = groups_.at(at->second.address).places;
  places.erase({at->second.at, id});
  places.insert({to, id});
  at->second.at = to;
}

void admission::ask(ticket id) {
  const auto at = where_.find(id);
  SHOAL_ASSERT(at != where_.end());
  if (std::exchange(at->second.asks, true))
    return;
  group& g = groups_.at(at->second.address);
  if (g.asking.empty())
    turns_.push_back(at->second.address);
  g.asking.push_back(id);
}

void admission::refill(time now) {
  if (!started_)
    counted_ = now;
  started_ = true;
  if (now <= counted_)
    return;
  const auto passed = static_cast<std::uint64_t>((now - counted_).count());
  counted_ = now;
  const auto most = limits_.handshakes_burst * one_token;
  const auto rate = limits_.handshakes_per_second;
  tokens_ =
    passed >= most / rate ? most : std::min(most, tokens_ + passed * rate);
  const auto full = time(limits_.work_burst).count() * one_ns;
  const auto lacks = static_cast<std::uint64_t>(full - work_);
  work_ = passed >= lacks / limits_.work_permille
            ? full
            : work_ + static_cast<std::int64_t>(passed * limits_.work_permille);
}

std::optional<admission::ticket> admission::next(time now) {
  refill(now);
  if (turns_.empty() || tokens_ < one_token || work_ <= 0)
    return {};
  const auto address = std::move(turns_.front());
  turns_.pop_front();
  group& g = groups_.at(address);
  const ticket id = g.asking.front();
  g.asking.pop_front();
  if (!g.asking.empty())
    turns_.push_back(address);
  place& p = where_.at(id);
  p.asks = false;
  if (!std::exchange(p.begun, true))
    tokens_ -= one_token;
  return id;
}

void admission::spend(time cost) {
  work_ -= std::clamp(cost, time(0), cost_max).count() * one_ns;
  // Far from the limits of the type, whatever the cost is.
  work_ = std::max(work_, -cost_max.count() * one_ns);
}

std::optional<admission::time> admission::due() const {
  if (turns_.empty())
    return {};
  time wait{0};
  if (tokens_ < one_token)
    wait = least(one_token - tokens_, limits_.handshakes_per_second);
  if (work_ <= 0)
    wait = std::max(wait, least(static_cast<std::uint64_t>(1 - work_),
                                limits_.work_permille));
  return counted_ + wait;
}

void admission::leave(ticket id) {
  const auto at = where_.find(id);
  if (at == where_.end())
    return;
  const auto address = at->second.address;
  group& g = groups_.at(address);
  g.places.erase({at->second.at, id});
  where_.erase(at);
  if (std::erase(g.asking, id) > 0 && g.asking.empty())
    std::erase(turns_, address);
  if (g.places.empty())
    groups_.erase(address);
}

} // namespace shoal::transport::tls
