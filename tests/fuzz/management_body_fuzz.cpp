// tests/fuzz/management_body_fuzz.cpp -- any bytes as the body of a request that
// changes something.
#include "apps/manage/management_bodies.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

using namespace shoal;

namespace {

/// A refusal names what is wrong, in a text that JSON can have.
template <class Request>
const Request* taken(const apps::parsed<Request>& from) {
  if (const auto* const error = std::get_if<openai::api_error>(&from)) {
    SHOAL_ASSERT(error->status == 400 && !error->message.empty());
    SHOAL_ASSERT(core::is_utf8(error->message) && core::is_utf8(error->param));
  }
  return std::get_if<Request>(&from);
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto parsed = apps::parse_train(bytes);
      const auto* r = taken(parsed))
    SHOAL_ASSERT(!r->run.empty());
  if (const auto parsed = apps::parse_load(bytes);
      const auto* r = taken(parsed))
    SHOAL_ASSERT(!r->model.empty() && r->pipelines <= 64
                 && r->context <= 1u << 17);
  if (const auto parsed = apps::parse_unload(bytes);
      const auto* r = taken(parsed))
    SHOAL_ASSERT(!r->model.empty());
  static_cast<void>(taken(apps::parse_cancel(bytes)));
  return 0;
}
