// runtime/identity/slot_file.hpp -- one record, rewritten in place without new disk space.
//
// The file has two slots. A write goes in place to the slot that does not hold
// the newest record, and is synced. So a crash leaves the old or the new
// record, and a full disk still accepts the write, since the space is reserved.
// If a record fills more than half of a slot, the file is replaced by one with
// larger slots as soon as there is space for it; only a record that no longer
// fits needs it.
//
// A slot that does not match its checksum was either torn by a crash before
// anybody was told of its record, and then the other slot counts; or the disk
// has damaged it later, which is an error. Its mark, written after the sync,
// distinguishes the two. (The mark may be missing if the record was written in
// the last seconds before a power failure.)
//
// Format: two slots of equal size, each: head (magic 8, sequence 8, bytes 8,
//         little-endian, SHA-256 of sequence, bytes and record 32), padding
//         to 4096; mark (sequence 8), padding to 8192; the record.
// Threads: one at a time; calls block on the disk.
// Errors:  load() throws setup_error that names the file and the remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

namespace shoal::runtime {

class slot_file {
public:
  /// Space for a record at first: a view of dozens of members and their jobs
  /// fits in half of it.
  static constexpr std::size_t room_min = std::size_t{120} << 10;
  static constexpr std::size_t room_max = std::size_t{16} << 20;

  struct content {
    std::uint64_t sequence = 0;
    std::vector<std::byte> record;
  };

  explicit slot_file(std::filesystem::path file);

  /// The newest record; none if there is no file.
  std::optional<content> load();

  /// @pre `sequence` is greater than all before
  [[nodiscard]] std::error_code
  write(std::uint64_t sequence, std::span<const std::byte> record);

  /// Removes the file, if there is one.
  [[nodiscard]] std::error_code remove();

  const std::filesystem::path& path() const { return file_; }

private:
  std::error_code
  grow(std::uint64_t sequence, std::span<const std::byte> record);
  std::error_code
  write_slot(std::uint64_t sequence, std::span<const std::byte> record);

  std::filesystem::path file_;
  std::size_t room_ = 0; ///< in each slot; 0: no file, or not known
  int newest_ = 0;       ///< the slot of the newest record
};

} // namespace shoal::runtime
