// apps/remote/await_join.hpp -- waits until the node of this process is in the shoal
// that --join names.
//
// A node founds a shoal of its own first, and one that runs a job joins no other:
// what is submitted before would run here alone.
//
// Threads: one. Blocks: join_wait at most. Errors: a text that says what to check.
#pragma once

#include "runtime/control/client.hpp"
#include "runtime/core/result.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace shoal::apps {

/// Joining takes a second or two, once a node there answers.
inline constexpr std::chrono::seconds join_wait{60};

/// @param node that of this process
/// @param hosts as given by --join
/// @param say takes a line once it has taken long
/// @param goes_on asked several times a second; once it says no, this fails
/// @returns why there are still no other peers
model::status
await_join(runtime::client& node, const std::vector<std::string>& hosts,
           const std::function<void(const std::string&)>& say,
           const std::function<bool()>& goes_on);

} // namespace shoal::apps
