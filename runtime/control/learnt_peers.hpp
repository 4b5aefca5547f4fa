// runtime/control/learnt_peers.hpp -- what a client learns from a node's status.
//
// Used by client.cpp, to find another node when the asked one is gone, and to ask the
// other peers through it.
//
// Threads: any. Errors: none; text that is no status gives nothing.
#pragma once

#include "runtime/files/json.hpp"

#include <string>
#include <vector>

namespace shoal::runtime {

struct learnt_peers {
  std::vector<std::string> addresses; ///< of all
  std::vector<std::string> others;    ///< ids of all but the asked node
};

/// @param status JSON of a node. Nothing if it is not a status.
inline learnt_peers peers_in(const std::string& status) {
  learnt_peers out;
  const auto all = model::parse_json(status);
  if (!all.is_object() || !all.contains("peers") || !all.contains("self"))
    return out;
  for (const auto& peer : all["peers"]) {
    if (!peer.is_object())
      continue;
    if (const auto id = peer.find("id");
        id != peer.end() && id->is_string() && *id != all["self"])
      out.others.push_back(id->template get<std::string>());
    if (peer.contains("addresses"))
      for (const auto& a : peer["addresses"])
        if (a.is_string())
          out.addresses.push_back(a.template get<std::string>());
  }
  return out;
}

} // namespace shoal::runtime
