// actors/gateway/prompts/prompt_queue.hpp -- requests whose prompts wait for their thread.
//
// A long prompt takes long: others' tokens do not wait for it. The thread does them
// in the order in which they came (prompt_work.hpp).
//
// Threads: the gateway's. Errors: 429 where too much waits.
#pragma once

#include "actors/gateway/prompts/prompt_work.hpp"
#include "actors/training/later.hpp" // poster
#include "runtime/context.hpp"

#include <cstddef>
#include <functional>
#include <optional>

namespace shoal::actors {

class prompt_queue {
public:
  using ready = std::function<void(prompt_answer, const prompt_models& by)>;

  /// @param post brings work back to the gateway
  prompt_queue(runtime::context& node, poster post)
    : node_(node), post_(std::move(post)) {}

  /// Why no more may be added.
  std::optional<openai::api_error> full(const http_ask& next) const;
  /// Prepares the request by these models, then calls `then`, on the gateway's
  /// thread. @param random the seed of a request that gives none
  void add(const http_ask& ask, const prompt_models& by, std::uint64_t random,
           const ready& then);

private:
  /// Requests that wait, and bytes of all but one.
  static constexpr std::size_t waiting_max = 1024;
  static constexpr std::size_t bytes_max = 64u << 20;

  runtime::context& node_;
  poster post_;
  std::size_t waiting_ = 0;
  std::size_t bytes_ = 0;
};

} // namespace shoal::actors
