// transport/shm/ring.cpp -- frames in a ring of bytes.

#include "transport/shm/ring.hpp"

#include <algorithm>
#include <cstring>

namespace shoal::transport::shm {

namespace {

constexpr std::uint64_t whole_lines(std::uint64_t bytes) {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

} // namespace

bool ring_writer::plausible(std::uint64_t taken) const {
  return taken % line_bytes == 0 && taken <= written_
         && written_ - taken <= ring_.size();
}

std::optional<std::size_t> ring_writer::room(std::uint64_t taken) const {
  const std::size_t offset = written_ & (ring_.size() - 1);
  const std::size_t free = ring_.size() - (written_ - taken);
  const std::size_t fits = std::min(free, ring_.size() - offset);
  if (fits < sizeof(frame))
    return {};
  return std::min(fits - sizeof(frame), payload_bytes_max);
}

void ring_writer::put(frame f, std::span<const std::byte> payload) {
  f.bytes = static_cast<std::uint32_t>(payload.size());
  std::byte* to = ring_.data() + (written_ & (ring_.size() - 1));
  std::memcpy(to, &f, sizeof f);
  if (!payload.empty())
    std::memcpy(to + sizeof f, payload.data(), payload.size());
  written_ += sizeof f + whole_lines(payload.size());
}

ring_reader::result ring_reader::next(std::uint64_t written, frame& f,
                                      std::span<const std::byte>& payload) {
  if (written == taken_)
    return result::none;
  if (written < taken_ || written - taken_ > ring_.size()
      || written % line_bytes != 0)
    return result::broken;
  const std::size_t offset = taken_ & (ring_.size() - 1);
  const std::size_t there =
    std::min<std::size_t>(written - taken_, ring_.size() - offset);
  std::memcpy(&f, ring_.data() + offset, sizeof f); // at least a line is there
  if (f.bytes > payload_bytes_max || f.bytes > there - sizeof f)
    return result::broken;
  payload = ring_.subspan(offset + sizeof f, f.bytes);
  step_ = sizeof f + whole_lines(f.bytes);
  return result::frame;
}

} // namespace shoal::transport::shm
