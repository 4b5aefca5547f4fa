// apps/common/named_model.hpp -- a model that a user names: a file or folder,
// or ORG/NAME[@REVISION] of the Hugging Face hub.
//
// What exists as a file or folder is meant, whatever its name. Else a name is
// looked for in the hub's cache, and downloaded if it is not there: only `shoal
// pull` asks whether the hub has a newer commit of a model that is.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/watch.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace shoal::apps {

/// How far a named model is downloaded.
struct download_terms {
  bool weights = true; ///< or only what describes it
  /// Asked again and again; false ends it. May be empty: only a signal does.
  std::function<bool()> goes_on;
  /// Is told how far it is, instead of stderr; then it also ends it.
  model::watch told = {};
};

/// "ORG/NAME" if that is what `model` names; empty: a path is meant.
std::string hub_repository(const std::filesystem::path& model);

/// The folder, or the file in GGUF. Reports on stderr where it is if that is not
/// where the user said.
model::result<std::filesystem::path>
local_model(const std::filesystem::path& model, const download_terms& terms);

} // namespace shoal::apps
