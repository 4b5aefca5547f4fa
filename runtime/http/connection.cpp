// runtime/http/connection.cpp -- reads requests, and hands them out.
#include "runtime/http/connection.hpp"

#include "runtime/core/assert.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <sys/socket.h>

#include <utility>

namespace shoal::runtime {
namespace {

using boost::system::error_code;

/// What a client may still send after it has been refused. A client that sends
/// more is cut off.
constexpr std::size_t linger_bytes_max = 64 << 20;

openai::api_error timeout() {
  auto error = openai::invalid_request("the request did not come in time", "",
                                       "request_timeout");
  error.status = 408;
  return error;
}

/// What a handler holds.
class exchange final : public http_exchange {
public:
  exchange(http_request request, byte_lease body,
           std::shared_ptr<answer_box> box)
    : request_(std::move(request)), body_(std::move(body)),
      box_(std::move(box)) {}
  ~exchange() override { box_->abandon(); }

  const http_request& request() const noexcept override { return request_; }
  void watch(std::weak_ptr<http_watcher> watcher) override {
    box_->watch(std::move(watcher));
  }
  using http_exchange::respond;
  bool respond(unsigned status, std::vector<http_header> headers,
               std::string body) override {
    return box_->respond(status, std::move(headers), std::move(body));
  }
  bool
  begin_stream(unsigned status, std::vector<http_header> headers) override {
    return box_->begin_stream(status, std::move(headers));
  }
  bool has_refused_stream() const override {
    return box_->has_refused_stream();
  }
  http_write write(std::string_view bytes) override {
    return box_->write(bytes);
  }
  bool end() override { return box_->end(); }

private:
  const http_request request_;
  const byte_lease body_;
  const std::shared_ptr<answer_box> box_;
};

} // namespace

connection_host::connection_host(const http_config& config,
                                 std::shared_ptr<http_handler> h, bool loopback)
  : limits(config.limits), handler(std::move(h)), clock(config.clock),
    gate(config, loopback), open(std::make_shared<open_answers>()),
    bodies(std::make_shared<std::atomic<std::size_t>>(0)) {
}

connection::connection(connection_host& host, tcp::socket socket,
                       std::string client)
  : host_(host), socket_(std::move(socket)), client_(std::move(client)),
    reader_(host.limits.head_bytes_max, host.limits.body_bytes_max),
    body_(host.bodies) {
}

void connection::start() {
  set_due(host_.limits.idle_time);
  watch();
}

void connection::start_full() {
  full_ = true;
  watch();
  refuse(openai::unavailable(
           "the server has as many connections as it may: "
             + std::to_string(host_.limits.connections_max)
             + "; try again later",
           static_cast<unsigned>(host_.limits.retry_after.count())),
         true);
}

void connection::set_due(std::chrono::seconds after) {
  host_.due.set(this, host_.clock->now() + after);
  host_.due_changed();
}

void connection::no_due() {
  host_.due.remove(this);
}

void connection::on_due() {
  switch (state_) {
  case state::reading:
    return refuse(timeout(), true);
  case state::answering:
    return drop();
  case state::idle:
  case state::lingering:
  case state::closed:
    return close();
  }
}

void connection::drain() {
  if (state_ == state::idle || state_ == state::reading)
    close();
}

// ---- reading ----

/// Waits for bytes or the client's end; if there is no room for bytes, for an
/// error.
void connection::watch() {
  if (state_ == state::closed)
    return;
  const bool room =
    state_ != state::answering || input_.size() < host_.limits.read_ahead_max;
  if (room && !eof_ && !std::exchange(waits_to_read_, true))
    socket_.async_wait(tcp::socket::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         self->waits_to_read_ = false;
                         self->on_readable(bool(error));
                       });
  if ((!room || eof_) && !std::exchange(waits_for_error_, true))
    socket_.async_wait(tcp::socket::wait_error,
                       [self = shared_from_this()](const error_code& error) {
                         self->on_error_event(bool(error));
                       });
}

void connection::on_readable(bool error) {
  if (state_ == state::closed)
    return;
  if (error)
    return lost();
  if (read_some())
    process();
}

/// Urgent data is such an event, too, and stays one: so this wait is not begun
/// again. What it would have told later, a write will.
void connection::on_error_event(bool error) {
  if (state_ == state::closed)
    return;
  int pending = 0;
  socklen_t size = sizeof pending;
  if (error
      || ::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_ERROR, &pending,
                      &size)
           != 0
      || pending != 0)
    lost();
}

/// @returns false if the connection is closed
bool connection::read_some() {
  error_code error;
  const std::size_t count =
    socket_.read_some(boost::asio::buffer(host_.scratch), error);
  if (error == boost::asio::error::would_block)
    return true;
  if (error == boost::asio::error::eof)
    eof_ = true;
  else if (error) {
    lost();
    return false;
  }
  if (state_ != state::lingering) {
    input_.append(host_.scratch.data(), count);
    return true;
  }
  lingered_ += count;
  if (!eof_ && lingered_ <= linger_bytes_max)
    return true;
  close();
  return false;
}

void connection::process() {
  while (state_ == state::idle || state_ == state::reading)
    if (!step())
      break;
  if (state_ == state::answering && eof_ && answer_.box
      && !answer_.box->complete())
    return lost();
  watch();
}

bool connection::step() {
  std::string_view rest = input_;
  const auto result = reader_.put(rest);
  input_.erase(0, input_.size() - rest.size());
  if (state_ == state::idle && reader_.begun()) {
    state_ = state::reading;
    set_due(host_.limits.request_time);
  }
  switch (result) {
  case request_reader::step::failed:
    refuse(reader_.error(), true);
    break;
  case request_reader::step::head:
    on_head();
    break;
  case request_reader::step::complete:
  case request_reader::step::more:
    if (!body_.grow_to(reader_.request().body.size(),
                       host_.limits.bodies_bytes_max))
      refuse(openai::unavailable(
               "the server holds as many bytes of requests as it may; try "
               "again later",
               static_cast<unsigned>(host_.limits.retry_after.count())),
             true);
    else if (result == request_reader::step::complete)
      on_complete();
    else if (eof_)
      close(); // no more comes
    else
      return false;
    break;
  }
  return true;
}

void connection::on_head() {
  http_request& head = reader_.request();
  head.client = client_;
  answer_.head_only = head.method == "HEAD";
  answer_.takes_chunks = reader_.takes_chunks();
  auto verdict = host_.gate.check(head, *host_.handler);
  answer_.extra = std::move(verdict.headers);
  answer_.account = head.account;
  answer_.anthropics = is_anthropics(head.path);
  const bool close = reader_.has_body() || !reader_.keep_alive();
  if (verdict.preflight)
    return send_whole(204, {}, {}, close);
  if (verdict.refused)
    return refuse(*verdict.refused, close);
  if (reader_.has_body() && reader_.expects_continue()) {
    output_ += continue_text;
    write_more();
  }
}

void connection::on_complete() {
  state_ = state::answering;
  no_due();
  answer_.last = !reader_.keep_alive();
  // What only asks is answered at once, as a balancer's look at /health is.
  const std::string& method = reader_.request().method;
  if (method != "GET" && method != "HEAD"
      && host_.open->waiting >= host_.limits.requests_max)
    return refuse(openai::rate_limited(
                    "the server has as many requests as it may: "
                      + std::to_string(host_.limits.requests_max)
                      + "; try again later",
                    static_cast<unsigned>(host_.limits.retry_after.count())),
                  answer_.last);
  ++host_.requests;
  const auto retry = static_cast<unsigned>(host_.limits.retry_after.count());
  const answer_limits limits{host_.limits.streams_max, host_.limits.pause_bytes,
                             host_.limits.drop_bytes, retry};
  auto wake = [weak = weak_from_this(), executor = socket_.get_executor()] {
    boost::asio::post(executor, [weak] {
      if (const auto self = weak.lock())
        self->pump();
    });
  };
  answer_.box = std::make_shared<answer_box>(
    limits, host_.open, std::move(wake), reader_.request().path);
  host_.handler->on_request(std::make_shared<exchange>(
    std::move(reader_.request()), std::move(body_), answer_.box));
  pump();
}

/// The client is gone, or its connection failed.
void connection::lost() {
  if (answer_.box && !answer_.box->complete())
    ++host_.gone;
  close();
}

void connection::close() {
  if (std::exchange(state_, state::closed) == state::closed)
    return;
  const auto self = shared_from_this();
  no_due();
  if (answer_.box)
    answer_.box->close();
  error_code ignored;
  socket_.close(ignored);
  host_.closed(*this);
}

} // namespace shoal::runtime
