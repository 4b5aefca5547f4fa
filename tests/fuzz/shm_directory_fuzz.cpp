// tests/fuzz/shm_directory_fuzz.cpp -- another process's directory and channel
// head, which change between any two looks.
//
// The input is a list of writes, with the engine's reads between them: who is
// it, is there a channel for us, what is in its ring, how far has it read ours,
// is a transfer still in its place. A write goes to any word and is a critical
// value there (a token, the magic number, a position in a ring), or any value.
// Memory has the exact size, so that the checker sees every byte outside it.
// Every accepted value must have been written.
#include "transport/assert.hpp"
#include "transport/shm/exposed.hpp"
#include "transport/shm/foreign.hpp"
#include "transport/shm/ring.hpp"

#include <cstring>
#include <memory>
#include <new>

using namespace shoal::transport::shm;

namespace {

constexpr std::uint64_t ours = 11, theirs = 12, connection = 13, own = 14;
constexpr std::size_t small_ring = 1024; ///< instead of ring_bytes
constexpr std::size_t arena_bytes = 4096;

/// Bytes of the input, and 0 when there are no more.
class input {
public:
  input(const std::uint8_t* data, std::size_t size)
    : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0)
      return 0;
    --left_;
    return *data_++;
  }
  std::uint64_t word(int bytes) {
    std::uint64_t out = 0;
    for (int i = 0; i != bytes; ++i)
      out = out << 8 | byte();
    return out;
  }

private:
  const std::uint8_t* data_;
  std::size_t left_;
};

/// Memory of another process, with its exact size.
template <class Head>
class foreign_memory {
public:
  explicit foreign_memory(std::size_t bytes)
    : bytes_(bytes), base_(static_cast<std::byte*>(
                       ::operator new(bytes, std::align_val_t(line_bytes)))) {
    std::memset(base_, 0, bytes);
    new (base_) Head;
  }
  ~foreign_memory() { ::operator delete(base_, std::align_val_t(line_bytes)); }
  foreign_memory(const foreign_memory&) = delete;
  foreign_memory& operator=(const foreign_memory&) = delete;

  std::span<const std::byte> bytes() const { return {base_, bytes_}; }
  Head& head() { return *std::launder(reinterpret_cast<Head*>(base_)); }
  void write(std::size_t word, std::uint64_t value) {
    std::memcpy(base_ + word % (bytes_ / 8) * 8, &value, sizeof value);
  }

private:
  std::size_t bytes_;
  std::byte* base_;
};

struct world {
  foreign_memory<directory> names{sizeof(directory)};
  foreign_memory<channel_head> channel{ring_offset + small_ring};
  std::vector<std::byte> arena = std::vector<std::byte>(arena_bytes);
  std::vector<std::byte> own_ring = std::vector<std::byte>(small_ring);
  ring_reader reader{channel.bytes().subspan(ring_offset, small_ring)};
  ring_writer writer{own_ring};
  bool over = false;
  unsigned sum = 0; ///< so that every byte is read

  void touch(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes)
      sum += std::to_integer<unsigned>(b);
  }
};

std::uint64_t value(input& in, world& w) {
  switch (in.byte() % 12) {
  case 0:
    return ours;
  case 1:
    return theirs;
  case 2:
    return connection;
  case 3:
    return own;
  case 4:
    return magic;
  case 5:
    return w.reader.taken() + in.byte() % 20 * line_bytes;
  case 6:
    return w.writer.written() - in.byte() % 20 * line_bytes;
  case 7:
    return in.byte();
  case 8:
    return std::uint64_t(in.byte() % 8) << 32 | in.byte(); // a frame's kind
  case 9:
    return 0 - std::uint64_t(in.byte());
  case 10:
    return in.word(2);
  default:
    return in.word(8);
  }
}

/// The most critical words are written more often than the others.
void write(input& in, world& w) {
  channel_head& head = w.channel.head();
  switch (in.byte() % 8) {
  case 0:
    return head.written.store(value(in, w));
  case 1:
    return head.taken.store(value(in, w));
  case 2:
    return head.hears.store(value(in, w));
  case 3:
    return head.exposed[in.byte() % 4].store(value(in, w));
  case 4:
    return w.names.write(in.word(2), value(in, w));
  case 5: // the next frame
    return w.channel.write(
      (ring_offset + (w.reader.taken() + in.byte() % 32 * 8) % small_ring) / 8,
      value(in, w));
  default:
    return w.channel.write(in.word(2), value(in, w));
  }
}

void look_at_directory(world& w, std::uint64_t known) {
  const auto* found = directory_in(w.names.bytes(), theirs);
  SHOAL_ASSERT(
    (found != nullptr)
    == (w.names.head().magic == magic && w.names.head().token == theirs));
  if (found == nullptr)
    return;
  if (const auto arena = arena_of(*found, arena_bytes))
    SHOAL_ASSERT(arena->bytes != 0 && arena->bytes <= arena_bytes);
  const auto channel = channel_for(*found, ours, known);
  if (!channel)
    return;
  SHOAL_ASSERT(channel->connection != 0 && channel->connection != known);
  const auto* head =
    channel_in(w.channel.bytes(), theirs, ours, channel->connection);
  SHOAL_ASSERT(head == nullptr || head->connection == channel->connection);
}

/// Like engine::receive() and engine::read().
void read_ring(world& w) {
  const channel_head& head = w.channel.head();
  for (int turn = 0; turn != 40 && !w.over; ++turn) {
    frame f;
    std::span<const std::byte> payload;
    const auto result = w.reader.next(head.written, f, payload);
    w.over = result == ring_reader::result::broken;
    if (result != ring_reader::result::frame)
      return;
    SHOAL_ASSERT(payload.size() <= payload_bytes_max);
    w.touch(payload);
    if (const auto at = place_of(f, w.arena)) {
      w.touch(*at);
      w.sum += is_exposed(head, f.slot, f.transfer);
    }
    w.reader.pop();
  }
}

/// Like engine::send().
void write_ring(input& in, world& w) {
  const std::uint64_t taken = w.channel.head().taken;
  if (!w.writer.plausible(taken)) {
    w.over = true;
    return;
  }
  const auto room = w.writer.room(taken);
  if (!room)
    return;
  const std::vector<std::byte> payload(in.word(2) % (*room + 1));
  w.writer.put({}, payload);
  SHOAL_ASSERT(w.writer.written() - taken <= small_ring);
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  world w;
  w.names.head().token = theirs;
  channel_head& head = w.channel.head();
  head.from = theirs;
  head.to = ours;
  head.connection = connection;
  while (!in.empty() && !w.over) {
    switch (in.byte() % 6) {
    case 0:
      look_at_directory(w, in.byte() % 2 == 0 ? 0 : connection);
      break;
    case 1:
      w.sum += hears(head, own);
      break;
    case 2:
      read_ring(w);
      break;
    case 3:
      write_ring(in, w);
      break;
    default:
      write(in, w);
    }
  }
  if (w.sum == 0xffffffff) // it is used
    SHOAL_ASSERT(size > 0);
  return 0;
}
