// apps/remote/status_asker.hpp -- asks a node, or through it another peer, for its
// status.
//
// It connects when it is asked, and again after a failure: then another node that the
// client knows may answer.
//
// Threads: one at a time; calls block for at most the time given. Errors: a failure
//          says why there is no answer, or that it is no status.
#pragma once

#include "apps/remote/status_json.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/result.hpp"

#include <chrono>
#include <string>

namespace shoal::apps {

class status_asker {
public:
  /// @param answer_max  instead of the timeout of `node`
  status_asker(runtime::client_config node,
               std::chrono::milliseconds answer_max);

  /// The status as it was sent. @param member  of the node's shoal; empty: the node
  model::result<std::string> text_of(const std::string& member);
  /// The same, checked.
  model::result<status_json> ask(const std::string& member);

private:
  runtime::client client_;
  bool connected_ = false;
};

} // namespace shoal::apps
