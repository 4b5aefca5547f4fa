// tests/fuzz/responses_request_fuzz.cpp -- any bytes as the body of a request to the
// Responses API.
//
// What is accepted keeps the limits, and its messages are those of a chat; what is
// refused names a field of this API. The answer repeats what was accepted.
#include "runtime/core/assert.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/responses/responses_request.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

using namespace shoal;
using namespace shoal::openai;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  responses_limits l;
  l.messages_max = 8;
  l.stops_max = 3;
  l.values_max = 1000;
  const auto parsed =
    parse_responses({reinterpret_cast<const char*>(data), size}, l);
  if (const auto* const error = std::get_if<api_error>(&parsed)) {
    SHOAL_ASSERT(error->status == 400 && !error->message.empty());
    SHOAL_ASSERT(!error->param.starts_with("messages"));
    SHOAL_ASSERT(!model::parse_json(error_json(*error)).is_discarded());
    return 0;
  }
  const auto& r = std::get<responses_request>(parsed);
  SHOAL_ASSERT(r.n == 1 && r.stop.size() <= 3);
  SHOAL_ASSERT(!r.logprobs || *r.logprobs <= chat_request::logprobs_max);
  SHOAL_ASSERT(!r.asked.messages.empty() && r.asked.messages.size() <= 8);
  for (const auto& message : r.asked.messages)
    SHOAL_ASSERT(message["role"].is_string());
  const auto writer = make_writer(r);
  writer->set_head({"1", 2, "m", ""});
  completion_choice c;
  c.text = "a";
  c.finish = finish_reason::stop;
  const std::string answer = writer->whole({c}, {});
  SHOAL_ASSERT(answer.find('\n') == answer.npos);
  return 0;
}
