// runtime/control/control.hpp -- answers the command line, near and far.
//
// Near: a Unix socket (0600) in the data directory; every request and reply is
// a frame of 4 bytes length (little end first) and an encoded envelope. Far:
// clients of the TLS fabric; the node hands their requests over by ask(). A
// near client has one request under way at a time, a far one a few. The next
// request of a near client is read when its socket has taken the whole reply
// to the one before. So nothing piles up for a client that does not read. A
// client that is one too many is told so.
//
// Threads: one own, which also reads and writes blobs for clients; ask(),
//          answered() and poke() from any thread.
// Ownership: the handler outlives it, and may be asked before the constructor
//          has returned.
// Errors:  the constructor throws setup_error when the socket cannot be bound.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/wire/messages.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {

class blob_exchange;
class job_journal;
class store;

inline constexpr std::size_t control_connections_max = 64;
/// How long no connection is accepted after the process had no descriptor for
/// one: without a pause, the thread would turn for as long as that lasts.
inline constexpr std::chrono::milliseconds control_accept_pause{100};
inline constexpr std::size_t control_far_requests_max = 256;
inline constexpr std::size_t control_uploads_max = 16; ///< of one client
/// Uploads of one client that it has begun and not committed, together: the
/// largest text (model::corpus_bytes_max, 64 GiB) and a model's files beside
/// it. They go when the client does.
inline constexpr std::uint64_t control_upload_bytes_max = std::uint64_t{1}
                                                          << 37;
/// Uploads leave so much of the disk free: this share of it, and no more than
/// the bytes below. A node that trains writes checkpoints, and a system whose
/// disk is full misbehaves. A share, because disks may be small: 1/20 is what
/// ext4 keeps for root; and with 1 GiB a system gets by on a disk of any size.
inline constexpr std::uint64_t control_free_share = 20;
inline constexpr std::uint64_t control_free_bytes_min = std::uint64_t{1} << 30;
/// Requests of one client that wait for events or views; more are refused.
inline constexpr std::size_t control_waiting_max = 8;
/// Requests of one far client that are not yet looked at; more are refused.
inline constexpr std::size_t control_far_requests_each_max = 16;
inline constexpr std::size_t control_fetches_max = 256;
/// How long an ask_events without events is held back.
inline constexpr std::chrono::milliseconds events_wait{1000};
/// A submission or recovery without a view is answered so late.
inline constexpr std::chrono::milliseconds agreement_wait{30000};
/// A peer that a request is handed on to has so long: what it is asked
/// (is_handed_on) it answers from memory, at once.
inline constexpr std::chrono::milliseconds other_peer_wait{5000};

/// Whom a client means by a word.
struct meant_peer {
  core::peer_id peer{};
  bool self = false; ///< the asked node
  std::string why;   ///< there is none, if not empty
};

/// What control asks of its node. On control's thread, but send(), which comes
/// from any; must not wait.
class control_handler {
public:
  virtual ~control_handler() = default;
  virtual store& blobs() = 0;
  virtual job_journal& journal() = 0;

  virtual std::string status() const = 0; ///< JSON
  /// A job as JSON; empty: no such job.
  virtual std::string describe(core::job_id job) const = 0;
  /// The node's last lines; `next` becomes the number of the next one.
  virtual std::string lines(const ask_lines& r, std::uint64_t& next) const = 0;
  virtual meant_peer find(const std::string& word) const = 0;

  /// The node begins to leave.
  virtual void leave(bool drain) = 0;

  // What takes a view: control::answered() follows with `token`.
  virtual void submit(std::uint64_t token, core::job_entry job) = 0;
  virtual void remove_job(std::uint64_t token, core::job_id job) = 0;
  virtual void recover(std::uint64_t token) = 0;
  virtual void invite(std::uint64_t token, const make_invite& r) = 0;
  virtual void redeem(std::uint64_t token, const use_invite& r) = 0;
  virtual void revoke_peer(std::uint64_t token, const revoke& r) = 0;
  /// Asks a peer; answered() follows with `token`.
  virtual void hand_on(std::uint64_t token, const core::peer_id& peer,
                       client_request&& r) = 0;

  // What the supervisor is told. @returns why not, or nothing.
  virtual std::string stop_job(core::job_id job, bool drain) = 0;
  /// A job goes on without the checkpoint that it waits for.
  virtual std::string wait_no_longer(core::job_id job) = 0;
  /// A checkpoint of a job is in the store, given by a client.
  virtual std::string offer(const offer_checkpoint& r) = 0;

  /// Fetches a blob from peers; `done` runs on any thread.
  virtual void fetch(const core::blob_digest& digest,
                     std::function<void(std::error_code)> done) = 0;
  /// Sends a reply to a client of the TLS fabric.
  virtual void send(const core::peer_id& to, const client_reply& reply) = 0;
};

/// How something that needed a view, or a peer, has ended.
struct outcome {
  core::job_id job = 0; ///< or another value of the reply
  std::string why;      ///< it was refused, if not empty
  std::string text;
  std::vector<std::byte> bytes;
};

class control {
public:
  control(const std::filesystem::path& socket, control_handler& node);
  ~control();

  /// A far client asks; `connected` false: it is gone.
  void ask(const core::peer_id& who, client_request request);
  void gone(const core::peer_id& who);

  /// Ends what submit or its like began.
  void answered(std::uint64_t token, outcome o);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
