// runtime/control/node_folders.hpp -- the data directories of the nodes of this machine
// that a user may mean.
//
// Nodes are looked for beside one directory: by their names all nodes of a user
// lie in one folder.
//
// Threads: any. Errors: none; what cannot be read has no node.
#pragma once

#include <filesystem>
#include <vector>

namespace shoal::runtime {

/// Directories beside `first` with a control socket, which a killed node leaves
/// behind; `first` first.
std::vector<std::filesystem::path>
folders_of_nodes(const std::filesystem::path& first);

/// Those of them whose nodes take connections.
std::vector<std::filesystem::path>
running_nodes(const std::filesystem::path& first);

/// Whether a data directory is where a user's nodes are by their names.
bool is_by_name(const std::filesystem::path& data_dir);

} // namespace shoal::runtime
