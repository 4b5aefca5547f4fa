// runtime/control/control.hpp -- answers commands, local and remote ones.
//
// Local clients use a Unix socket (0600) in the data directory; every request
// and reply is a frame of 4 bytes length (little-endian) and an encoded
// envelope. Remote clients connect by the TLS fabric; the node passes their
// requests to ask(). A local client has one request in progress at a time, a
// remote one a few. The next request of a local client is read when its socket
// has taken the whole reply to the former one, so nothing accumulates for a
// client that does not read. A client beyond the limit is told so.
//
// Threads: one own, which also reads and writes blobs for clients; ask(),
//          answered() and poke() from any thread.
// Ownership: the handler outlives it, and may be called before the constructor
//          has returned.
// Errors:  the constructor throws setup_error when the socket cannot be bound.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/wire/client_messages.hpp"

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
/// Pause in which no connection is accepted after the process has run out of
/// descriptors: without it, the thread would spin for as long as that lasts.
inline constexpr std::chrono::milliseconds control_accept_pause{100};
inline constexpr std::size_t control_far_requests_max = 256;
inline constexpr std::size_t control_uploads_max = 16; ///< of one client
/// Limit of the total size of one client's uploads that are begun and not
/// committed: the largest text (model::corpus_bytes_max, 64 GiB) and a model's
/// files in addition. They are removed when the client disconnects.
inline constexpr std::uint64_t control_upload_bytes_max = std::uint64_t{1}
                                                          << 37;
/// Requests of one client that wait for events or views; more are refused.
inline constexpr std::size_t control_waiting_max = 8;
/// Requests of one remote client that wait to be processed; more are refused.
inline constexpr std::size_t control_far_requests_each_max = 16;
inline constexpr std::size_t control_fetches_max = 256;
/// Time for which an ask_events without events is held back.
inline constexpr std::chrono::milliseconds events_wait{1000};
/// Time after which a submission or recovery without a view is answered.
inline constexpr std::chrono::milliseconds agreement_wait{30000};
/// A command that has followed a job to its end here, and asks for nothing for
/// longer than this, has all that it wants, or hangs: a node that has left does
/// not wait for it any longer.
inline constexpr std::chrono::milliseconds last_fetch_pause_max{3000};
/// Time that a peer has to answer a request that was handed on: it answers
/// these (is_handed_on) from memory or its log, after events_wait at most.
inline constexpr std::chrono::milliseconds other_peer_wait{5000};

/// Whom a client means by a word.
struct meant_peer {
  core::peer_id peer{};
  bool self = false; ///< the asked node
  std::string why;   ///< there is none, if not empty
};

/// Why a request was not carried out; with reply_code::ok it was.
struct not_done {
  reply_code code = reply_code::ok;
  std::string why; ///< an error line for the user
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
  /// The client of `token` waits no longer, or is gone: a job that it submitted must
  /// not run without it. @returns what to tell it, "" if there is nothing to say;
  /// nothing: the request is answered, or is just being so
  virtual std::optional<std::string> given_up(std::uint64_t token) = 0;

  // What the supervisor is told.
  virtual not_done stop_job(core::job_id job, bool drain) = 0;
  /// A job goes on without the checkpoint that it waits for.
  virtual not_done wait_no_longer(core::job_id job) = 0;
  /// A checkpoint of a job is in the store, given by a client.
  virtual not_done offer(const offer_checkpoint& r) = 0;
  /// A client has gone, and has submitted no job with what it has uploaded: these
  /// blobs, which were not in the store before.
  virtual void left_behind(std::vector<core::blob_digest> blobs) = 0;

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
  std::vector<job_event> events{}; ///< of a job, as another peer has them
  bool ended = false;              ///< that job
};

class control {
public:
  control(const std::filesystem::path& socket, control_handler& node);
  ~control();

  /// A far client asks; `connected` false: it is gone.
  void ask(const core::peer_id& who, client_request request);
  void gone(const core::peer_id& who);

  /// Whether a command still fetches what a job that has ended here has made.
  /// From any thread.
  bool serves_follower() const;

  /// Ends what submit or its like began.
  void answered(std::uint64_t token, outcome o);

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
