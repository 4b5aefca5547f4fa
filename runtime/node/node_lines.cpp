// runtime/node/node_lines.cpp -- the last lines of this node, or of another.
#include "runtime/node/node_impl.hpp"

#include <algorithm>

namespace shoal::runtime {

using std::chrono::steady_clock;

namespace {

/// The member that a person means: a name, else the first digits of an id.
/// @returns why none, or nothing
std::string
find_meant(const core::view& v, const std::string& peer, core::peer_id& out) {
  std::vector<core::peer_id> found;
  for (const core::member& m : v.members)
    if (m.name == peer)
      found.push_back(m.id.peer);
  if (found.empty())
    for (const core::member& m : v.members)
      if (core::to_hex(m.id.peer).starts_with(peer))
        found.push_back(m.id.peer);
  if (found.size() == 1) {
    out = found.front();
    return {};
  }
  return (found.empty()
            ? "no peer '" + peer + "' in the view"
            : "several peers fit '" + peer + "': use more of the id")
         + "; see `shoal status`";
}

} // namespace

void node::impl::lines(std::uint64_t token, const ask_lines& r) {
  const auto refuse = [&](std::string why) {
    control_->answered(token, {0, std::move(why), {}, {}});
  };
  core::peer_id peer = self_;
  if (!r.peer.empty()) {
    const auto now = view();
    if (!now)
      return refuse("no view yet: try again");
    if (std::string why = find_meant(*now, r.peer, peer); !why.empty())
      return refuse(std::move(why));
  }
  if (peer == self_) {
    outcome o;
    o.text = recent_.json(r.from, r.lines, o.job);
    return control_->answered(token, std::move(o));
  }
  const auto now = steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    std::erase_if(asked_lines_,
                  [&](const auto& a) { return now >= a.second.until; });
    asked_lines_[token] = {peer, now + lines_wait};
  }
  // It answers for itself, whoever asks.
  if (mesh_->send(peer, envelope(client_request{
                          token, {ask_lines{{}, r.from, r.lines}}})))
    refuse("peer " + core::short_name(peer)
           + " is not connected; see `shoal status`");
}

void node::impl::take_lines(const core::peer_id& from, client_reply&& reply) {
  {
    std::lock_guard lock(mutex_);
    const auto asked = asked_lines_.find(reply.number);
    if (asked == asked_lines_.end() || asked->second.peer != from)
      return; // nobody asked it
    asked_lines_.erase(asked);
  }
  outcome o;
  o.job = reply.value;
  o.text = std::move(reply.text);
  if (reply.code != reply_code::ok)
    o.why = o.text.empty() ? "the peer gives no reason" : o.text;
  control_->answered(reply.number, std::move(o));
}

} // namespace shoal::runtime
