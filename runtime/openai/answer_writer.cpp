// runtime/openai/answer_writer.cpp -- completions and chats, as they are worded.
#include "runtime/openai/answer_writer.hpp"

#include "runtime/openai/chat_request.hpp"
#include "runtime/openai/completion_request.hpp"

#include <utility>

namespace shoal::openai {
namespace {

class completion_writer final : public answer_writer {
public:
  completion_writer(bool chat, const generation_options& asked)
    : chat_(chat), include_usage_(asked.include_usage),
      usage_in_events_(asked.usage_in_events) {}

  void set_head(completion_head head) override {
    head_ = std::move(head);
    head_.chat = chat_;
    head_.id.insert(0, chat_ ? "chatcmpl-" : "cmpl-");
  }

  bool continues() const noexcept override { return true; }

  std::string
  whole(std::vector<completion_choice> choices, const usage& used) override {
    return completion_json(head_, choices, used);
  }

  std::string event(const completion_choice& news, const usage& used,
                    const event_id& id) override {
    return sse_event(chunk_json(head_, {news}, include_usage_,
                                usage_in_events_ ? &used : nullptr),
                     id);
  }

  std::string end(const usage& used, const event_id& id) override {
    std::string out;
    if (include_usage_)
      out = sse_event(usage_chunk_json(head_, used), id);
    return out += sse_done;
  }

  std::string error(const api_error& why) override {
    return sse_event(error_json(why));
  }

private:
  bool chat_, include_usage_, usage_in_events_;
  completion_head head_;
};

} // namespace

std::unique_ptr<answer_writer> make_writer(const completion_request& asked) {
  return std::make_unique<completion_writer>(false, asked);
}

std::unique_ptr<answer_writer> make_writer(const chat_request& asked) {
  return std::make_unique<completion_writer>(true, asked);
}

} // namespace shoal::openai
