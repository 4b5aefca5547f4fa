// runtime/control/node_folders.hpp -- the data directories of this machine's
// nodes that a user may mean.
//
// Nodes are searched beside one directory: by default all nodes of a user have
// their directories, by name, in one folder.
//
// Threads: any. Errors: none; a folder that cannot be read counts as empty.
#pragma once

#include <filesystem>
#include <vector>

namespace shoal::runtime {

/// Directories beside `first` with a control socket, which may be left over
/// from a killed node; `first` comes first.
std::vector<std::filesystem::path>
folders_of_nodes(const std::filesystem::path& first);

/// Those of them whose nodes accept connections.
std::vector<std::filesystem::path>
running_nodes(const std::filesystem::path& first);

/// Whether a data directory is in the folder of a user's nodes by name.
bool is_by_name(const std::filesystem::path& data_dir);

} // namespace shoal::runtime
