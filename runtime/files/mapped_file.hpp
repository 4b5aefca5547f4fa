// runtime/files/mapped_file.hpp -- a file mapped into memory for reading.
//
// The mapping is not a copy: several processes share it, and its pages come and
// go with the system's cache. If another file replaces the file under its name,
// the mapping does not change; if the file is written or truncated, it does.
// Bytes that a file has lost cannot be read: the system then ends the process
// by SIGBUS, which explain_truncation() explains to the user.
//
// Ownership: bytes() are valid as long as the file object.
// Threads:   any; objects are independent of each other.
// Errors:    a failure names the path and the system's reason.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace shoal::model {

/// Mapped files that explain_truncation() knows; it does not name others.
inline constexpr std::size_t explained_files_max = 1024;

/// One regular file, mapped for reading.
class mapped_file {
public:
  static result<std::shared_ptr<const mapped_file>>
  open(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

private:
  mapped_file(std::string name, const std::byte* data, std::size_t size);

  std::string name_;
  const std::byte* data_;
  std::size_t size_;
  std::size_t slot_; ///< in the table of mapped files
};

/// From now on, a process that touches lost bytes of a mapped file says so,
/// names the file and exits with code 1. Any other SIGBUS works as before.
void explain_truncation();

} // namespace shoal::model
