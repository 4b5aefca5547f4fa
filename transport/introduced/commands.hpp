// transport/introduced/commands.hpp -- the queue of commands for the progress
// thread.
//
// One lock guards the queue and the table of peers that are up. So a call
// either finds its peer and is queued before that peer goes down, or returns
// peer_lost. The queue is bounded: data calls return would_block. connect,
// cancel and drop may not fail; they have room of their own, and callers other
// than the progress thread wait for it.
//
// Threads: any, except for take(), may_sleep(), enter() and leave(), which are
//          for the progress thread.
#pragma once

#include "transport/fabric.hpp"
#include "transport/limits.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace shoal::transport::introduced {

/// Counts the transfers in flight with a peer, and its traffic.
struct counters {
  std::atomic<std::size_t> messages{0};
  std::atomic<std::size_t> message_bytes{0};
  std::atomic<std::size_t> sends{0};
  std::atomic<std::size_t> receives{0};
  std::atomic<std::uint64_t> sent_bytes{0};
  std::atomic<std::uint64_t> received_bytes{0};
};

struct command {
  enum class kind { connect, message, receive, send, cancel, drop, close };
  kind what = kind::connect;
  peer_id peer{};
  std::uint64_t connection = 0; ///< the connection of the peer that it is for
  bulk_tag tag{};               ///< receive, send; cancel: plan only
  std::span<const std::byte> from{};
  std::span<std::byte> into{};
  completion done{};
  std::vector<std::byte> message{};
  std::string address{};
};

class commands {
public:
  /// The number of connect, cancel, drop and close commands that may be queued,
  /// in addition to data calls.
  static constexpr std::size_t control_max = 1024;

  commands(std::size_t data_max, limits queue)
    : data_max_(data_max), limits_(queue) {}

  /// Queues a message, receive or send for c.peer.
  /// @returns would_block, peer_lost, or canceled after close()
  std::error_code push(command c, bool& wake);
  /// Queues any other command. Does nothing after close().
  void push_control(command c, bool& wake);
  /// Queues a close like push_control(); false if it was closed before.
  bool close(bool& wake);

  /// How long the progress thread has not called take(); 0: it does. Asks it
  /// to, if needed: see fabric::silent_for().
  std::chrono::nanoseconds
  silent_for(std::chrono::steady_clock::time_point now, bool& wake);

  /// Takes all queued commands, in order.
  void take(std::vector<command>& out);
  /// Whether nothing is queued. If so, the next call that queues a command sets
  /// `wake`; otherwise none does, since take() is sure to follow.
  bool may_sleep();
  /// Names the thread that must never wait in push_control().
  void set_consumer(std::thread::id id) { consumer_ = id; }

  /// Opens the queue to calls for the peer, or closes it to them again.
  void enter(const peer_id& peer, std::uint64_t connection,
             std::shared_ptr<counters> c);
  void leave(const peer_id& peer);
  /// Removes the queued commands of one connection.
  std::vector<command> withdraw(std::uint64_t connection);

  traffic traffic_with(const peer_id& peer) const;

private:
  struct entry {
    std::uint64_t connection = 0;
    std::shared_ptr<counters> in_flight;
  };
  bool over_limit(const counters& c, const command& next) const;

  const std::size_t data_max_;
  const limits limits_;
  std::atomic<std::thread::id> consumer_{};
  mutable std::mutex lock_;
  std::condition_variable room_;
  std::vector<command> queue_;
  std::map<peer_id, entry> peers_;
  std::atomic<bool> any_ = false; ///< in queue_; saves take() the lock
  /// The time since which take() is awaited; not before look_again_.
  std::optional<std::chrono::steady_clock::time_point> asked_;
  std::chrono::steady_clock::time_point look_again_{};
  bool closed_ = false;
  bool asleep_ = false; ///< the progress thread, or nearly
};

} // namespace shoal::transport::introduced
