// tests/fuzz/hub_listing_fuzz.cpp -- any bytes as the hub's list of files, and
// as a name. What is accepted must stay in its folder.
#include "runtime/hub/hub_listing.hpp"
#include "runtime/hub/hub_name.hpp"

#include <cstdlib>
#include <filesystem>

using namespace shoal::hub;

static void check_path(const std::string& path) {
  const std::filesystem::path place = path;
  if (path.empty() || place.is_absolute()
      || place.lexically_normal().string() != path || *place.begin() == "..")
    std::abort();
}

extern "C" int
LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto listing = parse_listing(text, "the hub")) {
    if (!is_commit(listing->commit))
      std::abort();
    for (const hub_file& file : listing->files) {
      check_path(file.path);
      const std::size_t digits = file.kind == hash_kind::sha256 ? 64 : 40;
      if (!file.hash.empty()
          && (file.hash.size() != digits || !is_hex(file.hash)))
        std::abort();
      if (file.bytes > file_bytes_max)
        std::abort();
    }
    static_cast<void>(describing_files(*listing));
    static_cast<void>(gguf_files(*listing));
  }
  if (const auto name = parse_name(text)) {
    check_path(name->repository);
    check_path(name->revision);
    if (!name->file.empty())
      check_path(name->file);
  }
  return 0;
}
