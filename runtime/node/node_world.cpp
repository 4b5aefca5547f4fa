// runtime/node/node_world.cpp -- what actors can use: runtime::context.
#include "runtime/core/assert.hpp"
#include "runtime/node/node_impl.hpp"

#include <caf/all.hpp>

#include <chrono>

namespace shoal::runtime {

namespace {

core::nanoseconds steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

} // namespace

std::shared_ptr<const core::view> node::impl::view() const {
  std::lock_guard lock(mutex_);
  return view_;
}

std::shared_ptr<const core::plan> node::impl::plan() const {
  std::lock_guard lock(mutex_);
  return plan_;
}

void node::impl::send(const core::peer_id& to, core::job_message message) {
  if (to == self_)
    return take(self_, std::move(message));
  // A vote that is lost is asked for again (vote::again), as everything else
  // in the job's protocol; but that takes its time.
  mesh_->send_when_up(to, envelope(std::move(message)));
}

void node::impl::send_role(const core::peer_id& to, const std::string& role,
                           std::vector<std::byte> bytes) {
  SHOAL_ASSERT(role.size() <= role_name_bytes_max);
  SHOAL_ASSERT(bytes.size() <= role_message_bytes_max);
  role_message message{role, std::move(bytes)};
  if (to == self_)
    take(self_, std::move(message));
  else
    (void)mesh_->send(to, envelope(std::move(message)));
}

void node::impl::worked(core::job_id job, core::nanoseconds busy) {
  keeper_->step(steady_ns(), view(), plan(), job, busy);
}

/// What links carry and steps take, into a new profile where it is due.
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
  core::cluster::update_profile e;
  e.device = p->device;
  e.networks = p->networks;
  tell_cluster(std::move(e));
}

void node::impl::propose_job_state(core::job_id job, core::job_state state,
                                   std::uint64_t done_step, core::epoch since,
                                   const std::string& cause) {
  tell_cluster(
    core::cluster::set_job_state{job, state, done_step, since, cause});
}

void node::impl::propose_retry(core::job_id job, core::epoch since) {
  tell_cluster(core::cluster::retry_job{job, since});
}

void node::impl::propose_expulsion(const core::peer_id& peer,
                                   core::epoch number) {
  tell_cluster(core::cluster::expel_member{peer, number});
}

void node::impl::hung(const std::string& why) {
  say("[node] " + why + ": this node ends");
  life_->hang();
  end(why);
}

bool node::impl::in_quorum() const {
  std::lock_guard lock(mutex_);
  return phase_ == core::cluster::phase::member;
}

void node::impl::propose_arrived(core::job_id job, core::epoch since) {
  tell_cluster(core::cluster::job_arrived{job, since});
}

void node::impl::fetch_blob(const core::blob_digest& digest,
                            std::vector<core::peer_id> holders,
                            std::function<void(std::error_code)> done) {
  std::erase(holders, self_);
  exchange_->fetch(digest, std::nullopt, std::move(holders), std::move(done));
}

void node::impl::released() {
  if (life_->release())
    tell_cluster(core::cluster::leave_now{});
}

void node::impl::say(const std::string& line) {
  if (config_.observer.say)
    config_.observer.say(line);
}

} // namespace shoal::runtime
