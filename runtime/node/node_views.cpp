// runtime/node/node_views.cpp -- messages, views and requests find their way.
#include "runtime/address_finder.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/core/training/plan.hpp"
#include "runtime/core/view_changes.hpp"
#include "runtime/discovery.hpp"
#include "runtime/node/node_impl.hpp"
#include "runtime/node/status.hpp"
#include "runtime/uncaught.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace shoal::runtime {

namespace cl = core::cluster;

/// The built-in role. What peers say to it are job messages.
static constexpr std::string_view supervisor_role = "supervisor";

static std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

void node::impl::tell_cluster(cl::event e) {
  caf::anon_send(membership_, cluster_event{std::move(e)});
}

caf::actor node::impl::role(const std::string& name) const {
  std::lock_guard lock(mutex_);
  if (auto at = actors_.find(name); at != actors_.end())
    return at->second;
  auto at = bound_.find(name);
  return at == bound_.end() ? caf::actor{} : at->second;
}

void node::impl::take(const core::peer_id& from, envelope&& e) {
  if (auto* message = std::get_if<cl::message>(&e)) {
    if (const auto* said = std::get_if<cl::hello>(message)) {
      std::lock_guard lock(mutex_);
      versions_[from] = said->version;
      strangers_.erase(from);
      if (said->cluster == setup_.cluster)
        strangers_[from] = {said->shoal, said->name, said->members,
                            said->running};
    }
    if (*pending_events_ >= cluster_events_max)
      return; // the core asks again for what it misses
    ++*pending_events_;
    tell_cluster(cl::received{from, std::move(*message)});
  } else if (auto* job = std::get_if<core::job_message>(&e)) {
    if (caf::actor supervisor = role("supervisor"))
      caf::anon_send(
        supervisor,
        job_message_in{
          from, std::make_shared<const core::job_message>(std::move(*job))});
  } else if (auto* custom = std::get_if<role_message>(&e)) {
    if (custom->role == supervisor_role)
      return mesh_->complain("[node] peer " + core::short_name(from)
                             + " sent a message for \"supervisor\", which "
                               "takes none of peers; it is ignored");
    if (caf::actor actor = role(custom->role))
      caf::anon_send(
        actor,
        role_message_in{from, std::make_shared<const std::vector<std::byte>>(
                                std::move(custom->bytes))});
  } else if (auto* request = std::get_if<blob_request>(&e)) {
    exchange_->request_received(from, *request);
  } else if (auto* chunk = std::get_if<blob_chunk>(&e)) {
    exchange_->chunk_received(from, std::move(*chunk));
  } else if (auto* reply = std::get_if<client_reply>(&e)) {
    take_lines(from, std::move(*reply));
  }
}

mesh_hooks node::impl::make_mesh_hooks() {
  mesh_hooks h;
  h.up = [this](const core::peer_id& peer, std::uint64_t instance) {
    tell_cluster(cl::peer_up{peer, instance});
  };
  h.down = [this](const core::peer_id& peer) {
    exchange_->peer_down(peer);
    {
      std::lock_guard lock(mutex_);
      versions_.erase(peer);
      strangers_.erase(peer);
    }
    if (control* c = control_ready_)
      c->gone(peer); // it may have asked for lines
    tell_cluster(cl::peer_down{peer});
  };
  h.connect_failed = [this](const std::string& address) {
    tell_cluster(cl::connect_failed{address});
  };
  h.reached = [this](const std::string& address, const core::peer_id& peer) {
    tell_cluster(cl::reached{address, peer});
  };
  h.received = [this](const core::peer_id& from, envelope&& e) {
    take(from, std::move(e));
  };
  h.asked = [this](const core::peer_id& who, client_request&& request) {
    if (control* c = control_ready_)
      c->ask(who, std::move(request));
  };
  h.refused = [this](transport::tls::refusal why, const std::string& address) {
    refused(why, address);
  };
  h.client_gone = [this](const core::peer_id& who) {
    if (control* c = control_ready_)
      c->gone(who);
  };
  h.say = [this](const std::string& line) { say(line); };
  return h;
}

membership_hooks node::impl::make_membership_hooks() {
  membership_hooks h;
  h.send = [this](const std::vector<core::peer_id>& to,
                  const cl::message& what) {
    std::vector<std::byte> bytes = codec::encode(what);
    for (const core::peer_id& peer : to)
      (void)mesh_->send(peer, bytes); // may be lost, like any message
  };
  h.connect = [this](const std::string& address) { mesh_->connect(address); };
  h.disconnect = [this](const core::peer_id& peer) { mesh_->drop(peer); };
  h.new_view = [this](const cl::new_view& v) { adopt(v); };
  h.waiting = [this](const cl::waiting_for& w) { show_waiting(w); };
  h.left = [this](bool clean) { has_left(clean); };
  h.shut_out = [this](const std::string& address) {
    end("nobody admits this node, and " + address
        + " says that it was revoked: if so, give it a new --data-dir and an "
          "invite; if not, start it again when others can be reached");
  };
  h.rejected = [this](const cl::rejected& r) { rejected(r); };
  h.use_keys = [this](const cl::key_record& keys) { use_keys(keys); };
  h.stepped = [this](cl::phase p, std::vector<core::peer_id> reachable) {
    std::lock_guard lock(mutex_);
    phase_ = p;
    reachable_ = std::move(reachable);
  };
  h.say = [this](const std::string& line) { say(line); };
  return h;
}

void node::impl::adopt(const cl::new_view& v) {
  auto view = std::make_shared<const core::view>(v.current);
  flight().add(v.member ? "view" : "view without this peer", 0, 0, view->number,
               view->members.size());
  auto plan = std::make_shared<const core::plan>(core::make_plan(*view));
  for (const core::assignment& a : plan->jobs)
    mesh_->links().name_plan(core::digest(a), a.job);
  std::vector<std::pair<std::uint64_t, outcome>> agreed;
  std::vector<early_job> early;
  std::shared_ptr<const core::view> before;
  bool ready = false;
  {
    std::lock_guard lock(mutex_);
    early.swap(early_);
    before = std::exchange(view_, view);
    plan_ = plan;
    ready = v.member && !ready_;
    ready_ = ready_ || v.member;
    for (auto w = wanted_.begin(); w != wanted_.end();) {
      outcome o;
      o.job = w->second.job;
      bool here = w->second.reached ? w->second.reached(*view, o)
                  : w->second.job != 0
                    ? core::find_job(*view, w->second.job) != nullptr
                    : view->shoal != w->second.not_shoal;
      if (here)
        agreed.emplace_back(w->first, std::move(o));
      w = here ? wanted_.erase(w) : std::next(w);
    }
  }
  recent_.add(core::shown(
    core::view_line({before.get(), *view, v.member, discovery_ || finder_})));
  admit(*view);
  if (!before)
    start_roles();
  std::map<std::string, caf::actor> actors;
  {
    std::lock_guard lock(mutex_);
    actors = actors_;
  }
  if (cl::is_ours(v, self_))
    for (const auto& [name, actor] : actors)
      caf::anon_send(actor, view_changed{view, plan});
  std::set<core::peer_id> members;
  for (const core::member& m : view->members)
    members.insert(m.id.peer);
  mesh_->set_members(std::move(members));
  for (auto& [token, o] : agreed)
    control_->answered(token, std::move(o));
  for (early_job& e : early)
    if (std::chrono::steady_clock::now() < e.until)
      submit(e.token, std::move(e.job));
  if (discovery_)
    discovery_->set_alone(view->members.size() < 2);
  if (finder_)
    finder_->set_alone(view->members.size() < 2);
  if (ready && config_.observer.ready)
    config_.observer.ready("ready: peer " + core::short_name(self_) + " ("
                           + setup_.name + ") at " + address_ + ", cluster "
                           + setup_.cluster + ", data in "
                           + setup_.data_dir.string());
  if (config_.observer.agreed)
    config_.observer.agreed(*view, v.member);
}

void node::impl::start_roles() {
  std::map<std::string, caf::actor> actors;
  for (const auto& [name, make] : roles_)
    if (caf::actor actor = make(*system_, *this)) {
      name_actor(actor.id(), name);
      actors.emplace(name, std::move(actor));
    }
  std::lock_guard lock(mutex_);
  actors_ = std::move(actors);
}

void node::impl::show_waiting(const cl::waiting_for& w) {
  std::string names;
  for (const core::member& m : w.missing)
    names += (names.empty() ? "" : ", ") + (m.name.empty() ? "" : m.name + " ")
             + "(" + core::short_name(m.id.peer) + ")";
  const std::string text =
    "no quorum for view " + std::to_string(w.number) + ": cannot reach " + names
    + "; if they are gone for good, run `shoal recover --force`";
  if (config_.observer.waiting)
    config_.observer.waiting(text);
  log_waiting(text);
}

/// Whoever follows a job is to know, too, why none of its steps end.
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
  {
    std::lock_guard lock(mutex_);
    if (!view_) { // a node that starts: adopt() takes it up
      const auto now = std::chrono::steady_clock::now();
      std::erase_if(early_, [&](const early_job& e) { return now >= e.until; });
      if (early_.size() >= early_jobs_max)
        return refuse("this node has no view yet, and "
                      + std::to_string(early_jobs_max) + " jobs wait for one");
      early_.push_back({token, std::move(job), now + agreement_wait});
      return;
    }
    wanted_[token] = {job.id, {}, {}};
  }
  tell_cluster(cl::submit_job{std::move(job)});
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
  wanted_view gone;
  gone.job = job;
  gone.reached = [job](const core::view& v, outcome&) {
    return core::find_job(v, job) == nullptr;
  };
  if (want(token, std::move(gone)))
    tell_cluster(cl::remove_job{job});
}

void node::impl::recover(std::uint64_t token) {
  {
    std::lock_guard lock(mutex_);
    wanted_[token] = {0, view_ ? view_->shoal : core::shoal_id{}, {}};
  }
  tell_cluster(cl::recover_force{});
}

void node::impl::rejected(const cl::rejected& r) {
  std::vector<std::uint64_t> tokens;
  {
    std::lock_guard lock(mutex_);
    for (auto w = wanted_.begin(); w != wanted_.end();)
      if (w->second.job == r.job) {
        tokens.push_back(w->first);
        w = wanted_.erase(w);
      } else {
        ++w;
      }
  }
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
  caf::actor supervisor = role("supervisor");
  if (drain && supervisor) {
    caf::anon_send(supervisor, drain_job{job});
    return {};
  }
  std::uint64_t step = 0;
  for (const job_event& e : journal_->read_all(job))
    if (e.kind == job_event_kind::step)
      step = std::max(step, e.step);
  propose_job_state(job, core::job_state::cancelled, step, 0);
  return {};
}

template <class Message>
std::string node::impl::tell_job(core::job_id job, Message m) {
  const auto now = view();
  const core::job_entry* entry = now ? core::find_job(*now, job) : nullptr;
  if (!entry || entry->state != core::job_state::running)
    return "no such job runs";
  const caf::actor supervisor = role("supervisor");
  if (!supervisor)
    return "this node runs no jobs";
  caf::anon_send(supervisor, std::move(m));
  return {};
}

status_input node::impl::now() const {
  status_input in;
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
    in.beacons = beacons_;
    in.reachable = reachable_;
    in.versions = versions_;
    in.strangers = strangers_;
    in.view = view_;
    in.plan = plan_;
  }
  in.journal = journal_.get();
  return in;
}

std::string node::impl::describe(core::job_id job) const {
  const status_input in = now();
  const core::job_entry* entry =
    in.view ? core::find_job(*in.view, job) : nullptr;
  return entry ? job_json(in, *entry) : std::string{};
}

control_hooks node::impl::make_control_hooks() {
  control_hooks h;
  h.blobs = store_.get();
  h.journal = journal_.get();
  h.status = [this] { return status_json(now()); };
  h.describe = [this](core::job_id job) { return describe(job); };
  h.leave = [this](bool drain) { leave(leave_deadline, drain); };
  h.submit = [this](std::uint64_t token, core::job_entry job) {
    submit(token, std::move(job));
  };
  h.invite = [this](std::uint64_t token, const make_invite& r) {
    invite(token, r);
  };
  h.redeem = [this](std::uint64_t token, const use_invite& r) {
    redeem(token, r);
  };
  h.revoke_peer = [this](std::uint64_t token, const revoke& r) {
    revoke_peer(token, r);
  };
  h.remove_job = [this](std::uint64_t token, core::job_id job) {
    remove_job(token, job);
  };
  h.lines = [this](std::uint64_t token, const ask_lines& r) {
    lines(token, r);
  };
  h.recover = [this](std::uint64_t token) { recover(token); };
  h.stop_job = [this](core::job_id job, bool drain) {
    return stop_job(job, drain);
  };
  h.wait_no_longer = [this](core::job_id job) {
    return tell_job(job, stop_waiting_job{job});
  };
  h.offer = [this](const offer_checkpoint& r) {
    return tell_job(r.job, checkpoint_offered{r.job, r.manifest, r.step});
  };

  h.fetch = [this](const core::blob_digest& digest,
                   std::function<void(std::error_code)> done) {
    exchange_->fetch(digest, std::nullopt, mesh_->peers(), std::move(done));
  };
  h.send = [this](const core::peer_id& to, const client_reply& reply) {
    (void)mesh_->send(to, envelope(reply)); // the client asks again
  };
  return h;
}

} // namespace shoal::runtime
