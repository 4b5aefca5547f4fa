// runtime/node/requests/client_service.hpp -- does what clients ask of a node.
//
// Control brings each request here. What can be answered at once is; a request
// that needs a view goes to the cluster core and is answered by the view that
// grants it; a request about a running job goes to the supervisor; and a request
// for another peer is passed to that peer, since a command has no key of the
// shoal and cannot reach its other machines. `admission` does keys, invites and
// revocations.
//
// Threads:   control's for control_handler; others are named at the member.
// Ownership: all that the constructor is given outlives it.
// Errors:    a request that cannot be met is answered with the reason.
#pragma once

#include "runtime/node/requests/admission.hpp"
#include "runtime/node/requests/request_host.hpp"
#include "runtime/node/state/known_nodes.hpp"
#include "runtime/node/state/waiting_requests.hpp"
#include "runtime/wire/envelope.hpp"

#include <caf/actor.hpp>

#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {

class recent_lines;

/// What the service of clients asks of its node.
class client_host : public request_host {
public:
  virtual std::string status() const = 0; ///< JSON
  /// The reason why this node waits for a quorum; empty: it has one.
  virtual std::string waits() const = 0;
  /// A job as JSON; empty: no such job.
  virtual std::string describe(core::job_id job) const = 0;
  virtual void leave(bool drain) = 0;
  /// The actor that runs the jobs of this node; null: it runs none.
  virtual caf::actor supervisor() const = 0;
  /// @returns an error if the peer is not connected
  virtual std::error_code send(const core::peer_id& to, envelope message) = 0;
  /// The connected peers.
  virtual std::vector<core::peer_id> peers() const = 0;
};

/// The parts of a node that answer without it.
struct client_service_parts {
  core::peer_id self{};
  store* blobs = nullptr;
  job_journal* journal = nullptr;
  blob_exchange* exchange = nullptr;
  const recent_lines* recent = nullptr;
  known_nodes* nodes = nullptr;
  waiting_requests* requests = nullptr;
  admission* admits = nullptr;
};

class client_service final : public control_handler {
public:
  client_service(client_service_parts parts, client_host& node);

  // Membership actor's thread.
  /// A view takes effect: before adopted(), which gives the answers.
  void adopting(const core::view& now);
  void adopted();
  /// The core refuses a request.
  void rejected(const core::cluster::rejected& r);

  /// TLS progress thread: the answer to a request that was handed on.
  void take(const core::peer_id& from, client_reply&& reply);

  // control_handler
  store& blobs() override { return *parts_.blobs; }
  job_journal& journal() override { return *parts_.journal; }
  std::string status() const override { return node_.status(); }
  std::string describe(core::job_id job) const override {
    return node_.describe(job);
  }
  std::string lines(const ask_lines& r, std::uint64_t& next) const override;
  meant_peer find(const std::string& word) const override;
  void leave(bool drain) override { node_.leave(drain); }
  void submit(std::uint64_t token, core::job_entry job) override;
  void remove_job(std::uint64_t token, core::job_id job) override;
  void recover(std::uint64_t token) override;
  void invite(std::uint64_t token, const make_invite& r) override {
    parts_.admits->invite(token, r);
  }
  void redeem(std::uint64_t token, const use_invite& r) override {
    parts_.admits->redeem(token, r);
  }
  void revoke_peer(std::uint64_t token, const revoke& r) override {
    parts_.admits->revoke_peer(token, r);
  }
  void hand_on(std::uint64_t token, const core::peer_id& peer,
               client_request&& r) override;
  std::optional<std::string> given_up(std::uint64_t token) override;
  not_done stop_job(core::job_id job, bool drain) override;
  not_done wait_no_longer(core::job_id job) override;
  not_done offer(const offer_checkpoint& r) override;
  void left_behind(std::vector<core::blob_digest> blobs) override;
  void fetch(const core::blob_digest& digest,
             std::function<void(std::error_code)> done) override;
  void send(const core::peer_id& to, const client_reply& reply) override;

private:
  void refuse(std::uint64_t token, std::string why);
  /// To the supervisor, about a job that runs. @returns why not, or nothing
  template <class Message>
  not_done tell_job(core::job_id job, Message m);

  const client_service_parts parts_;
  client_host& node_;
  waiting_requests::adopted_view waited_; ///< of the membership actor's thread
};

} // namespace shoal::runtime
