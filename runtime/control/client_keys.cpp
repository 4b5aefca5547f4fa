// runtime/control/client_keys.cpp -- looks for key files.
#include "runtime/control/client_keys.hpp"

#include "runtime/control/node_folders.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/identity/identity.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace fs = std::filesystem;

/// Files of the keys that this user's nodes keep for themselves.
static std::vector<fs::path> own_files(const client_config& config) {
  std::vector<fs::path> out;
  if (config.keys_of.empty())
    return out;
  const auto add = [&out](const fs::path& folder) {
    std::error_code error;
    if (const fs::path file = own_key_file(folder); fs::exists(file, error))
      out.push_back(file);
  };
  add(config.keys_of); // also if its node has ended
  if (!config.named)
    std::ranges::for_each(folders_of_nodes(config.keys_of), add);
  return out;
}

client_keys keys_for(const client_config& config, bool in_touch) {
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
  const bool named = !config.cluster_key_file.empty();
  if (named)
    add([&] { return load_cluster_key(config.cluster_key_file); });
  if (!named || in_touch)
    for (const fs::path& file : own_files(config))
      add([&] { return load_cluster_key(file); });
  if (!named)
    add(existing_user_key);
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
