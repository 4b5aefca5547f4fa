// apps/transfer/checkpoint_fetcher.hpp -- downloads checkpoints in the
// background.
//
// On a thread of its own, one after the other, so that watching the run is not
// blocked. Of waiting checkpoints only the newest is fetched: on a slow link,
// older ones are skipped. Each is fetched beside its final folder, then
// renamed: a folder that exists is complete. It contains checksums of its
// weights (runtime/model/files/checksums.hpp). Nothing is written where the folder
// around it was moved since the checkpoint was wanted.
//
// Threads: call it from one; it calls its source on its own.
// Errors:  an outcome without a folder has the reason.
// Limits:  one in progress, one waiting; outcomes are kept until they are
//          taken.
#pragma once

#include "runtime/jobs/job_log.hpp"

#include <sys/types.h>

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
#include <utility>
#include <vector>

namespace shoal::apps {

/// Where a fetcher gets blobs from. Called on its thread.
class blob_source {
public:
  using piece = std::function<std::error_code(std::span<const std::byte>)>;
  virtual ~blob_source() = default;
  /// Fetches a blob, piece by piece, through the node `where`; returns the
  /// error of a piece. `why` gets the error as text.
  virtual std::error_code
  get(const std::string& where, const core::blob_digest& digest,
      const piece& sink, std::string& why) = 0;
};

class checkpoint_fetcher {
public:
  /// The result for one checkpoint.
  struct outcome {
    runtime::job_event asked;
    std::filesystem::path folder; ///< empty: not fetched
    std::string why;              ///< the reason then
    /// It is complete elsewhere and cannot be written here: a full disk, for
    /// example.
    bool unwritten = false;
  };

  /// @param folder parent of step-N/
  /// @pre `source` outlives it
  checkpoint_fetcher(std::filesystem::path folder, blob_source& source);
  /// Cancels the fetch in progress.
  ~checkpoint_fetcher();
  checkpoint_fetcher(const checkpoint_fetcher&) = delete;
  checkpoint_fetcher& operator=(const checkpoint_fetcher&) = delete;

  /// Fetches a checkpoint after the one in progress, instead of a waiting one.
  void want(const runtime::job_event& checkpoint, const std::string& where);

  /// Checkpoints that are wanted from now on go there.
  void move_to(std::filesystem::path folder);

  /// The next outcome, in order of completion.
  std::optional<outcome> take();

  /// Waits until none is in progress or waiting.
  /// @param give_up called ten times a second; true cancels them
  void settle(const std::function<bool()>& give_up);

private:
  /// Which file it is, whatever its name; 0, 0: there is none.
  using file_id = std::pair<dev_t, ino_t>;
  static file_id id_of(const std::filesystem::path& folder);

  struct wish {
    runtime::job_event checkpoint;
    std::string where;
    std::filesystem::path folder;
    file_id around; ///< the folder in which that one was then
  };
  void run();
  outcome fetch(const wish& w);
  bool stopping();

  std::filesystem::path folder_;
  blob_source& source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<wish> next_;
  bool busy_ = false;
  std::uint64_t step_ = 0; ///< of the one in progress
  bool stop_ = false;      ///< cancels the fetch in progress, and none begins
  bool over_ = false;
  std::deque<outcome> outcomes_;
  std::thread thread_; ///< last member: it uses all of these
};

} // namespace shoal::apps
