// tests/fuzz/frame_fuzz.cpp -- any bytes into the frame reader.
//
// The first byte is the seed for cutting the stream into reads. The same bytes
// are read a second time in one piece each: the reports must not depend on the
// cuts. The sink posts memory of exactly the announced size and aborts if the
// reader would write elsewhere or report data that did not come.
#include "transport/assert.hpp"
#include "transport/tls/frame.hpp"

#include <algorithm>
#include <cstring>

namespace {

using namespace shoal::transport;
using namespace shoal::transport::tls;

constexpr std::uint64_t posted_bytes_max = 1 << 16;

class sink final : public frame_sink {
public:
  void on_control(std::span<const std::byte> message) override {
    note('c', message.size(), message.empty() ? 0 : int(message.back()));
  }
  void on_bulk_header(std::uint64_t transfer, bulk_tag tag,
                      std::uint64_t bytes) override {
    SHOAL_ASSERT(!regions.contains(transfer));
    note('h', transfer, tag.plan ^ tag.link ^ tag.sequence ^ bytes);
    auto& r = regions[transfer];
    r.total = bytes;
    r.posted = bytes <= posted_bytes_max && transfer % 3 != 0;
    if (r.posted)
      r.memory = std::make_unique<std::byte[]>(bytes); // exact, for the checker
  }
  std::span<std::byte>
  bulk_room(std::uint64_t transfer, std::size_t bytes) override {
    auto& r = regions.at(transfer);
    SHOAL_ASSERT(r.fill + bytes <= r.total);
    if (!r.posted)
      return {};
    return {r.memory.get() + r.fill, bytes};
  }
  void on_bulk_bytes(std::uint64_t transfer, std::size_t bytes) override {
    auto& r = regions.at(transfer);
    SHOAL_ASSERT(r.posted);
    r.fill += bytes;
    SHOAL_ASSERT(r.fill <= r.total);
  }
  void on_bulk_end(std::uint64_t transfer, std::uint64_t checksum) override {
    const auto& r = regions.at(transfer);
    SHOAL_ASSERT(!r.posted || r.fill == r.total);
    note('e', transfer, checksum);
    for (std::uint64_t i = 0; r.posted && i < r.total; ++i)
      note('b', i, int(r.memory[i]));
    regions.erase(transfer);
  }
  void on_bulk_abort(std::uint64_t transfer) override {
    SHOAL_ASSERT(regions.erase(transfer) == 1);
    note('a', transfer, 0);
  }
  bool on_bulk_ack(std::uint64_t transfer, verdict v) override {
    note('k', transfer, static_cast<std::uint64_t>(v));
    return transfer < 100;
  }
  void on_streams(std::uint32_t count) override { note('s', count, 0); }
  void note(char what, std::uint64_t a, std::uint64_t b) {
    for (const auto x : {static_cast<std::uint64_t>(what), a, b})
      digest = (digest ^ x) * 0x100000001b3u;
  }

  struct region {
    std::uint64_t total = 0;
    std::uint64_t fill = 0;
    bool posted = false;
    std::unique_ptr<std::byte[]> memory;
  };
  std::map<std::uint64_t, region> regions;
  std::uint64_t digest = 1469598103934665603u;
};

std::uint64_t read_all(std::span<const std::uint8_t> data, std::uint32_t cuts,
                       stream_kind kind) {
  sink s;
  frame_reader reader(s, kind);
  while (!data.empty()) {
    const auto room = reader.room();
    SHOAL_ASSERT(!room.empty());
    cuts = cuts * 1664525 + 1013904223;
    auto bytes = std::min(room.size(), data.size());
    if (cuts & 1)
      bytes = std::min<std::size_t>(bytes, 1 + (cuts >> 8) % 7);
    std::memcpy(room.data(), data.data(), bytes);
    data = data.subspan(bytes);
    if (const auto* wrong = reader.commit(bytes)) {
      s.note('!', std::strlen(wrong), 0);
      break;
    }
    SHOAL_ASSERT(s.regions.size() <= open_transfers_max);
  }
  return s.digest;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::span stream(data + 1, size - 1);
  for (const auto kind : {stream_kind::control, stream_kind::bulk})
    SHOAL_ASSERT(read_all(stream, data[0] * 2u, kind)
                 == read_all(stream, 12345, kind));
  return 0;
}
