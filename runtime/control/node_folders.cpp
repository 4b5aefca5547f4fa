// runtime/control/node_folders.cpp -- looks for control sockets.
#include "runtime/control/node_folders.hpp"

#include "runtime/control/client_link.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/identity/identity.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace fs = std::filesystem;

std::vector<fs::path> folders_of_nodes(const fs::path& first) {
  std::vector<fs::path> out;
  auto add = [&](const fs::path& folder) {
    if (std::ranges::find(out, folder) == out.end()
        && fs::exists(control_socket(folder)))
      out.push_back(folder);
  };
  add(first);
  std::error_code error;
  std::vector<fs::path> beside;
  for (const auto& entry : fs::directory_iterator(first.parent_path(), error))
    beside.push_back(entry.path());
  std::ranges::sort(beside);
  for (const fs::path& folder : beside)
    add(folder);
  return out;
}

std::vector<fs::path> running_nodes(const fs::path& first) {
  auto all = folders_of_nodes(first);
  std::erase_if(all, [](const fs::path& folder) {
    return make_unix_link(control_socket(folder)) == nullptr;
  });
  return all;
}

bool is_by_name(const fs::path& data_dir) {
  try {
    return data_dir.parent_path() == default_data_dir("").parent_path();
  } catch (const setup_error&) {
    return false;
  }
}

} // namespace shoal::runtime
