// tests/sim/cluster_field.hpp -- many cluster cores on a plain network.
//
// cluster_world looks for wrong orders of events, while a field measures: a
// shoal of cores with links between all, seeded delays and loss, disks that
// take time, peers that are killed, stopped or slow, and pairs that are cut.
// Time is simulated.
#pragma once

#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/cluster/outbox.hpp"
#include "runtime/core/random.hpp"

#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <unordered_map>
#include <vector>

namespace shoal::sim {

struct field_options {
  std::uint64_t seed = 1;
  int peers = 5;
  int loss_per_10000 = 0; ///< of messages
  core::nanoseconds delay_min = 50'000;
  core::nanoseconds delay_max = 500'000;
  core::nanoseconds write_min = 0; ///< time to store a record
  core::nanoseconds write_max = 0; ///< 0: none
};

class field {
public:
  explicit field(const field_options& o);

  /// Starts all; @returns whether they agree on one view of all within `limit`.
  bool gather(core::nanoseconds limit);
  void run(core::nanoseconds time);
  /// @returns the time until `done` holds, checked whenever a peer adopts a
  /// view; -1 if it does not hold within `limit`.
  core::nanoseconds
  until(const std::function<bool()>& done, core::nanoseconds limit);

  void kill(int i);   ///< connections end, addresses refuse
  void vanish(int i); ///< like a power failure: silence
  void stop(int i, core::nanoseconds time); ///< SIGSTOP, later SIGCONT
  /// Every event reaches it with a delay of at most `most`.
  void slow(int i, core::nanoseconds most) { at(i).slow = most; }
  void cut(int a, int b);
  void mend(int a, int b);
  void give(int i, const core::cluster::event& e);

  int size() const { return int(peers_.size()); }
  const core::view& view_of(int i) const {
    return *peers_[std::size_t(i)].seen;
  }
  bool alive(int i) const {
    return peers_[std::size_t(i)].core && !peers_[std::size_t(i)].dark;
  }
  core::peer_id id_of(int i) const { return peers_[std::size_t(i)].id; }
  /// Whether all living peers share one view of `members` members.
  bool agreed(std::size_t members) const;
  /// Distinct views since the start, by number.
  const std::set<core::epoch>& views() const { return views_; }
  core::nanoseconds now() const { return now_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t events() const { return order_; }

private:
  struct one {
    core::peer_id id{};
    std::uint64_t instance = 0;
    std::unique_ptr<core::cluster::membership> core;
    std::unique_ptr<core::cluster::outbox> outbox;
    std::shared_ptr<const core::view> seen;
    core::nanoseconds ticks_at = 0;
    core::nanoseconds stopped_until = 0;
    core::nanoseconds slow = 0;
    core::nanoseconds last = 0; ///< events of a slow peer keep their order
    bool dark = false;
  };
  struct item {
    core::nanoseconds at = 0;
    std::uint64_t order = 0;
    int to = 0;
    core::nanoseconds tick = 0; ///< for a tick: the requested time
    bool late = false;          ///< delayed by a slow peer
    std::shared_ptr<const core::cluster::event> what; ///< null: a disk has
                                                      ///< finished
  };
  struct later {
    bool operator()(const item& a, const item& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  one& at(int i) { return peers_[std::size_t(i)]; }
  int find(const core::peer_id& id) const;
  bool linked(int a, int b) const;
  void link(int a, int b, bool up);
  void push(int to, core::nanoseconds delay, core::cluster::event e,
            core::nanoseconds tick = 0);
  void carry_out(int i, core::cluster::actions& out);
  void write(int i, core::cluster::actions& ready);
  void dial(int from, const std::string& address);
  bool next();

  field_options options_;
  core::cluster::random random_;
  core::nanoseconds now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t adopted_ = 0; ///< views, by any peer
  std::vector<one> peers_;
  /// Ids are random: any of their bytes can serve as a hash.
  struct first_bytes {
    std::size_t operator()(const core::peer_id& id) const {
      return std::size_t(id[0]) | std::size_t(id[1]) << 8
             | std::size_t(id[2]) << 16;
    }
  };
  std::unordered_map<core::peer_id, int, first_bytes> places_;
  std::vector<bool> links_; ///< size() rows: whether two are connected
  std::set<std::pair<int, int>> cuts_;
  std::set<core::epoch> views_;
  std::priority_queue<item, std::vector<item>, later> queue_;
};

} // namespace shoal::sim
