// transport/ucx/fabric.hpp -- the fabric over UCX: one medium each.
//
// Shared memory: peers of one machine, that is same boot, same user, same pid
// namespace; whatever else is asked for ends in
// connect_failed(errc::unreachable). RDMA (rc and ud verbs) and TCP: peers
// that `devices` reach; both trust their network (devices.hpp), since neither
// has a secret that keeps a stranger there out. Two nodes pass
// each other local_address() over a channel that has authenticated them, and
// then BOTH call connect(): a node that was not told about the other, or that
// does not know the secret in its address, is not listened to.
//
// Bulk bytes travel as UCX active messages, large ones by rendezvous straight
// into the posted region. The sender's completion runs when the receiver has
// verified the checksum (over a network) and said so. A dead peer of this machine is noticed by
// its pidfd within milliseconds, others by the UCX keepalive or when something
// sent is not acknowledged, after seconds; the caller, who may know sooner, and
// who alone notices a peer that hangs, drops it: then everything ends at once.
//
// Threads:   as transport/fabric.hpp. One progress thread owns the UCX worker.
//            It spins config::spin after work, then sleeps.
// Ownership: the handler outlives the fabric.
// Errors:    the constructor throws std::system_error or std::runtime_error
//            if UCX cannot do the medium with peer error handling here.
#pragma once

#include "transport/fabric.hpp"
#include "transport/limits.hpp"
#include "transport/ucx/address.hpp"

#include <chrono>
#include <functional>

namespace shoal::transport::ucx {

/// What a node says about itself, and its limits.
struct config {
  medium over = medium::shared_memory;
  /// Not shared memory: as UCX names them, "mlx5_0:1,mlx5_1:1", "eth0".
  std::string devices;
  peer_id self{};
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;     ///< random, one per process start
  std::uint64_t capabilities = 0; ///< shown to peers as they are
  limits queue{};

  /// Longest control message, in bytes; at most control_bytes_max.
  std::size_t message_bytes_max = control_bytes_max;
  /// Calls that wait for the progress thread, all peers together.
  std::size_t commands_max = 4096;
  /// Transfers of at least so many bytes go by rendezvous. Lower means less
  /// copying, higher means fewer round trips.
  std::size_t rendezvous_bytes_min = 32 * 1024;
  /// From connect() to the other's answer.
  std::chrono::milliseconds hello_timeout{2000};
  /// How long the progress thread polls after work before it sleeps. Higher
  /// means lower latency of sparse messages at the cost of a core.
  std::chrono::microseconds spin{30};

  /// One line per event that a person may want to know. On the progress
  /// thread; may be empty.
  std::function<void(std::string_view)> log;
};

class fabric final : public transport::fabric {
public:
  fabric(config settings, fabric_handler& handler);
  ~fabric() override;

  std::string_view name() const noexcept override { return "ucx"; }
  std::size_t message_bytes_max() const noexcept override;
  /// Secret: it carries the token by which peers are believed.
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
  traffic traffic_with(const peer_id& peer) const override;
  void close() override;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::transport::ucx
