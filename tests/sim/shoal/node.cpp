// tests/sim/shoal/node.cpp -- the parts of a process, put together.
#include "tests/sim/shoal/node.hpp"

#include "actors/supervisor.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/sim/shoal/disk.hpp"

#include <caf/all.hpp>

#include <algorithm>

namespace shoal::sim {

namespace cl = core::cluster;
using runtime::envelope;
using runtime::fabric_kind;

namespace {

constexpr nanoseconds pulse_every = 100 * millisecond;

std::vector<core::assignment> plan_jobs(const core::view& v) {
  return shoal_world::active()->plan_of(v).jobs;
}

} // namespace

sim_node::sim_node(shoal_world& world, machine& home)
  : world_(world), home_(home), backend_(kernels::make_reference_backend()),
    gate_(*this) {
  const auto clock = [&world] { return world.now(); };
  device_ = std::make_unique<sim_queue>(
    *backend_, [this] { begin_piece(*device_, world_.device_time); }, clock);
  reductions_ = std::make_unique<sim_queue>(
    *backend_, [this] { begin_piece(*reductions_, world_.device_time / 4); },
    clock);
  disk_ = std::make_unique<sim_queue>(
    *backend_, [this] { begin_piece(*disk_, world_.disk_time); }, clock);
  if (world.has(planted::disks_unwatched))
    disk_->hide();
  std::filesystem::create_directories(home.folder);
  store_ =
    std::make_unique<sim_store>(world, home.number, home.folder / "blobs");
  journal_ = runtime::open_job_journal(home.folder / "jobs", disk_.get());
  config_.set("scheduler.policy", caf::atom("testing"));
  config_.set("middleman.attach-utility-actors", true);
  system_ = std::make_unique<caf::actor_system>(config_);
  scheduler_ =
    dynamic_cast<caf::scheduler::test_coordinator*>(&system_->scheduler());
  SHOAL_ASSERT(scheduler_ != nullptr);
  scheduler_->clock().current_time =
    caf::actor_clock::time_point(std::chrono::nanoseconds(world.now()));
  runtime::link_service::config l;
  l.self = home.id;
  l.send_credit = [this](const core::peer_id& to,
                         const runtime::link_credit& credit) {
    return transmit(to, credit, false);
  };
  l.memory = memory_;
  links_ = runtime::make_link_service(std::move(l));
  watched_ = std::make_unique<watched_links>(world, home.number, *links_);
  runtime::blob_exchange::config x;
  x.blobs = store_.get();
  x.disk = disk_.get();
  x.send_request = [this](const core::peer_id& to,
                          const runtime::blob_request& r) {
    return transmit(to, r, true);
  };
  x.send_chunk = [this](const core::peer_id& to, runtime::blob_chunk chunk) {
    return transmit(to, std::move(chunk), true);
  };
  exchange_ = runtime::make_blob_exchange(std::move(x));
  transport::loopback::config f;
  f.name = home.address;
  f.id = home.id;
  f.instance = 1 + world.below(~std::uint64_t{0} - 1);
  transport::fabric_handler& handler = *this;
  fabric_ =
    std::make_unique<transport::loopback::fabric>(world.net(), f, handler);
  links_->add_fabric(fabric_kind::tls, *fabric_);
  cl::config c;
  c.self.id.peer = home.id;
  c.self.instance = f.instance;
  c.self.name = "m" + std::to_string(home.number);
  c.self.addresses = {home.address};
  c.self.host = c.self.name;
  c.self.device.mflops = home.mflops;
  c.self.device.memory_bytes = std::uint64_t{1} << 34;
  c.self.witness = home.witness;
  c.self.voter = home.voter;
  c.cluster = "sim";
  c.seed = f.instance;
  c.key = {1};
  c.digest_key = &runtime::codec::key_digest;
  c.name_shoal = &runtime::codec::name_shoal;
  c.plan_jobs = &plan_jobs;
  core_.emplace(std::move(c));
  if (world.has(planted::votes_not_stored))
    home.disk.vote.reset();
  outbox_.emplace(home_.disk);
  enter([this] { tell(cl::start{home_.disk}); });
  later(world.between(0, pulse_every), [this] { pulse(); });
}

sim_node::~sim_node() {
  die(true);
  exchange_->close();
  links_->close();
  fabric_->close();
  device_->close();
  reductions_->close();
  disk_->close();
  if (supervisor_)
    caf::anon_send_exit(supervisor_, caf::exit_reason::user_shutdown);
  supervisor_ = nullptr;
  while (scheduler_->try_run_once()) {
  }
  scheduler_->clock().cancel_all(); // a timer holds its actor
  system_.reset();
}

void sim_node::die(bool silent) {
  if (dead_)
    return;
  dead_ = true;
  *lives_ = false;
  watched_->close();
  auto& notice = world_.net().settings().death_notice;
  notice = std::chrono::nanoseconds(
    silent ? -1 : world_.between(millisecond / 10, 2 * millisecond));
  world_.net().kill(home_.address);
  waiting_.clear();
  if (core_)
    core_.reset();
}

void sim_node::enter(work what) {
  if (dead_)
    return;
  if (stopped_) {
    waiting_.push_back(std::move(what));
    if (waiting_.size() > waiting_max)
      world_.fail("a stopped process has too much to do");
    return;
  }
  SHOAL_ASSERT(!inside_);
  inside_ = true;
  const int before = std::exchange(world_.at_work, home_.number);
  const auto late = std::chrono::nanoseconds(world_.now())
                    - scheduler_->clock().current_time.time_since_epoch();
  scheduler_->advance_time(std::chrono::duration_cast<caf::timespan>(late));
  what();
  run_actors();
  wake_in_time();
  world_.at_work = before;
  inside_ = false;
}

void sim_node::go_on() {
  stopped_ = false;
  const auto all = std::exchange(waiting_, {});
  for (const work& w : all)
    enter(w);
}

void sim_node::later(nanoseconds delay, work what) {
  world_.after(delay, [this, lives = lives_, what = std::move(what)]() mutable {
    if (*lives)
      enter(std::move(what));
  });
}

/// In any order between actors, as on several threads.
void sim_node::run_actors() {
  std::size_t turns = 0;
  auto& jobs = scheduler_->jobs;
  while (!jobs.empty() && !dead_) {
    if (jobs.size() > 1)
      std::swap(jobs.front(), jobs[world_.below(jobs.size())]);
    scheduler_->run_once();
    if (++turns > turns_max)
      return world_.fail("the actors of m" + std::to_string(home_.number)
                         + " never come to rest");
  }
}

void sim_node::wake_in_time() {
  const auto& timers = scheduler_->clock().schedule();
  if (timers.empty() || dead_)
    return;
  const nanoseconds due = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            timers.begin()->first.time_since_epoch())
                            .count();
  if (wake_at_ > world_.now() && wake_at_ <= due)
    return;
  wake_at_ = std::max(due, world_.now() + 1);
  later(wake_at_ - world_.now(), [] {});
}

void sim_node::begin_piece(sim_queue& q, nanoseconds mean) {
  if (q.waiting() > pieces_max)
    world_.fail("too much work waits in a queue");
  mean *= home_.pace;
  later(world_.between(mean / 4, mean * 7 / 4), [this, &q] {
    if (&q == disk_.get() && world_.faulty() && world_.chance(0.002))
      store_->die_after(int(world_.below(6)));
    if (!q.hold())
      end_piece(q);
    store_->die_after(-1);
  });
}

void sim_node::end_piece(sim_queue& q) {
  try {
    q.finish();
  } catch (const killed_at_work&) {
    die(world_.chance(0.5));
    world_.doom(home_.number);
  }
}

void sim_node::settle() {
  device_->settle();
  disk_->settle();
  watched_->lose_next(false);
}

void sim_node::wake() {
  if (device_->wake())
    enter([this] { end_piece(*device_); });
}

void sim_node::wake_disk() {
  if (disk_->wake())
    enter([this] { end_piece(*disk_); });
}

void sim_node::pulse() {
  links_->tick();
  exchange_->tick(world_.now());
  check_limits();
  later(pulse_every, [this] { pulse(); });
}

// Messages.

std::error_code
sim_node::transmit(const core::peer_id& to, const envelope& what, bool lossy) {
  if (dead_)
    return transport::make_error_code(transport::errc::peer_lost);
  if (lossy && world_.chance(world_.lost))
    return {};
  return fabric_->send(to, runtime::codec::encode(what));
}

void sim_node::send(const core::peer_id& to, core::job_message message) {
  if (dead_)
    return;
  if (to == home_.id)
    take(to, std::move(message));
  else
    static_cast<void>(transmit(to, envelope(std::move(message)), true));
}

void sim_node::up(const transport::peer_info& peer) {
  enter([this, peer] {
    links_->peer_up(fabric_kind::tls, peer.id);
    tell(cl::peer_up{peer.id, peer.instance});
  });
}

void sim_node::down(const core::peer_id& peer, std::error_code) {
  enter([this, peer] {
    gate_.gone(peer);
    links_->peer_down(fabric_kind::tls, peer);
    exchange_->peer_down(peer);
    tell(cl::peer_down{peer});
  });
}

void sim_node::connect_failed(const std::string& address, std::error_code) {
  enter([this, address] { tell(cl::connect_failed{address}); });
}

void sim_node::message(const core::peer_id& peer,
                       std::span<const std::byte> bytes) {
  auto e = std::make_shared<envelope>();
  if (runtime::codec::decode(bytes, *e))
    return world_.fail("the codec refuses a message of our own");
  world_.note(std::uint64_t(world_.now()), e->index());
  enter([this, peer, e, size = bytes.size()] {
    gate_.take(peer, std::move(*e), size);
  });
}

void sim_node::take(const peer& from, cl::message&& m) {
  tell(cl::received{from, std::move(m)});
}

void sim_node::take(const peer& from, core::job_message&& m) {
  if (supervisor_)
    caf::anon_send(
      supervisor_,
      runtime::job_message_in{
        from, std::make_shared<const core::job_message>(std::move(m))});
}

void sim_node::take(const peer& from, runtime::link_credit&& m) {
  links_->credit_received(from, m);
}

void sim_node::take(const peer& from, runtime::blob_request&& m) {
  exchange_->request_received(from, m);
}

void sim_node::take(const peer& from, runtime::blob_chunk&& m) {
  exchange_->chunk_received(from, std::move(m));
}

void sim_node::fetch_blob(const core::blob_digest& digest,
                          std::vector<core::peer_id> holders,
                          std::function<void(std::error_code)> done) {
  if (dead_)
    return;
  std::erase(holders, home_.id);
  exchange_->fetch(digest, std::nullopt, std::move(holders), std::move(done));
}

void sim_node::propose_job_state(core::job_id job, core::job_state state,
                                 std::uint64_t done_step, core::epoch since,
                                 const std::string& cause) {
  if (dead_)
    return;
  if (state != core::job_state::done)
    world_.fail("the job is given up: " + cause);
  later(0, [=, this] {
    tell(cl::set_job_state{job, state, done_step, since, cause});
  });
}

void sim_node::propose_arrived(core::job_id job, core::epoch since) {
  if (!dead_)
    later(0, [=, this] { tell(cl::job_arrived{job, since}); });
}

/// Of the planted bugs, answers_dropped would be made good by this.
void sim_node::propose_retry(core::job_id job, core::epoch since) {
  if (!dead_ && !world_.has(planted::answers_dropped))
    later(0, [=, this] { tell(cl::retry_job{job, since}); });
}

void sim_node::propose_expulsion(const core::peer_id& peer,
                                 core::epoch number) {
  if (!dead_ && !world_.has(planted::answers_dropped))
    later(0, [=, this] { tell(cl::expel_member{peer, number}); });
}

/// The product ends its process, and the machine starts another.
void sim_node::hung(const std::string& why) {
  say(why + ": it ends");
  world_.doom(home_.number);
}

/// As a node that is asked to go: when its state is with others, or after a
/// while. One that is outside forgets all it knew: if it was the last to know a
/// view that nobody in it has heard of, its shoal waits for ever.
void sim_node::leave() {
  constexpr std::size_t members_min = 3;
  if (leaving_ || !core_->seated()
      || core_->current().members.size() < members_min)
    return;
  leaving_ = true;
  say("is asked to leave");
  tell(cl::leave{});
  if (supervisor_)
    caf::anon_send(supervisor_, runtime::node_stopping{false});
  else
    released();
  later(10 * second, [this] { world_.doom(home_.number); });
}

void sim_node::released() {
  if (leaving_ && !std::exchange(released_, true))
    later(0, [this] { tell(cl::leave_now{}); });
}

void sim_node::say(const std::string& line) {
  world_.say(home_.number, line);
}

core::blob_digest sim_node::put(std::span<const std::byte> bytes) {
  auto writer = store_->write();
  core::blob_digest digest{};
  SHOAL_ASSERT(!writer->append(bytes));
  SHOAL_ASSERT(!writer->commit(digest, std::nullopt));
  return digest;
}

// Membership.

void sim_node::tell(const cl::event& e) {
  if (dead_)
    return;
  cl::actions out;
  core_->step(e, world_.now(), out);
  world_.note(std::uint64_t(world_.now()) * 31 + std::uint64_t(home_.number),
              e.index() * 1000 + out.size());
  // What is persisted before a kill stays, the rest is never heard of.
  std::size_t end = out.size();
  const bool votes = std::ranges::any_of(out, [](const cl::action& a) {
    const auto* p = std::get_if<cl::persist>(&a);
    return p != nullptr && std::holds_alternative<cl::vote_record>(p->what);
  });
  if (world_.faulty() && world_.chance(votes ? 0.01 : 0.0003)) {
    end = world_.below(out.size() + 1);
    world_.doom(home_.number);
  }
  for (std::size_t k = 0; k < end && !dead_; ++k) {
    cl::actions ready;
    outbox_->take(std::move(out[k]), ready);
    write(ready);
    carry_out(ready);
  }
}

void sim_node::carry_out(cl::actions& ready) {
  for (const cl::action& a : ready)
    if (!dead_)
      act(a);
}

/// Stores the next records, or gives one to a disk that takes its time.
void sim_node::write(cl::actions& ready) {
  while (auto next = outbox_->next()) {
    if (const nanoseconds time = world_.record_time(); time > 0) {
      later(time, [this, w = std::move(*next)] { written(w); });
      return;
    }
    store(*next);
    outbox_->written(true, ready);
  }
}

void sim_node::written(const cl::outbox::write& w) {
  const bool fails = world_.record_fails();
  world_.note(std::uint64_t(world_.now()), fails ? 77 : 78);
  if (!fails)
    store(w);
  cl::actions ready;
  outbox_->written(!fails, ready);
  write(ready);
  carry_out(ready);
}

void sim_node::store(const cl::outbox::write& w) {
  const auto* r = std::get_if<cl::record>(&w);
  if (r == nullptr) { // it forgets all
    home_.disk = {};
  } else if (const auto* v = std::get_if<cl::view_record>(r)) {
    home_.disk.view = *v;
  } else if (const auto* k = std::get_if<cl::key_record>(r)) {
    home_.disk.keys = *k;
  } else {
    home_.disk.vote = std::get<cl::vote_record>(*r);
    world_.views().saw_vote(home_.id, *home_.disk.vote);
  }
}

void sim_node::act(const cl::action& a) {
  if (const auto* s = std::get_if<cl::send>(&a)) {
    const auto bytes = runtime::codec::encode(s->what);
    for (const core::peer_id& to : s->to)
      if (!world_.chance(world_.lost))
        static_cast<void>(fabric_->send(to, bytes));
  } else if (const auto* c = std::get_if<cl::connect>(&a)) {
    fabric_->connect(c->address);
  } else if (const auto* d = std::get_if<cl::disconnect>(&a)) {
    fabric_->drop(d->peer);
  } else if (const auto* t = std::get_if<cl::need_tick_at>(&a)) {
    tick_at_ = t->when;
    later(std::max<nanoseconds>(t->when - world_.now(), 0)
            + world_.between(0, millisecond / 2),
          [this, when = t->when] {
            if (tick_at_ == when)
              tell(cl::tick{});
          });
  } else if (const auto* v = std::get_if<cl::new_view>(&a)) {
    adopt(*v);
  } else if (std::holds_alternative<cl::left>(a)) {
    say("has left");
    world_.doom(home_.number);
  } else if (const auto* l = std::get_if<cl::log>(&a)) {
    say("[cluster] " + l->text);
  } else if (const auto* r = std::get_if<cl::rejected>(&a)) {
    say("[cluster] rejected: " + r->reason);
  }
}

/// As runtime/node does.
void sim_node::adopt(const cl::new_view& v) {
  world_.views().saw_view(home_.id, v.current);
  view_ = std::make_shared<const core::view>(v.current);
  plan_ = std::make_shared<const core::plan>(world_.plan_of(*view_));
  for (const core::assignment& a : plan_->jobs)
    links_->name_plan(core::digest(a), a.job);
  if (world_.options().print) {
    std::string names;
    for (const core::member& m : view_->members)
      names += " " + m.name;
    say("view " + std::to_string(view_->number) + ":" + names
        + (v.member ? "" : " (outside)"));
    for (const core::assignment& a : plan_->jobs)
      say("plan since " + std::to_string(a.since) + ": "
          + core::to_text(*view_, a));
  }
  if (!supervisor_) {
    supervisor_ = actors::spawn_supervisor(*system_, *this);
    actors_at_rest_ = system_->registry().running();
  }
  if (cl::is_ours(v, home_.id) || world_.has(planted::former_views_shown))
    caf::anon_send(supervisor_, runtime::view_changed{view_, plan_});
  std::set<core::peer_id> members;
  for (const core::member& m : view_->members)
    members.insert(m.id.peer);
  gate_.members(std::move(members));
}

} // namespace shoal::sim
