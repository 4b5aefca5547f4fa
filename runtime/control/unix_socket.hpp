// runtime/control/unix_socket.hpp -- stream sockets that have a path.
//
// Threads: any. listen_unix() changes the process's umask for a moment.
#pragma once

#include "runtime/files/file.hpp" // unique_fd

#include <filesystem>

namespace shoal::runtime {

/// A listening Unix socket, mode 0600; replaces one that no process serves. The
/// path may be longer than a socket address allows. Throws setup_error.
unique_fd listen_unix(const std::filesystem::path& socket);

/// @returns an empty descriptor if no process listens there.
unique_fd connect_unix(const std::filesystem::path& socket);

} // namespace shoal::runtime
