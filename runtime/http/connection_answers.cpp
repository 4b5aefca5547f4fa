// runtime/http/connection_answers.cpp -- sends answers, at the client's pace.
#include "runtime/core/assert.hpp"
#include "runtime/http/connection.hpp"
#include "runtime/http/keys/key_account.hpp"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

namespace shoal::runtime {

using boost::system::error_code;

void connection::refuse(const openai::api_error& error, bool close) {
  ++host_.refused;
  send_whole(error.status, error_headers(error),
             error_body(reader_.request().path, error), close);
}

/// Sends an answer of the server's own.
void connection::send_whole(unsigned status, std::vector<http_header> headers,
                            std::string body, bool close) {
  state_ = state::answering;
  no_due();
  answer_.last = close;
  answer_box::taken whole;
  whole.head = answer_box::head{status, std::move(headers), true};
  whole.bytes = std::move(body);
  whole.complete = true;
  send(std::move(whole));
}

/// Takes what the handler has left, if all before it is written.
void connection::pump() {
  if (!answer_.box || state_ != state::answering)
    return;
  if (answer_.box->slow())
    return drop();
  if (writing_)
    return;
  auto taken = answer_.box->take();
  if (!taken.empty())
    send(std::move(taken));
}

void connection::send(answer_box::taken taken) {
  if (taken.head) {
    const bool whole = taken.head->whole;
    answer_.in_chunks = !whole && answer_.takes_chunks;
    answer_.last =
      answer_.last || host_.draining || (!whole && !answer_.takes_chunks);
    response_head head{.status = taken.head->status,
                       .headers = std::move(taken.head->headers),
                       .length = std::nullopt,
                       .chunks = answer_.in_chunks,
                       .close = answer_.last};
    if (whole)
      head.length = taken.bytes.size();
    else
      answer_.stream = true;
    std::ranges::move(answer_.extra, std::back_inserter(head.headers));
    const std::time_t now = std::time(nullptr);
    const auto add = [&](key_account::named_values all) {
      for (auto& [name, value] : all)
        head.headers.push_back({std::move(name), std::move(value)});
    };
    if (answer_.account) {
      add(answer_.account->headers());
      if (answer_.anthropics)
        add(answer_.account->anthropic_headers(now));
    }
    output_ += head_text(head, now);
  }
  if (answer_.stream)
    answer_.stream_bytes = taken.bytes.size();
  if (!answer_.head_only) {
    if (!taken.bytes.empty())
      output_ += answer_.in_chunks ? chunk_text(taken.bytes) : taken.bytes;
    if (taken.complete && answer_.in_chunks)
      output_ += last_chunk;
  }
  answer_.complete = taken.complete;
  answer_.cut = taken.cut;
  write_more();
}

void connection::write_more() {
  if (writing_)
    return;
  if (sent_ == sending_.size()) {
    sending_ = std::exchange(output_, {});
    sent_ = 0;
  }
  if (sending_.empty()) // an answer to HEAD, or the end of a connection's
    return on_all_written();
  writing_ = true;
  if (state_ == state::answering)
    set_due(host_.limits.stall_time);
  socket_.async_write_some(
    boost::asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
    [self = shared_from_this()](const error_code& error, std::size_t bytes) {
      self->writing_ = false;
      self->on_written(bool(error), bytes);
    });
}

void connection::on_written(bool error, std::size_t bytes) {
  if (state_ == state::closed)
    return;
  if (error)
    return lost();
  sent_ += bytes;
  if (sent_ < sending_.size() || !output_.empty())
    return write_more();
  sending_ = {};
  sent_ = 0;
  on_all_written();
}

void connection::on_all_written() {
  if (state_ != state::answering)
    return; // it was "100 Continue"
  no_due();
  if (const auto box = answer_.box)
    box->sent(std::exchange(answer_.stream_bytes, 0)); // may call the handler
  if (answer_.complete)
    return finish_answer();
  if (answer_.cut)
    return close();
  pump();
}

void connection::finish_answer() {
  const bool last = answer_.last || host_.draining;
  if (answer_.box)
    answer_.box->close(); // it is complete: the exchange may live on
  answer_ = {};
  body_.grow_to(0, host_.limits.bodies_bytes_max);
  reader_ =
    request_reader(host_.limits.head_bytes_max, host_.limits.body_bytes_max);
  if (last)
    return linger();
  state_ = state::idle;
  set_due(host_.limits.idle_time);
  process();
}

void connection::linger() {
  if (eof_)
    return close();
  state_ = state::lingering;
  input_ = {};
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  set_due(host_.limits.linger_time);
  watch();
}

/// The client does not take its answer.
void connection::drop() {
  ++host_.dropped;
  host_.client_dropped(*this);
  close();
}

} // namespace shoal::runtime
