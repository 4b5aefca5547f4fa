// tests/runtime/node/requests/asked_host.hpp -- a node of tests, as what answers
// requests sees it: writes down what it is told.
#pragma once

#include "runtime/node/requests/admission.hpp"
#include "runtime/node/requests/client_service.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::tests {

/// @tparam Host admission_host or client_host
template <class Host>
class asked_host : public Host {
public:
  std::shared_ptr<const core::view> view() const override { return now; }
  void tell(core::cluster::event e) override { told.push_back(std::move(e)); }
  void answer(std::uint64_t token, runtime::outcome o) override {
    answers[token] = std::move(o);
  }
  void say(const std::string& line) override { said.push_back(line); }

  /// The event that was told last. @pre it is one of this kind
  template <class Event>
  const Event& last() const {
    return std::get<Event>(told.back());
  }

  std::shared_ptr<const core::view> now;
  std::vector<core::cluster::event> told;
  std::map<std::uint64_t, runtime::outcome> answers; ///< by token
  std::vector<std::string> said;
};

inline core::peer_id numbered_peer(std::uint8_t number) {
  core::peer_id id{};
  id.fill(number);
  return id;
}

/// Members 1 (anna) and 2 (bert), under the first view of a shoal.
inline core::view two_members() {
  core::view v;
  v.number = 1;
  v.shoal[0] = 1;
  for (const auto& [number, name] : {std::pair{1, "anna"}, {2, "bert"}}) {
    core::member m;
    m.id.peer = numbered_peer(static_cast<std::uint8_t>(number));
    m.name = name;
    m.addresses = {"10.0.0." + std::to_string(number) + ":18372"};
    v.members.push_back(m);
  }
  return v;
}

} // namespace shoal::tests
