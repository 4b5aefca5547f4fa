// apps/transfer/model_export.hpp -- puts the model of a checkpoint into a
// folder.
//
// Existing files stay, except weights that the checkpoint does not have and that
// would be read instead of its own: these are removed. The checksums of the
// checkpoint's model are copied as well.
//
// A user may change what lies beside the weights (config.json and the files that
// a model carries on, such as its chat template), or add such a file. A file that is
// not as this checkpoint or one beside it has it is the user's, and stays.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/files/checksums.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace shoal::apps {

/// Gives `folder` all files of a checkpoint except the optimizer's: by a link
/// where possible, and each under its name in one step.
/// @returns the names of files of a user that stay
model::result<std::vector<std::string>>
export_model(const std::filesystem::path& checkpoint,
             const std::filesystem::path& folder);

/// Which files of a user an export has kept, for the user; empty: none.
std::string kept_files_text(const std::vector<std::string>& names,
                            const std::filesystem::path& checkpoint,
                            const std::filesystem::path& folder);

/// Checksums of the weights in the folder of a model or checkpoint, without those of an
/// optimizer; empty if it has none. Equal ones tell that two folders have one model.
model::result<model::checksums>
checksums_of_model(const std::filesystem::path& folder);

} // namespace shoal::apps
