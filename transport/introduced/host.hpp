// transport/introduced/host.hpp -- identity and processes of this host.
#pragma once

#include "transport/introduced/address.hpp"

namespace shoal::transport::introduced {

/// Reads the identity of this machine, user and pid namespace.
/// @throws std::system_error if /proc cannot be read
host_id this_host();

/// A random number of 64 bits, never zero, for a secret.
/// @throws std::system_error if the kernel has none
std::uint64_t random_token();

/// Opens a descriptor that becomes readable when process `pid` ends.
/// @returns -1 if there is no such process, or no permission
int open_pidfd(std::uint32_t pid) noexcept;

} // namespace shoal::transport::introduced
