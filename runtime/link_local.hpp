// runtime/link_local.hpp -- transfers from this node to itself: one copy.
//
// Whichever of expect() and send() comes second copies, on its own thread and
// without a lock, and runs both callbacks, the receiver's first.
//
// Threads: any.
#pragma once

#include "runtime/link_service.hpp"

#include <atomic>
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
  std::uint64_t copied_bytes() const noexcept { return copied_.load(); }

private:
  struct half {
    shared_bytes bytes;
    link_hub::callback done;
  };
  using halves = std::map<transport::bulk_tag, half>;

  void meet(halves& mine, halves& others, transport::bulk_tag tag, half own);
  void copy(const half& from, const half& into);

  std::mutex mutex_;
  bool closed_ = false;
  halves receives_;
  halves sends_;
  std::atomic<std::uint64_t> copied_{0};
};

} // namespace shoal::runtime::links
