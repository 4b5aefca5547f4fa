// runtime/node/node_views.cpp -- distributes messages, views and requests.
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view_changes.hpp"
#include "runtime/discovery/address_finder.hpp"
#include "runtime/discovery/discovery.hpp"
#include "runtime/node/node_impl.hpp"
#include "runtime/node/status.hpp"
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
  std::lock_guard lock(mutex_);
  phase_ = p;
  reachable_ = std::move(reachable);
}

core::plan node::impl::make_plan(const core::view& v) {
  return core::make_plan(v);
}

/// Then a peer that finds the new view in view() is not refused.
void node::impl::adopting(const core::view* before,
                          const std::shared_ptr<const core::view>& now,
                          bool member) {
  known_->adopted(before, now, unix_ms());
  waited_ = requests_.adopted(*now);
  recent_.add(core::shown(
    core::view_line({before, *now, member, discovery_ || finder_})));
  admit(*now);
}

void node::impl::adopted(const core::view& now, bool member) {
  auto waited = std::exchange(waited_, {});
  for (auto& [token, o] : waited.answers)
    control_->answered(token, std::move(o));
  for (waiting_requests::early_job& e : waited.jobs)
    if (std::chrono::steady_clock::now() < e.until)
      submit(e.token, std::move(e.job));
  if (discovery_)
    discovery_->set_alone(now.members.size() < 2);
  if (finder_)
    finder_->set_alone(now.members.size() < 2);
  if (member && !std::exchange(ready_, true) && config_.observer.ready)
    config_.observer.ready("ready: peer " + core::short_name(self_) + " ("
                           + setup_.name + ") at " + address_ + ", cluster "
                           + setup_.cluster + ", data in "
                           + setup_.data_dir.string());
  if (config_.observer.agreed)
    config_.observer.agreed(now, member);
}

bool node::impl::in_quorum() const {
  std::lock_guard lock(mutex_);
  return phase_ == cl::phase::member;
}

bool node::impl::release() {
  return life_->release();
}

void node::impl::worked(core::job_id job, core::nanoseconds busy) {
  const auto [view, plan] = wiring_->view_and_plan();
  keeper_->step(steady_ns(), view, plan, job, busy);
}

void node::impl::hung(const std::string& why) {
  say("[node] " + why + ": this node ends");
  life_->hang();
  end(why);
}

void node::impl::say(const std::string& line) {
  if (config_.observer.say)
    config_.observer.say(line);
}

void node::impl::waiting(const cl::waiting_for& w) {
  std::string names;
  for (const core::member& m : w.missing)
    names += (names.empty() ? "" : ", ") + (m.name.empty() ? "" : m.name + " ")
             + "(" + core::short_name(m.id.peer) + ")";
  const std::string accuser = known_->accuser();
  const std::string other = known_->other_build();
  // A peer that the others refuse must not found a shoal of its own beside
  // theirs.
  const std::string text =
    "no quorum for view " + std::to_string(w.number) + ": cannot reach " + names
    + (!accuser.empty() ? ". " + accuser + " that this node was revoked"
       : !other.empty()
         ? ". " + other
             + " refuses this node's version of shoal: install the same "
               "version on all peers"
         : "; start them again or, if they are gone for good, run "
           "`shoal recover --force`");
  if (config_.observer.waiting)
    config_.observer.waiting(text);
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

void node::impl::submit(std::uint64_t token, core::job_entry job) {
  job.state = core::job_state::running;
  job.done_step = 0;
  job.retried = 0;
  job.submitter = self_;
  job.submitted_ms = unix_ms();
  job.user = core::shown(job.user, core::job_user_bytes_max);
  do
    job.id = transport::tls::make_instance();
  while (job.id == 0);
  auto refuse = [&](const std::string& why) {
    control_->answered(token, {0, why, {}, {}});
  };
  if (job.blocks == 0 || job.microbatches == 0)
    return refuse("a job needs at least one block and one microbatch");
  core::blob_digest none{};
  for (const core::blob_digest& d : {job.data, job.origin})
    if (d != none && !store_->contains(d))
      return refuse("this node does not hold the job's blob "
                    + core::to_hex(d).substr(0, 16) + ": upload it first");
  if (auto now = view())
    if (const std::string why = core::never_fits(*now, job); !why.empty())
      return refuse(why);
  using submitted = waiting_requests::submitted;
  switch (requests_.submit(token, job, std::chrono::steady_clock::now())) {
  case submitted::kept: // the node is starting: adopt() submits it
    return;
  case submitted::too_many:
    return refuse("this node has no view yet, and "
                  + std::to_string(waiting_requests::early_jobs_max)
                  + " jobs wait for one");
  case submitted::propose:
    break;
  }
  tell(cl::submit_job{std::move(job)});
}

void node::impl::remove_job(std::uint64_t token, core::job_id job) {
  const auto now = view();
  const core::job_entry* entry = now ? core::find_job(*now, job) : nullptr;
  const auto refuse = [&](const char* why) {
    control_->answered(token, {0, why, {}, {}});
  };
  if (!entry)
    return refuse("no such job");
  if (entry->state == core::job_state::running)
    return refuse("the job has not ended: cancel it first");
  waiting_requests::wanted_view gone;
  gone.tag = job;
  gone.reached = [job](const core::view& v, outcome&) {
    return core::find_job(v, job) == nullptr;
  };
  if (requests_.want(token, std::move(gone)))
    tell(cl::remove_job{job});
}

void node::impl::recover(std::uint64_t token) {
  requests_.want_other_shoal(token);
  tell(cl::recover_force{});
}

void node::impl::rejected(const cl::rejected& r) {
  const std::vector<std::uint64_t> tokens = requests_.rejected(r.job);
  for (std::uint64_t token : tokens)
    control_->answered(token, {r.job, r.reason, {}, {}});
  if (tokens.empty())
    say("[cluster] refused: " + r.reason);
}

std::string node::impl::stop_job(core::job_id job, bool drain) {
  auto now = view();
  const core::job_entry* entry = now ? core::find_job(*now, job) : nullptr;
  if (!entry)
    return "no such job";
  if (entry->state != core::job_state::running)
    return {};
  caf::actor supervisor = wiring_->find("supervisor");
  if (drain && supervisor) {
    caf::anon_send(supervisor, drain_job{job});
    return {};
  }
  std::uint64_t step = 0;
  for (const job_event& e : journal_->read_all(job))
    if (e.kind == job_event_kind::step)
      step = std::max(step, e.step);
  tell(cl::set_job_state{job, core::job_state::cancelled, step, 0, {}});
  return {};
}

template <class Message>
std::string node::impl::tell_job(core::job_id job, Message m) {
  const auto now = view();
  const core::job_entry* entry = now ? core::find_job(*now, job) : nullptr;
  if (!entry || entry->state != core::job_state::running)
    return "no such job runs";
  const caf::actor supervisor = wiring_->find("supervisor");
  if (!supervisor)
    return "this node runs no jobs";
  caf::anon_send(supervisor, std::move(m));
  return {};
}

status_input node::impl::now() const {
  status_input in;
  in.unix_ms = unix_ms();
  in.self = self_;
  in.name = setup_.name;
  in.address = address_;
  in.data_dir = setup_.data_dir.string();
  in.links = mesh_->links().stats();
  for (auto& [peer, choice] : mesh_->pairs())
    in.pairs.emplace_back(peer, std::move(choice));
  {
    std::lock_guard lock(mutex_);
    in.phase = phase_;
    in.reachable = reachable_;
  }
  std::tie(in.view, in.plan) = wiring_->view_and_plan();
  known_nodes::summary known = known_->all(in.unix_ms);
  in.versions = std::move(known.versions);
  in.strangers = std::move(known.strangers);
  in.apart = std::move(known.apart);
  in.beacons = known.beacons;
  in.journal = journal_.get();
  return in;
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

std::string node::impl::lines(const ask_lines& r, std::uint64_t& next) const {
  return recent_.json(r.from, r.lines, next);
}

std::string node::impl::wait_no_longer(core::job_id job) {
  return tell_job(job, stop_waiting_job{job});
}

std::string node::impl::offer(const offer_checkpoint& r) {
  return tell_job(r.job, checkpoint_offered{r.job, r.manifest, r.step});
}

void node::impl::fetch(const core::blob_digest& digest,
                       std::function<void(std::error_code)> done) {
  exchange_->fetch(digest, std::nullopt, mesh_->peers(), std::move(done));
}

void node::impl::send(const core::peer_id& to, const client_reply& reply) {
  (void)mesh_->send(to, envelope(reply)); // the client repeats its request
}

} // namespace shoal::runtime
