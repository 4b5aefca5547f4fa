// runtime/links/link_local.hpp -- transfers from this node to itself: one copy.
//
// The later of the two calls expect() and send() copies, on its own thread and
// without a lock, and runs both callbacks, the receiver's first.
//
// Threads: any.
#pragma once

#include "runtime/links/link_state.hpp"

#include <map>
#include <mutex>

namespace shoal::runtime::links {

class local {
public:
  void
  expect(transport::bulk_tag tag, shared_bytes into, link_hub::callback done);
  void
  send(transport::bulk_tag tag, shared_bytes from, link_hub::callback done);
  void cancel(std::uint64_t plan);
  void close();
  void name_plan(std::uint64_t plan, std::uint64_t job);
  /// Bytes copied, by job.
  std::map<std::uint64_t, std::uint64_t> copied() const;

private:
  struct half {
    shared_bytes bytes;
    link_hub::callback done;
  };
  using halves = std::map<transport::bulk_tag, half>;

  void meet(halves& mine, halves& others, transport::bulk_tag tag, half own);
  void copy(std::uint64_t plan, const half& from, const half& into);

  mutable std::mutex mutex_;
  bool closed_ = false;
  halves receives_;
  halves sends_;
  way_stat copied_;
  job_counters named_;
};

} // namespace shoal::runtime::links
