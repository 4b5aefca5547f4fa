// runtime/http/connection.hpp -- one client's connection.
//
//            first byte          complete               answer sent
//   idle ----------------> reading ------> answering -----------------> idle
//                             |  refused        |  last answer: lingering
//                             `-----> answering `-----------------> closed
//
// It reads whenever it has room, in every state: the end of the stream while an
// answer is not complete means that the client is gone. When read_ahead_max
// bytes wait behind the present request, it only watches for errors.
//
// Lingering: after the last answer the sending side is closed, and what still
// comes is thrown away until the client closes, too: otherwise the system would
// reset the connection, and the client could lose an answer that it has not yet
// read.
//
// Threads: the server's.
#pragma once

#include "runtime/http/answer_box.hpp"
#include "runtime/http/deadlines.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/http/request_gate.hpp"
#include "runtime/http/request_reader.hpp"
#include "runtime/http/response_text.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::runtime {

class connection;

/// What all connections of a server share.
struct connection_host {
  const http_limits limits;
  const std::shared_ptr<http_handler> handler;
  const std::shared_ptr<http_clock> clock;
  request_gate gate;
  const std::shared_ptr<open_answers> open;
  /// Bytes of bodies that are read or are with the handler.
  const std::shared_ptr<std::atomic<std::size_t>> bodies;
  deadlines<connection> due;
  std::array<char, 64 << 10> scratch; ///< where reads go first
  bool draining = false;

  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> gone{0};

  virtual void due_changed() = 0;         ///< `due` has another first one
  virtual void closed(connection& c) = 0; ///< it may be destroyed
  virtual void client_dropped(connection& c) = 0; ///< for the log

protected:
  connection_host(const http_config& config, std::shared_ptr<http_handler> h,
                  bool loopback);
  ~connection_host() = default;
};

/// A share of a budget of bytes, given back at its end.
class byte_lease {
public:
  explicit byte_lease(std::shared_ptr<std::atomic<std::size_t>> used)
    : used_(std::move(used)) {}
  byte_lease(byte_lease&& other) noexcept
    : used_(other.used_), bytes_(std::exchange(other.bytes_, 0)) {}
  byte_lease& operator=(byte_lease&&) = delete;
  ~byte_lease() { *used_ -= bytes_; }
  /// @returns false, with nothing changed, if all shares would exceed `max`
  bool grow_to(std::size_t bytes, std::size_t max) {
    if (bytes > bytes_ && *used_ + (bytes - bytes_) > max)
      return false;
    *used_ += bytes - bytes_;
    bytes_ = bytes;
    return true;
  }

private:
  const std::shared_ptr<std::atomic<std::size_t>> used_;
  std::size_t bytes_ = 0;
};

class connection : public std::enable_shared_from_this<connection> {
public:
  using tcp = boost::asio::ip::tcp;

  connection(connection_host& host, tcp::socket socket, std::string client);

  void start();
  /// Answers 503 instead of reading a request.
  void start_full();
  bool is_full() const noexcept { return full_; }
  const std::string& client() const noexcept { return client_; }

  void on_due();
  /// Closes it unless it answers a request.
  void drain();
  void close();

private:
  enum class state { idle, reading, answering, lingering, closed };

  // Reading.
  void watch();
  void on_readable(bool error);
  void on_error_event(bool error);
  bool read_some();
  void process();
  bool step(); ///< @returns whether there may be another
  void on_head();
  void on_complete();
  void lost();

  // Answering.
  void refuse(const openai::api_error& error, bool close);
  void send_whole(unsigned status, std::vector<http_header> headers,
                  std::string body, bool close);
  void pump();
  void send(answer_box::taken taken);
  void write_more();
  void on_written(bool error, std::size_t bytes);
  void on_all_written();
  void finish_answer();
  void linger();
  void drop();

  void set_due(std::chrono::seconds after);
  void no_due();

  connection_host& host_;
  tcp::socket socket_;
  const std::string client_;
  state state_ = state::idle;
  bool full_ = false;
  bool eof_ = false;
  bool waits_to_read_ = false;
  bool waits_for_error_ = false; ///< or has waited: once is enough
  std::size_t lingered_ = 0;     ///< bytes thrown away

  std::string input_; ///< read, not taken by the reader
  request_reader reader_;
  byte_lease body_;

  // Of the present request and its answer:
  struct answer {
    std::shared_ptr<answer_box> box; ///< nothing: the server answers itself
    std::vector<http_header> extra;  ///< headers of the gate
    std::shared_ptr<key_account> account; ///< of the client's key; may be null
    bool anthropics = false;   ///< it has its limits in that API's words, too
    bool head_only = false;    ///< the request is HEAD
    bool takes_chunks = false; ///< the client speaks HTTP/1.1
    bool stream = false;
    bool in_chunks = false;
    bool last = false;            ///< nothing follows on this connection
    bool complete = false;        ///< all of it is in output_ or sending_
    bool cut = false;             ///< then the connection ends at once
    std::size_t stream_bytes = 0; ///< of the box, not yet sent
  };
  answer answer_;

  std::string output_;   ///< to be sent after sending_
  std::string sending_;  ///< the system reads it while `writing_`
  std::size_t sent_ = 0; ///< of sending_
  bool writing_ = false;
};

} // namespace shoal::runtime
