// runtime/node/node_world.cpp -- what actors can use: runtime::context.
#include "runtime/core/assert.hpp"
#include "runtime/node/node_impl.hpp"

#include <caf/all.hpp>

namespace shoal::runtime {

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
    return take(self_, envelope(std::move(message)));
  // A vote that is lost is asked for again (vote::again), as everything else
  // in the job's protocol.
  (void)mesh_->send(to, envelope(std::move(message)));
}

void node::impl::send_role(const core::peer_id& to, const std::string& role,
                           std::vector<std::byte> bytes) {
  SHOAL_ASSERT(role.size() <= role_name_bytes_max);
  SHOAL_ASSERT(bytes.size() <= role_message_bytes_max);
  role_message message{role, std::move(bytes)};
  if (to == self_)
    take(self_, envelope(std::move(message)));
  else
    (void)mesh_->send(to, envelope(std::move(message)));
}

void node::impl::bind_role(const std::string& address, caf::actor actor) {
  std::lock_guard lock(mutex_);
  if (actor)
    bound_[address] = std::move(actor);
  else
    bound_.erase(address);
}

void node::impl::propose_job_state(core::job_id job, core::job_state state,
                                   std::uint64_t done_step) {
  tell_cluster(core::cluster::set_job_state{job, state, done_step});
}

void node::impl::fetch_blob(const core::blob_digest& digest,
                            std::vector<core::peer_id> holders,
                            std::function<void(std::error_code)> done) {
  std::erase(holders, self_);
  exchange_->fetch(digest, std::nullopt, std::move(holders), std::move(done));
}

void node::impl::released() {
  {
    std::lock_guard lock(life_mutex_);
    if (!leaving_ || released_)
      return;
    released_ = true;
  }
  tell_cluster(core::cluster::leave_now{});
}

void node::impl::say(const std::string& line) {
  if (config_.observer.say)
    config_.observer.say(line);
}

} // namespace shoal::runtime
