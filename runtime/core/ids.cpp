// runtime/core/ids.cpp -- how ids are shown.
#include "runtime/core/ids.hpp"

namespace shoal::core {

std::string short_name(const peer_id& id) {
  return to_hex(id).substr(0, 8);
}

} // namespace shoal::core
