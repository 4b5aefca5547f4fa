// runtime/http/answer_box.hpp -- what a handler's threads leave for the server's
// thread to send.
//
// The handler's side fills it, the server's side empties it. A write into an empty
// box wakes the server; those that follow go with it in one packet.
//
// Invariants
// at most drop_bytes of a stream wait; what would exceed that cuts it off.
// closed() is called at most once, and only if the answer is not complete.
// after close() nothing is kept, and the server is not woken.
//
// Threads: any; a lock is held for the copy only, never while a watcher is
//          called.
#pragma once

#include "runtime/http/http_exchange.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::runtime {

/// What is open in a whole server.
struct open_answers {
  std::atomic<std::size_t> waiting{0}; ///< without the begin of an answer
  std::atomic<std::size_t> streams{0}; ///< begun, not complete
};

struct answer_limits {
  std::size_t streams_max = 0;
  std::size_t pause_bytes = 0;
  std::size_t drop_bytes = 0;
  unsigned retry_after_s = 0;
};

class answer_box {
public:
  /// @param wake  makes the server's thread call take(); it must not call back
  /// @param path  of the request, by which errors are worded
  answer_box(answer_limits limits, std::shared_ptr<open_answers> open,
             std::function<void()> wake, std::string path = "");
  ~answer_box();
  answer_box(const answer_box&) = delete;
  answer_box& operator=(const answer_box&) = delete;

  // The handler's side; see http_exchange.
  void watch(std::weak_ptr<http_watcher> watcher);
  bool
  respond(unsigned status, std::vector<http_header> headers, std::string body);
  bool begin_stream(unsigned status, std::vector<http_header> headers);
  bool has_refused_stream() const;
  http_write write(std::string_view bytes);
  bool end();
  /// The exchange is gone: nothing will follow.
  void abandon();

  // The server's side.
  struct head {
    unsigned status = 200;
    std::vector<http_header> headers;
    bool whole = false; ///< the body is complete: its length is known
  };
  struct taken {
    std::optional<answer_box::head> head; ///< once
    std::string bytes;                    ///< of the body
    bool complete = false;                ///< nothing follows
    bool slow = false;                    ///< A-1: drop the client
    bool cut = false; ///< the stream was abandoned: it ends behind `bytes`
    bool empty() const {
      return !head && bytes.empty() && !complete && !slow && !cut;
    }
  };
  taken take();
  /// A-1, also while what was taken is still being sent.
  bool slow() const;
  /// Bytes that take() returned have reached the system.
  void sent(std::size_t bytes);
  /// Whether the handler has given all of its answer.
  bool complete() const;
  /// The connection is gone.
  void close();

private:
  enum class stage { waiting, begun, streaming, complete };

  void leave_waiting();                   // with the lock
  void begin(head h);                     // with the lock
  void begin_sending();                   // with the lock
  void notify();                          // with the lock
  void leave_stream();                    // with the lock
  std::shared_ptr<http_watcher> ending(); // with the lock

  const answer_limits limits_;
  const std::shared_ptr<open_answers> open_;
  mutable std::mutex mutex_;
  std::function<void()> wake_;
  const std::string path_;
  std::weak_ptr<http_watcher> watcher_;
  stage stage_ = stage::waiting;
  bool counted_waiting_ = true;
  bool counted_stream_ = false;
  bool refused_stream_ = false;
  bool woken_ = false;
  bool closed_ = false;
  bool told_ = false;     ///< closed() was called
  bool paused_ = false;   ///< write() has returned `pause`
  std::size_t bytes_ = 0; ///< of the stream, not sent: in next_ and taken
  head stream_head_;      ///< of a stream that has begun, not sent
  taken next_;
};

} // namespace shoal::runtime
