// kernels/check.cpp -- the end of a process that broke a precondition.
#include "kernels/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace shoal::kernels {

void check_failed(const char* what, const char* file, int line) noexcept {
  std::fprintf(stderr, "[kernels] %s:%d: violated: %s\n", file, line, what);
  std::abort();
}

} // namespace shoal::kernels
