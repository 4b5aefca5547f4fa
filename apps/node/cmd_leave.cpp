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

/// One node on its way out of its shoal: the request, and what is seen of the
/// node until it has left. It may be asked itself, or another node hands the
/// request on.
class departure {
public:
  departure(const leave_options& o, node_address at);

  /// @returns an exit code, having reported the outcome
  int run();

private:
  enum class stage : std::uint8_t {
    goes,    ///< the node answers, or others still list it
    left,    ///< its shoal knows that it has left
    ended,   ///< without a quorum: it ended, and nobody else was told
    unknown, ///< not known, for the reason in `why_`
  };

  /// What another node says of one that does not answer any more.
  struct other_view {
    std::string by;      ///< name and address of who answered; "": nobody
    bool itself = false; ///< it was the node itself
    bool lists = false;  ///< the node is on its list
  };

  bool find();
  bool ask();
  void wait();
  void say_if_slow(std::chrono::steady_clock::time_point until);
  stage look();
  stage look_at(const json& status);
  stage look_from_elsewhere();
  other_view ask_others() const;
  void note_quorum(const json& status);
  int report_end() const;

  signals interrupts_;
  leave_options options_;
  node_address at_;
  runtime::client client_;
  std::filesystem::path where_; ///< of the node that is asked
  std::string id_;              ///< of the one that leaves
  bool is_asked_ = false;       ///< they are the same
  json before_;                 ///< the asked node's status, before the request
  std::string no_quorum_;       ///< of the one that leaves; empty: it has one
  std::string revoked_by_;      ///< as in its status; empty: nobody says so
  std::int64_t asked_ms_ = 0;   ///< Unix time of the request
  std::chrono::steady_clock::time_point asked_at_;
  /// Since the node is silent, others have until then to hear that it has left.
  std::chrono::steady_clock::time_point silent_until_ =
    std::chrono::steady_clock::time_point::max();
  bool slow_said_ = false;
  stage stage_ = stage::goes;
  std::string why_;
  int failure_ = exit_failed; ///< exit code of `unknown`
};

departure::departure(const leave_options& o, node_address at)
  : options_(o), at_(std::move(at)), client_(client_through(at_)) {
}

/// Learns which node leaves, and whether it has a quorum.
bool departure::find() {
  if (client_.connect()) {
    why_ = client_.text();
    return false;
  }
  where_ = client_.where();
  client_.ask_of(options_.member);
  const auto status = status_of(client_);
  client_.ask_of({});
  const auto asked = status ? status_of(client_) : status;
  if (!asked) {
    why_ = asked.message();
    return false;
  }
  id_ = text_of(*status, "self");
  before_ = *asked;
  is_asked_ = text_of(before_, "self") == id_;
  note_quorum(*status);
  if (no_quorum_.empty())
    tell_of_ends(*status, id_, options_.now, options_.at);
  else
    std::cerr << "shoal: " << no_quorum_ << "\n";
  return true;
}

void departure::note_quorum(const json& status) {
  no_quorum_ = no_quorum_text(status);
  revoked_by_ =
    status.contains("revoked_by") ? text_of(status, "revoked_by") : "";
}

bool departure::ask() {
  if (!is_asked_)
    client_.ask_of(id_);
  asked_ms_ = unix_ms();
  const auto failed = client_.leave(!options_.now);
  if (failed)
    why_ = client_.text();
  client_.ask_of({}); // the other one ends
  asked_at_ = std::chrono::steady_clock::now();
  return !failed;
}

/// Looks at the node until it no longer goes, or the user or the time ends it.
void departure::wait() {
  const auto until =
    asked_at_ + drain_max + runtime::leave_deadline + std::chrono::seconds(10);
  while ((stage_ = look()) == stage::goes) {
    if (interrupts_.seen() || std::chrono::steady_clock::now() >= until) {
      why_ = "it was asked to leave and has not yet; see `shoal status`";
      failure_ = interrupts_.seen() ? exit_interrupted : exit_failed;
      stage_ = stage::unknown;
      return;
    }
    say_if_slow(until);
    std::this_thread::sleep_for(agreed_look_again);
  }
}

void departure::say_if_slow(std::chrono::steady_clock::time_point until) {
  if (std::chrono::steady_clock::now() - asked_at_ <= slow_work::quiet_for
      || std::exchange(slow_said_, true))
    return;
  std::cerr << "shoal: it answers what it has begun, and hands over what it "
               "holds: up to "
            << std::chrono::duration_cast<std::chrono::seconds>(until
                                                                - asked_at_)
                 .count()
            << " s (Ctrl-C: it goes on without this command)\n";
}

departure::stage departure::look() {
  auto status = status_of(client_);
  // The connection may be lost, and not the node; or another one answers now.
  const bool accepts = !status && is_asked_ && !client_.connect();
  if (accepts)
    status = status_of(client_);
  is_asked_ = is_asked_ && !(status && text_of(*status, "self") != id_);
  if (status)
    return look_at(*status);
  if (!is_asked_) {
    why_ = "it was asked to leave, but " + status.message();
    return stage::unknown;
  }
  if (accepts)
    return stage::goes;
  return no_quorum_.empty() ? look_from_elsewhere() : stage::ended;
}

/// @param status of the node itself, or of one that lists it
departure::stage departure::look_at(const json& status) {
  silent_until_ = std::chrono::steady_clock::time_point::max();
  if (is_asked_) {
    if (text_of(status, "state") != "gone")
      note_quorum(status);
    return stage::goes;
  }
  const bool listed = std::ranges::any_of(status["peers"], [&](const json& p) {
    return text_of(p, "id") == id_
           && (no_quorum_.empty() || text_of(p, "state") != "unreachable");
  });
  if (listed)
    return stage::goes;
  return no_quorum_.empty() ? stage::left : stage::ended;
}

/// The node does not answer any more: others know whether it has left.
departure::stage departure::look_from_elsewhere() {
  const auto now = std::chrono::steady_clock::now();
  silent_until_ = std::min(silent_until_, now + lag_max);
  const other_view seen = ask_others();
  if (seen.itself)
    return stage::goes;
  const bool known = !seen.by.empty();
  const bool alone = at_.peers.empty() || client_.addresses().size() <= 1;
  if (known ? !seen.lists : alone)
    return stage::left;
  if (now < silent_until_)
    return stage::goes;
  why_ = "peer " + id_.substr(0, 8)
         + " was asked to leave, and does not answer any more; "
         + (known ? seen.by
                      + " still lists it: it may have ended before it had "
                        "left, or the network to it is gone"
                  : "no other peer answers, either: whether it has left is not "
                    "known");
  return stage::unknown;
}

departure::other_view departure::ask_others() const {
  runtime::client_config c = client_again(at_);
  c.data_dir.clear();
  c.named = false;
  c.addresses = client_.addresses();
  runtime::client other(c);
  if (other.connect())
    return {};
  const auto status = status_of(other);
  if (!status)
    return {};
  other_view out{text_of(*status, "name") + " (" + other.where() + ")"};
  out.itself = text_of(*status, "self") == id_;
  out.lists = std::ranges::any_of(
    (*status)["peers"], [&](const json& p) { return text_of(p, "id") == id_; });
  return out;
}

/// It has ended without a quorum.
int departure::report_end() const {
  if (is_asked_ && where_.is_absolute()) // else it is on another machine
    tell_of_saved(before_, where_, asked_ms_);
  const std::string ended = "node " + id_.substr(0, 8) + " has ended";
  if (!revoked_by_.empty())
    return fail(ended + ". " + revoked_by_
                + " that it was revoked: then the others have no such peer any "
                  "more, and nothing is left to do. If it was not revoked, "
                  "start it again when other members can be reached");
  return fail(
    ended
    + ", but the other peers were not told, as it had no quorum: they have it "
      "on their list until they find it gone. If a quorum of them still runs, "
      "out of reach, jobs go on there; else jobs wait until a quorum has "
      "started again. Start it again to have it leave in order");
}

int departure::run() {
  if (!find() || !ask())
    return fail(why_);
  wait();
  switch (stage_) {
  case stage::ended:
    return report_end();
  case stage::left:
    std::cout << "peer " << id_.substr(0, 8) << " has left\n";
    return exit_done;
  default:
    return fail(why_, failure_);
  }
}

} // namespace

int run_leave(const leave_options& o) {
  const auto [at, wrong] = node_for_leaving(o);
  if (!wrong.empty())
    return fail(wrong);
  if (auto why = needs_a_name(at, "leave"); !why.empty())
    return fail(why, exit_usage);
  return departure(o, at).run();
}

} // namespace shoal::apps
