// runtime/node/node_wiring.cpp -- distributes messages, views and proposals.
#include "runtime/node/node_wiring.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/store/exchange.hpp"
#include "runtime/wire/codec.hpp"
#include "runtime/work/quorum_changed.hpp"

#include <caf/all.hpp>

namespace shoal::runtime {

namespace cl = core::cluster;

/// A built-in role. It gets the job messages of peers.
static constexpr const char* supervisor_role = "supervisor";
/// The role that gets what served models say to gateways.
static constexpr const char* gateway_role = "gateway";

node_wiring::node_wiring(node_parts parts, node_network& network,
                         node_host& host)
  : parts_(std::move(parts)), network_(network), host_(host) {
}

node_wiring::~node_wiring() = default;

void node_wiring::take(const core::peer_id& from, cl::message&& m) {
  host_.hear(from, std::move(m));
}

void node_wiring::take(const core::peer_id& from, core::job_message&& m) {
  if (caf::actor supervisor = actors_.find(supervisor_role))
    caf::anon_send(
      supervisor,
      job_message_in{from,
                     std::make_shared<const core::job_message>(std::move(m))});
}

void node_wiring::take(const core::peer_id& from, core::serve_message&& m) {
  const char* role = is_for_gateways(m) ? gateway_role : supervisor_role;
  if (caf::actor actor = actors_.find(role))
    caf::anon_send(
      actor, serve_message_in{from, std::make_shared<const core::serve_message>(
                                      std::move(m))});
}

void node_wiring::take(const core::peer_id& from, role_message&& m) {
  if (m.role == supervisor_role || m.role == gateway_role)
    return network_.complain("[node] peer " + core::short_name(from)
                             + " sent a message for \"" + m.role
                             + "\", which takes none of peers; it is ignored");
  if (caf::actor actor = actors_.find(m.role))
    caf::anon_send(
      actor,
      role_message_in{from, std::make_shared<const std::vector<std::byte>>(
                              std::move(m.bytes))});
}

void node_wiring::take(const core::peer_id& from, blob_request&& m) {
  parts_.exchange->request_received(from, m);
}

void node_wiring::take(const core::peer_id& from, blob_chunk&& m) {
  parts_.exchange->chunk_received(from, std::move(m));
}

void node_wiring::up(const core::peer_id& peer, std::uint64_t instance) {
  host_.tell(cl::peer_up{peer, instance});
}

void node_wiring::down(const core::peer_id& peer) {
  parts_.exchange->peer_down(peer);
  host_.tell(cl::peer_down{peer});
}

void node_wiring::send(const std::vector<core::peer_id>& to,
                       const cl::message& what) {
  const std::vector<std::byte> bytes = codec::encode(what);
  for (const core::peer_id& peer : to)
    (void)network_.send(peer, bytes); // may be lost, like any message
}

void node_wiring::adopt(const cl::new_view& v) {
  const auto view = std::make_shared<const core::view>(v.current);
  flight().add(v.member ? "view" : "view without this peer", 0, 0, view->number,
               view->members.size());
  const auto plan = std::make_shared<const core::plan>(host_.make_plan(*view));
  for (const core::assignment& a : plan->jobs)
    for (std::uint32_t i = 0; i < a.islands.size(); ++i)
      network_.name_plan(core::digest({a.job, i}, a.islands[i]), a.job);
  const auto before = this->view();
  host_.adopting(before.get(), view, v.member);
  {
    std::lock_guard lock(mutex_);
    view_ = view;
    plan_ = plan;
  }
  if (!before)
    actors_.start(*parts_.roles, *parts_.system, *this);
  if (cl::is_ours(v, parts_.self))
    for (const auto& [name, actor] : actors_.all())
      caf::anon_send(actor, view_changed{view, plan}); // W-1
  std::set<core::peer_id> members;
  for (const core::member& m : view->members)
    members.insert(m.id.peer);
  network_.set_members(std::move(members)); // W-2
  host_.adopted(*view, v.member);
}

std::pair<std::shared_ptr<const core::view>, std::shared_ptr<const core::plan>>
node_wiring::view_and_plan() const {
  std::lock_guard lock(mutex_);
  return {view_, plan_};
}

void node_wiring::tell_quorum(const std::string& why_none,
                              const std::vector<core::peer_id>& reachable) {
  if (caf::actor gateway = actors_.find(gateway_role))
    caf::anon_send(gateway, quorum_changed{why_none, reachable});
}

void node_wiring::stop_jobs(bool drain) {
  if (caf::actor supervisor = actors_.find(supervisor_role))
    caf::anon_send(supervisor, node_stopping{drain});
  else
    released();
}

// The interface for actors: runtime::context.

std::shared_ptr<const core::view> node_wiring::view() const {
  std::lock_guard lock(mutex_);
  return view_;
}

std::shared_ptr<const core::plan> node_wiring::plan() const {
  std::lock_guard lock(mutex_);
  return plan_;
}

void node_wiring::send(const core::peer_id& to, core::job_message message) {
  if (closed_)
    return;
  if (to == parts_.self)
    return take(to, std::move(message));
  // A lost vote is requested again (vote::again), like all else in the job's
  // protocol; but that takes its time.
  network_.send_when_up(to, envelope(std::move(message)));
}

void node_wiring::send(const core::peer_id& to, core::serve_message message) {
  if (closed_)
    return;
  if (to == parts_.self)
    return take(to, std::move(message));
  network_.send_when_up(to, envelope(std::move(message)));
}

void node_wiring::send_role(const core::peer_id& to, const std::string& role,
                            std::vector<std::byte> bytes) {
  SHOAL_ASSERT(role.size() <= role_name_bytes_max);
  SHOAL_ASSERT(bytes.size() <= role_message_bytes_max);
  if (closed_)
    return;
  role_message message{role, std::move(bytes)};
  if (to == parts_.self)
    take(to, std::move(message));
  else
    (void)network_.send(to, codec::encode(envelope(std::move(message))));
}

void node_wiring::bind_role(const std::string& address, caf::actor actor) {
  actors_.bind(address, std::move(actor));
}

void node_wiring::worked(const core::island_id& id, core::nanoseconds busy) {
  host_.worked(id, busy);
}

void node_wiring::propose(cl::event e) {
  if (!closed_)
    host_.tell(std::move(e));
}

void node_wiring::propose_end(const core::island_id& id, core::job_state state,
                              std::uint64_t done_step, core::epoch since,
                              const std::string& cause) {
  propose(cl::set_job_state{id.job, state, done_step, since, cause, id.index});
}

void node_wiring::propose_retry(const core::island_id& id, core::epoch since) {
  propose(cl::retry_job{id, since});
}

void node_wiring::propose_version(core::job_id job,
                                  const core::model_version& version,
                                  std::uint64_t keeps) {
  propose(cl::serve_version{job, version, keeps});
}

void node_wiring::propose_pipelines(core::job_id job, std::uint32_t count,
                                    core::epoch since) {
  propose(cl::scale_job{job, count, since});
}

void node_wiring::propose_arrived(const core::island_id& id,
                                  core::epoch since) {
  propose(cl::job_arrived{id, since});
}

void node_wiring::propose_expulsion(const core::peer_id& peer,
                                    core::epoch number) {
  propose(cl::expel_member{peer, number});
}

void node_wiring::fetch_blob(const core::blob_digest& digest,
                             std::vector<core::peer_id> holders,
                             std::function<void(std::error_code)> done) {
  if (closed_)
    return;
  std::erase(holders, parts_.self);
  parts_.exchange->fetch(digest, std::nullopt, std::move(holders),
                         std::move(done));
}

void node_wiring::has_blob(const core::blob_digest& digest, core::job_id job,
                           const core::peer_id& peer,
                           std::function<void(bool)> done) {
  if (!closed_)
    parts_.exchange->has(digest, job, peer, std::move(done));
}

std::uint64_t node_wiring::blob_bytes_moved() const {
  return parts_.exchange->moved_bytes();
}

void node_wiring::released() {
  if (!closed_ && host_.release())
    propose(cl::leave_now{});
}

} // namespace shoal::runtime
