// apps/remote.cpp -- data directories and addresses to ask.
#include "apps/remote.hpp"

#include "runtime/host_list.hpp"
#include "runtime/node_config.hpp" // default_data_dir
#include "runtime/node_folders.hpp"

namespace shoal::apps {

std::filesystem::path data_dir_of(const node_address& at) {
  return at.data_dir.empty() ? runtime::default_data_dir(at.name) : at.data_dir;
}

runtime::client_config client_of(const node_address& at) {
  runtime::client_config c;
  if (at.peers.empty())
    c.data_dir = data_dir_of(at);
  c.named = !at.name.empty() || !at.data_dir.empty();
  for (const std::string& peer : at.peers)
    c.addresses.push_back(runtime::with_node_port(peer));
  c.cluster_key_file = at.cluster_key;
  return c;
}

bool says_which(const node_address& at) {
  return !at.name.empty() || !at.data_dir.empty() || !at.peers.empty();
}

node_address address_of(const node_address& at, const std::string& member) {
  node_address out = at;
  if (says_which(at))
    return out;
  for (const std::filesystem::path& folder :
       runtime::running_nodes(data_dir_of(at)))
    if (folder.filename() == member)
      out.name = member;
  return out;
}

std::string needs_a_name(const node_address& at, const std::string& command) {
  if (says_which(at))
    return {};
  const auto nodes = runtime::running_nodes(data_dir_of(at));
  if (nodes.size() < 2)
    return {};
  std::string names;
  for (const std::filesystem::path& folder : nodes)
    names += (names.empty() ? "" : ", ") + folder.filename().string();
  return "several nodes run on this machine (" + names
         + "): say which one is meant, as in `shoal " + command + " --name "
         + nodes.front().filename().string() + "`";
}

} // namespace shoal::apps
