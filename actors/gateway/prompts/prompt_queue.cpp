// actors/gateway/prompts/prompt_queue.cpp -- there and back again.
#include "actors/gateway/prompts/prompt_queue.hpp"

#include "runtime/work/device_queue.hpp"

#include <memory>
#include <utility>

namespace shoal::actors {

std::optional<openai::api_error>
prompt_queue::full(const http_ask& next) const {
  const std::size_t bytes = next.exchange->request().body.size();
  if (waiting_ < waiting_max && (waiting_ == 0 || bytes_ + bytes <= bytes_max))
    return std::nullopt;
  return openai::rate_limited("too many prompts wait to be tokenized", 1);
}

void prompt_queue::add(const http_ask& ask, const prompt_models& by,
                       std::uint64_t random, const ready& then) {
  const std::size_t bytes = ask.exchange->request().body.size();
  ++waiting_;
  bytes_ += bytes;
  const auto out = std::make_shared<prompt_answer>();
  node_.prompts().submit(
    [out, ask, by, random](kernels::backend&) {
      *out = prepare(ask.what, ask.exchange->request(), by, random);
    },
    [this, out, bytes, by, then, post = post_] {
      post([this, out, bytes, by, then] {
        --waiting_;
        bytes_ -= bytes;
        then(std::move(*out), by);
      });
    });
}

} // namespace shoal::actors
