// runtime/model/files/checksums.hpp -- checksums of weights, in a file beside them.
//
//   checksums.json  {"algorithm": "xxh3-64", "files": {NAME: 16 digits, ...}}
//
// A format of weights has no checksum of its own: a flipped bit is another
// weight, and a model that is a little worse. A run writes this file when it
// brings a checkpoint home; programs that read the weights check it. A model
// without the file is read unchecked. `xxhsum -H3 FILE` prints the same digits.
//
// Cost:   one pass over each file, at memory speed where it is cached.
// Errors: a failure names the file, and both checksums where they differ.
//         XXH3 finds accidental damage, not forgery.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace shoal::model {

inline constexpr char checksums_name[] = "checksums.json";
/// A longer file is refused unread: three times what shards_max files take.
inline constexpr std::uint64_t checksums_bytes_max = 4u << 20;

/// File name -> XXH3-64 of its bytes.
using checksums = std::map<std::string, std::uint64_t>;

/// Reads the text of the file. Names with folders are refused.
result<checksums>
parse_checksums(std::string_view json, std::string_view where);
std::string to_json(const checksums& sums);

/// Reads the file of a directory; without the file, there are no checksums.
result<checksums> load_checksums(const std::filesystem::path& directory);

/// Writes the file, durably, for all weights in a directory: those of models
/// and those of optimizers.
status write_checksums(const std::filesystem::path& directory);

/// Compares the files of one kind of weights with checksums.json. A file that
/// is not there, or is not listed, is left to its reader.
/// @param kind "model", or "optimizer"
status check_checksums(const std::filesystem::path& directory,
                       std::string_view kind, const watch& told = {});

/// Whether this is a file of weights of that kind: KIND.safetensors,
/// KIND-*.safetensors, or their index.
bool is_weights_file(std::string_view name, std::string_view kind);

} // namespace shoal::model
