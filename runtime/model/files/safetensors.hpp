// runtime/model/files/safetensors.hpp -- reads and writes the safetensors format.
//
// A file is: 8 bytes little-endian length of the header, the header (JSON:
// name -> {dtype, shape, data_offsets}), the data. A large model is several
// files and model.safetensors.index.json, which maps names to files.
//
// Precision: F32, F16 and BF16 are read and become float, exactly; F32 is
//            written.
// Ownership: a source maps its files and releases them when destroyed (see
//            mapped_file.hpp for a file that shrinks meanwhile).
// Errors:    a file is refused if it is truncated, has overlapping tensors,
//            lies about its size or has an unknown type; the failure names file
//            and tensor.
// Source:    the format's description by Hugging Face (2022).
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::model {

/// A longer header is refused unread (the limit of the format's own library).
inline constexpr std::uint64_t header_bytes_max = 100'000'000;
/// Tensors in all files of one model.
inline constexpr std::size_t tensors_max = 1u << 20;
/// Files of one model.
inline constexpr std::size_t shards_max = 10'000;
/// Above this size a file is closed and the next begun, as transformers does.
inline constexpr std::uint64_t shard_bytes_default = 5'000'000'000;

/// Types that can be read. A file may have others, which cannot.
enum class stored_type : std::uint8_t { f32, f16, bf16, other };

/// One tensor as a file describes it, checked against the file's size.
struct stored_tensor {
  std::string name;
  stored_type type = stored_type::other;
  std::string type_name; ///< as in the file, for messages
  std::vector<std::uint64_t> shape;
  std::uint64_t count = 0; ///< product of the shape
  std::uint64_t first = 0; ///< data bytes [first, last), from the file's start
  std::uint64_t last = 0;
};

/// Reads and checks the header of a whole file's bytes. Touches only the
/// header, whatever the file claims.
result<std::vector<stored_tensor>>
parse_safetensors(std::span<const std::byte> file, std::string_view where);
/// The same of a file of which only its first header_end() bytes are there, or more.
result<std::vector<stored_tensor>>
parse_safetensors(std::span<const std::byte> begin, std::uint64_t file_bytes,
                  std::string_view where);
/// Bytes at the beginning of a file that tell its header, or why it has none.
/// @param begin some of them: 8 or more, or the whole file
std::uint64_t
header_end(std::span<const std::byte> begin, std::uint64_t file_bytes);

/// Converts little-endian stored values to float.
/// @pre type is not other; bytes hold into.size() values
void widen(stored_type type, const std::byte* bytes, std::span<float> into);

/// The file of each tensor of a model: model.safetensors.index.json.
struct shard_index {
  std::map<std::string, std::string> weights; ///< tensor -> file name
  std::set<std::string> files() const;
};

/// Reads an index. Files must lie beside it: names with folders are refused.
result<shard_index> parse_index(std::string_view text, std::string_view where);

/// An index as transformers writes it. @param total_bytes of all tensors
std::string to_json(const shard_index& index, std::uint64_t total_bytes);

/// "model-00001-of-00007.safetensors", for index 0 of 7.
/// @param kind "model", or "optimizer"
std::string
shard_name(std::string_view kind, std::size_t index, std::size_t count);

/// A file's bytes in memory.
struct file_in_memory {
  std::string name; ///< for messages
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep; ///< owns them
};

/// The values of one tensor as they are stored in a file.
struct stored_values {
  stored_type type = stored_type::other;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep; ///< owns them; keeps the file mapped
};

/// Why a directory has no weights, if it has neither model.safetensors nor an index;
/// names files of weights in another format. Empty: it has one.
std::string no_weights(const std::filesystem::path& directory);

/// The tensors of one file, or of all files of a directory.
class safetensors_source {
public:
  /// The tensors of files that have been read already.
  static result<safetensors_source> open(std::vector<file_in_memory> files);
  /// Opens model.safetensors or the files of model.safetensors.index.json in
  /// a directory, or one file.
  static result<safetensors_source> open(const std::filesystem::path& path);
  safetensors_source(safetensors_source&&) noexcept;
  safetensors_source& operator=(safetensors_source&&) noexcept;
  ~safetensors_source();

  /// All names, sorted.
  std::vector<std::string> names() const;
  /// @returns nullptr if there is no such tensor.
  const stored_tensor* find(std::string_view name) const;
  /// Whether read() would succeed, without reading.
  status
  check(std::string_view name, std::span<const std::uint64_t> shape) const;
  /// Reads a tensor as float; it must have this shape.
  /// @pre into.size() is the product of the shape
  status read(std::string_view name, std::span<const std::uint64_t> shape,
              std::span<float> into) const;
  /// The values as they are stored in the file, which the result keeps mapped.
  /// @returns nothing if they are not F32 at a multiple of float's alignment
  std::span<const float> floats(std::string_view name) const;
  /// The values as they are stored in the file. @pre there is such a tensor
  stored_values stored(std::string_view name) const;

private:
  struct place {
    std::size_t file = 0;
    stored_tensor tensor;
  };
  safetensors_source();
  status add_file(const std::filesystem::path& path);
  status add(file_in_memory added);

  std::vector<file_in_memory> files_;
  std::map<std::string, place, std::less<>> tensors_;
};

/// One tensor to be written.
struct tensor_to_save {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::span<const float> values;
};

/// The beginning of a file: the length and the header. The values follow, one
/// tensor after the other; metadata is {"format":"pt"}.
std::string file_begin(std::span<const tensor_to_save> tensors);

struct byte_range {
  std::uint64_t first = 0, last = 0;
};

/// A file with some tensors of another file: `begin`, then the values, which
/// lie in these bytes of that file.
struct file_part {
  std::vector<std::string> tensors;
  std::string begin;
  std::vector<byte_range> values;

  std::uint64_t data_bytes() const;
};

/// Cuts a whole file into files of at most `part_bytes` of data, except
/// for larger tensors: tensors in the stored order, of any type, none cut.
/// @param begin its first header_end() bytes @param where names it in failures
result<std::vector<file_part>>
cut_safetensors(std::span<const std::byte> begin, std::uint64_t file_bytes,
                std::string_view where, std::uint64_t part_bytes);

/// Writes one file as F32: to a temporary name, synced, then renamed.
status write_safetensors(const std::filesystem::path& file,
                         std::span<const tensor_to_save> tensors);

/// Writes model.safetensors into a directory, or, above shard_bytes_max of
/// data, several files and the index. A tensor is never cut.
status write_sharded(const std::filesystem::path& directory,
                     std::span<const tensor_to_save> tensors,
                     std::uint64_t shard_bytes_max = shard_bytes_default);

} // namespace shoal::model
