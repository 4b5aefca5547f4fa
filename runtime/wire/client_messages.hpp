// runtime/wire/client_messages.hpp -- what a command line asks, as plain data.
//
// A client sends requests, and a node answers each of them by one reply. codec.hpp
// turns both into bytes and back. What comes out of the codec has been checked
// against the limits named here.
//
// Threads: plain data.
#pragma once

#include "runtime/core/fields.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/jobs/job_log.hpp"
#include "runtime/wire/messages.hpp" // blob_chunk_bytes_max

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t reply_text_bytes_max = 1024;
inline constexpr std::size_t status_bytes_max = std::size_t{768} << 10;
/// A month; a token that is never used is forgotten by then.
inline constexpr std::uint32_t invite_seconds_max = 31 * 24 * 3600;
inline constexpr std::size_t reply_events_max = 1024;
/// Lines of a node's log in one reply: all that it keeps (recent_lines.hpp).
inline constexpr std::uint32_t reply_lines_max = 1000;

struct ask_status {
  friend bool operator==(const ask_status&, const ask_status&) = default;
};
void fields(auto&, core::of<ask_status> auto&) {
}

/// Begins, continues (in order) and ends the upload of a blob.
struct put_begin {
  std::uint64_t total_bytes = 0;
  /// That the client will upload behind this one: room that is kept for it.
  std::uint64_t more_bytes = 0;
  friend bool operator==(const put_begin&, const put_begin&) = default;
};
void fields(auto& v, core::of<put_begin> auto& x) {
  v("total_bytes", x.total_bytes, core::at_most(core::limits::bytes_max));
  v("more_bytes", x.more_bytes, core::at_most(core::limits::bytes_max));
}

struct put_chunk {
  std::uint64_t upload = 0;
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
  friend bool operator==(const put_chunk&, const put_chunk&) = default;
};
void fields(auto& v, core::of<put_chunk> auto& x) {
  v("upload", x.upload);
  v("offset", x.offset, core::at_most(core::limits::bytes_max));
  v("bytes", x.bytes, core::bytes_of(blob_chunk_bytes_max));
}

struct put_commit {
  std::uint64_t upload = 0;
  core::blob_digest digest{}; ///< what the blob must hash to
  friend bool operator==(const put_commit&, const put_commit&) = default;
};
void fields(auto& v, core::of<put_commit> auto& x) {
  v("upload", x.upload);
  v("digest", x.digest);
}

/// Reads a piece of a blob; the node first fetches the blob from its peers
/// when it does not hold it (the reply then says again_later).
struct get_blob {
  core::blob_digest digest{};
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0; ///< at most blob_chunk_bytes_max
  friend bool operator==(const get_blob&, const get_blob&) = default;
};
void fields(auto& v, core::of<get_blob> auto& x) {
  v("digest", x.digest);
  v("offset", x.offset, core::at_most(core::limits::bytes_max));
  v("bytes", x.bytes, core::at_most(blob_chunk_bytes_max));
}

/// The entry's id is ignored; the reply names the one it got.
struct submit_job {
  core::job_entry job;
  friend bool operator==(const submit_job&, const submit_job&) = default;
};
void fields(auto& v, core::of<submit_job> auto& x) {
  v("job", x.job);
}

/// Events of a job from a position on; waits up to events_wait when there is
/// none.
struct ask_events {
  core::job_id job = 0;
  std::uint64_t from = 0;
  friend bool operator==(const ask_events&, const ask_events&) = default;
};
void fields(auto& v, core::of<ask_events> auto& x) {
  v("job", x.job);
  v("from", x.from);
}

/// Stops a job at once, or after the step under way with a checkpoint.
struct stop_job {
  core::job_id job = 0;
  bool drain = true;
  friend bool operator==(const stop_job&, const stop_job&) = default;
};
void fields(auto& v, core::of<stop_job> auto& x) {
  v("job", x.job);
  v("drain", x.drain);
}

/// Founds a new shoal from what is left; see `shoal recover --force`.
struct recover_force {
  friend bool operator==(const recover_force&, const recover_force&) = default;
};
void fields(auto&, core::of<recover_force> auto&) {
}

/// Makes a job go on without the checkpoint that it waits for; see `shoal
/// recover JOB`.
struct wait_no_longer {
  core::job_id job = 0;
  friend bool
  operator==(const wait_no_longer&, const wait_no_longer&) = default;
};
void fields(auto& v, core::of<wait_no_longer> auto& x) {
  v("job", x.job);
}

/// The asked node's store has been given all files of a checkpoint of the job,
/// and a manifest that names them: it may be restored from there. The job has
/// no use for one of a step that it has published none of.
struct offer_checkpoint {
  core::job_id job = 0;
  core::blob_digest manifest{};
  std::uint64_t step = 0;
  friend bool
  operator==(const offer_checkpoint&, const offer_checkpoint&) = default;
};
void fields(auto& v, core::of<offer_checkpoint> auto& x) {
  v("job", x.job);
  v("manifest", x.manifest);
  v("step", x.step, core::at_most(core::epoch_max));
}

/// One job as JSON with its resolved run file; the reply's value is the
/// position of its next event.
struct ask_job {
  core::job_id job = 0;
  friend bool operator==(const ask_job&, const ask_job&) = default;
};
void fields(auto& v, core::of<ask_job> auto& x) {
  v("job", x.job);
}

/// Makes the asked node leave the shoal and end; its jobs are handed over, or
/// with `drain`, where nobody is left for them, end after the step under way.
struct leave_shoal {
  bool drain = true;
  friend bool operator==(const leave_shoal&, const leave_shoal&) = default;
};
void fields(auto& v, core::of<leave_shoal> auto& x) {
  v("drain", x.drain);
}

/// Takes a job that has ended off the list; answered when a view says so.
struct remove_job {
  core::job_id job = 0;
  friend bool operator==(const remove_job&, const remove_job&) = default;
};
void fields(auto& v, core::of<remove_job> auto& x) {
  v("job", x.job);
}

/// The last lines that a node has said, as JSON (recent_lines.hpp); the reply's
/// value is the number of the next one.
struct ask_lines {
  std::uint64_t from = 0;  ///< number of the first line that is wanted
  std::uint32_t lines = 0; ///< the most lines to send: the last ones
  friend bool operator==(const ask_lines&, const ask_lines&) = default;
};
void fields(auto& v, core::of<ask_lines> auto& x) {
  v("from", x.from);
  v("lines", x.lines, core::at_most(reply_lines_max));
}

/// A token that lets one peer in; the reply's text is the token.
struct make_invite {
  std::uint32_t seconds = 0; ///< how long it may be used
  friend bool operator==(const make_invite&, const make_invite&) = default;
};
void fields(auto& v, core::of<make_invite> auto& x) {
  v("seconds", x.seconds, core::at_most(invite_seconds_max));
}

/// Asks for the cluster key; the reply's bytes are the key.
struct use_invite {
  core::cluster_key token{};
  core::peer_id who{}; ///< not sent: the transport has proved it
  friend bool operator==(const use_invite&, const use_invite&) = default;
};
void fields(auto& v, core::of<use_invite> auto& x) {
  v("token", x.token);
}

/// Removes a peer for good: its name, or the first digits of its id.
struct revoke {
  std::string peer;
  bool only_find = false; ///< the answer says whom it would remove, or why not
  friend bool operator==(const revoke&, const revoke&) = default;
};
void fields(auto& v, core::of<revoke> auto& x) {
  v("peer", x.peer, core::cleaned_text_of(core::limits::name_bytes_max));
  v("only_find", x.only_find);
}

/// Gives up a request of this client that waits for an agreement: a job or an invite
/// that is not agreed yet is withdrawn. That request is answered, either with what
/// was agreed before, or as refused.
struct take_back {
  std::uint64_t request = 0; ///< its number
  friend bool operator==(const take_back&, const take_back&) = default;
};
void fields(auto& v, core::of<take_back> auto& x) {
  v("request", x.request);
}

using client_request_body =
  std::variant<ask_status, put_begin, put_chunk, put_commit, get_blob,
               submit_job, ask_events, stop_job, recover_force, ask_job,
               wait_no_longer, offer_checkpoint, leave_shoal, make_invite,
               use_invite, revoke, remove_job, ask_lines, take_back>;
/// Names of the kinds, in their order; the same as in node.proto.
inline constexpr std::array<const char*,
                            std::variant_size_v<client_request_body>>
  client_request_names = {
    "ask_status",    "put_begin",   "put_chunk",      "put_commit",
    "get_blob",      "submit_job",  "ask_events",     "stop_job",
    "recover_force", "ask_job",     "wait_no_longer", "offer_checkpoint",
    "leave_shoal",   "make_invite", "use_invite",     "revoke",
    "remove_job",    "ask_lines",   "take_back"};

struct client_request {
  std::uint64_t number = 0;
  client_request_body body;
  /// The member that is meant: its name, an address of it, or the first digits
  /// of its id. The asked node hands the request on, over the link that members
  /// have, and gives back the answer. Empty: the asked node itself.
  std::string peer{};
  friend bool
  operator==(const client_request&, const client_request&) = default;
};
void fields(auto& v, core::of<client_request> auto& x) {
  v("number", x.number);
  v("body", x.body, core::one_of(client_request_names));
  v("peer", x.peer, core::cleaned_text_of(core::limits::name_bytes_max));
}

/// Whether a node hands this on to another member, or answers it if a member
/// asks: what takes one answer, and leaves nothing that must be kept for the
/// client. For the rest a client connects to the peer itself.
[[nodiscard]] inline bool is_handed_on(const client_request& r) {
  return std::holds_alternative<ask_status>(r.body)
         || std::holds_alternative<ask_lines>(r.body)
         || std::holds_alternative<ask_events>(r.body)
         || std::holds_alternative<leave_shoal>(r.body);
}

/// Whether its reply takes a view that the shoal agrees on.
[[nodiscard]] inline bool takes_agreement(const client_request_body& r) {
  return std::holds_alternative<submit_job>(r)
         || std::holds_alternative<recover_force>(r)
         || std::holds_alternative<make_invite>(r)
         || std::holds_alternative<remove_job>(r)
         || std::holds_alternative<revoke>(r);
}

enum class reply_code : std::uint8_t {
  ok = 1,
  refused = 2,     ///< `text` says why
  not_found = 3,   ///< no such job, blob or upload
  again_later = 4, ///< not ready yet: ask again
};

struct client_reply {
  std::uint64_t number = 0;
  reply_code code = reply_code::ok;
  std::string text;              ///< for its user; or status as JSON
  std::uint64_t value = 0;       ///< job, upload, total bytes, next position
  core::blob_digest digest{};    ///< of a committed upload
  std::vector<std::byte> bytes;  ///< of a blob
  std::vector<job_event> events; ///< of a job
  bool ended = false;            ///< the job is not running any more
};
void fields(auto& v, core::of<client_reply> auto& x) {
  v("number", x.number);
  v("code", x.code, core::up_to(reply_code::again_later));
  v("text", x.text, core::cleaned_lines_of(status_bytes_max));
  v("value", x.value);
  v("digest", x.digest);
  v("bytes", x.bytes, core::bytes_of(blob_chunk_bytes_max));
  v("events", x.events, core::list_of(reply_events_max));
  v("ended", x.ended);
}

} // namespace shoal::runtime
