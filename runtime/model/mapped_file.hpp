// runtime/model/mapped_file.hpp -- the bytes of a file, read when they are
// touched.
//
// What is mapped is not copied: several processes share it, and its pages come
// and go with the system's cache. Replacing a file by another of the same name
// leaves what is mapped as it was; writing into it, or cutting it off, does
// not. Bytes that a file has lost cannot be read: the system then ends the
// process by SIGBUS, for which explain_truncation() has a sentence.
//
// Ownership: bytes() are valid as long as the file object.
// Threads:   any; objects are independent of each other.
// Errors:    a failure names the path and the system's reason.
#pragma once

#include "runtime/model/result.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace shoal::model {

/// Mapped files that explain_truncation() knows; others are not named.
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
  std::size_t slot_; ///< in the table of what is mapped
};

/// From now on a process that touches bytes which a mapped file has lost says
/// so, names the file and exits with code 1. Any other SIGBUS is as before.
void explain_truncation();

} // namespace shoal::model
