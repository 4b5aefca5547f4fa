// apps/common/version.hpp -- which program this is: release and commit.
//
// The only file that changes with each commit is the one that is made from
// version.cpp.in, and only programs link it: a new commit compiles one file.
#pragma once

namespace shoal::apps {

/// "0.1.0 (26dd562cabcd)", with "-dirty" after a commit to which somebody has
/// made changes; "0.1.0" where it was not built from a git checkout.
const char* program_version() noexcept;

} // namespace shoal::apps
