// apps/transfer/model_export.hpp -- puts the model of a checkpoint into a
// folder.
//
// Existing files stay, except files of a model that the checkpoint does not
// have and that would be read instead of its own: these are removed. The
// checksums of the checkpoint's model are copied as well.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/files/checksums.hpp"

#include <filesystem>

namespace shoal::apps {

/// Gives `folder` all files of a checkpoint except the optimizer's: by a link
/// where possible, and each under its name in one step.
model::status export_model(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& folder);

/// Checksums of the weights in the folder of a model or checkpoint, without those of an
/// optimizer; empty if it has none. Equal ones tell that two folders have one model.
model::result<model::checksums>
checksums_of_model(const std::filesystem::path& folder);

} // namespace shoal::apps
