// runtime/work/are_you_there.hpp -- a message that asks an actor for a sign of
// life.
//
// The actor need not answer: life_sign.hpp, ask().
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>

#include <memory>

namespace shoal::runtime {

struct are_you_there {
  std::shared_ptr<void> answer;
};

} // namespace shoal::runtime

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::runtime::are_you_there)
