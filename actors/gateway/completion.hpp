// actors/gateway/completion.hpp -- one request for text, as it is answered.
//
// It has a choice for each prompt and n; each is a stream of the gateway. Tokens
// come in, text goes out: as one answer, or as events, in the words of the
// request's API (openai/answer_writer.hpp). A choice ends by its stream, or
// earlier by a stop string.
//
// The id of an event is the number of tokens that the client has with it, if there
// is one choice, else a count of events; and the step of the version, of a model that
// still trains. A client that comes again, to this or to another gateway, with the same
// Idempotency-Key (by which tokens are drawn, if it gives no seed) and that id gets
// what follows: the tokens are the same.
//
// Threads: the gateway's.
// Errors:  a stream that cannot go on ends the answer: with a status, or, if
//          events were sent, with an event that says why.
#pragma once

#include "actors/gateway/prompts/prompt_work.hpp"
#include "runtime/core/serving/replay.hpp"
#include "runtime/http/http_exchange.hpp"
#include "runtime/http/keys/key_account.hpp"
#include "runtime/model/decode/token_places.hpp"
#include "runtime/model/decode/token_text.hpp"
#include "runtime/openai/answer_parser.hpp"
#include "runtime/openai/answer_writer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

class completion {
public:
  /// @param by may be null: then choices have no text
  completion(std::shared_ptr<runtime::http_exchange> exchange,
             text_request asked, openai::completion_head head,
             std::shared_ptr<const model::tokenizer> by);

  std::size_t choices() const noexcept { return choices_.size(); }
  const std::vector<core::token_id>& prompt_of(std::size_t choice) const {
    return prompts_[choice / request_.generated()].ids;
  }
  const openai::generation_options& request() const noexcept {
    return request_;
  }
  runtime::http_exchange& exchange() noexcept { return *exchange_; }

  /// Begins the answer, if it is a stream of events: nothing is sent before its first
  /// token, so that what is refused until then has a status of its own. @returns
  /// false: the client is gone; or there are too many streams, so that it was
  /// refused: then status() is 429
  bool begin();
  /// Sends something that clients ignore, if it is a stream of events: one that
  /// waits long would be cut off on its way.
  void keep_alive();
  /// Whether events have been sent since this was asked last.
  bool has_sent() noexcept { return std::exchange(sent_events_, false); }

  /// Another version of the model goes on with it from the start, if the client has
  /// got nothing of the answer, also not before. @returns false: it has
  [[nodiscard]] bool begin_again(const openai::completion_head& head);
  /// Whether it can: the client has got nothing of the answer.
  [[nodiscard]] bool can_begin_again() const noexcept {
    return !told_ && !resumes_;
  }

  enum class outcome {
    goes_on,
    pause,       ///< the client is slow: until writable()
    choice_over, ///< its stream is not needed any more
    over,        ///< and no other one, either: the answer is complete
    gone,        ///< the client is
  };
  /// @param scored the prompt's tokens behind the first one, if
  ///        wants_scores(), with the first tokens
  outcome
  take(std::size_t choice, const std::vector<core::served_token>& tokens,
       core::stream_end end,
       const std::vector<core::served_token>& scored = {});
  /// Whether the probabilities of the prompt's tokens are part of the answer.
  bool wants_scores() const noexcept {
    return request_.echo && request_.logprobs && !resumes_;
  }
  /// The embedding of a choice's prompt, which ends it.
  outcome take_embedding(std::size_t choice, std::vector<float> values);
  /// All choices end here: max_tokens is 0.
  void finish_at_once();
  /// It cannot go on.
  void fail(const openai::api_error& why);

  std::uint64_t prompt_tokens() const noexcept { return used_.prompt_tokens; }
  std::uint64_t tokens() const noexcept { return used_.completion_tokens; }
  /// Status of the answer, for the log.
  unsigned status() const noexcept { return status_; }

private:
  struct choice {
    explicit choice(model::token_text t) : text(std::move(t)) {}
    model::token_text text;
    std::string all; ///< without events: the text so far
    std::optional<openai::answer_parser> parser; ///< of a chat
    std::string reasoning;                       ///< without events
    std::vector<openai::tool_call> calls;        ///< the same
    std::optional<model::token_places> places;   ///< with logprobs
    openai::logprobs logprobs;                   ///< without events
    std::vector<core::token_id> ids; ///< without events, if asked for
    openai::finish_reason finish = openai::finish_reason::none;
    bool over = false;
    bool echoed = false; ///< the probabilities of its prompt are told
    std::uint64_t tokens = 0;
    double logprob = 0; ///< of all tokens together
    std::vector<float> embedding;
  };

  void make_choices();
  model::token_text::special_text shown_specials() const;
  bool tell_beginning();
  void add_prompt(std::size_t index, openai::completion_choice& to,
                  const std::vector<core::served_token>& scored);
  void add_token(openai::logprobs& to, model::token_places& places,
                 const core::served_token& t, bool special_is_text) const;
  /// The text of a token, as far as it can be told now.
  std::string next_text(choice& c, core::token_id id);
  std::string stop_text(const choice& c, bool stopped_before) const;
  runtime::http_write event(const openai::completion_choice& news);
  void count_event();
  openai::event_id last_event() const { return {events_, head_.step}; }
  std::vector<std::size_t> best_choices() const;
  void complete();

  std::shared_ptr<runtime::http_exchange> exchange_;
  openai::generation_options request_;
  std::unique_ptr<openai::answer_writer> writer_;
  openai::completion_head head_;
  bool chat_;                    ///< answers are parsed
  openai::answer_format format_; ///< of a chat's answer
  bool ruled_ = false;           ///< its text keeps to a rule
  std::uint64_t seed_ = 0;       ///< of the first choice
  std::shared_ptr<const model::tokenizer> by_;
  std::vector<completion_prompt> prompts_;
  std::vector<choice> choices_;
  std::size_t left_ = 0; ///< choices that are not over
  openai::usage used_;
  std::uint64_t events_ = 0; ///< or tokens
  bool resumes_ = false;     ///< the client has its beginning
  std::uint64_t skip_ = 0;   ///< tokens that are not sent
  runtime::token_bill bill_; ///< of what is generated
  bool sent_ = false;        ///< something, of a stream
  bool told_ = false;        ///< the client has got some of the answer
  bool told_beginning_ = false;
  bool sent_events_ = false; ///< see has_sent()
  unsigned status_ = 200;
};

} // namespace shoal::actors
