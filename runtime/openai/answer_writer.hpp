// runtime/openai/answer_writer.hpp -- how one API words an answer.
//
// A request's parser makes the writer that belongs to it; the gateway tells it
// what comes, and sends what it returns. So the gateway knows no API:
//
//   request -> generation_options, prompt, answer_writer
//   tokens  -> completion_choice -> answer_writer -> bytes
//
// An answer is either whole(), or a stream: event() as often as there is news,
// then end(), or error().
//
// Threads: one at a time. Errors: none.
#pragma once

#include "runtime/openai/completion_response.hpp"

#include <memory>
#include <string>
#include <vector>

namespace shoal::openai {

class answer_writer {
public:
  virtual ~answer_writer() = default;

  /// Takes what all objects of the answer share; its id has no prefix yet. Called
  /// first, and again while nothing has been written, if another version of the
  /// model goes on with the request.
  virtual void set_head(completion_head head) = 0;

  /// Whether a client may go on with a stream, by Last-Event-ID.
  virtual bool continues() const noexcept { return false; }

  /// The answer of a request without `stream`.
  virtual std::string
  whole(std::vector<completion_choice> choices, const usage& used) = 0;

  /// News of a choice. @returns events; "" if clients are told nothing of it
  /// @param id  by which a client may go on with a stream (Last-Event-ID)
  virtual std::string event(const completion_choice& news, const usage& used,
                            const event_id& id) = 0;
  /// What is behind the last choice.
  virtual std::string end(const usage& used, const event_id& id) = 0;
  /// The last event of a stream that cannot go on.
  virtual std::string error(const api_error& why) = 0;
};

struct completion_request;
struct chat_request;
std::unique_ptr<answer_writer> make_writer(const completion_request& asked);
std::unique_ptr<answer_writer> make_writer(const chat_request& asked);

} // namespace shoal::openai
