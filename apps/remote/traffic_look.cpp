// apps/remote/traffic_look.cpp -- one request after the other.
#include "apps/remote/traffic_look.hpp"

#include <algorithm>
#include <utility>

namespace shoal::apps {

traffic_look::traffic_look(runtime::client_config node)
  : node_(node, answer_max), peers_(std::move(node), answer_max) {
}

std::vector<std::string> traffic_look::peers_to_ask(const status_json& status) {
  const auto now = clock::now();
  ids_.clear();
  std::vector<std::string> out;
  for (const status_json& p : status["peers"]) {
    const std::string& id = text_of(p, "id");
    ids_.insert(id);
    if (id == text_of(status, "self"))
      continue;
    if (text_of(p, "state") == "unreachable") {
      silent_[id] = now; // asked as soon as it is reached again
      traffic_.forget(id);
    } else if (const auto at = silent_.find(id);
               at == silent_.end() || at->second <= now)
      out.push_back(id);
  }
  traffic_.keep_only(ids_);
  std::erase_if(silent_,
                [this](const auto& s) { return !ids_.contains(s.first); });
  if (out.size() > peers_max) {
    turn_ %= out.size();
    std::rotate(out.begin(), out.begin() + std::ptrdiff_t(turn_), out.end());
    turn_ += peers_max;
    out.resize(peers_max);
  }
  return out;
}

model::result<std::string>
traffic_look::look(const std::function<bool()>& goes_on) {
  if (clock::now() - looked_ > kept_for)
    traffic_ =
      {}; // a rate over all that time would be none of the last seconds
  auto own = node_.text_of({});
  if (!own)
    return own.why();
  const auto status = parse_status(*own);
  if (!status)
    return status.why();
  const auto asked = peers_to_ask(*status);
  traffic_.add(*status, clock::now().time_since_epoch());
  for (const std::string& id : asked) {
    if (!goes_on())
      break;
    const auto of_peer = peers_.ask(id);
    if (of_peer && text_of(*of_peer, "self") == id) {
      traffic_.add(*of_peer, clock::now().time_since_epoch());
      traffic_.keep_only(ids_); // of others it may say anything
      silent_.erase(id);
    } else {
      traffic_.forget(id);
      silent_[id] = clock::now() + silent_for;
    }
  }
  looked_ = clock::now(); // looking may take longer than that
  return own;
}

traffic_report traffic_look::report() const {
  traffic_report out;
  out.flows = traffic_.flows();
  if (out.flows.size() > traffic_report::flows_max) {
    out.more = out.flows.size() - traffic_report::flows_max;
    out.flows.resize(traffic_report::flows_max);
  }
  for (const auto& [id, until] : silent_)
    out.silent.push_back(id);
  return out;
}

} // namespace shoal::apps
