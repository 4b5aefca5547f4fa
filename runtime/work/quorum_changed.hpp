// runtime/work/quorum_changed.hpp -- a message to the gateway: the node's view has
// lost its quorum or has it again, or other peers are in contact meanwhile.
//
// Without a quorum no request is begun, except where all peers of a pipeline are in
// contact: those compute on. The node sends it at each change; the newest counts.
#pragma once

#include "runtime/core/ids.hpp"

#include <caf/allowed_unsafe_message_type.hpp>

#include <string>
#include <vector>

namespace shoal::runtime {

struct quorum_changed {
  std::string why_none; ///< and what to do; empty: there is a quorum
  std::vector<core::peer_id> reachable; ///< in contact, this peer included
};

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::quorum_changed)
