// runtime/model/data/byte_source.hpp -- bytes of a file in pieces, decompressed if it
// is an archive.
//
// Only a buffer and the decompressor's window are held, so a small archive that
// decompresses to very much costs only the bytes that the caller takes.
//
// Threads: a source belongs to one thread.
// Errors:  a failure names the file. A damaged or truncated archive is one; its
//          checksums are checked.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace shoal::model {

/// Fills the beginning of a span that is not empty. @returns the number of
/// bytes written; 0: the end.
using byte_source = std::function<result<std::size_t>(std::span<char>)>;

/// Bytes that are read at once: so large that system calls do not matter, and
/// small enough for the second-level cache.
inline constexpr std::size_t read_piece_bytes = 64u << 10;

/// The window of a Zstandard archive is at most 2 to this: 128 MiB, the default
/// limit of the format's own tools (`zstd --long` makes larger ones).
inline constexpr int zstd_window_log_max = 27;

/// How a file is compressed.
enum class packing { none, gzip, zstd };

/// Determined by the end of a name: .gz, .zst.
packing packing_of(std::string_view name);

/// The name without that end.
std::string_view without_packing(std::string_view name);

/// The bytes of a regular file, unchanged.
result<byte_source> open_file(const std::filesystem::path& path);

/// The decompressed bytes of an archive; consecutive archives count as one, as
/// for gzip and zstd. packing::none: the bytes unchanged.
/// @param name  begins every failure
byte_source unpacked(byte_source from, packing how, std::string name);

} // namespace shoal::model
