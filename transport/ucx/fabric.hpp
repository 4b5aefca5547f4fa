// transport/ucx/fabric.hpp -- the fabric over UCX: one medium each.
//
// Shared memory: peers of one machine, that is same boot, same user, same pid
// namespace; every other address ends in connect_failed(errc::unreachable).
// RDMA (rc and ud verbs) and TCP: peers that `devices` reach. Both trust their
// network (devices.hpp), since neither has a secret that keeps out a stranger
// there. Two nodes exchange local_address() over an authenticated channel, and
// then BOTH call connect(): a node is ignored if it was not introduced, or if
// it does not know the secret in the other's address.
//
// Bulk bytes travel as UCX active messages, large ones by rendezvous straight
// into the posted region. The sender's completion runs when the receiver has
// verified the checksum (over a network) and said so. A dead peer of this
// machine is noticed by its pidfd within milliseconds. Others are noticed after
// seconds, by a ping, by the UCX keepalive, or because they do not acknowledge.
// The caller may know sooner, and only the caller notices a peer that hangs; it
// drops the peer, which ends everything at once.
//
// Threads:   as transport/fabric.hpp. One progress thread owns the UCX worker.
//            It spins for config::spin after work, then sleeps.
// Ownership: the handler must outlive the fabric.
// Errors:    the constructor throws std::system_error or std::runtime_error if
//            UCX does not support the medium with peer error handling here.
#pragma once

#include "transport/introduced/address.hpp"
#include "transport/introduced/fabric.hpp"
#include "transport/ucx/devices.hpp"

namespace shoal::transport::ucx {

using namespace introduced;

struct config : introduced::config {
  medium over = medium::ucx_memory;
  /// For all but shared memory: as UCX names them, "mlx5_0:1,mlx5_1:1", "eth0".
  std::string devices;
  /// TCP: listens on addresses in these, and dials no others.
  std::vector<network> trusted;
  /// Transfers of at least this size go by rendezvous. Lower means less
  /// copying, higher means fewer round trips.
  std::size_t rendezvous_bytes_min = 32 * 1024;
};

class fabric final : public introduced::fabric {
public:
  fabric(config settings, fabric_handler& handler);
};

} // namespace shoal::transport::ucx
