// runtime/node/node.cpp -- a node's life: start, leave, stop.
#include "runtime/node/node.hpp"

#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/discovery/address_finder.hpp"
#include "runtime/discovery/discovery.hpp"
#include "runtime/discovery/own_addresses.hpp"
#include "runtime/host/thread_room.hpp"
#include "runtime/node/node_impl.hpp"
#include "runtime/node/profile.hpp"
#include "runtime/store/spare_store.hpp"
#include "runtime/work/are_you_there.hpp"
#include "runtime/work/device_queue.hpp"
#include "runtime/work/leaving_alone.hpp"
#include "runtime/work/uncaught.hpp"

#include <caf/all.hpp>
#include <unistd.h>

#include <new>
#include <system_error>

namespace shoal::runtime {

namespace cl = core::cluster;
using std::chrono::steady_clock;

/// The node's own timer.
struct pulse_due {};

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::pulse_due)

namespace shoal::runtime {

struct pulse_name {
  const char* name = "pulse";
};

/// Calls `beat` ten times a second. It must not wait.
static caf::behavior pulse(caf::stateful_actor<pulse_name>* self,
                           const std::function<void()>& beat) {
  self->delayed_send(self, pulse_period, pulse_due{});
  return {
    [self, beat](const pulse_due&) {
      beat();
      self->delayed_send(self, pulse_period, pulse_due{});
    },
  };
}

/// For a node that cannot end in order, since its parts wait for each other.
/// Buffered output is not written: the thread that writes it may be what hangs.
[[noreturn]] static void end_process(const std::string& why) {
  last_line(why);
  ::_exit(1);
}

/// Whether `e` means that the system has no thread, or no memory for one. Parts
/// that have been started then wait for those that were not: no orderly end is
/// possible.
static bool lacks_threads(const std::exception& e) {
  const auto* s = dynamic_cast<const std::system_error*>(&e);
  return dynamic_cast<const std::bad_alloc*>(&e)
         || (s && s->code() == std::errc::resource_unavailable_try_again);
}

node::impl::impl(node_config config, role_table roles)
  : observer_(config.observer, recent_), config_(std::move(config)),
    roles_(std::move(roles)),
    pending_events_(std::make_shared<std::atomic<std::size_t>>(0)) {
  report_uncaught();
  config_.observer = &observer_;
  set_up(config_, setup_);
  recent_.name(setup_.name);
  known_ = std::make_unique<known_nodes>(setup_.cluster, unix_ms());
  if (setup_.loopback_only && config_.cluster_key_file.empty()
      && !config_.embedded)
    say("[node] no --cluster-key: this node serves this machine only");
  try {
    timeline_ = config_.trace_file.empty()
                  ? std::make_unique<timeline>()
                  : std::make_unique<timeline>(config_.trace_file, setup_.name);
  } catch (const std::system_error& e) {
    throw setup_error(e.what());
  }
  self_ = transport::tls::id_of_private(setup_.identity);
  profile_ =
    measure_profile(config_.threads, config_.memory_bytes, config_.mflops);
  require_threads();
  life_ = std::make_unique<node_life>(*this);
  try {
    start_parts();
  } catch (const std::exception& e) {
    if (lacks_threads(e))
      end_process(std::string("the node cannot start its threads: ")
                  + e.what());
    life_->abandon(); // the actor system waits for its actors
    throw;
  }
  life_->started();
}

/// All threads of a node except those that compute: reaper, watchdog, three of
/// the actor system, four queues, membership; TLS and its names, shared memory,
/// RDMA and UCX-TCP with one of UCX; control, discovery, finder, addresses. The
/// rest is for work that jobs start.
static constexpr std::size_t own_threads = 20;
static constexpr std::size_t spare_threads = 2;

void node::impl::require_threads() const {
  const std::size_t wanted = own_threads + spare_threads + profile_.threads - 1;
  const std::size_t found = try_threads(wanted);
  if (found < wanted)
    throw setup_error(
      "a node with --threads " + std::to_string(profile_.threads) + " needs "
      + std::to_string(wanted) + " more threads, and the system allows "
      + std::to_string(found)
      + ": raise the limit on this user's processes (ulimit -u) or on those of "
        "its container (pids.max), or use fewer --threads");
}

void node::impl::start_parts() {
  // Workers of the default scheduler poll, or sleep for 10 ms while a message
  // waits; those of this policy sleep on a condition variable.
  system_config_.set("scheduler.policy", caf::atom("sharing"));
  system_config_.set("scheduler.max-threads", std::size_t{2});
  system_config_.set("scheduler.max-throughput", std::size_t{50});
  system_ = std::make_unique<caf::actor_system>(system_config_);
  start_services();
  start_discovery();
  start_finder();
  start_membership();
  // This thread has used the system and so holds its logger; the system's end
  // on another thread would wait for that for ever.
  caf::logger::set_current_actor_system(nullptr);
}

node::impl::~impl() {
  life_->stop(); // while other parts may still call it
}

namespace {

/// Blobs over the links that also carry tensors: the plan of each transfer is the
/// exchange's own.
class blobs_by_links final : public blob_links {
public:
  explicit blobs_by_links(link_hub& links) : links_(links) {}

  void expect(const core::peer_id& from, std::uint64_t plan,
              std::uint32_t number, piece into, callback done) override {
    links_.expect(from, {plan, 0, number}, {into, std::span(*into)},
                  std::move(done));
  }
  void send(const core::peer_id& to, std::uint64_t plan, std::uint32_t number,
            std::span<const std::byte> bytes, std::shared_ptr<const void> keep,
            callback done) override {
    // Links only read what they send.
    links_.send(to, {plan, 0, number},
                {std::const_pointer_cast<void>(std::move(keep)),
                 {const_cast<std::byte*>(bytes.data()), bytes.size()}},
                std::move(done));
  }
  void cancel(std::uint64_t plan) override { links_.cancel(plan); }

private:
  link_hub& links_;
};

} // namespace

void node::impl::start_services() {
  store_ = open_store(setup_.data_dir / "blobs", config_.spare_blobs,
                      config_.disk_bytes);
  // What fills it now may be files of served models: their actors find out.
  profile_.disk_bytes = std::clamp<std::uint64_t>(
    core::rounded_room(store_->used_bytes() + store_->room().to_fill()), 1,
    core::limits::bytes_max);
  device_ = make_cpu_device(static_cast<int>(profile_.threads));
  reductions_ = make_cpu_device(1, "shoal-sums");
  disk_ = make_io_device();
  prompts_ = make_io_device("shoal-prompts");
  masks_ = make_io_device("shoal-masks");
  records_ = make_io_device("shoal-records");
  journal_ = open_job_journal(setup_.data_dir / "jobs", disk_.get(),
                              [this](const std::string& line) { say(line); });
  exchange_ = make_blob_exchange(*store_, *disk_, *this);
  signs_.timer = life_->expect_sign("the timer of this node");
  signs_.membership = life_->expect_sign("the membership actor");
  signs_.supervisor = life_->expect_sign("the supervisor of jobs");
  signs_.tls = life_->expect_sign("the thread of TLS connections");
  signs_.links = life_->expect_sign("a thread that moves tensors");
  membership_ = spawn_membership(*system_, *this, pending_events_);
  start_requests();
  mesh_config m;
  m.listen = setup_.listen;
  m.listen_else = setup_.listen_else;
  m.identity = setup_.identity;
  m.cluster_key = setup_.cluster_key;
  m.host = boot_id();
  m.fabrics = {config_.shared_memory, config_.force_fabric, config_.ucx_tcp,
               config_.exclude_fabrics, config_.trusted_networks};
  mesh_ = std::make_unique<mesh>(std::move(m), *this);
  start_wiring();
  try {
    mesh_->open();
  } catch (const std::exception& e) {
    if (lacks_threads(e))
      throw; // another address would not help
    throw setup_error(std::string(e.what()) + "; choose another --listen");
  }
  address_ = mesh_->address();
  blob_links_ = std::make_unique<blobs_by_links>(mesh_->links());
  exchange_->use_links(*blob_links_);
  keeper_ = std::make_unique<profile_keeper>(self_, profile_);
  control_ =
    std::make_unique<control>(control_socket(setup_.data_dir), *clients_);
  control_ready_ = control_.get();
  pulse_ = system_->spawn(pulse, std::function<void()>([this] {
                            signs_.timer->give();
                            steady_clock::time_point now = steady_clock::now();
                            mesh_->tick(now);
                            exchange_->tick(now.time_since_epoch().count());
                            if (now < next_look_)
                              return;
                            next_look_ = now + look_period;
                            look_for_life();
                            look_at_profile();
                            look_at_data_dir();
                            journal_->retry();
                          }));
}

void node::impl::start_requests() {
  admission_config a;
  a.self = self_;
  a.cluster = setup_.cluster;
  a.keys = setup_.keys.value_or(cl::key_record{setup_.cluster_key, {}, {}});
  if (!config_.embedded)
    a.key_dir = setup_.data_dir;
  admission_ =
    std::make_unique<admission>(std::move(a), *this, *known_, requests_);
  client_service_parts p;
  p.self = self_;
  p.blobs = store_.get();
  p.journal = journal_.get();
  p.exchange = exchange_.get();
  p.recent = &recent_;
  p.nodes = known_.get();
  p.requests = &requests_;
  p.admits = admission_.get();
  clients_ = std::make_unique<client_service>(p, *this);
}

void node::impl::start_wiring() {
  node_parts p;
  p.self = self_;
  p.data_dir = setup_.data_dir;
  p.system = system_.get();
  p.device = device_.get();
  p.reductions = reductions_.get();
  p.prompts = prompts_.get();
  p.masks = masks_.get();
  p.disk = disk_.get();
  p.blobs = store_.get();
  p.log = journal_.get();
  p.exchange = exchange_.get();
  p.roles = &roles_;
  wiring_ = std::make_unique<node_wiring>(std::move(p), *mesh_, *this);
}

/// The pulse asks, but what it asks may stop it: then it gives no sign itself.
void node::impl::look_for_life() {
  mesh_->look_for_life(signs_.tls, signs_.links);
  if (auto answer = ask(signs_.membership))
    caf::anon_send(membership_, are_you_there{std::move(answer)});
  const caf::actor jobs = supervisor();
  if (!jobs) // there is no view yet
    signs_.supervisor->give();
  else if (auto answer = ask(signs_.supervisor))
    caf::anon_send(jobs, are_you_there{std::move(answer)});
}

/// Makes a new profile from the speed of links and the time of steps, if it is
/// due.
void node::impl::look_at_profile() {
  const auto v = view();
  if (!v)
    return;
  std::vector<profile_keeper::used_link> used;
  for (const mesh::pair_status& pair : mesh_->pairs())
    used.push_back({pair.peer, name_of(pair.choice.used)});
  const core::nanoseconds now = steady_ns();
  keeper_->links(now, *v, used, mesh_->links().stats());
  const auto p = keeper_->take(now);
  if (!p)
    return;
  say("[node] plans will use what was measured here: " + p->why);
  cl::update_profile e;
  e.device = p->device;
  e.networks = p->networks;
  tell(std::move(e));
}

/// A node without its directory has no identity to come back with, and no
/// command finds it. It leaves while it still has what it holds in memory.
void node::impl::look_at_data_dir() {
  if (looks_at_data_dir_.exchange(true))
    return;
  records_->submit(
    [this](kernels::backend&) {
      if (!setup_.lock->lost()) {
        looks_at_data_dir_ = false;
        return;
      }
      say("[node] the data directory " + setup_.data_dir.string()
          + " was removed or moved: this node leaves, since it can store "
            "nothing there, and no command finds it. Start it again: without "
            "the former directory it joins as a new peer");
      life_->must_leave();
      leave(leave_deadline, true);
    },
    {});
}

void node::impl::start_membership() {
  auto c = std::make_shared<cl::config>();
  c->self.id.peer = self_;
  c->self.instance = mesh_->instance();
  c->self.name = setup_.name;
  c->self.addresses = reachable_addresses(address_);
  c->self.host = boot_id();
  c->self.device = profile_;
  c->self.witness = config_.witness;
  c->self.voter = config_.voter;
  for (const auto& [name, make] : roles_.placed)
    if (c->self.roles.size() < core::member_roles_max
        && core::shown(name, role_name_bytes_max) == name)
      c->self.roles.push_back(name);
  c->cluster = setup_.cluster;
  // The others refuse a hello with unsafe text.
  c->version = core::shown(config_.version, codec::version_bytes_max);
  known_->version(self_, c->version);
  c->seeds = setup_.join;
  // One list may serve all nodes; a list of this node alone is a mistake.
  if (!setup_.join.empty()
      && std::ranges::all_of(setup_.join, [&](const std::string& a) {
           return std::ranges::count(c->self.addresses, a) > 0;
         }))
    say("[node] --join names no other node: " + core::listed(setup_.join)
        + " is this one");
  c->seeds.insert(c->seeds.end(), setup_.seeds.begin(), setup_.seeds.end());
  c->key = setup_.cluster_key;
  c->digest_key = &codec::key_digest;
  c->embedded = config_.embedded;
  c->seed = mesh_->instance();
  c->name_shoal = &codec::name_shoal;
  c->plan_jobs = [](const core::view& v) { return core::make_plan(v).jobs; };
  std::filesystem::path folder;
  if (!config_.embedded)
    folder = setup_.data_dir;
  auto votes = std::make_shared<vote_file>(
    folder, spare_folders(self_), [this] { return setup_.lock->lost(); });
  cl::history stored = votes->load();
  stored.keys = setup_.keys; // unless the user has named another key
  start_watcher(c->self.addresses);
  caf::anon_send(membership_, cluster_start{c, std::move(votes), records_.get(),
                                            std::move(stored)});
}

void node::impl::start_watcher(std::vector<std::string> told) {
  if (config_.embedded)
    return;
  address_watcher_config w;
  w.listener = address_;
  w.told = std::move(told);
  watcher_ = std::make_unique<address_watcher>(std::move(w), *this);
}

void node::impl::start_discovery() {
  if (!config_.discover || config_.embedded)
    return;
  discovery_config d;
  d.cluster = setup_.cluster;
  d.key = setup_.cluster_key;
  d.self = self_;
  d.listener = address_;
  discovery_ = std::make_unique<discovery>(std::move(d), *this);
}

void node::impl::start_finder() {
  finder_config f;
  f.names = setup_.names;
  f.names.insert(f.names.end(), setup_.join.begin(), setup_.join.end());
  f.hosts_file = config_.hosts_file;
  if (config_.embedded || (f.names.empty() && f.hosts_file.empty()))
    return;
  finder_ = std::make_unique<address_finder>(std::move(f), *this);
}

void node::impl::leave(std::chrono::milliseconds deadline, bool drain) {
  if (!life_->leave(deadline))
    return;
  tell(cl::leave{});
  wiring_->stop_jobs(drain);
}

/// Without the others' knowledge nobody has taken over what jobs hold here: it
/// ends when they have saved what they can.
void node::impl::left(bool clean) {
  const caf::actor jobs = clean ? caf::actor() : supervisor();
  if (!jobs)
    return life_->left(clean);
  caf::anon_send(jobs, leaving_alone{std::shared_ptr<void>(
                         nullptr, [this](void*) { life_->left(false); })});
}

void node::impl::stopped(const std::string& why) {
  observer_.stopped(why);
}

void node::impl::silent(const std::string& part) {
  last_line(part + " has not run for a minute: this node ends");
}

void node::impl::hangs() {
  end_process("the shutdown hangs; exiting");
}

void node::impl::end(const std::string& why) {
  life_->fail(why);
  say("[node] stops: " + why);
}

/// The last peer of a run has its last checkpoint, which nobody else can give.
bool node::impl::is_needed() {
  if (!control_ || !control_->serves_follower())
    return false;
  // Users know nothing of a node that is only part of their command.
  if (!std::exchange(waits_for_fetch_, true) && !config_.embedded)
    say("[node] has left; it ends when the command that follows its job has "
        "fetched the last checkpoint, or when the deadline to leave is over");
  return true;
}

/// From the outside to the inside: no part is called after its end.
void node::impl::end_parts() {
  if (wiring_)
    wiring_->end_actors();
  if (pulse_)
    caf::anon_send_exit(pulse_, caf::exit_reason::user_shutdown);
  if (membership_)
    caf::anon_send(membership_, cluster_stop{});
  if (exchange_)
    exchange_->close();
  control_ready_ = nullptr;
  if (mesh_)
    mesh_->close();
  if (reductions_)
    reductions_->close();
  if (prompts_)
    prompts_->close();
  if (masks_)
    masks_->close();
  if (device_)
    device_->close();
  if (disk_)
    disk_->close();
  if (records_)
    records_->close();
  if (system_)
    system_->await_all_actors_done();
  watcher_.reset();
  finder_.reset();
  discovery_.reset();
  control_.reset();
  pulse_ = {};
  membership_ = {};
  // A timer holds its actor, and the thread of a detached actor ends with it.
  if (system_)
    system_->clock().cancel_all();
  system_.reset();
}

node::node(node_config config, role_table roles)
  : impl_(std::make_unique<impl>(std::move(config), std::move(roles))) {
}

node::~node() = default;

const core::peer_id& node::self() const noexcept {
  return impl_->self_;
}

const std::filesystem::path& node::data_dir() const noexcept {
  return impl_->setup_.data_dir;
}

const std::string& node::address() const noexcept {
  return impl_->address_;
}

context& node::world() noexcept {
  return *impl_->wiring_;
}

std::shared_ptr<const core::view> node::view() const {
  return impl_->view();
}

void node::leave(std::chrono::milliseconds deadline, bool drain) {
  impl_->leave(deadline, drain);
}

bool node::wait_stopped(std::chrono::milliseconds timeout) {
  return impl_->life_->wait_stopped(timeout);
}

bool node::failed() const {
  return impl_->life_->failed();
}

void node::stop() {
  impl_->life_->stop();
}

} // namespace shoal::runtime
