// apps/train/model_folder.hpp -- the model in a folder that a user names.
#pragma once

#include "apps/common/named_model.hpp"
#include "runtime/core/result.hpp"

#include <filesystem>

namespace shoal::apps {

/// The model in a folder, or one of the hub, or in a GGUF file: then a folder
/// that is removed by let_go_of(), or when the process ends. For a run that has not
/// ended, or that has gone on since it left a model, that is its newest checkpoint,
/// which is reported on stderr; also where the model's config.json is lost.
model::result<std::filesystem::path>
model_in(const std::filesystem::path& model, const download_terms& terms = {});

/// The model is not read any more; only what was made of a GGUF file is removed.
void let_go_of(const std::filesystem::path& model);

} // namespace shoal::apps
