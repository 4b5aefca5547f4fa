// runtime/store/claimed_blobs.hpp -- blobs that clients have uploaded for jobs that
// they have not submitted yet.
//
// A blob may also belong to a job that has ended: its files are removed at once, but
// not those that a client has claimed by uploading them again. A claim ends with the
// view that lists the client's job, which then needs the blob itself; or a minute
// after the last piece of an upload of the client; or when the client has gone without
// a job. Claims do not survive the process.
//
// Threads: any.
#pragma once

#include "runtime/core/ids.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace shoal::runtime {

class claimed_blobs {
public:
  using time = std::chrono::steady_clock::time_point;

  /// After the last piece of an upload.
  static constexpr std::chrono::seconds claimed_for{60};

  void claim(std::uint64_t client, const core::blob_digest& d, time now) {
    const std::lock_guard lock(mutex_);
    std::erase_if(clients_, [&](const auto& c) {
      return c.first != client && c.second.until <= now;
    });
    one& c = clients_[client];
    if (c.until <= now)
      c = {};
    c.blobs.insert(d);
    c.until = now + claimed_for;
  }

  /// The client goes on with an upload: what it has claimed stays.
  void renew(std::uint64_t client, time now) {
    const std::lock_guard lock(mutex_);
    if (const auto at = clients_.find(client);
        at != clients_.end() && now < at->second.until)
      at->second.until = now + claimed_for;
  }

  /// What a client has uploaded and what it uploads from now on is of this job.
  void submitted(std::uint64_t client, core::job_id job) {
    const std::lock_guard lock(mutex_);
    clients_[client].job = job;
  }

  /// The client will submit no job.
  void drop(std::uint64_t client) {
    const std::lock_guard lock(mutex_);
    clients_.erase(client);
  }

  /// @param lists whether the view lists a job
  bool claimed(const core::blob_digest& d,
               const std::function<bool(core::job_id)>& lists, time now) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(clients_, [&](const auto& each) {
      const one& c = each.second;
      return now < c.until && c.blobs.contains(d)
             && !(c.job != 0 && lists(c.job));
    });
  }

private:
  struct one {
    std::set<core::blob_digest> blobs;
    time until{};
    core::job_id job = 0; ///< 0: not submitted yet
  };

  mutable std::mutex mutex_;
  std::map<std::uint64_t, one> clients_;
};

} // namespace shoal::runtime
