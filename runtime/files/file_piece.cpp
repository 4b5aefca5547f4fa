// runtime/files/file_piece.cpp -- pread, until all is there.
#include "runtime/files/file_piece.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/sha256.hpp"

#include <algorithm>
#include <vector>

namespace shoal::model {

namespace posix = runtime::posix;

/// Bytes that are hashed at once.
static constexpr std::size_t hashed_bytes = 1u << 20;

result<std::shared_ptr<const input_file>>
input_file::open(const std::filesystem::path& path) {
  std::error_code error;
  posix::descriptor fd = posix::open_regular(path, O_RDONLY, error);
  struct stat info {};
  if (!error && ::fstat(fd.get(), &info) != 0)
    error = posix::last_error();
  if (error)
    return file_failure(path, "cannot open", error);
  return std::shared_ptr<const input_file>(
    new input_file(path.string(), std::move(fd), std::uint64_t(info.st_size)));
}

status input_file::read(std::uint64_t at, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd_.get(), into.data(), into.size(), off_t(at));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return file_failure(name_, "cannot read", posix::last_error());
    if (got == 0)
      return failure{name_ + ": has become shorter while it was read"};
    into = into.subspan(std::size_t(got));
    at += std::uint64_t(got);
  }
  return done{};
}

status file_piece::read(std::uint64_t at, std::span<std::byte> into) const {
  SHOAL_ASSERT(at <= bytes_ && into.size() <= bytes_ - at);
  if (file_)
    return file_->read(first_ + at, into);
  std::copy_n(memory_.begin() + std::ptrdiff_t(at), into.size(), into.begin());
  return done{};
}

std::uint64_t bytes_of(std::span<const file_piece> pieces) {
  std::uint64_t sum = 0;
  for (const file_piece& p : pieces)
    sum += p.bytes();
  return sum;
}

result<std::size_t> piece_reader::read(std::span<std::byte> into) {
  std::size_t count = 0;
  while (count < into.size() && !left_.empty()) {
    const file_piece& next = left_.front();
    const auto n = std::size_t(
      std::min<std::uint64_t>(next.bytes() - at_, into.size() - count));
    if (auto ok = next.read(at_, into.subspan(count, n)); !ok)
      return ok.why();
    count += n;
    at_ += n;
    if (at_ < next.bytes())
      break;
    left_ = left_.subspan(1);
    at_ = 0;
  }
  return count;
}

result<core::blob_digest> sha256_joined(std::span<const file_piece> pieces) {
  runtime::sha256_hash hash;
  piece_reader reader(pieces);
  std::vector<std::byte> piece(
    std::min<std::uint64_t>(hashed_bytes, bytes_of(pieces)));
  for (;;) {
    const auto got = reader.read(piece);
    if (!got)
      return got.why();
    if (*got == 0)
      return hash.finish();
    hash.add(std::span(piece).first(*got));
  }
}

} // namespace shoal::model
