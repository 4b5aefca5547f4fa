// runtime/core/limits.hpp -- limits of the contents of views and messages.
//
// Longest texts, longest lists and largest numbers. The fields of each struct
// name their limits (fields.hpp), and the codec refuses more. The numbers
// suffice for any machine or model, and are small enough for the planner's
// products to fit its integers. What is written must be readable: no peer may
// count beyond these limits (cluster/credible.hpp), and encode_record() asserts
// it.
#pragma once

#include "runtime/core/ids.hpp"

#include <limits>

namespace shoal::core::limits {

using core::epoch_max; ///< of views, ballots and steps
inline constexpr std::uint64_t bytes_max = std::uint64_t{1} << 48;
inline constexpr std::uint64_t flops_max = std::uint64_t{1} << 56;
inline constexpr std::uint64_t mflops_max = std::uint64_t{1} << 40;
inline constexpr std::uint32_t threads_max = 65536;
inline constexpr nanoseconds nanoseconds_max =
  std::numeric_limits<nanoseconds>::max();
inline constexpr std::uint64_t latency_max = std::uint64_t{1} << 40;
/// Unix time in milliseconds: up to the year 36,800 or so.
inline constexpr std::int64_t unix_ms_max = std::int64_t{1} << 50;
inline constexpr std::uint32_t blocks_max = 4096;
// A job may ask for as much as a run file may (run_config.cpp): larger values
// make plans that take minutes, and every peer of the shoal computes them.
inline constexpr std::uint32_t microbatches_max = 4096;
inline constexpr std::int32_t want_replicas_max = 64;
inline constexpr std::int32_t want_stages_max = 64;
inline constexpr std::int32_t want_virtual_max = 16;

inline constexpr std::size_t name_bytes_max = 128;
/// Of a program: "0.1.0 (", 12 digits of a commit and "-dirty)" have 27 bytes.
inline constexpr std::size_t version_bytes_max = 64;
inline constexpr std::size_t address_bytes_max = 262; ///< host 255, ":", port
inline constexpr std::size_t addresses_max = 16;
inline constexpr std::size_t text_bytes_max = 1024;
/// Why a job failed: one line of text, with a path or two.
inline constexpr std::size_t job_cause_bytes_max = 512;
/// "user@host": on Linux user names have at most 32 bytes, host names 64.
inline constexpr std::size_t job_user_bytes_max = 97;
inline constexpr std::size_t role_name_bytes_max = 64;
inline constexpr std::size_t stages_max = 1024;
inline constexpr std::size_t replicas_max = 1024;
/// Seats that share a stage, and devices of a member.
inline constexpr std::size_t shards_max = 64;
inline constexpr std::size_t devices_max = 64;
/// Islands of a job: each needs members of its own.
inline constexpr std::size_t islands_max = 64;

} // namespace shoal::core::limits

// Of views, with the names that the code of clusters uses.
namespace shoal::core::cluster {

inline constexpr std::size_t members_max = 1024;
inline constexpr std::size_t jobs_running_max = 16;
/// Ended jobs that a view lists; the oldest are removed first, or by
/// remove_job.
inline constexpr std::size_t jobs_kept_max = 16;
inline constexpr std::size_t jobs_max = jobs_running_max + jobs_kept_max;
/// Ids of jobs that a view no longer lists. A late submission comes from a peer
/// that was cut off or dead meanwhile: the limit covers a week with a new job
/// every half hour.
inline constexpr std::size_t jobs_removed_max = 336;
inline constexpr std::size_t run_json_bytes_max = 64 * 1024;
/// Last views of dissolved shoals that are remembered for late members.
inline constexpr std::size_t former_max = 8;
/// Opinions in one message: those of all watchers about all members.
inline constexpr std::size_t notes_max = 1024;
/// Shoals that a view remembers as superseded by force; the oldest are dropped,
/// and their peers go on with their jobs if they return as a quorum.
inline constexpr std::size_t superseded_max = 16;
/// Outages that a view remembers. Where older ones matter, a user is asked.
inline constexpr std::size_t outages_max = 16;
/// Pairs of members that cannot reach each other, as a view lists them.
inline constexpr std::size_t cuts_max = 256;
/// Identities that a view remembers as revoked; the oldest are dropped, and
/// still lack every key since then. Former members likewise.
inline constexpr std::size_t revoked_max = 256;
inline constexpr std::size_t lapsed_max = 64;
/// Peers that a view remembers as expelled for stalling a job. Beyond the limit
/// the oldest are dropped, and begin with the first pause again.
inline constexpr std::size_t stalled_max = 64;
/// Upper end of their count; the pause has long stopped growing by then.
inline constexpr std::uint32_t stall_times_max = 1 << 20;
/// Tokens of a view; used ones go first, then the oldest.
inline constexpr std::size_t invites_max = 32;
inline constexpr std::size_t keys_pending_max = 4;
inline constexpr std::size_t keys_replaced_max = 8;

} // namespace shoal::core::cluster
