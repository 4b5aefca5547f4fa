// tests/bench/blob_bench.cpp -- how fast a node gets blobs from another one.
//
//   blob_bench FROM TO [MB]
//
// FROM and TO are the data directories of two running nodes of one shoal. Blobs of
// 64 MB, random, are given to the first; then the second gets all of them, four at
// a time, as peers fetch the files of a model: through its hash, onto its disk.
#include "runtime/control/client.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace shoal;

namespace {

constexpr std::size_t blob_bytes = 64'000'000;
constexpr std::size_t at_once = 4;

runtime::client_config at(const char* folder) {
  runtime::client_config c;
  c.data_dir = folder;
  return c;
}

[[noreturn]] void fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "blob_bench: %s: %s\n", what, why.c_str());
  std::exit(1);
}

std::vector<core::blob_digest> put(const char* folder, std::size_t count) {
  runtime::client to(at(folder));
  if (to.connect())
    fail("the first node", to.text());
  std::mt19937_64 random(std::random_device{}());
  std::vector<core::blob_digest> out(count);
  std::vector<std::byte> bytes(blob_bytes);
  for (core::blob_digest& digest : out) {
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      const std::uint64_t x = random();
      std::memcpy(bytes.data() + i, &x, 8);
    }
    if (to.put_blob(bytes, digest))
      fail("an upload", to.text());
  }
  return out;
}

/// The node answers with the first bytes once it has all.
void get(const char* folder, const std::vector<core::blob_digest>& all,
         std::atomic<std::size_t>& next) {
  runtime::client from(at(folder));
  if (from.connect())
    fail("the second node", from.text());
  for (std::size_t i = next++; i < all.size(); i = next++) {
    bool come = false;
    (void)from.get_blob(all[i], [&](std::span<const std::byte>) {
      come = true;
      return std::make_error_code(std::errc::operation_canceled);
    });
    if (!come)
      fail("a fetch", from.text());
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    fail("usage", "blob_bench FROM TO [MB]");
  const std::size_t mb = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 512;
  const auto blobs =
    put(argv[1], std::max<std::size_t>(1, mb * 1'000'000 / blob_bytes));
  const auto begun = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < at_once; ++i)
    threads.emplace_back([&] { get(argv[2], blobs, next); });
  for (std::thread& t : threads)
    t.join();
  const double seconds =
    std::chrono::duration<double>(std::chrono::steady_clock::now() - begun)
      .count();
  std::printf("%zu blobs, %.0f MB in %.2f s: %.0f MB/s\n", blobs.size(),
              double(blobs.size() * blob_bytes) / 1e6, seconds,
              double(blobs.size() * blob_bytes) / 1e6 / seconds);
}
