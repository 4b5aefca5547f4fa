// runtime/links/link_state.hpp -- state shared by the parts of the link
// service.
//
// Private to link_service.cpp, link_receiver.cpp and link_sender.cpp. Every
// member runs as an event of `events`, so one at a time and without a lock.
#pragma once

#include "runtime/core/measure/link_estimator.hpp"
#include "runtime/links/link_service.hpp"
#include "runtime/work/serial.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace shoal::runtime::links {

using transport::bulk_tag;
using transport::peer_id;

/// Common members of sends and receives.
struct transfer {
  peer_id peer{};
  bulk_tag tag{};
  shared_bytes buffer;
  link_hub::callback done;
  fabric_kind fabric{};         ///< the fabric where it is posted or sent
  std::uint64_t generation = 0; ///< of the peer's connection on that fabric
  std::uint64_t attempt = 0;    ///< the grant in use
  int retries = 0;
  /// Set once it is removed from the peer's maps: its result when the fabric
  /// releases it.
  std::error_code detached;
};

struct receive : transfer {
  enum class stage { waiting, posted, ended } at = stage::waiting;
};

struct sending : transfer {
  enum class stage {
    waiting, ///< for a grant
    granted, ///< on a fabric on which the peer is not up here
    blocked, ///< granted; the fabric's queue is full
    sending,
    ended
  } at = stage::waiting;
  bool refused = false;                ///< waiting, and the peer has been told
  int held_ticks = 0;                  ///< ticks since it was granted
  core::link_estimator::ticket ticket; ///< sending
  std::optional<link_credit> next;     ///< arrived while sending
};

using receive_ptr = std::shared_ptr<receive>;
using sending_ptr = std::shared_ptr<sending>;

/// A peer on one fabric.
struct connection {
  bool up = false;
  std::uint64_t generation = 0; ///< counts ups
  std::uint64_t dropped = 0;    ///< generation that this side has dropped
};

inline constexpr std::size_t fabrics_max = 5; ///< index: fabric_kind

struct peer {
  std::array<connection, fabrics_max> connections;
  std::map<bulk_tag, receive_ptr> receives;
  std::map<bulk_tag, sending_ptr> sends;
  std::deque<receive_ptr> held;    ///< waiting for a fabric or for room
  std::deque<sending_ptr> blocked; ///< waiting for room
  std::map<bulk_tag, link_credit> early;
  std::set<bulk_tag> finished; ///< received recently
  std::deque<bulk_tag> finished_order;
  std::deque<link_credit> outbox;
};

/// Bytes by sub-plan and by job; guarded by its owner.
class job_counters {
public:
  void name_plan(std::uint64_t plan, std::uint64_t job);
  std::uint64_t job_of(std::uint64_t plan) const;

private:
  std::map<std::uint64_t, std::uint64_t> jobs_;
  std::deque<std::uint64_t> order_; ///< of jobs_, oldest first
};

/// Statistics of one peer on one fabric.
struct way_stat {
  transport::traffic all;
  std::map<std::uint64_t, transport::traffic> jobs;
  core::link_estimator meter;

  /// The counter of `job`; that of no job if there are too many.
  transport::traffic& of(std::uint64_t job);
};

struct state : std::enable_shared_from_this<state> {
  state(link_service::config c, credit_sender& s)
    : settings(std::move(c)), sender(s) {}

  // Both directions; link_service.cpp.
  void add_fabric(fabric_kind kind, transport::fabric& f);
  void up(fabric_kind kind, const peer_id& id);
  void down(fabric_kind kind, const peer_id& id);
  void connection_lost(const peer_id& id, fabric_kind kind,
                       std::uint64_t generation);
  void credit(const peer_id& from, const link_credit& c);
  void cancel(std::uint64_t plan);
  void tick();
  void close();
  void all_down(peer& p, std::error_code why);
  bool anywhere(const peer& p) const;
  bool is_cancelled(std::uint64_t plan) const;
  void use(std::uint64_t plan);
  void send_credit(const peer_id& to, const link_credit& c);
  void flush_outbox(const peer_id& id, peer& p);
  void flush(const peer_id& id, peer& p);
  void flush_all();
  void drop(const peer_id& id, peer& p, fabric_kind kind);
  void count(const transfer& t, bool sent);
  std::vector<link_hub::link_stat> all_stats() const;
  std::vector<link_hub::pending> pending_of(std::uint64_t plan) const;
  link_service::queues longest_queues() const;
  void meter_start(sending& s, std::int64_t now_ns);
  void meter_end(const sending& s, bool arrived);
  transport::fabric* fabric_of(fabric_kind kind) const;

  // link_receiver.cpp
  void expect(const receive_ptr& r);
  bool post(peer& p, const receive_ptr& r);
  void post_again(const receive_ptr& r);
  void received(const receive_ptr& r, std::error_code result);
  void flush_receives(peer& p);
  void refusal(const peer_id& from, const link_credit& c);
  void end(const receive_ptr& r, std::error_code result);

  // link_sender.cpp
  void send(const sending_ptr& s);
  void grant(const peer_id& from, const link_credit& c);
  void start(peer& p, const sending_ptr& s, const link_credit& c);
  bool push(peer& p, const sending_ptr& s);
  void sent(const sending_ptr& s, std::error_code result);
  void wait_again(const sending_ptr& s, bool refuse);
  void completed(const peer_id& from, const link_credit& c);
  void flush_sends(peer& p);
  void end(const sending_ptr& s, std::error_code result);

  link_service::config settings;
  credit_sender& sender;
  serial events;
  bool closed = false;
  std::array<transport::fabric*, fabrics_max> fabrics{};
  std::map<peer_id, peer> peers;
  std::deque<std::uint64_t> cancelled;
  std::uint64_t attempts = 0;
  /// Peers with transfers held, blocked or in the outbox.
  std::set<peer_id> stuck;

  using stat_key = std::pair<peer_id, fabric_kind>;
  mutable std::mutex stats_mutex;
  std::map<stat_key, way_stat> stats; ///< guarded by stats_mutex
  job_counters named;                 ///< guarded by stats_mutex
};

inline std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

inline std::size_t index(fabric_kind kind) {
  return static_cast<std::size_t>(kind);
}

} // namespace shoal::runtime::links
