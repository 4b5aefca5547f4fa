// runtime/host/hangup.cpp -- looks before shared libraries are initialised.
#include "runtime/host/hangup.hpp"

#include <csignal>

namespace shoal::runtime {
namespace {

bool ignored_at_start = false;

void look() {
  struct sigaction now {};
  ignored_at_start =
    ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// Runs before the constructors of shared libraries (System V ABI, chapter
/// "Initialization and Termination Functions").
[[gnu::section(".preinit_array"), gnu::used]] void (*const first)() = look;

} // namespace

bool hangup_is_ignored() noexcept {
  return ignored_at_start;
}

void restore_hangup() noexcept {
  std::signal(SIGHUP, ignored_at_start ? SIG_IGN : SIG_DFL);
}

} // namespace shoal::runtime
