// apps/common/version.hpp -- the version of this program: release and commit.
//
// Only one file changes with each commit, the one generated from version.cpp.in: so a
// new commit compiles one file.
#pragma once

namespace shoal::apps {

/// "0.1.0 (26dd562cabcd)", with "-dirty" after a commit with uncommitted
/// changes; "0.1.0" if it was not built from a git checkout.
const char* program_version() noexcept;

} // namespace shoal::apps
