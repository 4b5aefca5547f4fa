// runtime/store/held_blobs.hpp -- blobs of a store that are in memory, and promises
// about those on the disk.
//
// Two kinds are in memory: those that a disk has refused and that this node needs,
// until the disk takes them; and those that only pass (store::stay_in_memory), until
// someone lets go of them. Each kind has a limit of its own.
//
// A pledge is a promise to another peer to keep a blob on the disk for a while, for a
// job that serves it. The peer removes its copy only within that time. So two peers that see different
// keepers of a blob, and ask each other at once, cannot both remove it: each finds
// its own pledge.
//
// Threads: any.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/store/loaded_blob.hpp"
#include "runtime/store/store.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace shoal::runtime {

class held_blobs {
public:
  using digest = core::blob_digest;

  /// What passes may take this share of the machine's memory, at least
  /// store::memory_bytes_max: a layer passes at a time, and it lies in memory twice
  /// while it is read.
  static constexpr std::uint64_t passing_share = 2;

  /// Jobs to which a blob is pledged at once.
  static constexpr std::size_t pledges_max = 64;

  /// The disk may refuse this one.
  void need(const digest& d) {
    const std::lock_guard lock(mutex_);
    needed_.insert(d);
  }
  bool needed(const digest& d) const {
    const std::lock_guard lock(mutex_);
    return needed_.contains(d);
  }

  void let_pass(const digest& d) {
    const std::lock_guard lock(mutex_);
    passing_.insert(d);
  }
  bool passes(const digest& d) const {
    const std::lock_guard lock(mutex_);
    return passing_.contains(d);
  }
  /// From now on as one that the disk has refused.
  void belongs_on_disk(const digest& d) {
    const std::lock_guard lock(mutex_);
    passing_.erase(d);
  }
  void let_go(const digest& d) {
    const std::lock_guard lock(mutex_);
    if (passing_.contains(d) && held_.erase(d) > 0)
      passing_.erase(d);
  }

  /// Null if it is not in memory.
  std::shared_ptr<const blob> at(const digest& d) const {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(d);
    return found == held_.end() ? nullptr : found->second;
  }

  /// The bytes that one blob may have.
  std::uint64_t bytes_max(bool passes) const {
    return passes ? passing_bytes_max_ : store::memory_bytes_max;
  }

  /// @returns false beyond the limit of its kind
  bool hold(const digest& d, std::vector<std::byte> bytes) {
    auto held = blob_of(std::move(bytes));
    const std::lock_guard lock(mutex_);
    const bool passes = passing_.contains(d);
    std::uint64_t sum = held->bytes().size();
    for (const auto& [other, blob] : held_)
      if (other != d && passing_.contains(other) == passes)
        sum += blob->bytes().size();
    if (sum > bytes_max(passes))
      return false;
    held_.insert_or_assign(d, std::move(held));
    return true;
  }

  /// Nothing is known of this blob any more, as its job has ended: a pledge of it
  /// must not hold what comes for another job. @returns whether it was in memory
  bool forget(const digest& d) {
    const std::lock_guard lock(mutex_);
    needed_.erase(d);
    passing_.erase(d);
    std::erase_if(pledges_, [&](const auto& p) { return p.first.first == d; });
    return held_.erase(d) > 0;
  }
  /// It is on the disk now. @returns false if it was removed in the meantime
  bool settled(const digest& d) {
    const std::lock_guard lock(mutex_);
    return held_.erase(d) > 0;
  }

  /// Those that belong on the disk.
  std::map<digest, std::shared_ptr<const blob>> to_settle() const {
    const std::lock_guard lock(mutex_);
    auto out = held_;
    std::erase_if(out,
                  [this](const auto& b) { return passing_.contains(b.first); });
    return out;
  }
  void list(std::vector<digest>& into) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [d, held] : held_)
      into.push_back(d);
  }

  using time = std::chrono::steady_clock::time_point;

  /// @returns false if it is pledged to pledges_max other jobs
  bool pledge(const digest& d, core::job_id job, time now) {
    const std::lock_guard lock(mutex_);
    std::size_t others = 0;
    for (auto at = pledges_.lower_bound({d, 0});
         at != pledges_.end() && at->first.first == d;)
      if (at->second <= now) {
        at = pledges_.erase(at);
      } else {
        others += at->first.second != job;
        ++at;
      }
    if (others >= pledges_max)
      return false;
    pledges_[{d, job}] = now + store::pledged_for;
    return true;
  }
  /// @param ended whether a job has ended
  bool pledged(const digest& d, const std::function<bool(core::job_id)>& ended,
               time now) const {
    const std::lock_guard lock(mutex_);
    for (auto at = pledges_.lower_bound({d, 0});
         at != pledges_.end() && at->first.first == d; ++at)
      if (now < at->second && !ended(at->first.second))
        return true;
    return false;
  }

private:
  static std::uint64_t machine_memory() {
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long bytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? std::uint64_t(pages) * std::uint64_t(bytes)
                                  : 0;
  }

  const std::uint64_t passing_bytes_max_ =
    std::max(store::memory_bytes_max, machine_memory() / passing_share);
  mutable std::mutex mutex_;
  std::set<digest> needed_;  ///< memory may hold these
  std::set<digest> passing_; ///< the disk must not
  std::map<digest, std::shared_ptr<const blob>> held_;
  /// Until when, by blob and job.
  std::map<std::pair<digest, core::job_id>, time> pledges_;
};

} // namespace shoal::runtime
