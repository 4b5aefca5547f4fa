// transport/ucx/guest_list.cpp -- guests and their hello.

#include "transport/ucx/guest_list.hpp"

#include <algorithm>

namespace shoal::transport::ucx {

void guest_list::enter(endpoint e, time_point deadline) {
  guests_[e] = {deadline, 0, 0};
}

void guest_list::keep_early(endpoint e, std::uint64_t token,
                            std::uint64_t connection) {
  const auto found = guests_.find(e);
  if (found == guests_.end() || token == 0)
    return; // GL-1
  for (auto& [other, g] : guests_)
    if (g.token == token)
      g.token = 0; // GL-2
  found->second.token = token;
  found->second.connection = connection;
}

std::optional<guest_list::early> guest_list::take_early(std::uint64_t token) {
  for (auto& [e, g] : guests_)
    if (token != 0 && g.token == token) {
      g.token = 0;
      return early{e, g.connection};
    }
  return {};
}

void guest_list::failed(endpoint e) {
  if (const auto found = guests_.find(e); found != guests_.end())
    found->second.deadline = time_point{};
}

std::vector<guest_list::endpoint>
guest_list::take_overdue(time_point now, bool all) {
  std::vector<endpoint> out;
  std::erase_if(guests_, [&](const auto& g) {
    const bool leaves = all || now >= g.second.deadline;
    if (leaves)
      out.push_back(g.first);
    return leaves;
  });
  return out;
}

guest_list::time_point guest_list::due() const {
  auto out = time_point::max();
  for (const auto& [e, g] : guests_)
    out = std::min(out, g.deadline);
  return out;
}

} // namespace shoal::transport::ucx
