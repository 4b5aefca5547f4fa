// tests/conformance/held.hpp -- stops progress threads at places chosen by a
// test.
#pragma once

#include "tests/conformance/fixture.hpp"

#include <semaphore>

namespace shoal::transport::conformance {

/// Polls without sleeping; false after hang_after.
template <class Predicate>
[[nodiscard]] bool until(Predicate holds) {
  const auto deadline = std::chrono::steady_clock::now() + hang_after;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline)
      return false;
    std::this_thread::yield();
  }
  return true;
}

/// A place where a thread stops until it is released, once.
class held {
public:
  explicit held(board& notes) : notes_(notes) {}
  /// Called by the thread that has to stop; the second time it goes on.
  void enter() {
    if (std::exchange(entered_, true))
      return;
    notes_.post([this] { stands_ = true; });
    go_.acquire();
  }
  void wait() {
    BOOST_REQUIRE(notes_.wait([this] { return stands_; }));
  }
  void release() { go_.release(); }

private:
  board& notes_;
  bool entered_ = false; ///< of the thread
  bool stands_ = false;
  std::binary_semaphore go_{0};
};

/// Stops a receiver of exposed bulk in the middle of a transfer.
///
/// A message holds its thread until a small and a large transfer are in its
/// ring; it then takes both. The completion of the small one holds the thread
/// until another message is there; the rest of that turn goes to the first
/// bytes of the large one, and the message, in the next turn, holds it there.
struct mid_read {
  static constexpr std::size_t small_bytes = std::size_t{64} << 10;
  static constexpr std::size_t large_bytes = std::size_t{32} << 20;
  static constexpr bulk_tag small_tag{1, 0, 0}, large_tag{7, 0, 0};

  explicit mid_read(board& notes, std::size_t large = large_bytes)
    : got(large), in(notes), first_(notes), small_(notes), middle_(notes) {}

  /// Before the first message is sent.
  void post(fabric& receiver, const peer_id& from, recorder& heard) {
    const completion done{[](void* self, std::error_code) noexcept {
                            static_cast<mid_read*>(self)->small_.enter();
                          },
                          this};
    BOOST_REQUIRE(!receiver.post_receive(from, small_tag, small_got_, done));
    BOOST_REQUIRE(!receiver.post_receive(from, large_tag, got, in.done()));
    heard.on_message = [this](auto&, auto) {
      (messages_++ == 0 ? first_ : middle_).enter();
    };
  }
  /// Returns when the thread has stopped: now both transfers have to be sent.
  void wait_first() { first_.wait(); }
  /// Both have been sent: now the second message has to be sent.
  void wait_small() {
    first_.release();
    small_.wait();
  }
  /// Without a message: goes on from before the large one in the same turn.
  void skip_middle() { small_.release(); }
  /// The message has been sent: on return the receiver is stopped in the
  /// middle.
  void wait_middle() {
    small_.release();
    middle_.wait();
  }
  void go_on() { middle_.release(); }

  std::vector<std::byte> got;
  outcome in;

private:
  std::vector<std::byte> small_got_ = std::vector<std::byte>(small_bytes);
  held first_, small_, middle_;
  int messages_ = 0; ///< of the receiver's thread
};

} // namespace shoal::transport::conformance
