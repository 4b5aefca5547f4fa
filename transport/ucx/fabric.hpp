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
// verified the checksum (over a network) and said so. A dead peer of this
// machine is noticed by its pidfd within milliseconds, others by a ping or the
// UCX keepalive, or when something sent is not acknowledged, after seconds; the
// caller, who may know sooner, and who alone notices a peer that hangs, drops
// it: then everything ends at once.
//
// Threads:   as transport/fabric.hpp. One progress thread owns the UCX worker.
//            It spins config::spin after work, then sleeps.
// Ownership: the handler outlives the fabric.
// Errors:    the constructor throws std::system_error or std::runtime_error
//            if UCX cannot do the medium with peer error handling here.
#pragma once

#include "transport/paired/address.hpp"
#include "transport/paired/fabric.hpp"
#include "transport/ucx/devices.hpp"

namespace shoal::transport::ucx {

using namespace paired;

struct config : paired::config {
  medium over = medium::ucx_memory;
  /// Not shared memory: as UCX names them, "mlx5_0:1,mlx5_1:1", "eth0".
  std::string devices;
  /// TCP: it listens on addresses in these, and dials no other.
  std::vector<network> trusted;
  /// Transfers of at least so many bytes go by rendezvous. Lower means less
  /// copying, higher means fewer round trips.
  std::size_t rendezvous_bytes_min = 32 * 1024;
};

class fabric final : public paired::fabric {
public:
  fabric(config settings, fabric_handler& handler);
};

} // namespace shoal::transport::ucx
