// runtime/model/gguf/gguf_file.hpp -- the keys and tensors of a GGUF file.
//
// A file is: "GGUF", the version, the numbers of tensors and keys, the keys with
// their values, the tensors' descriptions, and, aligned, their data. All numbers
// are little-endian.
//
// Ownership: texts and data are views of the file's bytes.
// Errors:    a file is refused if it is truncated, lies about a length or a
//            place, or has a type that is not known; the failure names the key or
//            the tensor. Nothing is allocated because a number claims it.
// Source:    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace shoal::model::gguf {

/// Limits of what files have: far more than any has.
inline constexpr std::uint64_t keys_max = 1u << 16;
inline constexpr std::uint64_t name_bytes_max = 1u << 12;
inline constexpr std::uint64_t rank_max = 4;
inline constexpr std::uint64_t list_max = 1u << 24; ///< as the vocabulary

/// How a tensor's values are stored; the numbers are the format's.
enum class block_type : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30,
};

/// Values in a block, and its bytes.
struct block_size {
  std::uint32_t values = 1;
  std::uint32_t bytes = 0;
};
/// @returns 0 bytes if the type is not supported
block_size size_of(block_type type);
/// "Q8_0", or "type 99".
std::string name_of(block_type type);

using texts = std::vector<std::string_view>;
using numbers = std::vector<double>;
/// Lists of lists are not kept: no key that is read is one.
using value = std::variant<std::uint64_t, std::int64_t, double, bool,
                           std::string_view, texts, numbers>;

struct tensor {
  std::string name;
  block_type type = block_type::f32;
  std::vector<std::uint64_t> shape; ///< the last one is contiguous, as in torch
  std::uint64_t count = 0;          ///< product of the shape
  std::span<const std::byte> data;
};

class file {
public:
  /// Reads and checks a whole file's bytes, which have to stay. Touches only what
  /// is before the data. @param where begins every failure
  static result<file>
  parse(std::span<const std::byte> bytes, std::string_view where);

  const std::map<std::string, value, std::less<>>& keys() const noexcept {
    return keys_;
  }
  const std::map<std::string, tensor, std::less<>>& tensors() const noexcept {
    return tensors_;
  }
  const std::string& where() const noexcept { return where_; }

  /// The value of a key, or nullptr.
  const value* find(std::string_view key) const;
  const tensor* find_tensor(std::string_view name) const;

  // Nothing: the key is missing, or has another type, which is a failure.
  result<std::uint64_t> whole(std::string_view key) const;
  result<std::uint64_t> whole(std::string_view key, std::uint64_t usual) const;
  result<double> real(std::string_view key, double usual) const;
  result<std::string_view> text(std::string_view key) const;

private:
  friend class parser;
  std::string where_;
  std::map<std::string, value, std::less<>> keys_;
  std::map<std::string, tensor, std::less<>> tensors_;
};

} // namespace shoal::model::gguf
