// runtime/model/gguf/gguf_model.hpp -- what model a GGUF file holds.
//
// Its keys become a config.json; its tensors get the names that Hugging Face's
// files have. Files of the llama family have the rows of q and k in another
// order: pairs that rotate together are neighbours there, and halves of a head
// apart here.
//
// Errors: a failure names the key or the tensor.
// Source: convert_hf_to_gguf.py of llama.cpp, for what it changes.
#pragma once

#include "runtime/model/config/config.hpp"
#include "runtime/model/gguf/gguf_file.hpp"

#include <string>
#include <vector>

namespace shoal::model::gguf {

/// The model's configuration, checked.
result<model_config> config_of(const file& from);

/// A tensor of the model, and from which of the file it comes.
struct named_tensor {
  std::string name;
  const tensor* from = nullptr;
  std::uint64_t rotary_heads = 0; ///< heads whose rows it has, in pairs; 0:
                                  ///< its rows are in order
};
/// All tensors of the model, in the order of their names. A tensor of the file
/// that is not one of the model is a failure.
result<std::vector<named_tensor>>
tensors_of(const file& from, const model_config& config);

/// The row of the file that is row `row` of a tensor with rows in pairs.
constexpr std::uint64_t
stored_row(std::uint64_t row, std::uint64_t head_rows) noexcept {
  const std::uint64_t half = head_rows / 2, inside = row % head_rows;
  return row - inside + inside % half * 2 + inside / half;
}

} // namespace shoal::model::gguf
