// tests/fuzz/messages_request_fuzz.cpp -- any bytes as the body of a request to
// Anthropic's API, and as the arguments of a call in its answer.
//
// What is accepted keeps the limits, and its messages are those of a chat; what is
// refused has a message. Calls have objects as input, whatever the model writes.
#include "runtime/anthropic/error_text.hpp"
#include "runtime/anthropic/messages_request.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/files/json.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

using namespace shoal;
using namespace shoal::anthropic;

namespace {

void check_answer(std::string_view arguments) {
  const auto writer = make_writer(messages_request());
  writer->set_head({"1", 2, "m", ""});
  openai::completion_choice c;
  c.calls = {{0, "call", "f", std::string(arguments)}};
  c.finish = openai::finish_reason::tool_calls;
  const auto answer = model::parse_json(writer->whole({c}, {}));
  // The arguments may nest as deep as JSON may here, and stand in an object.
  if (!answer.is_discarded())
    SHOAL_ASSERT(answer["content"][0]["input"].is_object());
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check_answer(body);
  openai::chat_limits l;
  l.messages_max = 8;
  l.stops_max = 3;
  l.values_max = 1000;
  const auto parsed = parse_messages(body, l);
  if (const auto* const error = std::get_if<openai::api_error>(&parsed)) {
    SHOAL_ASSERT(error->status == 400 && !error->message.empty());
    SHOAL_ASSERT(
      !model::parse_json(anthropic::error_json(*error)).is_discarded());
    return 0;
  }
  const auto& r = std::get<messages_request>(parsed);
  SHOAL_ASSERT(r.n == 1 && r.stop.size() <= 3 && r.max_tokens > 0);
  SHOAL_ASSERT(!r.asked.messages.empty());
  for (const auto& message : r.asked.messages)
    SHOAL_ASSERT(message["role"].is_string());
  SHOAL_ASSERT(
    std::holds_alternative<messages_request>(parse_count_tokens(body, l)));
  return 0;
}
