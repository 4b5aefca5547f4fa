// transport/tls/fabric.hpp -- the fabric over TLS 1.3 on TCP sockets.
//
// Both ends show a self-signed Ed25519 certificate; a peer's id is the hash of
// its key. Each end then proves with one fixed-size frame that it holds the
// cluster key: an HMAC over the TLS exporter, so that a proof is worthless on
// another connection. Until then only TLS and that frame are read, and a
// deadline runs. The dialled end sends its proof second, so a stranger learns
// nothing.
//
// A peer is reached by several sockets: connections carry control messages,
// streams carry bulk, so that no transfer delays a message. There may be two
// connections, one dialled by each end; each end sends on the one that it
// authenticated first and accepts on both. The end that can dial opens streams
// when there is bulk to move. The loss of any of them is the loss of the peer.
// A peer that shows another instance is a new process: down, then up.
//
// Threads:   as transport/fabric.hpp; one progress thread.
// Ownership: the handler must outlive the fabric.
// Cost:      bulk bytes are hashed and encrypted once on each side, and are
//            decrypted into the posted memory.
// Errors:    the constructor throws std::system_error if the address cannot be
//            bound, std::invalid_argument if it is not "host:port".
#pragma once

#include "transport/fabric.hpp"
#include "transport/limits.hpp"
#include "transport/tls/admission.hpp"
#include "transport/tls/identity.hpp"
#include "transport/tls/keyring.hpp"

#include <chrono>
#include <functional>

namespace shoal::transport::tls {

/// The settings of a TLS fabric. Plain data.
struct config {
  /// "127.0.0.1:0", "[::]:7000"; port 0: any free one. Empty: dial only.
  std::string listen = "127.0.0.1:0";
  private_key identity{};
  shared_key cluster_key{}; ///< of a member or client; set_keys() changes it
  /// The peer that may answer a dial; empty: any peer that proves the key.
  std::optional<peer_id> expected;
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;     ///< random per process: make_instance()
  std::uint64_t capabilities = 0; ///< shown to peers unchanged
  /// The version of the rules by which members plan. Peers that plan otherwise
  /// could never agree, so only clients may name another; they are not compared.
  std::uint32_t planner = 0;
  limits queue{};

  /// Time for resolve, connect, TLS and proof together. Higher tolerates slower
  /// links, at the cost of strangers that hold a slot for longer.
  std::chrono::milliseconds handshake_max{5000};
  /// Places and handshakes of connections that have not proved themselves.
  admission_limits door{};
  /// Bytes that such a connection, or a server that we dial, may send. An
  /// honest one sends 1,500.
  std::size_t unproved_bytes_max = 8192;
  /// Processor time that such a connection may cost. An honest one costs 1 ms;
  /// the bytes above cost 2 ms whatever they are. So this is a second line of
  /// defence, with enough room for slow and emulated machines.
  std::chrono::milliseconds unproved_work_max{50};
  std::size_t connections_max = 1024; ///< all together; more are closed
  /// Bulk streams per peer, 1 .. 15. More may be faster over long distances,
  /// where the window of each socket is the limit, at the cost of sockets.
  std::size_t bulk_streams = 1;
  std::size_t dials_max = 256; ///< connect() calls in progress

  /// A peer that sent bytes within this time is alive: another process with its
  /// identity is refused. 0: the other process takes its place. If two such
  /// processes meet, the one with the higher instance is refused.
  std::chrono::milliseconds alive_window{0};
  /// Called if an address refused us, or shows our own identity from another
  /// process. On the progress thread; may be empty.
  std::function<void(refusal why, const std::string& address)> refused;

  /// Writes one line per event of interest to users. Called on the progress
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
  /// Replaces config::cluster_key; peers that the keyring revokes are dropped
  /// at once.
  void set_keys(keyring keys);
  /// Runs `event` on the progress thread, or drops it when the fabric closes.
  void run_soon(std::function<void()> event);
  traffic traffic_with(const peer_id& peer) const override;
  void close() override;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::transport::tls
