// runtime/identity/slot_file.cpp -- two slots, written in turn.
#include "runtime/identity/slot_file.hpp"

#include "runtime/core/setup_error.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/sha256.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

namespace {

constexpr char slot_magic[9] = "shoalrec";
constexpr std::size_t page = 4096; ///< no device tears a smaller write
constexpr std::size_t mark_at = page;
constexpr std::size_t record_at = 2 * page;
constexpr std::size_t head_bytes = 8 + 8 + 8 + 32;

void put(std::byte* to, std::uint64_t x) {
  for (std::size_t i = 0; i < 8; ++i)
    to[i] = static_cast<std::byte>(x >> (8 * i));
}

std::uint64_t get(const std::byte* from) {
  std::uint64_t x = 0;
  for (std::size_t i = 8; i-- > 0;)
    x = x << 8 | std::to_integer<std::uint64_t>(from[i]);
  return x;
}

/// The head and the record as they are stored in a slot, without the mark.
std::vector<std::byte>
image(std::uint64_t sequence, std::span<const std::byte> record) {
  std::vector<std::byte> out(record_at);
  std::vector<std::byte> summed(16 + record.size());
  put(summed.data(), sequence);
  put(summed.data() + 8, record.size());
  std::ranges::copy(record, summed.begin() + 16);
  const auto sum = sha256(summed);
  std::memcpy(out.data(), slot_magic, 8);
  std::memcpy(out.data() + 8, summed.data(), 16);
  std::memcpy(out.data() + 24, sum.data(), sum.size());
  out.insert(out.end(), record.begin(), record.end());
  return out;
}

/// The content of a slot; none if it is not complete.
std::optional<slot_file::content> read_slot(std::span<const std::byte> slot) {
  const std::uint64_t bytes = get(slot.data() + 16);
  if (std::memcmp(slot.data(), slot_magic, 8) != 0
      || bytes > slot.size() - record_at)
    return std::nullopt;
  slot_file::content out;
  out.sequence = get(slot.data() + 8);
  const auto record = slot.subspan(record_at, bytes);
  out.record.assign(record.begin(), record.end());
  const auto whole = image(out.sequence, out.record);
  if (std::memcmp(whole.data(), slot.data(), head_bytes) != 0)
    return std::nullopt;
  return out;
}

std::error_code
write_at(int fd, std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto n =
      ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno != EINTR)
      return posix::last_error();
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::size_t>(n);
    }
  }
  return {};
}

} // namespace

slot_file::slot_file(fs::path file) : file_(std::move(file)) {
}

std::optional<slot_file::content> slot_file::load() {
  room_ = 0;
  std::error_code error;
  if (!fs::exists(file_, error) && !error)
    return std::nullopt;
  auto damaged = [&](const std::string& why) {
    return setup_error(
      file_.string() + " is damaged (" + why
      + "): this peer may have voted, so it must not start from it. Move the "
        "data directory away: the node then joins as a new peer");
  };
  std::vector<std::byte> bytes;
  error = read_file(file_, 2 * (record_at + room_max), bytes);
  if (error)
    throw setup_error("cannot read " + file_.string() + ": " + error.message());
  const std::size_t half = bytes.size() / 2;
  if (half <= record_at || bytes.size() % (2 * page) != 0)
    throw damaged("cut off");
  std::array<std::optional<content>, 2> slots;
  std::array<std::uint64_t, 2> marks{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto slot = std::span(bytes).subspan(i * half, half);
    slots[i] = read_slot(slot);
    marks[i] = get(slot.data() + mark_at);
  }
  if (!slots[0] && !slots[1])
    throw damaged("no record is whole");
  for (std::size_t i = 0; i < 2; ++i)
    if (!slots[i] && marks[i] > slots[1 - i]->sequence)
      throw damaged("checksum differs");
  newest_ = !slots[0] || (slots[1] && slots[1]->sequence > slots[0]->sequence);
  room_ = half - record_at;
  return std::move(slots[std::size_t(newest_)]);
}

std::error_code
slot_file::write(std::uint64_t sequence, std::span<const std::byte> record) {
  if (record.size() > room_max)
    return std::make_error_code(std::errc::file_too_large);
  std::error_code error = std::make_error_code(std::errc::no_space_on_device);
  const bool fits = record.size() <= room_;
  if (!fits || (2 * record.size() > room_ && room_ < room_max))
    error = grow(sequence, record);
  if (error && fits)
    error = write_slot(sequence, record);
  return error;
}

/// Replaces the file by one with larger slots.
std::error_code
slot_file::grow(std::uint64_t sequence, std::span<const std::byte> record) {
  const std::size_t room =
    std::min(room_max, std::max(room_min, 2 * record.size()));
  const std::size_t slot = (record_at + room + page - 1) / page * page;
  std::vector<std::byte> whole = image(sequence, record);
  put(whole.data() + mark_at, sequence); // the file is replaced in one step
  whole.resize(2 * slot); // real bytes: an unwritten extent may still need room
  if (auto error = replace_file(file_, whole)) {
    fs::path draft = file_;
    draft += ".new";
    std::error_code ignored;
    fs::remove(draft, ignored); // the draft may be what fills the disk
    return error;
  }
  room_ = slot - record_at;
  newest_ = 0;
  return {};
}

std::error_code slot_file::write_slot(std::uint64_t sequence,
                                      std::span<const std::byte> record) {
  std::error_code error;
  const posix::descriptor fd = posix::open_regular(file_, O_WRONLY, error);
  if (error == std::errc::no_such_file_or_directory)
    room_ = 0; // another process has removed the file
  if (error)
    return error;
  const int to = 1 - newest_;
  const std::size_t start = std::size_t(to) * (record_at + room_);
  const std::vector<std::byte> whole = image(sequence, record);
  const auto parts = std::span(whole);
  error = write_at(fd.get(), start, parts.first(head_bytes));
  if (!error)
    error = write_at(fd.get(), start + record_at, parts.subspan(record_at));
  if (error)
    return error;
  if (::fdatasync(fd.get()) != 0)
    return posix::last_error();
  newest_ = to;
  std::array<std::byte, 8> mark{};
  put(mark.data(), sequence);
  static_cast<void>(write_at(fd.get(), start + mark_at, mark));
  return {};
}

std::error_code slot_file::remove() {
  room_ = 0;
  std::error_code error;
  fs::remove(file_, error);
  return error;
}

} // namespace shoal::runtime
