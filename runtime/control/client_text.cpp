// runtime/control/client_text.cpp -- why a client found no node.
#include "runtime/control/client_text.hpp"

#include "runtime/control/node_folders.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/identity/identity.hpp"

namespace shoal::runtime {

namespace fs = std::filesystem;

/// A node's shoal is not found again without its cluster key.
constexpr const char* again = "` and the other options that it had";

static std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string lost_node_text(const std::string& lost, const other_nodes& others,
                           std::int64_t seconds) {
  return "the node at " + lost + " does not answer, and "
         + (!others.no_key.empty()
              ? "no other node does on this machine, nor is there a cluster "
                "key to ask those of others"
            : !others.refusing.empty()
              ? "the nodes at " + joined(others.refusing)
                  + " refuse this command's cluster key: "
                  + (others.key_file.empty()
                       ? "name the key of their shoal by --cluster-key FILE"
                       : "if it was replaced, put the new one into "
                           + others.key_file.string() + ", which is read again")
            : !others.named ? "it had not yet named other nodes"
                            : "no other node does")
         + "; trying for " + std::to_string(seconds) + " s more";
}

std::string
gone_node_text(const std::string& lost,
               const std::vector<std::string>& refusing, std::int64_t seconds) {
  const fs::path folder = lost;
  const std::string name = folder.filename().string();
  return "the node at " + lost + " is gone, and "
         + (refusing.empty()
              ? "no node has answered for " + std::to_string(seconds) + " s"
              : "the nodes at " + joined(refusing)
                  + " refuse this command's cluster key: name "
                    "another --cluster-key FILE and --peer, or "
                    "ask a node of this machine")
         + (!folder.is_absolute() ? std::string()
            : !is_by_name(folder)
              ? ": start it again with `shoal node --data-dir " + lost + again
            : name == "default"
              ? std::string(": start it again with `shoal node") + again
              : ": start it again with `shoal node --name " + name + again);
}

std::string no_node_text(const client_config& config, const failed_ways& ways) {
  const std::string reason = ways.last.empty() ? "" : " (" + ways.last + ")";
  if (config.data_dir.empty() && !ways.no_key.empty())
    return "cannot ask " + joined(config.addresses) + ": " + ways.no_key
           + (config.through.empty() ? ""
              : ways.not_there.empty()
                ? ", and no node runs here that could ask in its place"
                : ", and the node here says: " + ways.not_there)
           + ". Name the key of its shoal by --cluster-key FILE";
  if (config.data_dir.empty())
    return "no node answers at the given addresses" + reason
           + ": check that a node listens there, and that --cluster-key names "
             "the key of its shoal";
  const bool by_name = is_by_name(config.data_dir);
  const std::string name = config.data_dir.filename().string();
  std::string others;
  if (config.named && by_name)
    for (const fs::path& folder : running_nodes(config.data_dir))
      others += (others.empty() ? "" : ", ") + folder.filename().string();
  if (!others.empty())
    return "no node named '" + name
           + "' runs on this machine; these do: " + others;
  std::error_code error;
  (void)fs::status(control_socket(config.data_dir), error);
  if (error == std::errc::permission_denied)
    return "cannot ask the node in " + config.data_dir.string() + ": "
           + error.message() + " (is it another user's?)";
  const bool ran = fs::exists(identity_file(config.data_dir), error);
  if (const auto beside = nodes_beside(config.data_dir);
      !ran && by_name && !config.named && !beside.empty())
    return "no node answers in " + config.data_dir.string() + reason
           + (beside.size() == 1
                ? ": start the one again that ran here, by `shoal node --name "
                    + beside.front()
                : ": start one of those again that ran here ("
                    + core::listed(beside) + "), by `shoal node --name NAME")
           + again + ", or another one by `shoal node`";
  return "no node answers in " + config.data_dir.string() + reason
         + (ran ? ": start it again with `shoal node"
                : ": start one with `shoal node")
         + (!config.named ? std::string()
            : by_name     ? " --name " + name
                          : " --data-dir " + config.data_dir.string())
         + (ran ? std::string(again) : "`");
}

std::string
silent_node_text(const std::string& where, std::chrono::milliseconds waited) {
  return "the node at " + where + " has not answered for "
         + std::to_string(
           std::chrono::ceil<std::chrono::seconds>(waited).count())
         + " s: its process is stopped or overloaded; continue it (kill "
           "-CONT), or end it and start it again";
}

} // namespace shoal::runtime
