// runtime/files/file_piece.hpp -- bytes that lie in memory, or in a part of a file
// that is read when they are needed.
//
// Other than a mapped file (mapped_file.hpp), one that shrinks meanwhile is an error,
// and does not end the process.
//
// Threads: any. Ownership: bytes in memory outlive the piece.
// Errors:  a failure names the file.
#pragma once

#include "runtime/core/ids.hpp" // blob_digest
#include "runtime/core/result.hpp"
#include "runtime/files/posix.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace shoal::model {

/// A regular file that is open for reading.
class input_file {
public:
  static result<std::shared_ptr<const input_file>>
  open(const std::filesystem::path& path);

  /// When it was opened.
  std::uint64_t bytes() const noexcept { return bytes_; }
  const std::string& name() const noexcept { return name_; }
  /// Reads all of `into`, which begins at byte `at` of the file.
  status read(std::uint64_t at, std::span<std::byte> into) const;

private:
  input_file(std::string name, runtime::posix::descriptor fd,
             std::uint64_t bytes)
    : name_(std::move(name)), fd_(std::move(fd)), bytes_(bytes) {}

  std::string name_;
  runtime::posix::descriptor fd_;
  std::uint64_t bytes_;
};

class file_piece {
public:
  explicit file_piece(std::span<const std::byte> memory)
    : memory_(memory), bytes_(memory.size()) {}
  /// A whole file.
  explicit file_piece(const std::shared_ptr<const input_file>& file)
    : file_piece(file, 0, file->bytes()) {}
  /// @pre the part lies in the file as it was opened
  file_piece(std::shared_ptr<const input_file> file, std::uint64_t first,
             std::uint64_t bytes)
    : file_(std::move(file)), first_(first), bytes_(bytes) {}

  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Reads all of `into`, which begins at byte `at` of the piece.
  /// @pre it does not go on behind the piece
  status read(std::uint64_t at, std::span<std::byte> into) const;

private:
  std::span<const std::byte> memory_;
  std::shared_ptr<const input_file> file_; ///< null: in memory
  std::uint64_t first_ = 0;
  std::uint64_t bytes_;
};

std::uint64_t bytes_of(std::span<const file_piece> pieces);

/// Reads pieces one after the other, as if they were one.
class piece_reader {
public:
  explicit piece_reader(std::span<const file_piece> pieces) : left_(pieces) {}
  /// Reads the next bytes, as many as there are room for, or left.
  /// @returns how many
  result<std::size_t> read(std::span<std::byte> into);

private:
  std::span<const file_piece> left_;
  std::uint64_t at_ = 0; ///< in the first one
};

/// The SHA-256 of all pieces, one after the other.
result<core::blob_digest> sha256_joined(std::span<const file_piece> pieces);

} // namespace shoal::model
