// transport/tls/admission.cpp -- places by address, tokens by time.
#include "transport/tls/admission.hpp"

#include "transport/assert.hpp"

#include <algorithm>

namespace shoal::transport::tls {
namespace {

constexpr std::uint64_t one_token = 1'000'000'000;

} // namespace

admission::admission(admission_limits limits)
  : limits_(limits), tokens_(limits.handshakes_burst * one_token) {
  SHOAL_ASSERT(limits.unproved > 0 && limits.unproved_per_address > 0
               && limits.handshakes_burst > 0
               && limits.handshakes_per_second > 0);
}

admission::ticket admission::push_out(group& from) {
  const ticket gone = from.places.begin()->second;
  leave(gone);
  return gone;
}

std::optional<admission::ticket>
admission::arrive(ticket who, const std::string& address) {
  std::optional<ticket> gone;
  const auto own = groups_.find(address);
  if (own != groups_.end()
      && own->second.places.size() >= limits_.unproved_per_address) {
    gone = push_out(own->second);
  } else if (where_.size() >= limits_.unproved) {
    const auto most = std::max_element(
      groups_.begin(), groups_.end(), [](const auto& a, const auto& b) {
        return a.second.places.size() < b.second.places.size();
      });
    gone = push_out(most->second);
  }
  groups_[address].places.insert({progress::silent, who});
  where_[who] = {address, progress::silent};
  return gone;
}

void admission::advance(ticket who, progress to) {
  const auto at = where_.find(who);
  if (at == where_.end())
    return;
  auto& places = groups_.at(at->second.address).places;
  places.erase({at->second.at, who});
  places.insert({to, who});
  at->second.at = to;
}

void admission::ask(ticket who) {
  const auto at = where_.find(who);
  SHOAL_ASSERT(at != where_.end());
  group& g = groups_.at(at->second.address);
  if (g.asking.empty())
    turns_.push_back(at->second.address);
  g.asking.push_back(who);
}

std::optional<admission::ticket> admission::next(time now) {
  if (!started_)
    counted_ = now;
  started_ = true;
  if (now > counted_) {
    const auto most = limits_.handshakes_burst * one_token;
    const auto rate = limits_.handshakes_per_second;
    const auto passed = static_cast<std::uint64_t>((now - counted_).count());
    tokens_ =
      passed >= most / rate ? most : std::min(most, tokens_ + passed * rate);
    counted_ = now;
  }
  if (turns_.empty() || tokens_ < one_token)
    return {};
  tokens_ -= one_token;
  const auto address = std::move(turns_.front());
  turns_.pop_front();
  group& g = groups_.at(address);
  const ticket who = g.asking.front();
  g.asking.pop_front();
  if (!g.asking.empty())
    turns_.push_back(address);
  return who;
}

std::optional<admission::time> admission::due() const {
  if (turns_.empty())
    return {};
  if (tokens_ >= one_token)
    return counted_;
  const auto rate = limits_.handshakes_per_second;
  return counted_
         + time(
           static_cast<std::int64_t>((one_token - tokens_ + rate - 1) / rate));
}

void admission::leave(ticket who) {
  const auto at = where_.find(who);
  if (at == where_.end())
    return;
  const auto address = at->second.address;
  group& g = groups_.at(address);
  g.places.erase({at->second.at, who});
  where_.erase(at);
  if (std::erase(g.asking, who) > 0 && g.asking.empty())
    std::erase(turns_, address);
  if (g.places.empty())
    groups_.erase(address);
}

} // namespace shoal::transport::tls
