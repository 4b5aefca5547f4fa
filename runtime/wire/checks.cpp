// runtime/wire/checks.cpp -- checks texts and bytes from another machine.
#include "runtime/wire/checks.hpp"

namespace shoal::runtime::codec {

void checks::text(const std::string& in, std::size_t max, std::string& out,
                  core::line_ends ends) {
  if (in.size() > max)
    return fail(errc::too_large);
  if (!core::is_shown(in, ends))
    return fail(errc::corrupt);
  out = in;
}

void checks::bytes(const std::string& in, std::size_t max,
                   std::vector<std::byte>& out) {
  if (in.size() > max)
    return fail(errc::too_large);
  auto data = reinterpret_cast<const std::byte*>(in.data());
  out.assign(data, data + in.size());
}

} // namespace shoal::runtime::codec
