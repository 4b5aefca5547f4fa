// runtime/store/parts.cpp -- one file for each part, in one folder.
#include "runtime/store/parts.hpp"

#include "runtime/core/text/hex.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace shoal::runtime {

namespace fs = std::filesystem;
using core::blob_digest;

part_files::part::part(std::shared_ptr<writers> all, const blob_digest& digest,
                       fs::path name, posix::descriptor at_end)
  : file(std::move(name)), fd(std::move(at_end)), all_(std::move(all)),
    digest_(digest) {
}

part_files::part::~part() {
  fd.close();
  std::lock_guard lock(all_->mutex);
  all_->now.erase(digest_);
}

part_files::part_files(fs::path folder) : folder_(std::move(folder)) {
  fs::create_directories(folder_);
  remove_old();
}

std::uint64_t part_files::bytes(const blob_digest& digest) const {
  std::error_code none;
  const auto bytes = fs::file_size(file_of(digest), none);
  return none ? 0 : bytes;
}

std::unique_ptr<part_files::part> part_files::begin(const blob_digest& digest) {
  return open(digest, O_CREAT | O_TRUNC);
}

std::unique_ptr<part_files::part> part_files::go_on(const blob_digest& digest) {
  return bytes(digest) == 0 ? nullptr : open(digest, O_APPEND);
}

std::uint64_t part_files::remove(const blob_digest& digest) {
  std::lock_guard lock(writers_->mutex);
  if (writers_->now.contains(digest))
    return 0; // its writer counts what it has written
  const std::uint64_t had = bytes(digest);
  return ::unlink(file_of(digest).c_str()) == 0 ? had : 0;
}

fs::path part_files::file_of(const blob_digest& digest) const {
  return folder_ / core::to_hex(digest);
}

std::unique_ptr<part_files::part>
part_files::open(const blob_digest& digest, int flags) {
  {
    std::lock_guard lock(writers_->mutex);
    if (!writers_->now.insert(digest).second)
      return nullptr;
  }
  auto file = file_of(digest);
  std::error_code none;
  posix::descriptor fd =
    posix::open_regular(file, O_WRONLY | O_NOFOLLOW | flags, none);
  const bool is_open = bool(fd);
  auto opened =
    std::make_unique<part>(writers_, digest, std::move(file), std::move(fd));
  return is_open ? std::move(opened) : nullptr;
}

std::uint64_t part_files::remove_old() {
  struct found {
    fs::file_time_type at;
    fs::path file;
    std::uint64_t bytes = 0;
  };
  std::vector<found> files;
  std::error_code none;
  for (fs::directory_iterator f(folder_, none), end; !none && f != end;
       f.increment(none)) {
    std::error_code gone;
    const auto at = f->last_write_time(gone);
    blob_digest digest;
    if (gone || !core::from_hex(f->path().filename().string(), digest))
      continue;
    std::lock_guard lock(writers_->mutex);
    if (!writers_->now.contains(digest))
      files.push_back({at, f->path(), f->file_size(gone)});
  }
  std::ranges::sort(files, std::ranges::greater{}, &found::at);
  const auto oldest = fs::file_time_type::clock::now() - age_max;
  std::uint64_t removed = 0;
  for (std::size_t n = 0; n < files.size(); ++n)
    if ((n >= files_max || files[n].at < oldest)
        && ::unlink(files[n].file.c_str()) == 0)
      removed += files[n].bytes;
  return removed;
}

} // namespace shoal::runtime
