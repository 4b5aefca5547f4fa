// transport/ucx/host.hpp -- what this process must know and do about its host.
#pragma once

#include "transport/ucx/address.hpp"

namespace shoal::transport::ucx {

/// Reads the identity of this machine, user and pid namespace.
/// @throws std::system_error if /proc cannot be read
host_id this_host();

/// 64 bits that nobody can guess, never zero.
/// @throws std::system_error if the kernel has none
std::uint64_t random_token();

/// Gives SIGILL, SIGSEGV, SIGBUS and SIGFPE back where UCX, which takes them
/// when it is loaded, still has them. Handlers of others are left alone.
void release_signals() noexcept;

/// Opens a descriptor that becomes readable when process `pid` ends.
/// @returns -1 if there is no such process, or no permission
int open_pidfd(std::uint32_t pid) noexcept;

} // namespace shoal::transport::ucx
