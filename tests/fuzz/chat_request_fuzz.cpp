// tests/fuzz/chat_request_fuzz.cpp -- any bytes as the body of a chat, and as the
// text of its answer.
//
// What is accepted keeps the limits; what is refused names a field. An answer that is
// parsed in pieces is the same as at once.
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/answer_parser.hpp"
#include "runtime/openai/token_requests.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

using namespace shoal;
using namespace shoal::openai;

namespace {

void add(answer_parser::piece& to, const answer_parser::piece& more) {
  to.reasoning += more.reasoning;
  to.content += more.content;
  for (const tool_call& c : more.calls) {
    SHOAL_ASSERT(c.index <= to.calls.size());
    if (c.index == to.calls.size())
      to.calls.push_back(c);
    else {
      SHOAL_ASSERT(c.name.empty() && c.index + 1 == to.calls.size());
      to.calls.back().arguments += c.arguments;
    }
  }
}

answer_parser::piece
parsed(answer_format f, std::string_view text, std::size_t size) {
  answer_parser parser(f, 1);
  answer_parser::piece out;
  for (std::size_t at = 0; at < text.size(); at += size)
    add(out, parser.push(text.substr(at, size)));
  add(out, parser.finish());
  SHOAL_ASSERT(parser.called() == !out.calls.empty());
  return out;
}

void check_answer(std::string_view text) {
  for (const call_format calls : {call_format::none, call_format::hermes,
                                  call_format::llama, call_format::mistral})
    for (const bool thinks : {false, true}) {
      const answer_format f{calls, false, thinks, false};
      const auto whole = parsed(f, text, text.size() + 1);
      const auto pieces = parsed(f, text, 3);
      // A head that is too long to be one is given up earlier in pieces.
      if (text.size() >= call_head_bytes_max)
        continue;
      SHOAL_ASSERT(whole.content == pieces.content
                   && whole.reasoning == pieces.reasoning
                   && whole.calls.size() == pieces.calls.size());
      for (std::size_t i = 0; i < whole.calls.size(); ++i)
        SHOAL_ASSERT(whole.calls[i].arguments == pieces.calls[i].arguments
                     && whole.calls[i].name == pieces.calls[i].name);
      if (calls == call_format::none && !thinks)
        SHOAL_ASSERT(whole.content == text);
    }
}

void check(const api_error& error) {
  SHOAL_ASSERT(error.status == 400 && !error.message.empty());
  SHOAL_ASSERT(!model::parse_json(error_json(error)).is_discarded());
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check_answer(body);
  chat_limits l;
  l.messages_max = 8;
  l.stops_max = 3;
  l.values_max = 1000;
  const auto chat = parse_chat(body, l);
  if (const auto* const r = std::get_if<chat_request>(&chat)) {
    SHOAL_ASSERT(!r->asked.messages.empty() && r->asked.messages.size() <= 8);
    SHOAL_ASSERT(r->n >= 1 && r->n <= l.n_max && r->stop.size() <= 3);
    SHOAL_ASSERT(!r->logprobs || *r->logprobs <= chat_request::logprobs_max);
    for (const auto& message : r->asked.messages)
      SHOAL_ASSERT(message["role"].is_string());
  } else
    check(std::get<api_error>(chat));
  if (const auto t = parse_tokenize(body); std::holds_alternative<api_error>(t))
    check(std::get<api_error>(t));
  if (const auto t = parse_detokenize(body);
      std::holds_alternative<api_error>(t))
    check(std::get<api_error>(t));
  return 0;
}
