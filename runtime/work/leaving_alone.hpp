// runtime/work/leaving_alone.hpp -- a message: this node ends, and no quorum can
// agree to that.
//
// No other peer takes over what jobs hold here, so each saves what it can. The
// node ends once all copies of `lease` are gone, or its deadline is over.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>

#include <memory>

namespace shoal::runtime {

struct leaving_alone {
  std::shared_ptr<void> lease;
};

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::leaving_alone)
