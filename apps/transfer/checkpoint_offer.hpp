// apps/transfer/checkpoint_offer.hpp -- gives a job back a checkpoint that this command
// has fetched before.
//
// A job may wait for a checkpoint whose holders are not there. The copy at home
// is put into the store of a node, which tells the job; the job uses it if that
// is better than what it can reach otherwise.
//
// Threads: call it from one; the files are sent on a thread of its own.
// Errors:  the outcome is one line, to be shown to the user.
// Limits:  one under way.
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
  /// Sends no further file; waits for the one under way.
  ~checkpoint_offer();
  checkpoint_offer(const checkpoint_offer&) = delete;
  checkpoint_offer& operator=(const checkpoint_offer&) = delete;

  /// Sends the checkpoint of `step` in `folder` by way of a node that answers
  /// at `at`. Does nothing while another one is under way.
  void begin(const runtime::client_config& at, core::job_id job,
             const std::filesystem::path& folder, std::uint64_t step);

  /// What became of it, once.
  std::optional<std::string> take();

private:
  std::mutex mutex_; ///< guards what follows
  bool under_way_ = false;
  std::optional<std::string> outcome_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace shoal::apps
