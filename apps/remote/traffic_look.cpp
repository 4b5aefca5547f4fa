// apps/remote/traffic_look.cpp -- one request after the other.
#include "apps/remote/traffic_look.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::apps {
namespace {

runtime::client_config quick(runtime::client_config c) {
  c.timeout = traffic_look::answer_max;
  return c;
}

} // namespace

traffic_look::traffic_look(runtime::client_config node)
  : node_(quick(node)), peers_(quick(std::move(node))) {
}

model::result<std::string>
traffic_look::ask(runtime::client& client, bool& connected,
                  const std::string& peer) {
  if (!connected && client.connect())
    return model::failure{client.text()};
  connected = true;
  client.ask_of(peer);
  std::string text;
  if (client.status(text)) {
    connected = false;
    return model::failure{client.text()};
  }
  return text;
}

std::vector<std::string> traffic_look::peers_to_ask(const status_json& status) {
  const auto now = clock::now();
  std::set<std::string> ids;
  std::vector<std::string> out;
  for (const status_json& p : status["peers"]) {
    const std::string& id = text_of(p, "id");
    ids.insert(id);
    if (id == text_of(status, "self"))
      continue;
    if (text_of(p, "state") == "unreachable") {
      silent_[id] = now; // asked as soon as it is reached again
      traffic_.forget(id);
    } else if (const auto at = silent_.find(id);
               at == silent_.end() || at->second <= now)
      out.push_back(id);
  }
  traffic_.keep_only(ids);
  std::erase_if(silent_, [&](const auto& s) { return !ids.contains(s.first); });
  if (out.size() > peers_max) {
    turn_ %= out.size();
    std::ranges::rotate(out, out.begin() + std::ptrdiff_t(turn_));
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
  auto own = ask(node_, node_connected_, {});
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
    const auto text = ask(peers_, peers_connected_, id);
    const auto of_peer =
      text ? parse_status(*text) : model::result<status_json>(text.why());
    if (of_peer && text_of(*of_peer, "self") == id) {
      traffic_.add(*of_peer, clock::now().time_since_epoch());
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
