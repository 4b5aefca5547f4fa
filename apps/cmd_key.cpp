// apps/cmd_key.cpp -- key: cluster keys in files.
#include "apps/commands.hpp"
#include "runtime/identity.hpp"
#include "runtime/node.hpp" // node_error

#include <iostream>

namespace shoal::apps {

int run_key(const key_options& o) {
  try {
    const std::filesystem::path file = !o.file.empty() ? o.file
                                       : o.action == "new"
                                         ? std::filesystem::path("cluster.key")
                                         : runtime::user_key_file();
    const auto key = o.action == "new" ? runtime::new_cluster_key(file)
                                       : runtime::load_cluster_key(file);
    std::cout << runtime::key_fingerprint(key) << "  " << file.string() << "\n";
  } catch (const runtime::node_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
  return exit_done;
}

} // namespace shoal::apps
