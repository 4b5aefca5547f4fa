// transport/fabric.hpp -- the interface of every way to move bytes between peers.
//
// A fabric connects this node to peers and moves two kinds of bytes. Control
// messages (small) are sent by send() and arrive, in order, at the handler.
// Bulk bytes (tensors) are sent by send_bulk(), and only into memory that the
// receiver has posted under the same tag: no peer writes memory that was not
// posted. The layer above (runtime/links: credits) ensures that a tag is posted
// before it is sent to. Bulk for an unposted tag is dropped and the sender gets
// errc::not_posted.
//
// Everything is keyed by peer, not by connection. A peer is up from
// fabric_handler::up until fabric_handler::down, which runs exactly once. After
// that, everything posted or queued for the peer has ended in errc::peer_lost,
// and none of its memory is touched again. A restarted process is first down,
// then up.
//
// Threads:   every member may be called from any thread. Commands go through
//            one bounded ring to the fabric's progress thread, which owns all
//            sockets and library handles. Handlers and completions run on the
//            progress thread: they must not wait, and may call any member but
//            close(). The first may run before the constructor has returned.
// Ownership: memory in a slice must stay valid until its completion has run.
// Completions run exactly once if and only if the call returned no error.
// Cost:      an idle fabric uses no CPU.
#pragma once

#include "transport/errc.hpp"
#include "transport/peer.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace shoal::transport {

/// Names one bulk transfer between two peers. The layer above builds it from
/// {sub-plan digest, link, sequence}, so that no stale data matches.
struct bulk_tag {
  std::uint64_t plan = 0;     ///< digest of the job's sub-plan
  std::uint32_t link = 0;     ///< which link of that sub-plan
  std::uint32_t sequence = 0; ///< which transfer on that link
  friend bool operator==(const bulk_tag&, const bulk_tag&) = default;
  friend auto operator<=>(const bulk_tag&, const bulk_tag&) = default;
};

/// Runs exactly once, on the progress thread.
struct completion {
  void (*run)(void* context, std::error_code result) noexcept = nullptr;
  void* context = nullptr;
};

/// A peer that has proved its identity.
struct peer_info {
  peer_id id{};
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;     ///< random, one per process start
  std::uint64_t capabilities = 0; ///< bits the peer advertised; 0: none
  std::string remote_address;     ///< "host:port", to be shown to users
};

/// The events that a fabric reports to its node. They run on the progress
/// thread and must not wait.
class fabric_handler {
public:
  virtual ~fabric_handler() = default;
  virtual void up(const peer_info& peer) = 0;
  virtual void down(const peer_id& peer, std::error_code reason) = 0;
  /// A control message; `bytes` is valid during the call only.
  virtual void
  message(const peer_id& peer, std::span<const std::byte> bytes) = 0;
  /// An outgoing connect() failed before the peer was up.
  virtual void
  connect_failed(const std::string& address, std::error_code reason) = 0;
  /// `peer` answers at a dialled `address`, and is up, perhaps by an earlier
  /// connection. Runs after up(). Only tls reports this, since only its
  /// addresses are entered by users.
  virtual void reached(const std::string& address, const peer_id& peer) {
    (void)address;
    (void)peer;
  }
};

/// Bytes moved with one peer since it came up, for `shoal status`.
struct traffic {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

/// One transport instance: tls::, shm::, ucx:: or loopback::fabric.
class fabric {
public:
  virtual ~fabric() = default; ///< Does the same as close().

  /// "tls", "shm", "ucx" or "loopback".
  virtual std::string_view name() const noexcept = 0;

  /// The longest control message that send() accepts.
  virtual std::size_t message_bytes_max() const noexcept = 0;

  /// The text that a peer passes to connect() to reach this node: "host:port"
  /// for tls, an opaque text for shm and ucx, a name for loopback.
  virtual std::string local_address() const = 0;

  /// Starts to connect. Ends in handler.up or handler.connect_failed, or in
  /// neither if the peer is up already. Two calls, or a call while the peer
  /// connects to us, give one up.
  virtual void connect(const std::string& address) = 0;

  /// Sends a control message. @returns would_block, peer_lost or too_large.
  [[nodiscard]] virtual std::error_code
  send(const peer_id& to, std::span<const std::byte> message) = 0;

  /// Posts `into` for the transfer `tag` from `from`. It is posted for
  /// everything that `from` sends after this call has returned. The
  /// completion's error is corrupt, size_mismatch, peer_lost or canceled. A tag
  /// posted twice is filled in the order of posting. @returns would_block or
  /// peer_lost.
  [[nodiscard]] virtual std::error_code
  post_receive(const peer_id& from, bulk_tag tag, std::span<std::byte> into,
               completion done) = 0;

  /// Sends `bytes` into the memory that `to` has posted under `tag`. `done`
  /// runs without error when the peer holds the bytes and their checksum
  /// agreed. Its errors are not_posted, size_mismatch, corrupt, peer_lost and
  /// canceled.
  /// @returns would_block or peer_lost.
  [[nodiscard]] virtual std::error_code
  send_bulk(const peer_id& to, bulk_tag tag, std::span<const std::byte> bytes,
            completion done) = 0;

  /// Ends every posted receive and queued send whose tag has this plan digest,
  /// with errc::canceled; each completion runs when its memory is free.
  virtual void cancel(std::uint64_t plan) = 0;

  /// Disconnects `peer` at once; handler.down follows if it was up.
  virtual void drop(const peer_id& peer) = 0;

  virtual traffic traffic_with(const peer_id& peer) const = 0;

  /// How long the progress thread has not run its loop since an earlier call of
  /// this asked it to; 0: it is running, as far as is known. Asks it again, at
  /// most once every look_every, so call this at least as often. A fabric whose
  /// silence other peers notice (tls: by heartbeats) may always return 0.
  virtual std::chrono::nanoseconds silent_for() { return {}; }
  static constexpr std::chrono::seconds look_every{1};

  /// Drops all peers, runs all completions, ends the progress thread. Later
  /// calls return canceled; a second close does nothing.
  virtual void close() = 0;
};

} // namespace shoal::transport
