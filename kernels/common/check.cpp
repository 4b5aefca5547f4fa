// kernels/common/check.cpp -- says what is violated.
#include "kernels/common/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace shoal::kernels {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "[kernels] %s:%d: violated: %s\n", file, line,
               condition);
  std::abort();
}

} // namespace shoal::kernels
