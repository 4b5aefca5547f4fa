// runtime/store/loaded_blob.cpp -- mapped files, and bytes in memory.
#include "runtime/store/loaded_blob.hpp"

#include "runtime/files/posix.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace shoal::runtime {
namespace {

class mapped_blob final : public blob {
public:
  mapped_blob(void* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  ~mapped_blob() override {
    if (at_)
      ::munmap(at_, bytes_);
  }
  std::span<const std::byte> bytes() const noexcept override {
    return {static_cast<const std::byte*>(at_), bytes_};
  }

private:
  void* at_; ///< null if empty: an empty file cannot be mapped
  std::size_t bytes_;
};

class memory_blob final : public blob {
public:
  explicit memory_blob(std::vector<std::byte> bytes)
    : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const noexcept override { return bytes_; }

private:
  std::vector<std::byte> bytes_;
};

} // namespace

std::shared_ptr<const blob>
map_blob(const std::filesystem::path& file, std::error_code& error) {
  const posix::descriptor fd = posix::open_regular(file, O_RDONLY, error);
  struct stat info {};
  if (!error && ::fstat(fd.get(), &info) != 0)
    error = posix::last_error();
  if (error)
    return nullptr;
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* at = nullptr;
  if (bytes > 0) {
    at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) {
      error = posix::last_error();
      return nullptr;
    }
  }
  return std::make_shared<mapped_blob>(at, bytes);
}

std::shared_ptr<const blob> blob_of(std::vector<std::byte> bytes) {
  return std::make_shared<memory_blob>(std::move(bytes));
}

} // namespace shoal::runtime
