// transport/loopback/state.hpp -- the state that network.cpp and fabric.cpp share.
//
// One mutex guards everything. Everything that happens between nodes is an
// event in one queue, ordered by time and then by number, and so are the
// callbacks. An event runs with the lock held and releases it around each
// callback.
//
// L-1: a peer's entry is made and removed only by events, so on one thread.
// L-2: the memory of a transfer is touched only under the lock, and only while
//      the transfer is not finished.
#pragma once

#include "transport/loopback/fabric.hpp"

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <queue>
#include <random>
#include <set>
#include <thread>

namespace shoal::transport::loopback {

using lock = std::unique_lock<std::mutex>;
using action = std::function<void(lock&)>;
using nanoseconds = std::chrono::nanoseconds;

/// A bulk transfer, from send_bulk() to its completion.
struct transfer {
  bulk_tag tag;
  std::span<const std::byte> bytes;
  completion done;
  bool finished = false;
};

struct posted {
  std::span<std::byte> into;
  completion done;
};

/// A completion that is due.
struct due {
  completion done;
  std::error_code result;
};

/// The state that a node keeps for a connected peer.
struct peer_entry {
  std::uint64_t connection = 0; ///< equal at both ends
  std::string name;
  std::multimap<bulk_tag, posted> receives;
  std::list<std::shared_ptr<transfer>> sends;
  std::vector<due> canceled; ///< completions that have not run yet
  std::size_t messages = 0;
  std::size_t message_bytes = 0;
  traffic moved;
};

struct fabric::node {
  config settings;
  fabric_handler* handler = nullptr;
  bool killed = false;
  bool closing = false;
  bool finished = false; ///< every completion has run
  std::map<peer_id, peer_entry> peers;
  bool live() const { return !killed && !closing; }
};

struct network::state {
  using node = fabric::node;
  using node_ptr = std::shared_ptr<node>;

  struct event {
    nanoseconds at;
    std::uint64_t number;
    action run;
    bool operator<(const event& other) const { // a max-heap: earliest on top
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  mutable std::mutex mutex;
  std::condition_variable wake; ///< the thread waits for events
  std::condition_variable done; ///< close() waits for node::finished
  bool threaded = false;
  bool stopping = false;
  std::priority_queue<event> events;
  std::uint64_t next_number = 0;
  std::uint64_t next_connection = 1;
  nanoseconds clock{0};
  faults trouble;
  std::mt19937_64 random;
  std::map<std::string, node_ptr> nodes;
  std::set<std::pair<std::string, std::string>> cuts;
  std::map<std::pair<std::string, std::string>, std::vector<action>> held;
  std::map<std::pair<std::string, std::string>, nanoseconds> last_arrival;
  std::thread thread; ///< last: it uses all of the above

  ~state();

  // All functions below need the lock held.

  void push(nanoseconds at, action run);
  void run_next(lock& l);
  bool chance(double share);
  nanoseconds delay();
  bool is_cut(const std::string& from, const std::string& to) const;
  /// The arrival time of a message that leaves now; keeps the order of the
  /// pair.
  nanoseconds arrival(const std::string& from, const std::string& to);
  /// Runs `what` on arrival, or after the path has healed.
  void carry(const std::string& from, const std::string& to, action what);

  void call(lock& l, const node_ptr& n,
            const std::function<void(fabric_handler&)>& what);
  static void complete(lock& l, const std::vector<due>& list);

  void dial(lock& l, const node_ptr& from, const std::string& address);
  void link(lock& l, const node_ptr& a, const node_ptr& b);
  void lose(lock& l, const node_ptr& at, const peer_id& peer,
            std::uint64_t connection, std::error_code why);
  void tell_lost(const node_ptr& from, const peer_entry& gone);
  void finish(lock& l, const node_ptr& n);
  void deliver(lock& l, const node_ptr& from, const node_ptr& to,
               std::uint64_t connection, const std::vector<std::byte>& bytes,
               bool lost);
  void
  deliver_bulk(lock& l, const node_ptr& from, const node_ptr& to,
               std::uint64_t connection, const std::shared_ptr<transfer>& t);
  void finish_send(lock& l, const node_ptr& from, const peer_id& to,
                   std::uint64_t connection, const std::shared_ptr<transfer>& t,
                   std::error_code result);
  peer_entry*
  entry(const node_ptr& at, const peer_id& peer, std::uint64_t connection);
  node_ptr find(const std::string& name) const;
};

/// Removes the transfers of `plan`, or all if it is null; canceled ones first.
std::vector<due> take_pending(peer_entry& entry, const std::uint64_t* plan,
                              std::error_code result);

} // namespace shoal::transport::loopback
