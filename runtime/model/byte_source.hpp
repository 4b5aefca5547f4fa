// runtime/model/byte_source.hpp -- bytes that come in pieces: from a file,
// decompressed if it is an archive.
//
// Nothing is held but a buffer and the decompressor's window, so that a small
// archive which decompresses to very much costs only what the caller takes.
//
// Threads: a source belongs to one thread.
// Errors:  a failure names the file. An archive that is damaged or ends too
//          early is one; its checksums are checked.
#pragma once

#include "runtime/model/result.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace shoal::model {

/// Fills the front of a span that is not empty. @returns how many bytes it put
/// there; 0: the end.
using byte_source = std::function<result<std::size_t>(std::span<char>)>;

/// Bytes that are read at once: large enough that system calls do not count,
/// small enough for the second-level cache.
inline constexpr std::size_t read_piece_bytes = 64u << 10;

/// The window of a Zstandard archive is at most 2 to this: 128 MiB, what the
/// format's own tools accept unasked (`zstd --long` makes larger ones).
inline constexpr int zstd_window_log_max = 27;

/// How a file is compressed.
enum class packing { none, gzip, zstd };

/// By the end of a name: .gz, .zst.
packing packing_of(std::string_view name);

/// The name without that end.
std::string_view without_packing(std::string_view name);

/// The bytes of a regular file, as they are.
result<byte_source> open_file(const std::filesystem::path& path);

/// The decompressed bytes of an archive; archives that follow each other count
/// as one, as for gzip and zstd. packing::none: the bytes as they come.
/// @param name  begins every failure
byte_source unpacked(byte_source from, packing how, std::string name);

} // namespace shoal::model
