// apps/remote/remote.cpp -- finds data directories and addresses to ask.
#include "apps/remote/remote.hpp"

#include "apps/remote/status_text.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "runtime/control/node_folders.hpp"
#include "runtime/discovery/host_list.hpp"
#include "runtime/identity/identity.hpp"

#include <iostream>

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
  if (at.cluster_key.empty())
    c.keys_of = std::filesystem::absolute(data_dir_of(at));
  return c;
}

runtime::client_config client_again(const node_address& at) {
  runtime::client_config c = client_of(at);
  c.key_was_used = true;
  return c;
}

runtime::client_config client_through(const node_address& at) {
  runtime::client_config c = client_of(at);
  if (!at.peers.empty() && at.cluster_key.empty())
    c.through = std::filesystem::absolute(data_dir_of(at));
  return c;
}

model::result<status_json> status_of(runtime::client& client) {
  std::string text;
  if (client.status(text))
    return model::failure{client.text()};
  return parse_status(text);
}

void say_no_quorum(runtime::client& client) {
  const auto status = status_of(client);
  const std::string why = status ? no_quorum_text(*status) : "";
  if (!why.empty())
    std::cerr << "shoal: " << why
              << ". Waiting for a quorum, 30 s at most (Ctrl-C: end)\n";
}

std::string options_text(const node_address& at) {
  std::string out;
  const auto add = [&out](const char* flag, const std::string& value) {
    if (!value.empty())
      out += std::string(" ") + flag + " " + shell_word(value);
  };
  add("--name", at.name);
  add("--data-dir", at.data_dir.string());
  add("--cluster-key", at.cluster_key.string());
  std::string peers;
  for (const std::string& peer : at.peers)
    peers += (peers.empty() ? "" : ",") + peer;
  add("--peer", peers);
  return out;
}

node_address address_now(node_address at, const runtime::client* client) {
  if (client == nullptr)
    return at;
  const std::filesystem::path where = client->where();
  if (std::ranges::count(client->addresses(), where.string()) > 0)
    at.peers = {where.string()};
  else if (at.peers.empty() && says_which(at) && where.is_absolute()
           && where != std::filesystem::absolute(data_dir_of(at))) {
    at.name.clear(); // it has moved to another node of this machine
    at.data_dir = where;
  }
  return at;
}

std::string command_line(const std::string& command, const node_address& at,
                         const std::filesystem::path& out) {
  return "shoal " + command + options_text(at)
         + (out.empty() ? "" : " --out " + shell_word(out.string()));
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
