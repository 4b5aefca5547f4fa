// runtime/observe/tensorboard.hpp -- scalars in the format of TensorBoard.
//
// A file is a sequence of records {length u64, masked CRC-32C of the length,
// bytes, masked CRC-32C of the bytes}, little-endian (the framing of
// TensorFlow's TFRecord files). The bytes are an Event message, of which wall
// time, step, file version and scalar summaries are written.
//
// Threads: one at a time.
// Errors:  those of the file system.
#pragma once

#include "runtime/jobs/job_log.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace shoal::runtime {

/// CRC-32C (Castagnoli), reflected, as in RFC 3720 B.4.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// The rotated and shifted sum that the framing stores.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes) noexcept;

/// The values that are written for an event, with their tags.
struct tensorboard_tag {
  std::string_view tag;
  job_event_kind kind;
  std::string_view unit; ///< empty: none
  std::string_view meaning;
  double (*value)(const job_event&);
  bool none_is_zero = false; ///< 0 is not written: it means "unknown"
};
std::span<const tensorboard_tag> tensorboard_tags();

class tensorboard_writer {
public:
  /// Creates folder/events.out.tfevents.<seconds>.<host>.<pid>. Throws
  /// std::system_error.
  tensorboard_writer(const std::filesystem::path& folder,
                     std::int64_t unix_seconds);
  ~tensorboard_writer();
  tensorboard_writer(const tensorboard_writer&) = delete;
  tensorboard_writer& operator=(const tensorboard_writer&) = delete;

  const std::filesystem::path& file() const noexcept { return path_; }

  [[nodiscard]] std::error_code
  add_scalar(std::string_view tag, std::uint64_t step, double value,
             double unix_seconds);

  /// Writes the measurements of a step or an evaluation, according to
  /// tensorboard_tags(); other events are skipped.
  [[nodiscard]] std::error_code add(const job_event& event);

private:
  [[nodiscard]] std::error_code write_record(const std::string& bytes);

  std::filesystem::path path_;
  int file_ = -1;
};

} // namespace shoal::runtime
