// tests/fuzz/shm_ring_fuzz.cpp -- rings written by a faulty process.
//
// The first bytes choose the announced write positions, in steps; the rest is
// the ring. Nothing outside the ring may be read, and for frames that refer to
// other memory, nothing outside that memory.
#include "transport/shm/exposed.hpp"
#include "transport/shm/ring.hpp"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

using namespace shoal::transport::shm;

namespace {

void read_all(std::span<const std::byte> bytes) {
  if (std::accumulate(
        bytes.begin(), bytes.end(), 0,
        [](int sum, std::byte b) { return sum + std::to_integer<int>(b); })
      < 0)
    std::abort();
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t ring = 1024, steps = 4;
  if (size < steps * 2)
    return 0;
  const auto memory = std::vector<std::byte>(ring);
  std::memcpy(const_cast<std::byte*>(memory.data()), data + steps * 2,
              std::min(ring, size - steps * 2));
  const std::vector<std::byte> elsewhere(size % 5 * 100);
  ring_reader reader(memory);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i != steps; ++i) {
    std::uint16_t more;
    std::memcpy(&more, data + 2 * i, sizeof more);
    written += more % 4 == 0 ? more : more / 16 % 17 * line_bytes;
    frame f;
    std::span<const std::byte> payload;
    for (;;) {
      const auto result = reader.next(written, f, payload);
      if (result == ring_reader::result::broken)
        return 0;
      if (result == ring_reader::result::none)
        break;
      read_all(payload);
      if (const auto place = place_of(f, elsewhere)) {
        read_all(*place);
        if (place->size() != f.total || f.slot >= exposed_max)
          std::abort();
      }
      reader.pop();
      if (reader.taken() > written)
        std::abort();
    }
  }
  return 0;
}
