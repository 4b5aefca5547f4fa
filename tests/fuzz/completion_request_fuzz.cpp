// tests/fuzz/completion_request_fuzz.cpp -- any bytes as the body of
// /v1/completions, and of /v1/embeddings.
//
// What is accepted keeps all limits; what is refused gets an answer that is
// JSON on one line.
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/openai/completion_request.hpp"
#include "runtime/openai/completion_response.hpp"
#include "runtime/openai/embeddings.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

using namespace shoal;
using namespace shoal::openai;

namespace {

completion_limits limits() {
  completion_limits l;
  l.prompts_max = 4;
  l.prompt_bytes_max = 256;
  l.prompt_tokens_max = 64;
  l.n_max = 4;
  l.choices_max = 8;
  l.tokens_max = 1000;
  l.stops_max = 3;
  l.stop_bytes_max = 16;
  l.values_max = 1000;
  l.name_bytes_max = 32;
  return l;
}

void check_embeddings(std::string_view body, const completion_limits& most) {
  embedding_limits l;
  static_cast<completion_limits&>(l) = most;
  const auto parsed = parse_embeddings(body, l);
  if (const auto* const r = std::get_if<embedding_request>(&parsed)) {
    SHOAL_ASSERT(!r->prompts.empty() && r->prompts.size() <= l.prompts_max);
    SHOAL_ASSERT(r->generated() == 1 && !r->stream && !r->echo && !r->rule);
    return;
  }
  const auto& error = std::get<api_error>(parsed);
  SHOAL_ASSERT(error.status == 400 && core::is_shown(error.message));
}

bool is_json_line(const std::string& text) {
  return core::is_shown(text) && !model::parse_json(text).is_discarded();
}

void check(const completion_request& r, const completion_limits& l) {
  SHOAL_ASSERT(!r.prompts.empty() && r.prompts.size() <= l.prompts_max);
  SHOAL_ASSERT(r.n >= 1 && r.n <= l.n_max
               && r.n * r.prompts.size() <= l.choices_max);
  SHOAL_ASSERT(r.max_tokens <= l.tokens_max && (r.max_tokens > 0 || r.echo));
  SHOAL_ASSERT(r.model.size() <= l.name_bytes_max
               && r.user.size() <= l.name_bytes_max);
  SHOAL_ASSERT(!r.temperature || (*r.temperature >= 0 && *r.temperature <= 2));
  SHOAL_ASSERT(!r.top_p || (*r.top_p > 0 && *r.top_p <= 1));
  SHOAL_ASSERT(!r.min_p || (*r.min_p >= 0 && *r.min_p <= 1));
  SHOAL_ASSERT(!r.repetition_penalty || *r.repetition_penalty > 0);
  SHOAL_ASSERT(!r.logprobs || *r.logprobs <= completion_request::logprobs_max);
  SHOAL_ASSERT(!r.include_usage || r.stream);
  SHOAL_ASSERT(r.stop.size() <= l.stops_max);
  for (const std::string& s : r.stop)
    SHOAL_ASSERT(!s.empty() && s.size() <= l.stop_bytes_max);
  std::size_t bytes = 0;
  std::size_t tokens = 0;
  for (const prompt& p : r.prompts) {
    if (const auto* const text = std::get_if<std::string>(&p)) {
      bytes += text->size();
      const completion_choice c{.index = 0,
                                .text = *text,
                                .logprobs = std::nullopt,
                                .finish = finish_reason::none};
      SHOAL_ASSERT(is_json_line(chunk_json({"id", 0, r.model, ""}, {c}, true)));
      SHOAL_ASSERT(characters(*text) <= text->size());
      SHOAL_ASSERT(token_text(*text) == *text); // JSON is UTF-8
      continue;
    }
    const auto& ids = std::get<std::vector<token_id>>(p);
    SHOAL_ASSERT(!ids.empty());
    tokens += ids.size();
    for (const token_id id : ids)
      SHOAL_ASSERT(id >= 0);
  }
  SHOAL_ASSERT(bytes <= l.prompt_bytes_max && tokens <= l.prompt_tokens_max);
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const completion_limits l = limits();
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check_embeddings(body, l);
  const auto parsed = parse_completion(body, l);
  if (const auto* const r = std::get_if<completion_request>(&parsed)) {
    check(*r, l);
    return 0;
  }
  const auto& error = std::get<api_error>(parsed);
  SHOAL_ASSERT(error.status == 400 && !error.message.empty());
  SHOAL_ASSERT(core::is_shown(error.message));
  SHOAL_ASSERT(is_json_line(error_json(error)));
  (void)token_text(body);
  SHOAL_ASSERT(characters(body) <= size);
  return 0;
}
