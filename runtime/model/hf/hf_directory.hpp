// runtime/model/hf/hf_directory.hpp -- reads and writes Hugging Face directories.
//
//   config.json  generation_config.json  tokenizer.json  tokenizer_config.json
//   model.safetensors, or model-0000i-of-0000n.safetensors with an index
//   checksums.json, of a run; where it is, weights that differ are refused
//
// Errors: a failure names the file. Saving is atomic: the directory appears
// under its name only when all files in it are complete and on disk. An existing
// directory is exchanged for the new one; files that are not part of a model
// are carried over, so no other file there is lost.
#pragma once

#include "runtime/core/watch.hpp"
#include "runtime/model/decode/inference.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "runtime/model/unit_state.hpp"

#include <filesystem>

namespace shoal::model {

/// A model that runs on this machine.
struct model_directory {
  model_config config;
  std::shared_ptr<const unit_layout> layout;
  std::vector<unit_state> units; ///< all of them, in order
  std::optional<model::tokenizer> tokenizer;
  std::string no_text; ///< why there is no tokenizer, if there is none
};

/// Reads config.json of a directory. It must name its family.
result<model_config> load_config(const std::filesystem::path& directory);

/// Reads a whole directory.
result<model_directory> load_directory(const std::filesystem::path& directory,
                                       purpose use = purpose::serving);

/// Whether load_directory() would succeed and each weight is a finite number,
/// with memory for one piece: finds a damaged or partly copied file before slow
/// work is done for it.
status
check_directory(const std::filesystem::path& directory, const watch& told = {});

/// The tokenizer with which text becomes token ids of a model; a failure says why
/// there is none: the directory has no tokenizer, one that is not supported, or one
/// with ids that are not below vocab_size.
result<tokenizer>
tokenizer_for(const std::filesystem::path& directory, std::size_t vocab_size);

/// A warning about tensors in the files that the model described by config.json does
/// not have, such as further layers, and about a LoRA adapter beside it; empty if there are none, or if the directory
/// cannot be read. Buffers that older versions of transformers saved do not count.
std::string unused_tensors(const std::filesystem::path& directory);

/// A model that only generates on this machine.
struct inference_directory {
  model_config config;
  std::shared_ptr<const unit_layout> layout;
  std::vector<inference_unit> units; ///< all of them, in order
  std::optional<model::tokenizer> tokenizer;
  std::string no_text; ///< why there is no tokenizer, if there is none
};

/// Reads a whole directory for generation. Its files stay mapped as long as
/// there are units that read them in place.
result<inference_directory>
load_for_inference(const std::filesystem::path& directory, weight_choice choice,
                   kernels::backend& device);

/// Parameters of one unit for saving: unit and its values in layout order.
struct unit_parameters {
  unit_index unit = 0;
  std::span<const float> values;
};

/// The contents of a directory besides the weights.
struct save_options {
  bool byte_tokenizer = true; ///< write the byte tokenizer's files
  std::uint64_t shard_bytes_max = shard_bytes_default;
};

/// The small files of a directory: name and text of config.json,
/// generation_config.json and, if requested, the byte tokenizer's.
std::vector<std::pair<std::string, std::string>>
small_files(const unit_layout& layout, bool byte_tokenizer = true);

/// Writes a directory that transformers can load; its parents are created.
/// @pre `units` has every unit once, in order, of the size in the layout
status save_directory(const std::filesystem::path& directory,
                      const unit_layout& layout,
                      std::span<const unit_parameters> units,
                      const save_options& options = {});
status
save_directory(const std::filesystem::path& directory,
               const unit_layout& layout, std::span<const unit_state> units,
               const save_options& options = {});

} // namespace shoal::model
