// runtime/hub/partial_blob.cpp -- appends, hashes, and renames at the end.
#include "runtime/hub/partial_blob.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/files/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

namespace shoal::hub {
namespace {

namespace posix = runtime::posix;

/// Of one read: few calls, and a moment's work.
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

} // namespace

partial_blob::partial_blob(std::filesystem::path blob, const hub_file& file,
                           bool shared)
  : blob_(std::move(blob)), place_(blob_), file_(file), shared_(shared) {
  place_ += (shared ? "" : "." + std::to_string(::getpid())) + ".incomplete";
}

partial_blob::~partial_blob() {
  std::error_code ignored;
  if (fd_ && (!shared_ || bytes_ == 0))
    std::filesystem::remove(place_, ignored);
}

model::status
partial_blob::open(const std::function<bool(std::uint64_t)>& goes_on) {
  std::error_code error;
  fd_ = posix::open_regular(place_, O_RDWR | O_CREAT | O_NOFOLLOW, error, 0666);
  if (error)
    return model::file_failure(place_, "cannot be opened", error);
  hash_.emplace(file_.kind, file_.bytes);
  std::vector<std::byte> piece(piece_bytes);
  for (;;) {
    const auto got = ::read(fd_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return model::file_failure(place_, "cannot be read", posix::last_error());
    if (got == 0)
      return model::done{};
    if (bytes_ + std::uint64_t(got) > file_.bytes)
      return restart(); // of no use
    bytes_ += std::uint64_t(got);
    resumed_ = true;
    hash_->add(std::span(piece).first(std::size_t(got)));
    if (!goes_on(bytes_))
      return model::failure{"stopped"};
  }
}

model::status partial_blob::add(std::span<const std::byte> more) {
  SHOAL_ASSERT(bytes_ + more.size() <= file_.bytes);
  if (const auto error = posix::write_all(fd_.get(), more)) {
    // What of it was written is not in the hash.
    if (::ftruncate(fd_.get(), off_t(bytes_)) != 0)
      bytes_ = 0;
    return model::file_failure(place_, "cannot be written", error);
  }
  hash_->add(more);
  bytes_ += more.size();
  return model::done{};
}

model::status partial_blob::restart() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0)
    return model::file_failure(place_, "cannot be begun anew",
                               posix::last_error());
  bytes_ = 0;
  resumed_ = false;
  hash_.emplace(file_.kind, file_.bytes);
  return model::done{};
}

model::result<bool> partial_blob::finish() {
  SHOAL_ASSERT(bytes_ == file_.bytes);
  if (hash_->finish() != file_.hash)
    return false;
  if (::fsync(fd_.get()) != 0)
    return model::file_failure(place_, "cannot be written",
                               posix::last_error());
  if (::rename(place_.c_str(), blob_.c_str()) != 0)
    return model::file_failure(place_, "cannot be renamed",
                               posix::last_error());
  // If a crash undoes the new name, the old one is there, with the same bytes.
  fd_.reset();
  return true;
}

} // namespace shoal::hub
