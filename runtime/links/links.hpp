// runtime/links/links.hpp -- tensors from one actor to another, wherever it
// lives.
//
// A transfer has a tag {sub-plan digest, link, sequence} that each end computes
// by itself. The receiver expects it (posts memory and grants the sender a
// credit); the sender's transfer starts when the credit is there. The receiver
// chooses the fabric that carries it (same process, shared memory, TLS) and
// names it in the credit; the actor need not know.
//
// A transfer waits while its peer is away: if it is gone for good, a new view,
// hence a new plan with a new digest, follows, and cancels it. One that fails
// while the peer stays (corrupt, fabric lost) is granted again, up to
// retries_max times.
//
// Threads:   any. `done` runs on some progress thread and may only post a
//            message.
// Ownership: the hub holds the buffers (shared) until `done` has run, so the
//            memory of a cancelled transfer stays valid until nothing uses it.
// Errors:    transport::errc; canceled after cancel(plan).
#pragma once

#include "kernels/memory/prefault_resource.hpp"
#include "transport/fabric.hpp" // bulk_tag, peer_id

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::runtime {

/// Bytes with shared ownership: `keep` owns the memory of `bytes`.
struct shared_bytes {
  std::shared_ptr<void> keep;
  std::span<std::byte> bytes;
};

/// Memory to allocate from, kept alive by all that was allocated from it.
using shared_memory_resource = std::shared_ptr<std::pmr::memory_resource>;

class link_hub {
public:
  virtual ~link_hub() = default;
  using callback = std::function<void(std::error_code)>;

  /// Posts `into` for the transfer `tag` from `from` (this node included).
  virtual void expect(const transport::peer_id& from, transport::bulk_tag tag,
                      shared_bytes into, callback done) = 0;

  /// Sends `from` as `tag` once `to` expects it.
  virtual void send(const transport::peer_id& to, transport::bulk_tag tag,
                    shared_bytes from, callback done) = 0;

  /// The memory from which to allocate large data that is sent often: peers on
  /// this machine then copy it only once, directly from there. Any memory can
  /// be sent.
  virtual shared_memory_resource memory() const {
    return {std::shared_ptr<void>(), model::large_pages()};
  }

  /// The memory from which to allocate large data that is sent once, or only
  /// received: cheap to get, in contrast to memory that peers may read.
  virtual shared_memory_resource memory_for_copies() const {
    return {std::shared_ptr<void>(), model::prefaulted_pages()};
  }

  /// Ends every transfer of that sub-plan, on both sides of this node; its
  /// later credits and transfers are refused until `plan` is used again.
  virtual void cancel(std::uint64_t plan) = 0;

  /// Bytes of one job; job 0: of no job, or of an old one.
  struct job_bytes {
    std::uint64_t job = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  /// Statistics in `shoal status` for the links to one peer over one fabric.
  /// Latency is half of a small transfer's round trip; both speeds refer to
  /// data that this node sends; 0 while unknown.
  struct link_stat {
    transport::peer_id peer{};
    std::string fabric;
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t latency_ns = 0;
    std::uint64_t bytes_per_s = 0;
    std::int64_t age_ns = 0; ///< of the newest measurement of either value
    std::vector<job_bytes> jobs;
  };
  virtual std::vector<link_stat> stats() const = 0;

  /// A transfer that has not ended.
  struct pending {
    transport::peer_id peer{};
    transport::bulk_tag tag{};
    std::size_t bytes = 0;
    bool sending = false;
    bool begun = false; ///< a fabric has it: granted, and not waiting
  };
  /// Lists transfers of a sub-plan, at most pending_max for each peer and
  /// direction. `then` runs on some thread and may only post.
  virtual void list_pending(std::uint64_t /*plan*/,
                            std::function<void(std::vector<pending>)> then) {
    const auto tell = std::move(then);
    tell({});
  }
  static constexpr std::size_t pending_max = 16;

  /// Time for which a thread that moves tensors has hung; 0: none hangs. Call
  /// it several times a second: fabric::silent_for().
  virtual std::chrono::nanoseconds silent_for() { return {}; }

  static constexpr int retries_max = 3;
};

} // namespace shoal::runtime
