// apps/node/cmd_leave.cpp -- leave: a node gives up its work, then its seat.
#include "apps/common/commands.hpp"
#include "apps/common/http_front.hpp" // drain_max
#include "apps/common/report.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_text.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/slow_work.hpp"
#include "runtime/control/client.hpp"
#include "runtime/control/node_folders.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/event_json.hpp"
#include "runtime/node/node_config.hpp" // leave_deadline

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

/// Pause between checks while the shoal has to agree.
constexpr std::chrono::milliseconds agreed_look_again{100};
/// Time in which another peer may not have heard yet that a node has left.
constexpr std::chrono::seconds lag_max{5};

/// Reports which jobs end with a node, since no other peer can go on with them.
void tell_of_ends(const json& status, const std::string& id, bool now,
                  const node_address& at) {
  const auto works = [&id](const json& p) {
    return text_of(p, "id") != id && !p["witness"].get<bool>()
           && text_of(p, "state") == "active";
  };
  if (std::ranges::any_of(status["peers"], works))
    return;
  for (const json& j : status["jobs"]) {
    if (text_of(j, "state") != "running")
      continue;
    if (serves(j)) {
      std::cerr << "shoal: model " << text_of(j, "name")
                << " is served by no other peer: it is no longer served when "
                   "this node has left; start it again by `shoal serve`\n";
      continue;
    }
    const std::string job = text_of(j, "id");
    std::cerr << "shoal: job " << job << " (" << text_of(j, "name")
              << ") runs on no other peer, so it ends with this node, "
              << (now ? "without a checkpoint"
                      : "after the step under way and with a checkpoint. Once "
                        "the node is started again, `"
                          + command_line("attach " + job, at, "DIR")
                          + "` fetches it")
              << "\n";
  }
}

/// Says what a node of this machine that has left without a quorum has saved of
/// its jobs, or could not: by then it answers no more, but its log is complete.
void tell_of_saved(const json& status, const std::filesystem::path& data_dir,
                   std::int64_t since_ms) {
  for (const json& j : status["jobs"]) {
    std::ifstream log(data_dir / "jobs" / text_of(j, "id") / "events.jsonl");
    runtime::job_event e;
    std::string last;
    for (std::string line; std::getline(log, line);)
      if (runtime::from_json_line(line, e) && e.unix_ms >= since_ms
          && e.kind == runtime::job_event_kind::notice)
        last = e.text;
    if (!last.empty())
      std::cerr << "shoal: job " << text_of(j, "id") << ", " << last << "\n";
  }
}

struct chosen_node {
  node_address at;
  std::string wrong;
};

/// What another node says of one that does not answer any more.
struct other_view {
  std::string by;      ///< name and address of who answered; "": nobody
  bool itself = false; ///< it was the node itself
  bool lists = false;  ///< the node is on its list
};

other_view ask_others(const std::string& id, const node_address& at,
                      const runtime::client& asked) {
  runtime::client_config c = client_again(at);
  c.data_dir.clear();
  c.named = false;
  c.addresses = asked.addresses();
  runtime::client other(c);
  if (other.connect())
    return {};
  const auto status = status_of(other);
  if (!status)
    return {};
  other_view out{text_of(*status, "name") + " (" + other.where() + ")"};
  out.itself = text_of(*status, "self") == id;
  out.lists = std::ranges::any_of(
    (*status)["peers"], [&](const json& p) { return text_of(p, "id") == id; });
  return out;
}

/// The node to ask to make `o.member` leave: of several on this machine one
/// that has such a peer. If none has one, that is reported, with the names.
chosen_node node_for_leaving(const leave_options& o) {
  chosen_node out{address_of(o.at, o.member), {}};
  if (o.member.empty() || needs_a_name(out.at, "leave").empty())
    return out;
  std::set<std::string> names, shoals;
  for (const auto& folder : runtime::running_nodes(data_dir_of(o.at))) {
    node_address at = o.at;
    at.data_dir = folder;
    runtime::client client(client_of(at));
    if (client.connect())
      continue;
    const auto status = status_of(client);
    if (!status)
      continue;
    for (const json& p : (*status)["peers"]) {
      names.insert(text_of(p, "name"));
      if (text_of(p, "name") != o.member
          && !text_of(p, "id").starts_with(o.member))
        continue;
      shoals.insert(text_of(*status, "id"));
      out.at = at;
    }
  }
  if (shoals.size() > 1)
    out.at = o.at; // the user names the node
  else if (shoals.empty() && !names.empty())
    out.wrong =
      "no peer is called '" + o.member + "'; the nodes of this machine know "
      + core::listed({names.begin(), names.end()}) + " (see `shoal status`)";
  return out;
}

} // namespace

int run_leave(const leave_options& o) {
  const auto [at, wrong] = node_for_leaving(o);
  if (!wrong.empty())
    return fail(wrong);
  if (auto why = needs_a_name(at, "leave"); !why.empty())
    return fail(why, exit_usage);
  signals interrupts;
  runtime::client client(client_through(at));
  if (client.connect())
    return fail(client.text());
  const std::filesystem::path where = client.where();
  if (!o.member.empty())
    client.ask_of(o.member);
  auto status = status_of(client);
  if (!status)
    return fail(status.message());
  const std::string id = text_of(*status, "self");
  client.ask_of({});
  const auto asked = status_of(client);
  if (!asked)
    return fail(asked.message());
  bool is_asked = text_of(*asked, "self") == id;
  std::string alone = no_quorum_text(*status);
  if (alone.empty())
    tell_of_ends(*status, id, o.now, o.at);
  else
    std::cerr << "shoal: " << alone << "\n";
  if (!is_asked)
    client.ask_of(id);
  const std::int64_t asked_ms = unix_ms();
  if (client.leave(!o.now))
    return fail(client.text());
  client.ask_of({}); // the other one ends
  const auto asked_at = std::chrono::steady_clock::now();
  bool said = false;
  auto silent_until = std::chrono::steady_clock::time_point::max();
  const auto until =
    asked_at + drain_max + runtime::leave_deadline + std::chrono::seconds(10);
  for (;;) {
    status = status_of(client);
    // The connection may be lost, and not the node; or another one answers now.
    const bool accepts = !status && is_asked && !client.connect();
    if (accepts)
      status = status_of(client);
    is_asked = is_asked && !(status && text_of(*status, "self") != id);
    if (!status && !is_asked)
      return fail("it was asked to leave, but " + status.message());
    if (!status && !accepts) {
      if (!alone.empty())
        break; // it has ended, and the others were not told
      const auto now = std::chrono::steady_clock::now();
      silent_until = std::min(silent_until, now + lag_max);
      const other_view seen = ask_others(id, at, client);
      const bool known = !seen.by.empty() && !seen.itself;
      if (known ? !seen.lists
                : !seen.itself
                    && (at.peers.empty() || client.addresses().size() <= 1))
        break; // it has ended
      if (!seen.itself && now >= silent_until)
        return fail(
          "peer " + id.substr(0, 8)
          + " was asked to leave, and does not answer any more; "
          + (known ? seen.by
                       + " still lists it: it may have ended before it "
                         "had left, or the network to it is gone"
                   : "no other peer answers, either: whether it has left is "
                     "not known"));
    } else if (status) {
      silent_until = std::chrono::steady_clock::time_point::max();
      if (is_asked && text_of(*status, "state") != "gone")
        alone = no_quorum_text(*status);
      const bool in_view =
        std::ranges::any_of((*status)["peers"], [&](const json& p) {
          return text_of(p, "id") == id
                 && (alone.empty() || text_of(p, "state") != "unreachable");
        });
      if (!in_view && !is_asked)
        break;
    }
    if (interrupts.seen() || std::chrono::steady_clock::now() >= until)
      return fail("it was asked to leave and has not yet; see `shoal status`",
                  interrupts.seen() ? exit_interrupted : exit_failed);
    if (std::chrono::steady_clock::now() - asked_at > slow_work::quiet_for
        && !std::exchange(said, true))
      std::cerr
        << "shoal: it answers what it has begun, and hands over what it "
           "holds: up to "
        << std::chrono::duration_cast<std::chrono::seconds>(until - asked_at)
             .count()
        << " s (Ctrl-C: it goes on without this command)\n";
    std::this_thread::sleep_for(agreed_look_again);
  }
  if (!alone.empty()) {
    if (is_asked && where.is_absolute()) // else it is on another machine
      tell_of_saved(*asked, where, asked_ms);
    return fail(
      "node " + id.substr(0, 8)
      + " has ended, but the other peers were not told, as it had no quorum: "
        "they have it on their list until they find it gone. If a quorum of "
        "them still runs, out of reach, jobs go on there; else jobs wait until "
        "a quorum has started again. Start it again to have it leave in "
        "order");
  }
  std::cout << "peer " << id.substr(0, 8) << " has left\n";
  return exit_done;
}

} // namespace shoal::apps
