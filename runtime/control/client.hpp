// runtime/control/client.hpp -- the command line's side of a node.
//
// A client talks to one node at a time: over the Unix socket in its data
// directory, or over TLS in the client role, which proves the cluster key and
// never votes. When the connection is lost it moves to another node it knows:
// first the other sockets beside the first one, then the addresses that the
// last status named.
//
// A client makes no key. Where none is named, it uses those that this user's
// nodes keep, and the user's own. A node of this machine can also ask a member
// in its place: it hands on the few requests of is_handed_on().
//
// Threads: one thread at a time. Calls block, at most for `timeout` each.
// Errors:  errc of the call; text() then says it in words.
#pragma once

#include "runtime/core/errc.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/files/file_piece.hpp"
#include "runtime/jobs/job_log.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
}

namespace shoal::runtime {

struct client_config {
  /// Use the node of this data directory; empty: addresses only.
  std::filesystem::path data_dir;
  /// The user has named this node: connect() takes no other in its place.
  bool named = false;
  /// "host:port" of nodes to ask over TLS.
  std::vector<std::string> addresses;
  /// Empty: those of `keys_of`, and the user's own, if there are any.
  std::filesystem::path cluster_key_file;
  /// The command has connected before: a node here is asked even if the named key
  /// file can no longer be used.
  bool key_was_used = false;
  /// A data directory: the key that its node keeps for itself (own_key_file())
  /// is tried, and (unless `named`) those of nodes beside it. Empty: none.
  std::filesystem::path keys_of;
  /// If no key file is named: a node of this data directory, or (unless
  /// `named`) one beside it, hands on what is asked of `addresses`. Empty: none.
  /// @pre only what is_handed_on() is asked
  std::filesystem::path through;
  std::chrono::milliseconds timeout{10000}; ///< of one request
  /// Told where it moved to. May be empty.
  std::function<void(const std::string& line)> say;
};

/// Where client::follow() begins.
struct follow_from {
  std::uint64_t old =
    0; ///< events at positions below it are old: see client::job()
  /// The step that the job went on from. None: its first steps are not asked for.
  std::optional<std::uint64_t> origin = {};
};

/// Watches a job by client::follow(), which calls it from its own thread.
class follow_handler {
public:
  virtual ~follow_handler() = default;
  /// An event of the job, each once. @returns whether to go on
  virtual bool on(const job_event& event) = 0;
  /// The old events have been handed over; called once.
  virtual void up_to_date() {}
  /// Asked at least once a second; true ends the following without error.
  virtual bool stops() { return false; }
  /// The node is gone, and no other one answers now. @returns whether to end the
  /// following, with errc::no_node, instead of trying again
  virtual bool lost() { return false; }
  /// The client goes on with another node, which may lack what was uploaded.
  virtual void moved() {}
};

class client {
public:
  /// Connects nowhere yet.
  explicit client(client_config config);
  ~client();

  /// Connects to the first node that answers. errc::no_node if none does,
  /// std::errc::invalid_argument if the named key file cannot be used. Where
  /// a node takes the connection and then says nothing, the next call fails.
  [[nodiscard]] std::error_code connect();

  /// What is asked from now on is asked of this member of the connected node's
  /// shoal: a name, an address, or the first digits of an id. The node hands it
  /// on. Empty: of the node itself. @pre only what is_handed_on() is asked
  void ask_of(std::string member);

  /// What `shoal status --json` prints.
  [[nodiscard]] std::error_code status(std::string& json);

  /// Told the bytes of each part of an upload before it is sent; false ends it with
  /// std::errc::operation_canceled.
  void watch_uploads(std::function<bool(std::size_t bytes)> sent);

  /// That many bytes will be uploaded from now on: the node keeps room for what is
  /// left of them, so that another client's upload is refused instead of this one's
  /// next file.
  void expect_uploads(std::uint64_t bytes);

  /// Uploads a blob unless the node has it.
  [[nodiscard]] std::error_code
  put_blob(std::span<const std::byte> bytes, core::blob_digest& digest);
  /// The same of a blob that lies in several places.
  /// @param goes_on asked now and then while the node's disk has no room for it;
  /// without one, or once it says no, the upload fails
  [[nodiscard]] std::error_code
  put_pieces(std::span<const model::file_piece> pieces,
             core::blob_digest& digest,
             const std::function<bool()>& goes_on = {});

  /// Fetches a blob, from whichever peer has it, piece by piece.
  /// @param goes_on asked before each piece, and now and then while none comes; once it
  /// says no, this fails with std::errc::operation_canceled
  [[nodiscard]] std::error_code get_blob(
    const core::blob_digest& digest,
    const std::function<std::error_code(std::span<const std::byte>)>& piece,
    const std::function<bool()>& goes_on = {});
  /// Submits a job and waits until a view holds it. Its id is returned.
  /// @param goes_on asked several times a second; once it says no, the job is
  /// withdrawn, and this fails with errc::refused, unless a view holds it already
  [[nodiscard]] std::error_code
  submit(core::job_entry job, core::job_id& id,
         const std::function<bool()>& goes_on = {});

  /// Events from `next` on, which it advances; waits up to a second for one.
  [[nodiscard]] std::error_code
  events(core::job_id job, std::uint64_t& next, std::vector<job_event>& out);

  /// Hands every event of `job` to `watcher` until one says that the job ended
  /// or the watcher ends it. Moves to another node when this one dies; gives up
  /// with errc::no_node after `patience` without any. Asks others for steps
  /// that its node did not hear of.
  [[nodiscard]] std::error_code
  follow(core::job_id job, follow_handler& watcher,
         const follow_from& from = {},
         std::chrono::milliseconds patience = std::chrono::seconds(60));

  /// One job as JSON: what status says of it, and "run", its resolved run
  /// file. Events at positions below `next` are there already.
  [[nodiscard]] std::error_code
  job(core::job_id job, std::string& json, std::uint64_t& next);

  /// Makes the node leave the shoal and end; returns when it has begun. With
  /// `drain` jobs that nobody else can go on with end in order first.
  [[nodiscard]] std::error_code leave(bool drain);

  /// Stops a job: after the step under way with a checkpoint, or at once.
  [[nodiscard]] std::error_code stop_job(core::job_id job, bool drain);

  /// Takes a job that has ended off the shoal's list; returns when a view says
  /// so.
  [[nodiscard]] std::error_code remove_job(core::job_id job);

  /// The last `count` lines, numbered `next` or more, as JSON
  /// (runtime/observe/recent_lines.hpp). `next` becomes the number of the next one.
  [[nodiscard]] std::error_code
  lines(std::uint64_t& next, std::uint32_t count, std::string& json);

  /// A token by which one peer may join within `seconds`.
  [[nodiscard]] std::error_code
  invite(std::uint32_t seconds, std::string& token);

  /// The peer that revoke() would remove, as "name (id)", or the reason why it
  /// would remove none.
  [[nodiscard]] std::error_code
  find_to_revoke(const std::string& peer, std::string& found);
  /// Removes a peer for good, by name or by the first digits of its id, and
  /// replaces the cluster key. `id` is the whole one.
  [[nodiscard]] std::error_code
  revoke(const std::string& peer, std::string& id);

  /// Makes a new shoal of what this node can reach.
  [[nodiscard]] std::error_code recover_force();
  /// A job goes on without the checkpoint that it waits for.
  [[nodiscard]] std::error_code wait_no_longer(core::job_id job);
  /// The asked node has been given all files of a checkpoint of the job.
  [[nodiscard]] std::error_code
  offer_checkpoint(core::job_id job, const core::blob_digest& manifest,
                   std::uint64_t step);

  /// The last error, as a text for its user: "no node answers in DIR: start one
  /// with ...".
  const std::string& text() const noexcept;

  /// Whether the log that follow() reads has a limit that the job has passed: no log
  /// has its oldest events.
  bool forgot_oldest() const noexcept;

  /// Of the nodes of the shoal, as it was last heard: connect(), status() and
  /// follow() ask. Empty before.
  const std::vector<std::string>& addresses() const noexcept;
  /// Whether a node that was followed was away for some of the job's steps.
  bool lacked_steps() const noexcept;

  /// Whom it talks to: a socket's path or an address.
  const std::string& where() const noexcept;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
