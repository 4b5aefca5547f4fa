// tests/fuzz/manifest_fuzz.cpp -- checkpoint manifests from other peers.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/core/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto m =
    shoal::actors::parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!m)
    return 0;
  for (const auto& f : m->files)
    SHOAL_ASSERT(f.name.find('/') == std::string::npos && f.name[0] != '.');
  auto again = shoal::actors::parse_manifest(shoal::actors::to_json(*m));
  SHOAL_ASSERT(again && again->files.size() == m->files.size());
  return 0;
}
