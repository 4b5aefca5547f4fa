// apps/transfer/checkpoint_offer.hpp -- returns a checkpoint that this command
// has fetched to its job.
//
// A job may wait for a checkpoint whose holders are absent. The local copy is
// put into the store of a node, which informs the job; the job uses it if that
// is better than what it can reach otherwise.
//
// Threads: call it from one; the files are sent on a thread of its own.
// Errors:  the outcome is one line for the user.
// Limits:  one in progress.
#pragma once

#include "runtime/control/client.hpp"

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace shoal::apps {

class checkpoint_offer {
public:
  checkpoint_offer() = default;
  /// Sends no further file; waits for the one in progress.
  ~checkpoint_offer();
  checkpoint_offer(const checkpoint_offer&) = delete;
  checkpoint_offer& operator=(const checkpoint_offer&) = delete;

  /// Sends the checkpoint of `step` in `folder` through a node that answers at
  /// `at`. Does nothing while another one is in progress.
  void begin(const runtime::client_config& at, core::job_id job,
             const std::filesystem::path& folder, std::uint64_t step);

  /// The result, returned once.
  std::optional<std::string> take();

private:
  std::mutex mutex_; ///< guards what follows
  bool under_way_ = false;
  std::optional<std::string> outcome_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace shoal::apps
