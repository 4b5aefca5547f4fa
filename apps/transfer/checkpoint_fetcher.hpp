// apps/transfer/checkpoint_fetcher.hpp -- brings checkpoints home in the background.
//
// On a thread of its own, one after the other, so that who watches a run goes
// on meanwhile. Of those that wait only the newest is fetched: what a slow way
// cannot keep up with is left out. Each is fetched beside its folder, then
// renamed: a folder that exists is whole. It holds checksums of its weights
// (runtime/model/files/checksums.hpp).
//
// Threads: call it from one; `get` is called on the fetcher's.
// Errors:  an outcome without a folder says why.
// Limits:  one under way, one that waits; outcomes until they are taken.
#pragma once

#include "runtime/jobs/job_log.hpp"

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace shoal::apps {

class checkpoint_fetcher {
public:
  using piece = std::function<std::error_code(std::span<const std::byte>)>;
  struct config {
    std::filesystem::path folder; ///< gets step-N/
    /// Fetches a blob, piece by piece, by way of the node `where`; ends with
    /// the error of a piece. `why` says an error for people.
    std::function<std::error_code(const std::string& where,
                                  const core::blob_digest& digest,
                                  const piece& sink, std::string& why)>
      get;
  };
  /// What became of one.
  struct outcome {
    runtime::job_event asked;
    std::filesystem::path folder; ///< empty: it is not there
    std::string why;              ///< then; empty: a newer one was wanted
  };

  explicit checkpoint_fetcher(config c);
  /// Ends what is under way.
  ~checkpoint_fetcher();
  checkpoint_fetcher(const checkpoint_fetcher&) = delete;
  checkpoint_fetcher& operator=(const checkpoint_fetcher&) = delete;

  /// Fetches a checkpoint after the one under way, instead of one that waits.
  void want(const runtime::job_event& checkpoint, const std::string& where);

  /// The next outcome, in the order in which they came about.
  std::optional<outcome> take();

  /// Waits until none is under way or waits.
  /// @param give_up asked ten times a second; true: ends them
  void settle(const std::function<bool()>& give_up);

private:
  struct wish {
    runtime::job_event checkpoint;
    std::string where;
  };
  void run();
  outcome fetch(const wish& w);
  bool stopping();

  config config_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<wish> next_;
  bool busy_ = false;
  bool stop_ = false; ///< what is under way ends, and none begins
  bool over_ = false;
  std::deque<outcome> outcomes_;
  std::thread thread_; ///< last: it uses all of these
};

} // namespace shoal::apps
