// transport/tls/fabric.hpp -- the fabric over TLS 1.3 on TCP sockets.
//
// Both ends show a self-signed Ed25519 certificate; a peer's id is the hash of
// its key. Each then proves with one fixed-size frame that it holds the
// cluster key: an HMAC over the TLS exporter, so that a proof is worth nothing
// on another connection. Until then nothing but TLS and that frame is read,
// and a deadline runs. The dialled end proves itself second, so a stranger
// learns nothing.
//
// A peer is reached by several sockets: connections carry control messages,
// streams bulk, so that no transfer delays a message. Two connections may
// exist, one dialled by each end; each end sends on the one it authenticated
// first and accepts on both. Streams are opened when there is bulk to move, by
// the end that can dial. Loss of any is loss of the peer. A peer that shows
// another instance is a new process: down, then up.
//
// Threads:   as transport/fabric.hpp; one progress thread.
// Ownership: the handler must outlive the fabric.
// Cost:      bulk bytes are hashed and encrypted once on each side, and are
//            decrypted into the posted memory.
// Errors:    the constructor throws std::system_error when the address cannot
//            be bound, std::invalid_argument when it is no "host:port".
#pragma once

#include "transport/fabric.hpp"
#include "transport/limits.hpp"
#include "transport/tls/admission.hpp"
#include "transport/tls/identity.hpp"
#include "transport/tls/keyring.hpp"

#include <chrono>
#include <functional>

namespace shoal::transport::tls {

/// What a TLS fabric needs. Plain data.
struct config {
  /// "127.0.0.1:0", "[::]:7000"; port 0: any free one. Empty: dial only.
  std::string listen = "127.0.0.1:0";
  private_key identity{};
  shared_key cluster_key{}; ///< of a member or client; set_keys() changes it
  /// Who may answer a dial; empty: whoever proves the key.
  std::optional<peer_id> expected;
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;     ///< random per process: make_instance()
  std::uint64_t capabilities = 0; ///< shown to peers as they are
  limits queue{};

  /// Time for resolve, connect, TLS and proof together. Higher tolerates
  /// slower links at the cost of strangers that hold a slot for longer.
  std::chrono::milliseconds handshake_max{5000};
  /// Places and handshakes of those who have not proved themselves.
  admission_limits door{};
  /// Bytes that one may send before that, and a server that we dial. An
  /// honest one sends 1,500.
  std::size_t unproved_bytes_max = 8192;
  /// Processor time that one may cost before that. An honest one costs 1 ms;
  /// the bytes above, 2 ms whatever they are. So this is a second line, far
  /// enough for slow and emulated machines.
  std::chrono::milliseconds unproved_work_max{50};
  std::size_t connections_max = 1024; ///< all together; more are closed
  /// That bulk is sent over, per peer, 1 .. 15. More may carry more over long
  /// ways, where each socket's window is the limit, at the cost of sockets.
  std::size_t bulk_streams = 1;
  std::size_t dials_max = 256; ///< connect() calls in progress

  /// A peer that was heard so lately is alive: another process with its
  /// identity is refused. 0: the other process takes its place. Of two that
  /// meet each other, the higher instance is refused.
  std::chrono::milliseconds alive_window{0};
  /// An address refused us, or shows our own identity from another process.
  /// On the progress thread; may be empty.
  std::function<void(refusal why, const std::string& address)> refused;

  /// One line per event that a person may want to know. On the progress
  /// thread; may be empty.
  std::function<void(std::string_view)> log;
};

class fabric final : public transport::fabric {
public:
  fabric(config settings, fabric_handler& handler);
  ~fabric() override;

  /// The id that belongs to config::identity.
  const peer_id& id() const noexcept;

  std::string_view name() const noexcept override { return "tls"; }
  std::size_t message_bytes_max() const noexcept override;
  std::string local_address() const override;
  void connect(const std::string& address) override;
  [[nodiscard]] std::error_code
  send(const peer_id& to, std::span<const std::byte> message) override;
  [[nodiscard]] std::error_code
  post_receive(const peer_id& from, bulk_tag tag, std::span<std::byte> into,
               completion done) override;
  [[nodiscard]] std::error_code
  send_bulk(const peer_id& to, bulk_tag tag, std::span<const std::byte> bytes,
            completion done) override;
  void cancel(std::uint64_t plan) override;
  void drop(const peer_id& peer) override;
  /// Replaces what was given as config::cluster_key; peers that it revokes
  /// are dropped at once.
  void set_keys(keyring keys);
  traffic traffic_with(const peer_id& peer) const override;
  void close() override;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::transport::tls
