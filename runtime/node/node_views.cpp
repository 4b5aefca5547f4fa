// runtime/node/node_views.cpp -- messages between the parts of a node.
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view_changes.hpp"
#include "runtime/discovery/address_finder.hpp"
#include "runtime/discovery/discovery.hpp"
#include "runtime/node/node_impl.hpp"
#include "runtime/node/status/node_metrics.hpp"
#include "runtime/node/status/status.hpp"
#include "runtime/work/uncaught.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <tuple>

namespace shoal::runtime {

namespace cl = core::cluster;

std::int64_t node::impl::unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

void node::impl::tell(cl::event e) {
  caf::anon_send(membership_, cluster_event{std::move(e)});
}

core::nanoseconds node::impl::steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void node::impl::hear(const core::peer_id& from, cl::message&& m) {
  if (const auto* said = std::get_if<cl::hello>(&m))
    say_if(known_->heard(from, *said, unix_ms()));
  if (*pending_events_ >= cluster_events_max)
    return; // the core asks again for what it lacks
  ++*pending_events_;
  tell(cl::received{from, std::move(m)});
}

void node::impl::take(const core::peer_id& from, client_request&& m) {
  if (control* c = control_ready_)
    c->ask(from, std::move(m));
}

void node::impl::client_gone(const core::peer_id& client) {
  if (control* c = control_ready_)
    c->gone(client);
}

void node::impl::up(const core::peer_id& peer, std::uint64_t instance) {
  known_->connected(peer);
  wiring_->up(peer, instance);
}

void node::impl::down(const core::peer_id& peer) {
  known_->disconnected(peer, unix_ms());
  client_gone(peer); // it may have requests in progress
  wiring_->down(peer);
}

void node::impl::connect_failed(const std::string& address,
                                std::error_code why) {
  if (why == transport::errc::refused)
    say_if(known_->not_proved(address, unix_ms()));
  tell(cl::connect_failed{address});
}

void node::impl::reached(const std::string& address,
                         const core::peer_id& peer) {
  known_->reached(address);
  tell(cl::reached{address, peer});
}

void node::impl::stepped(cl::phase p, std::vector<core::peer_id> reachable) {
  if (p == cl::phase::member && !in_quorum())
    known_->refute(); // a quorum is in contact with it
  std::string waits;
  {
    std::lock_guard lock(mutex_);
    phase_ = p;
    const bool waited = !waits_.empty();
    if (p != cl::phase::waiting)
      waits_.clear();
    const bool same = reachable == reachable_;
    reachable_ = reachable;
    waits = waits_;
    if (waits.empty() ? !waited : same)
      return;
  }
  wiring_->tell_quorum(waits, reachable);
}

core::plan node::impl::make_plan(const core::view& v) {
  return core::make_plan(v);
}

/// Then a peer that finds the new view in view() is not refused.
void node::impl::adopting(const core::view* before,
                          const std::shared_ptr<const core::view>& now,
                          bool member) {
  known_->adopted(before, now, unix_ms());
  if (member)
    known_->refute();
  say_if(known_->namesake(self_));
  clients_->adopting(*now);
  recent_.add(core::shown(
    core::view_line({before, *now, member, discovery_ || finder_})));
  admission_->adopt(*now);
}

void node::impl::adopted(const core::view& now, bool member) {
  clients_->adopted();
  if (discovery_)
    discovery_->set_alone(now.members.size() < 2);
  if (finder_)
    finder_->set_alone(now.members.size() < 2);
  if (member && !std::exchange(ready_, true))
    observer_.ready("ready: peer " + core::short_name(self_) + " ("
                    + setup_.name + ") at " + address_ + ", cluster "
                    + setup_.cluster + ", data in " + setup_.data_dir.string());
  observer_.agreed(now, member);
}

bool node::impl::in_quorum() const {
  std::lock_guard lock(mutex_);
  return phase_ == cl::phase::member;
}

bool node::impl::release() {
  return life_->release();
}

void node::impl::worked(const core::island_id& id, core::nanoseconds busy) {
  const auto [view, plan] = wiring_->view_and_plan();
  keeper_->step(steady_ns(), view, plan, id, busy);
}

void node::impl::disks_refuse(const core::island_id& id,
                              const std::vector<core::peer_id>& at) {
  std::lock_guard lock(mutex_);
  if (at.empty())
    refusing_disks_.erase(id);
  else
    refusing_disks_[id] = at;
}

void node::impl::offer_disk(std::uint64_t bytes, bool refused) {
  keeper_->disk(bytes, refused);
}

void node::impl::hung(const std::string& why) {
  life_->hang(); // first: this thread may be stopped by what hangs
  say("[node] " + why + ": this node ends");
  end(why);
}

void node::impl::say(const std::string& line) {
  observer_.say(line);
}

/// What ends the waiting. A peer that the others refuse must not found a shoal
/// of its own beside theirs.
std::string node::impl::what_to_do(const cl::waiting_for& w) const {
  if (const std::string accuser = known_->accuser(); !accuser.empty())
    return ". " + accuser + " that this node was revoked";
  if (const std::string other = known_->other_build(); !other.empty())
    return ". " + other
           + " refuses this node's version of shoal: install the same version "
             "on all peers";
  if (const std::string wrong = known_->unproved(w.missing); !wrong.empty())
    return ". A node answers as " + wrong
           + ", but does not prove the cluster key of this node, which has the "
             "fingerprint "
           + known_->key_in_use()
           + ": start this node again with the --cluster-key of its shoal "
             "(`shoal key show FILE` prints a key's fingerprint)";
  const auto now = view();
  const auto answers = [this](const core::member& m) {
    std::lock_guard lock(mutex_);
    return m.id.peer != self_ && std::ranges::count(reachable_, m.id.peer) > 0;
  };
  const bool none = now && std::ranges::none_of(now->members, answers);
  return std::string(none ? "; none of the others answers: first look at the "
                            "network of this machine, then"
                          : ";")
         + " start them again or, if they are gone for good, run `shoal "
           "recover --force`";
}

void node::impl::waiting(const cl::waiting_for& w) {
  std::string names;
  for (const core::member& m : w.missing)
    names += (names.empty() ? "" : ", ") + (m.name.empty() ? "" : m.name + " ")
             + "(" + core::short_name(m.id.peer) + ")";
  const std::string text = std::string(no_quorum_text)
                           + std::to_string(w.number) + ": cannot reach "
                           + names + what_to_do(w);
  std::vector<core::peer_id> reachable;
  bool changed = false;
  {
    std::lock_guard lock(mutex_);
    if (phase_ == cl::phase::waiting)
      changed = std::exchange(waits_, text) != text;
    reachable = reachable_;
  }
  if (changed)
    wiring_->tell_quorum(text, reachable);
  observer_.waiting(text);
  log_waiting(text);
}

/// A user who follows a job should also learn why none of its steps end.
void node::impl::log_waiting(const std::string& text) {
  const auto now = view();
  if (!now)
    return;
  for (const core::job_entry& job : now->jobs) {
    if (job.state != core::job_state::running)
      continue;
    job_event e;
    if (const auto last = journal_->last_step(job.id))
      e.step = last->step;
    e.epoch = now->number;
    e.text = text;
    e.waits = true;
    e.unix_ms = unix_ms();
    journal_->add(job.id, e);
  }
}

void node::impl::sent_wrong(const core::peer_id& holder,
                            const core::blob_digest& blob, std::size_t times,
                            bool given_up) {
  const auto now = view();
  const core::member* m = now ? core::find_member(*now, holder) : nullptr;
  const std::string text =
    (m == nullptr || m->name.empty() ? core::short_name(holder) : m->name)
    + " has sent bytes of file " + core::to_hex(blob).substr(0, 8)
    + " that do not match its SHA-256 (" + std::to_string(times)
    + (given_up ? " such files): this peer asks it for no more files"
                : " such files so far): they were refused");
  say("[store] " + text);
  if (!now)
    return;
  for (const core::job_entry& job : now->jobs) { // which needs it is not known
    if (job.state != core::job_state::running)
      continue;
    job_event e;
    if (const auto last = journal_->last_step(job.id))
      e.step = last->step;
    e.epoch = now->number;
    e.text = text;
    e.unix_ms = unix_ms();
    journal_->add(job.id, e);
  }
}

status_input node::impl::now() const {
  status_input in;
  in.unix_ms = unix_ms();
  in.self = self_;
  in.name = setup_.name;
  in.address = address_;
  in.http = config_.http;
  in.local_only = setup_.loopback_only && config_.cluster_key_file.empty()
                  && !config_.embedded;
  in.data_dir = setup_.data_dir.string();
  in.links = mesh_->links().stats();
  for (auto& [peer, choice] : mesh_->pairs())
    in.pairs.emplace_back(peer, std::move(choice));
  {
    std::lock_guard lock(mutex_);
    in.phase = phase_;
    in.reachable = reachable_;
    in.waiting = waits_;
    in.refusing_disks = refusing_disks_;
    in.serving = serving_;
  }
  if (in.phase == cl::phase::waiting)
    in.revoked_by = known_->accuser();
  std::tie(in.view, in.plan) = wiring_->view_and_plan();
  known_nodes::summary known = known_->all(in.unix_ms);
  in.versions = std::move(known.versions);
  in.strangers = std::move(known.strangers);
  in.apart = std::move(known.apart);
  in.former = std::move(known.former);
  in.beacons = known.beacons;
  in.journal = journal_.get();
  in.resources = resources_now(*store_);
  return in;
}

void node::impl::add_metrics(metric_page& to) const {
  add_node_metrics(now(), config_.version, to);
}

/// The gateway's thread.
void node::impl::serves(const std::vector<core::served_load>& models) {
  std::lock_guard lock(mutex_);
  serving_ = models;
}

std::string node::impl::describe(core::job_id job) const {
  const status_input in = now();
  const core::job_entry* entry =
    in.view ? core::find_job(*in.view, job) : nullptr;
  return entry ? job_json(in, *entry) : std::string{};
}

std::string node::impl::status() const {
  return status_json(now());
}

void node::impl::answer(std::uint64_t token, outcome o) {
  control_->answered(token, std::move(o));
}

/// Membership actor's thread.
void node::impl::use(transport::tls::keyring ring, bool others_go) {
  if (discovery_) {
    std::vector<transport::tls::shared_key> keys{ring.current};
    keys.insert(keys.end(), ring.pending.begin(), ring.pending.end());
    keys.insert(keys.end(), ring.replaced.begin(), ring.replaced.end());
    discovery_->set_keys(std::move(keys));
  }
  mesh_->set_keys(std::move(ring), others_go);
}

bool node::impl::among_others() const {
  std::lock_guard lock(mutex_);
  return phase_ == cl::phase::member && reachable_.size() > 1;
}

std::string node::impl::waits() const {
  std::lock_guard lock(mutex_);
  return waits_;
}

caf::actor node::impl::supervisor() const {
  return wiring_->find("supervisor");
}

std::error_code node::impl::send(const core::peer_id& to, envelope message) {
  return mesh_->send(to, std::move(message));
}

void node::impl::refused(transport::tls::refusal why,
                         const std::string& address) {
  admission_->refused(why, address, unix_ms(),
                      std::chrono::steady_clock::now());
}

void node::impl::say_if(const known_nodes::line& line) {
  if (line)
    say(*line);
}

/// Discovery's thread.
void node::impl::strange(const std::string& host) {
  say_if(known_->strange(host, unix_ms()));
}

bool node::impl::connected(std::uint64_t sender) const {
  return mesh_->is_up(sender);
}

void node::impl::found(const std::string& address) {
  tell(cl::discovered{address});
}

void node::impl::listed(const std::string& address) {
  if (address != address_)
    tell(cl::discovered{address, true});
}

void node::impl::counted(const beacon_counts& counts) {
  known_->counted(counts);
}

void node::impl::addresses_changed(std::vector<std::string> addresses) {
  addresses.resize(std::min(addresses.size(), codec::addresses_max));
  say("[node] telling the shoal where this node is: " + addresses.front());
  tell(cl::update_addresses{std::move(addresses)});
}

} // namespace shoal::runtime
