// apps/chaos/chaos_run.hpp -- the run that a shoal trains while it is harmed.
//
// Errors: a failure names the file, key or flag.
#pragma once

#include "apps/common/commands.hpp"
#include "runtime/jobs/run_config.hpp"

#include <cstddef>
#include <filesystem>
#include <vector>

namespace shoal::apps {

/// The user's run file or, without one, a small model; with two replicas unless
/// it specifies otherwise, so that each part of the model survives the loss of
/// a peer.
model::result<runtime::run_config>
load_chaos_run(const run_options& o, int peers);

/// The run's text, serialised. If the run names none, some is first written to
/// `folder`. Throws std::runtime_error.
std::vector<std::byte>
read_chaos_text(runtime::run_config& run, const std::filesystem::path& folder);

} // namespace shoal::apps
