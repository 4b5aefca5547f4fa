// kernels/check.hpp -- aborts when a kernel is called with shapes that do not
// agree. Private to kernels/: include it from .cpp files only.
#pragma once

namespace shoal::kernels {

/// Prints what was broken and where, and aborts.
[[noreturn]] void
check_failed(const char* what, const char* file, int line) noexcept;

} // namespace shoal::kernels

#define SHOAL_KERNEL_ASSERT(condition)                                         \
  ((condition)                                                                 \
     ? static_cast<void>(0)                                                    \
     : ::shoal::kernels::check_failed(#condition, __FILE__, __LINE__))
