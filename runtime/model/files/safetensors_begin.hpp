// runtime/model/files/safetensors_begin.hpp -- the beginning of a file whose
// values are written piece by piece.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::model {

struct tensor_entry {
  std::string name;
  std::string type_name; ///< "F32", "F16", "BF16"
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
};

/// The length and the header. The values follow, one tensor after the other.
std::string file_begin(std::span<const tensor_entry> tensors);

} // namespace shoal::model
