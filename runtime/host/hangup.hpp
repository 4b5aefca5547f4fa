// runtime/host/hangup.hpp -- what SIGHUP does, as the process was given it.
//
// UCX installs a handler for SIGHUP when it is loaded, before main(): it prints
// a stack, and the process goes on. So closing a terminal would end nothing,
// and `nohup` could not be noticed.
//
// Threads: call restore_hangup() before any thread is started.
#pragma once

namespace shoal::runtime {

/// Whether the process was started with SIGHUP ignored, as `nohup` does.
bool hangup_is_ignored() noexcept;

/// Gives SIGHUP back what the process was started with: ignored, or its
/// default, which ends the process.
void restore_hangup() noexcept;

} // namespace shoal::runtime
