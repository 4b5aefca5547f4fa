// runtime/links/link_service.hpp -- the link hub, as its node uses it.
//
// The node passes in the events of the fabrics and the peers; actors see only
// link_hub. The receiver picks the best fabric on which the peer is up, posts
// the memory there and grants a credit; the sender starts when it has both the
// bytes and the grant.
//
//   waiting --post--> posted --done--> finished        (receiver)
//      ^                 |
//      +--corrupt, fabric lost, refused--+
//   waiting --grant--> sending --done--> finished      (sender)
//      ^                 |
//      +--corrupt, not posted, fabric lost: refuse the grant--+
//
// L-1: `done` of a transfer runs exactly once.
// L-2: a buffer is held until no fabric has it posted or queued.
// L-3: the two ends may see a fabric fail at different times or only one of
//      them at all: an end that learns of it from the other drops the peer
//      from that fabric, so that memory is posted on one fabric only.
// L-4: while no fabric to a peer is up its transfers wait, begun or not, and go
//      on when it is back. The view decides whether the peer is gone for good:
//      then another sub-plan follows, which cancels them.
//
// A sub-plan's digest must not be used again while a peer may still cancel its
// earlier use: only tags distinguish transfers.
//
// Threads:   any; one event at a time, on the thread that brings it or on one
//            that is already running events. No lock is held in calls to
//            fabrics or in `done`.
// Life:      add_fabric() for each; at the end close(), then close the
//            fabrics, then destroy.
// Errors:    as links.hpp; std::errc::invalid_argument if the same tag is
//            expected or sent twice at a time, transport::errc::would_block
//            over transfers_max.
#pragma once

#include "runtime/links/links.hpp"
#include "runtime/wire/messages.hpp" // link_credit

#include <cstdint>

namespace shoal::runtime {

/// How a link service tells peers of its grants. Called on any thread; must
/// not wait.
class credit_sender {
public:
  virtual ~credit_sender() = default;
  /// Sends a credit to a peer on the control fabric (TLS), in order. On
  /// would_block it is kept and tried again at the next event or tick().
  virtual std::error_code
  send_credit(const transport::peer_id& to, const link_credit& credit) = 0;
};

class link_service : public link_hub {
public:
  struct config {
    transport::peer_id self{};
    /// The fabric over which credits go: when it comes up again, all
    /// outstanding ones are repeated.
    fabric_kind control = fabric_kind::tls;
    /// Result of memory(); null: the default.
    shared_memory_resource memory;
    /// Best first.
    std::vector<fabric_kind> preference{fabric_kind::shm, fabric_kind::rdma,
                                        fabric_kind::ucx_tcp, fabric_kind::tls};
  };

  /// Makes `f` usable for peers that are up on it. Its events may come first.
  virtual void add_fabric(fabric_kind kind, transport::fabric& f) = 0;

  virtual void peer_up(fabric_kind kind, const transport::peer_id& peer) = 0;
  virtual void peer_down(fabric_kind kind, const transport::peer_id& peer) = 0;
  virtual void credit_received(const transport::peer_id& from,
                               const link_credit& credit) = 0;

  /// From now on counts transfers of the sub-plan `plan` for that job.
  virtual void name_plan(std::uint64_t plan, std::uint64_t job) = 0;

  /// Tries again what was refused by a full queue; call it some ten times a
  /// second.
  virtual void tick() = 0;

  /// Ends every transfer with canceled; those on a fabric end when it is
  /// closed.
  virtual void close() = 0;

  /// Length of each kind of queue at the peer where it is longest, to compare
  /// with the limits below.
  struct queues {
    std::size_t transfers = 0;
    std::size_t early_credits = 0;
    std::size_t finished = 0;
    std::size_t outbox = 0;
    std::size_t cancelled_plans = 0; ///< of all peers
  };
  /// `then` runs on some thread and may only post.
  virtual void list_queues(std::function<void(queues)> then) = 0;

  /// Transfers of one peer and direction that may be in progress here.
  static constexpr std::size_t transfers_max = 65536;
  /// Grants of one peer that came before their send(). More than a peer can
  /// have posted on two fabrics; an honest peer never fills it.
  static constexpr std::size_t early_credits_max = 16384;
  /// Finished receives that are remembered for a sender that missed the answer.
  static constexpr std::size_t finished_max = 4096;
  /// Cancelled sub-plans that are remembered, to refuse late messages for them.
  static constexpr std::size_t cancelled_plans_max = 64;
  /// Sub-plans whose job is remembered, and jobs that are counted separately
  /// per peer and fabric; beyond it bytes count for no job.
  static constexpr std::size_t named_plans_max = 1024;
  static constexpr std::size_t jobs_counted_max = 64;
  /// Credits to one peer that wait for room on the control fabric.
  static constexpr std::size_t outbox_max = 65536;
};

/// "tls", "shm", "rdma", "ucx-tcp": the names of fabrics as users see them.
const char* name_of(fabric_kind kind);

/// @pre `sender` outlives it
std::unique_ptr<link_service>
make_link_service(link_service::config config, credit_sender& sender);

} // namespace shoal::runtime
