// apps/transfer/model_export.hpp -- the model of a checkpoint, put into a folder.
//
// Beside what is already there: files of a model that the checkpoint has not,
// and that would be read in place of its own, are removed. The checksums of the
// checkpoint's model go along.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>

namespace shoal::apps {

/// Gives `folder` all files of a checkpoint but the optimizer's: by a link
/// where that is possible, each under its own name at once.
model::status export_model(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& folder);

} // namespace shoal::apps
