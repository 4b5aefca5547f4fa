// kernels/reference/backend.cpp -- makes the reference backend.
#include "kernels/reference/backend.hpp"

namespace shoal::kernels {

std::unique_ptr<backend> make_reference_backend() {
  return std::make_unique<reference::reference_backend>();
}

} // namespace shoal::kernels
