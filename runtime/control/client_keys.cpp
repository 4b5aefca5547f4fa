// runtime/control/client_keys.cpp -- looks for key files.
#include "runtime/control/client_keys.hpp"

#include "runtime/control/node_folders.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/identity/identity.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace fs = std::filesystem;

/// Files of the keys that nodes keep for themselves: that of `first`, also if it has
/// ended, and, if `others`, of those beside it. @param first  empty: there is none
static std::vector<fs::path> kept_files(const fs::path& first, bool others) {
  std::vector<fs::path> out;
  if (first.empty())
    return out;
  const auto add = [&out](const fs::path& folder) {
    std::error_code error;
    if (const fs::path file = own_key_file(folder); fs::exists(file, error))
      out.push_back(file);
  };
  add(first);
  if (others)
    std::ranges::for_each(folders_of_nodes(first), add);
  return out;
}

client_keys keys_for(const client_config& config, const fs::path& asked) {
  client_keys out;
  const auto add = [&out](const auto& load) {
    try {
      const auto key = load();
      if (std::ranges::find(out.all, key) == out.all.end())
        out.all.push_back(key);
    } catch (const setup_error& e) {
      out.why = e.what();
    }
  };
  if (!config.cluster_key_file.empty()) {
    add([&] { return load_cluster_key(config.cluster_key_file); });
    // A client of a command that has asked its node looks where that one did.
    const bool again = config.key_was_used && asked.empty();
    for (const fs::path& file :
         kept_files(again ? config.data_dir : asked, again && !config.named))
      add([&] { return load_cluster_key(file); });
  } else {
    for (const fs::path& file : kept_files(config.keys_of, !config.named))
      add([&] { return load_cluster_key(file); });
    add(existing_user_key);
  }
  if (!out.all.empty())
    out.why.clear();
  return out;
}

std::string named_key_fault(const client_config& config) {
  return config.cluster_key_file.empty() || config.key_was_used
           ? std::string()
           : keys_for(config).why;
}

} // namespace shoal::runtime
