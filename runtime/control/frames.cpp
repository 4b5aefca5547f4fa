// runtime/control/frames.cpp -- length-prefixed messages on a stream socket.
#include "runtime/control/frames.hpp"

#include "runtime/wire/codec.hpp" // message_bytes_max

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace shoal::runtime {

bool frame_reader::fill(int fd) {
  std::array<std::byte, frame_read_bytes> read;
  ssize_t n;
  do
    n = ::recv(fd, read.data(), read.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n > 0)
    add(std::span(read).first(static_cast<std::size_t>(n)));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

void frame_reader::add(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<std::size_t> frame_reader::next_bytes() const noexcept {
  if (buffer_.size() < frame_length_bytes)
    return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = frame_length_bytes; i-- > 0;)
    size = size << 8 | std::to_integer<std::size_t>(buffer_[i]);
  return size;
}

bool frame_reader::whole() const noexcept {
  const auto size = next_bytes();
  return broken_
         || (size
             && (*size > codec::message_bytes_max
                 || buffer_.size() - frame_length_bytes >= *size));
}

bool frame_reader::next(std::vector<std::byte>& message) {
  if (broken_ || !whole())
    return false;
  const std::size_t size = *next_bytes();
  if (size > codec::message_bytes_max) {
    broken_ = true;
    return false;
  }
  auto first = buffer_.begin() + frame_length_bytes;
  auto last = first + static_cast<std::ptrdiff_t>(size);
  message.assign(first, last);
  buffer_.erase(buffer_.begin(), last);
  return true;
}

std::vector<std::byte> frame(std::span<const std::byte> message) {
  std::vector<std::byte> out;
  out.reserve(frame_length_bytes + message.size());
  for (std::size_t i = 0; i < frame_length_bytes; ++i)
    out.push_back(static_cast<std::byte>(message.size() >> (8 * i)));
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

} // namespace shoal::runtime
