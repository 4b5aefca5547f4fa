// apps/chaos/chaos.hpp -- which peer is harmed how, and what a run lost by
// that.
//
// Three pure parts of `shoal chaos`: fault_sequence draws faults from a seed;
// view_watch decides from the peers' views whether all are together again and
// whether two of them ever differed under the same number; make_account
// computes figures from the observations.
//
// Goodput = committed tokens / integral of the remaining capacity. The capacity
// of all peers is measured without faults. Peers of one machine share its
// processors, so those that remain may use what the others do not:
//
//   capacity(w) = capacity of all * min(w, processors) / min(peers, processors)
//
// for w peers' worth of running processes. A peer counts again as soon as its
// process runs, before it has returned to the shoal: that time is the shoal's
// loss.
//
// Units:   nanoseconds of one clock; tokens.
// Threads: plain data and functions.
// Cost:    make_account: O(faults x commits).
#pragma once

#include "runtime/core/ids.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::core::chaos {

inline double seconds_of(nanoseconds t) {
  return double(t) / 1e9;
}

enum class fault_kind : std::uint8_t {
  kill = 0, ///< SIGKILL, started again later
  stop,     ///< SIGSTOP, SIGCONT later
  slow,     ///< runs only a part of each slow_period
  cut,      ///< no data passes to and from one other peer, or all others
};
inline constexpr std::array all_kinds{fault_kind::kill, fault_kind::stop,
                                      fault_kind::slow, fault_kind::cut};
std::string_view name_of(fault_kind kind);
std::optional<fault_kind> kind_named(std::string_view name);

struct fault {
  fault_kind kind = fault_kind::kill;
  std::uint32_t peer = 0;             ///< index of the peer
  std::optional<std::uint32_t> other; ///< of a cut; none: all others
  nanoseconds lasts = 0;              ///< until it is undone
  std::uint32_t runs_permille = 1000; ///< share of running time, while it lasts
  friend bool operator==(const fault&, const fault&) = default;
};

/// From less than the time after which a peer is missed, up to several times as
/// long.
inline constexpr nanoseconds lasts_min = 1'000'000'000;
inline constexpr nanoseconds lasts_max = 6'000'000'000;
/// For a slow peer: its stops are shorter than the time after which it is
/// missed.
inline constexpr nanoseconds slow_period = 200'000'000;
inline constexpr std::uint32_t slow_permille_min = 200;
inline constexpr std::uint32_t slow_permille_max = 600;

/// Endless; equal arguments give equal faults on every machine. Each round has
/// every kind once, in a drawn order.
class fault_sequence {
public:
  /// @pre peers >= 2, kinds not empty
  fault_sequence(std::uint64_t seed, std::uint32_t peers,
                 std::vector<fault_kind> kinds);
  fault next();

private:
  std::uint64_t draw(std::uint64_t count); ///< in [0, count)

  std::uint64_t state_;
  std::uint32_t peers_;
  std::vector<fault_kind> kinds_;
  std::vector<fault_kind> round_; ///< what is left of the present round
};

/// A view as reported by one peer.
struct told_view {
  std::string shoal; ///< its id
  epoch number = 0;
  std::string digest; ///< of the whole view
  std::size_t members = 0;
  bool member = false; ///< the reporting peer is a member
};

class view_watch {
public:
  explicit view_watch(std::size_t peers) : last_(peers) {}
  void told(std::size_t peer, const told_view& view);
  /// Its process has ended.
  void gone(std::size_t peer) { last_[peer].reset(); }

  /// Whether all are members of the same view, which contains all.
  bool together() const;
  /// Numbers under which peers reported different views of one shoal.
  std::uint64_t forks() const { return forks_; }
  epoch newest() const; ///< 0: none

private:
  std::vector<std::optional<told_view>> last_;
  std::map<std::pair<std::string, epoch>, std::string> digests_;
  std::uint64_t forks_ = 0;
};

struct commit {
  std::uint64_t step = 0; ///< the first is 1
  nanoseconds at = 0;
};

/// A fault that was carried out.
struct harm {
  fault what;
  nanoseconds from = 0;
  nanoseconds until = 0; ///< time of undoing: its process runs, its network is
                         ///< connected
};

struct record {
  std::vector<commit> commits; ///< in the order of reports; the first one is
                               ///< the beginning
  std::vector<harm> harms;     ///< in order, one at a time
  nanoseconds end = 0;
};

struct capacity {
  double tokens_per_s = 0; ///< of all peers, without faults
  std::uint32_t peers = 0;
  std::uint32_t processors = 0;
};

struct pauses {
  std::uint64_t count = 0;
  nanoseconds median = 0;
  nanoseconds longest = 0;
};

struct account {
  std::array<pauses, all_kinds.size()> after{}; ///< by kind of fault
  pauses after_all;
  std::uint64_t steps = 0;    ///< without repetitions
  std::uint64_t repeated = 0; ///< committed again: their first run was lost
  std::uint64_t missing = 0;  ///< below the last one, never reported
  double goodput = 0;         ///< 1: nothing was lost except the capacity
};

/// Adds, in order of time, steps that only `others` have: the reporter of
/// commits may have missed some.
void fill_in(std::vector<commit>& commits, const std::vector<commit>& others);

/// Tokens per second between the first and the last commit; 0 for fewer than
/// two.
double rate_of(const std::vector<commit>& commits, double tokens_per_step);

/// Number of processes, in peers' worth, that run at a time.
double
left_at(const std::vector<harm>& harms, std::uint32_t peers, nanoseconds at);

/// The longest wait for a commit that harm number `i` may have caused.
nanoseconds pause_of(const record& r, std::size_t i);

account
make_account(const record& r, const capacity& whole, double tokens_per_step);

} // namespace shoal::core::chaos
