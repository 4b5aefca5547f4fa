// tests/fuzz/near_frames_fuzz.cpp -- data from clients on the control socket.
//
// The first byte chooses: the rest is the stream itself, or messages that are
// put into frames, so that complete ones occur at once. The same stream is read
// twice, cut in different places, like the control socket does: nothing more is
// read while a message waits. Both times the same messages result, and their
// frames are the stream; the held bytes stay within their bound.
#include "runtime/control/frames.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/wire/codec.hpp"

#include <algorithm>

using namespace shoal::runtime;

namespace {

using bytes = std::vector<std::byte>;

struct outcome {
  std::vector<bytes> messages;
  bool broken = false;
  std::size_t rest = 0;
  friend bool operator==(const outcome&, const outcome&) = default;
};

outcome read_all(std::span<const std::byte> stream, std::uint32_t cuts) {
  frame_reader in;
  outcome out;
  bytes message;
  while (!in.broken() && !(stream.empty() && !in.whole())) {
    if (in.whole()) {
      if (in.next(message)) {
        SHOAL_ASSERT(message.size() <= codec::message_bytes_max);
        out.messages.push_back(message);
      } else {
        SHOAL_ASSERT(in.broken());
      }
      continue;
    }
    SHOAL_ASSERT(!in.next(message) && !in.broken());
    cuts = cuts * 1664525 + 1013904223;
    std::size_t part = std::min(stream.size(), frame_read_bytes);
    if (cuts & 1)
      part = std::min<std::size_t>(part, 1 + (cuts >> 8) % 9);
    in.add(stream.first(part));
    stream = stream.subspan(part);
    SHOAL_ASSERT(in.bytes() <= frame_length_bytes + codec::message_bytes_max
                                 + frame_read_bytes);
  }
  out.broken = in.broken();
  out.rest = in.bytes() + stream.size();
  return out;
}

/// Cuts the input into messages, each after its frame's length.
bytes framed(std::span<const std::uint8_t> data) {
  bytes out;
  while (!data.empty()) {
    const std::size_t n = data[0];
    const auto part = data.subspan(1, std::min(n, data.size() - 1));
    const auto begin = std::as_bytes(part);
    bytes message(begin.begin(), begin.end());
    const bytes f = frame(message);
    out.insert(out.end(), f.begin(), f.end());
    data = data.subspan(1 + part.size());
  }
  const auto rest = std::as_bytes(data);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2)
    return 0;
  const std::span<const std::uint8_t> rest(data + 2, size - 2);
  bytes stream;
  if (data[0] % 2 == 0) {
    const auto raw = std::as_bytes(rest);
    stream.assign(raw.begin(), raw.end());
  } else {
    stream = framed(rest);
  }
  const outcome a = read_all(stream, data[1] * 2u);
  SHOAL_ASSERT(a == read_all(stream, 12345));
  bytes again;
  for (const bytes& m : a.messages) {
    const bytes f = frame(m);
    again.insert(again.end(), f.begin(), f.end());
  }
  SHOAL_ASSERT(again.size() + a.rest == stream.size());
  SHOAL_ASSERT(std::equal(again.begin(), again.end(), stream.begin()));
  return 0;
}
