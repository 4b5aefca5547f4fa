// apps/manage/served_description.hpp -- the job of a model that is to be served,
// from the options of `serve` and the model's files.
//
// `serve` submits that job, `plan --serve` only shows where it would run: for the
// latter the weights need not be there.
//
// Errors: a failure names the file or the option.
#pragma once

#include "apps/common/commands.hpp"
#include "runtime/core/result.hpp"
#include "runtime/jobs/serve_config.hpp"

#include <filesystem>
#include <string>

namespace shoal::core {
struct job_entry; // runtime/core/job_entry.hpp
}

namespace shoal::apps {

/// The model in a directory with config.json. If it has no weights, they are
/// taken to have the type that config.json names.
model::result<runtime::serve_config>
describe_served(const serve_options& o, const std::filesystem::path& folder);

/// A model of which only the shape is here. @param stored_bytes of a value of the
/// blocks' matrices
model::result<runtime::serve_config>
describe_served(const serve_options& o, const model::model_config& config,
                std::uint64_t stored_bytes);

/// The model of o.model: a directory as for `serve`, a config.json, or a run
/// file (TOML), whose [model] describes it.
model::result<runtime::serve_config>
describe_without_weights(const serve_options& o);

/// That of a folder, of a file without its ending, or ORG/NAME.
std::string name_of_files(const std::filesystem::path& model);

/// The name by which clients ask for the model. @param usual if none is asked for
std::string served_name(const serve_options& o, const std::string& usual);

/// The job, without origin and user.
core::job_entry
served_entry(const serve_options& o, const runtime::serve_config& config,
             const std::string& name);

} // namespace shoal::apps
