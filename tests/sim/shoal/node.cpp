// tests/sim/shoal/node.cpp -- the ports of a simulated process.
#include "tests/sim/shoal/node.hpp"

#include "actors/supervisor.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/sim/shoal/disk.hpp"
#include "tests/sim/shoal/mutants.hpp"

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
  actors::add_builtin(roles_);
  const auto clock = [&world] { return world.now(); };
  device_ = std::make_unique<sim_queue>(
    *backend_, [this] { begin_piece(*device_, world_.device_time); }, clock);
  if (world_.interrupts())
    device_->interrupt_when([&world] { return world.urgent_work_comes(); });
  reductions_ = std::make_unique<sim_queue>(
    *backend_, [this] { begin_piece(*reductions_, world_.device_time / 4); },
    clock);
  disk_ = std::make_unique<sim_queue>(
    *backend_, [this] { begin_piece(*disk_, world_.disk_time); }, clock);
  if (world.has(mutant::disks_unwatched))
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
  l.memory = memory_;
  runtime::credit_sender& credits = *this;
  links_ = runtime::make_link_service(std::move(l), credits);
  watched_ = std::make_unique<watched_links>(world, home.number, *links_);
  runtime::blob_sender& blobs = *this;
  exchange_ = runtime::make_blob_exchange(*store_, *disk_, blobs);
  runtime::node_parts p;
  p.self = home.id;
  p.data_dir = home.folder;
  p.system = system_.get();
  p.device = device_.get();
  p.reductions = reductions_.get();
  p.disk = disk_.get();
  p.blobs = store_.get();
  p.log = journal_.get();
  p.exchange = exchange_.get();
  p.roles = &roles_;
  runtime::node_network& network = *this;
  runtime::node_host& host = *this;
  wiring_ = std::make_unique<runtime::node_wiring>(std::move(p), network, host);
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
  if (world.has(mutant::votes_not_stored))
    home.disk.vote.reset();
  runtime::membership_handler& actions = *this;
  runtime::shell_host& disk_and_timer = *this;
  runtime::step_observer& observer = *this;
  shell_.emplace(std::move(c), home.disk, actions, disk_and_timer, &observer);
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
  wiring_->end_actors();
  while (scheduler_->try_run_once()) {
  }
  scheduler_->clock().cancel_all(); // a timer keeps its actor alive
  system_.reset();
}

void sim_node::die(bool silent) {
  if (dead_)
    return;
  dead_ = true;
  *lives_ = false;
  watched_->close();
  wiring_->close();
  auto& notice = world_.net().settings().death_notice;
  notice = std::chrono::nanoseconds(
    silent ? -1 : world_.between(millisecond / 10, 2 * millisecond));
  world_.net().kill(home_.address);
  waiting_.clear();
  shell_.reset();
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

/// In random order of actors, as on several threads.
void sim_node::run_actors() {
  std::size_t turns = 0;
  auto& jobs = scheduler_->jobs;
  while (!jobs.empty() && !dead_) {
    if (jobs.size() > 1)
      std::swap(jobs.front(), jobs[world_.below(jobs.size())]);
    acting_ = true;
    scheduler_->run_once();
    acting_ = false;
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
sim_node::send(const core::peer_id& to, std::span<const std::byte> encoded) {
  if (dead_)
    return transport::make_error_code(transport::errc::peer_lost);
  if (world_.chance(world_.lost))
    return {};
  return fabric_->send(to, encoded);
}

/// Credits are not lost: their fabric delivers all, or is cut.
std::error_code sim_node::send_credit(const core::peer_id& to,
                                      const runtime::link_credit& credit) {
  return dead_ ? transport::make_error_code(transport::errc::peer_lost)
               : fabric_->send(to, runtime::codec::encode(envelope(credit)));
}

std::error_code sim_node::send_request(const core::peer_id& to,
                                       const runtime::blob_request& request) {
  return send(to, runtime::codec::encode(envelope(request)));
}

std::error_code
sim_node::send_chunk(const core::peer_id& to, runtime::blob_chunk chunk) {
  return send(to, runtime::codec::encode(envelope(std::move(chunk))));
}

/// Now or never: lost messages are requested again.
void sim_node::send_when_up(const core::peer_id& to, const envelope& message) {
  static_cast<void>(send(to, runtime::codec::encode(message)));
}

void sim_node::up(const transport::peer_info& peer) {
  enter([this, peer] {
    links_->peer_up(fabric_kind::tls, peer.id);
    wiring_->up(peer.id, peer.instance);
  });
}

void sim_node::down(const core::peer_id& peer, std::error_code) {
  enter([this, peer] {
    gate_.gone(peer);
    links_->peer_down(fabric_kind::tls, peer);
    wiring_->down(peer);
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

/// The product ends its process, and the machine starts another.
void sim_node::hung(const std::string& why) {
  say(why + ": it ends");
  world_.doom(home_.number);
}

/// Leaves like a node that is asked to: when others have its state, or after a
/// while. A node outside of the shoal forgets all: if it was the last to know a
/// view that no member has seen, its shoal waits for ever.
void sim_node::leave() {
  constexpr std::size_t members_min = 3;
  if (leaving_ || !member().seated()
      || member().current().members.size() < members_min)
    return;
  leaving_ = true;
  say("is asked to leave");
  tell(cl::leave{});
  wiring_->stop_jobs(false);
  later(10 * second, [this] { world_.doom(home_.number); });
}

bool sim_node::release() {
  return leaving_ && !std::exchange(released_, true);
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

/// Without this, the proposals that actors make when nothing moves would repair
/// the mutant answers_dropped.
void sim_node::tell(cl::event e) {
  if (dead_)
    return;
  if (const auto* s = std::get_if<cl::set_job_state>(&e);
      s != nullptr && s->state != core::job_state::done
      && !(world_.options().cancel && s->state == core::job_state::cancelled))
    world_.fail("the job is given up: " + s->cause);
  if (world_.has(mutant::answers_dropped)
      && (std::holds_alternative<cl::retry_job>(e)
          || std::holds_alternative<cl::expel_member>(e)))
    return;
  if (acting_)
    return later(0, [this, e = std::move(e)] { tell(e); });
  mutate(world_, e);
  shell_->step(e, world_.now());
}

/// Records stored before a kill stay, later actions are lost.
void sim_node::decided(const cl::event& e, cl::actions& out) {
  world_.note(std::uint64_t(world_.now()) * 31 + std::uint64_t(home_.number),
              e.index() * 1000 + out.size());
  const bool votes = std::ranges::any_of(out, [](const cl::action& a) {
    const auto* p = std::get_if<cl::persist>(&a);
    return p != nullptr && std::holds_alternative<cl::vote_record>(p->what);
  });
  if (world_.faulty() && world_.chance(votes ? 0.01 : 0.0003)) {
    out.resize(world_.below(out.size() + 1));
    world_.doom(home_.number);
  }
}

/// Stores a record, or gives it to a disk that takes time.
bool sim_node::store(const cl::outbox::write& w) {
  if (const nanoseconds time = world_.record_time(); time > 0) {
    later(time, [this, w] { written(w); });
    return false;
  }
  keep(w);
  return true;
}

void sim_node::written(const cl::outbox::write& w) {
  const bool fails = world_.record_fails();
  world_.note(std::uint64_t(world_.now()), fails ? 77 : 78);
  if (!fails)
    keep(w);
  shell_->written(!fails);
  if (fails)
    shell_->retry();
}

void sim_node::keep(const cl::outbox::write& w) {
  const auto* r = std::get_if<cl::record>(&w);
  if (r == nullptr) { // it drops all records
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

void sim_node::wake_at(nanoseconds when) {
  tick_at_ = when;
  later(std::max<nanoseconds>(when - world_.now(), 0)
          + world_.between(0, millisecond / 2),
        [this, when] {
          if (tick_at_ == when)
            tell(cl::tick{});
        });
}

void sim_node::connect(const std::string& address) {
  fabric_->connect(address);
}

void sim_node::left(bool) {
  say("has left");
  world_.doom(home_.number);
}

void sim_node::rejected(const cl::rejected& r) {
  say("[cluster] rejected: " + r.reason);
}

void sim_node::adopting(const core::view*,
                        const std::shared_ptr<const core::view>& now, bool) {
  world_.views().saw_view(home_.id, *now);
}

void sim_node::adopted(const core::view& now, bool member) {
  if (actors_at_rest_ == 0)
    actors_at_rest_ = system_->registry().running();
  const auto [view, plan] = wiring_->view_and_plan();
  for (const core::job_entry& j : now.jobs)
    for (std::uint32_t i = 0; core::is_draining(j) && i < j.want_islands; ++i)
      world_.past({j.id, i}).is_to_end(home_.number);
  if (world_.options().print) {
    std::string names;
    for (const core::member& m : now.members)
      names += " " + m.name;
    say("view " + std::to_string(now.number) + ":" + names
        + (member ? "" : " (outside)"));
    for (const core::job_entry& j : now.jobs)
      for (const core::island_mark& m : j.marks)
        say("job " + core::job_text(j.id) + ": mark "
            + std::to_string(int(m.kind)) + " of island "
            + std::to_string(m.island) + ", place of "
            + std::to_string(m.since));
    for (const core::assignment& a : plan->jobs)
      say("plan since " + std::to_string(a.islands[0].since) + ": "
          + core::to_text(now, a));
  }
  if (world_.has(mutant::former_views_shown)
      && !cl::is_ours({now, member}, home_.id))
    caf::anon_send(wiring_->find("supervisor"),
                   runtime::view_changed{view, plan});
}

} // namespace shoal::sim
