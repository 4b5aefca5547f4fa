// runtime/node/requests/client_service.cpp -- answers requests, or passes them on.
#include "runtime/node/requests/client_service.hpp"

#include "runtime/context.hpp" // messages to the supervisor
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view_changes.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/observe/recent_lines.hpp"
#include "runtime/store/exchange.hpp"
#include "runtime/store/store.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace shoal::runtime {

namespace cl = core::cluster;
using std::chrono::steady_clock;

static std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

client_service::client_service(client_service_parts parts, client_host& node)
  : parts_(parts), node_(node) {
}

void client_service::refuse(std::uint64_t token, std::string why) {
  node_.answer(token, {0, std::move(why), {}, {}});
}

void client_service::submit(std::uint64_t token, core::job_entry job) {
  job.state = core::job_state::running;
  job.done_step = 0;
  job.marks.clear();
  job.versions.clear();
  job.submitter = parts_.self;
  job.submitted_ms = unix_ms();
  job.user = core::shown(job.user, core::limits::job_user_bytes_max);
  do
    job.id = transport::tls::make_instance();
  while (job.id == 0);
  if (job.blocks == 0 || job.microbatches == 0)
    return refuse(token, "a job needs at least one block and one microbatch");
  core::blob_digest none{};
  for (const core::blob_digest& d : {job.data, job.origin})
    if (d != none && !parts_.blobs->contains(d))
      return refuse(token, "this node does not hold the job's blob "
                             + core::to_hex(d).substr(0, 16)
                             + ": upload it first");
  if (auto now = node_.view())
    if (const std::string why = core::never_fits(*now, job); !why.empty())
      return refuse(token, why);
  using submitted = waiting_requests::submitted;
  switch (
    parts_.requests->submit(token, job, std::chrono::steady_clock::now())) {
  case submitted::kept: // a node that starts: adopted() takes it up
    return;
  case submitted::too_many:
    return refuse(token, "this node has no view yet, and "
                           + std::to_string(waiting_requests::early_jobs_max)
                           + " jobs wait for one");
  case submitted::propose:
    break;
  }
  node_.tell(cl::submit_job{std::move(job)});
}

void client_service::remove_job(std::uint64_t token, core::job_id job) {
  const auto now = node_.view();
  const core::job_entry* entry = now ? core::find_job(*now, job) : nullptr;
  if (!entry)
    return refuse(token, "no such job");
  if (entry->state == core::job_state::running)
    return refuse(token, "the job has not ended: cancel it first");
  waiting_requests::wanted_view gone;
  gone.tag = job;
  gone.reached = [job](const core::view& v, outcome&) {
    return core::find_job(v, job) == nullptr;
  };
  if (parts_.requests->want(token, std::move(gone)))
    node_.tell(cl::remove_job{job});
}

void client_service::recover(std::uint64_t token) {
  parts_.requests->want_other_shoal(token);
  node_.tell(cl::recover_force{});
}

void client_service::adopting(const core::view& now) {
  waited_ = parts_.requests->adopted(now);
}

void client_service::adopted() {
  auto waited = std::exchange(waited_, {});
  for (auto& [token, o] : waited.answers)
    node_.answer(token, std::move(o));
  for (waiting_requests::early_job& e : waited.jobs)
    if (steady_clock::now() < e.until)
      submit(e.token, std::move(e.job));
  for (core::job_id job : waited.unwanted)
    node_.tell(cl::set_job_state{job, core::job_state::cancelled, 0, 0, {}});
  for (const core::cluster_key& key : waited.unused)
    node_.tell(cl::redeem_invite{key, parts_.self});
}

std::optional<std::string> client_service::given_up(std::uint64_t token) {
  using waited_for = waiting_requests::waited_for;
  const auto [what, job, invite] = parts_.requests->give_up(token);
  if (job != 0)
    node_.tell(cl::withdraw_job{job});
  if (invite)
    node_.tell(cl::withdraw_invite{*invite});
  const std::string why = node_.waits();
  if (what == waited_for::nothing)
    return std::nullopt;
  if (what == waited_for::view && why.empty())
    return std::string();
  return (why.empty() ? "no view was agreed until now" : why)
         + (what == waited_for::job
              ? ". The job is withdrawn and does not run: submit it again when "
                "there is a quorum"
            : what == waited_for::invite
              ? ". The invite is withdrawn and admits nobody: ask for one when "
                "there is a quorum"
              : ". This was not agreed; it may still be when there is a "
                "quorum: look at `shoal status`");
}

void client_service::rejected(const cl::rejected& r) {
  const std::vector<std::uint64_t> tokens = parts_.requests->rejected(r.job);
  for (std::uint64_t token : tokens)
    node_.answer(token, {r.job, r.reason, {}, {}});
  if (tokens.empty())
    node_.say("[cluster] refused: " + r.reason);
}

/// A node that has just started may not know what runs.
static not_done not_known_yet() {
  return {reply_code::refused,
          "this node has not joined its shoal yet: ask again, or another node"};
}

not_done client_service::stop_job(core::job_id job, bool drain) {
  auto now = node_.view();
  if (!now)
    return not_known_yet();
  const core::job_entry* entry = core::find_job(*now, job);
  if (!entry)
    return {reply_code::not_found, "no such job"};
  if (entry->state != core::job_state::running)
    return {};
  if (drain) {
    // The view tells all peers. Without a quorum, those that go on under this one
    // may hear it from the job here.
    node_.tell(cl::drain_job{job});
    if (const caf::actor supervisor = node_.supervisor())
      caf::anon_send(supervisor, drain_job{job});
    return {};
  }
  std::uint64_t step = 0;
  for (const job_event& e : parts_.journal->read_all(job))
    if (e.kind == job_event_kind::step)
      step = std::max(step, e.step);
  node_.tell(cl::set_job_state{job, core::job_state::cancelled, step, 0, {}});
  return {};
}

template <class Message>
not_done client_service::tell_job(core::job_id job, Message m) {
  const auto now = node_.view();
  if (!now)
    return not_known_yet();
  const core::job_entry* entry = core::find_job(*now, job);
  if (!entry || entry->state != core::job_state::running)
    return {reply_code::not_found, "no such job runs"};
  const caf::actor supervisor = node_.supervisor();
  if (!supervisor)
    return {reply_code::refused, "this node runs no jobs"};
  caf::anon_send(supervisor, std::move(m));
  return {};
}

std::string
client_service::lines(const ask_lines& r, std::uint64_t& next) const {
  return parts_.recent->json(r.from, r.lines, next);
}

not_done client_service::wait_no_longer(core::job_id job) {
  return tell_job(job, stop_waiting_job{job});
}

not_done client_service::offer(const offer_checkpoint& r) {
  return tell_job(r.job, checkpoint_offered{r.job, r.manifest, r.step});
}

void client_service::left_behind(std::vector<core::blob_digest> blobs) {
  if (const caf::actor supervisor = node_.supervisor())
    caf::anon_send(supervisor, blobs_left_behind{std::move(blobs)});
}

void client_service::fetch(const core::blob_digest& digest,
                           std::function<void(std::error_code)> done) {
  parts_.exchange->fetch(digest, std::nullopt, node_.peers(), std::move(done));
}

void client_service::send(const core::peer_id& to, const client_reply& reply) {
  (void)node_.send(to, envelope(reply)); // the client asks again
}

meant_peer client_service::find(const std::string& word) const {
  if (!node_.view())
    return {{}, false, "no view yet: try again"};
  auto [peer, why] = parts_.nodes->find(word, unix_ms());
  return {peer, why.empty() && peer == parts_.self, std::move(why)};
}

void client_service::hand_on(std::uint64_t token, const core::peer_id& peer,
                             client_request&& r) {
  const auto now = steady_clock::now();
  parts_.requests->asked(token, peer, now, now + other_peer_wait);
  // A peer answers for itself, whichever peer asks.
  if (!node_.send(peer, envelope(client_request{token, std::move(r.body)})))
    return;
  parts_.requests->forget(token);
  outcome o;
  o.why = parts_.nodes->unreachable(peer, unix_ms());
  node_.answer(token, std::move(o));
}

void client_service::take(const core::peer_id& from, client_reply&& reply) {
  if (!parts_.requests->replied(reply.number, from))
    return; // no request is waiting for it
  outcome o;
  o.job = reply.value;
  o.text = std::move(reply.text);
  o.events = std::move(reply.events);
  o.ended = reply.ended;
  if (reply.code != reply_code::ok)
    o.why = o.text.empty() ? "the peer gives no reason" : o.text;
  node_.answer(reply.number, std::move(o));
}

} // namespace shoal::runtime
