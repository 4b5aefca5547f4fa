// actors/serving/file_keeper.hpp -- keeps this peer's share of the files of a served
// model.
//
// core::file_keepers says which files are kept here. Those that are not here are
// fetched, from any member that has them. Where the disk has not the room for all
// files of the model, those that are kept elsewhere are removed once each of their
// keepers has said that it has them: so a model passes through the node to which it
// is uploaded. When the disk refuses a file, the room on it is measured and offered
// again (offered_room.hpp), and with the view that follows other peers keep what
// does not fit.
//
// Threads: the owner's; work runs on the disk queue.
// Errors:  told to the owner; tried again.
#pragma once

#include "actors/checkpoint/needed_checkpoints.hpp"
#include "actors/serving/file_share.hpp"
#include "actors/serving/served_weights.hpp"
#include "runtime/core/assignment.hpp"
#include "runtime/core/planning/file_keepers.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::actors {

class file_keeper {
public:
  /// @param keeps false: only tells share() what is kept here, since another
  /// island of the job does the rest
  /// @param changed called when share() has changed
  file_keeper(runtime::context& node, core::job_id job,
              std::shared_ptr<const model::unit_layout> layout,
              std::shared_ptr<needed_checkpoints> needed, bool keeps,
              weights_owner& owner, poster post, std::function<void()> changed);
  file_keeper(const file_keeper&) = delete;
  file_keeper& operator=(const file_keeper&) = delete;

  /// Another view, with the place of the job.
  void set(std::shared_ptr<const core::view> view, core::assignment place);

  [[nodiscard]] const std::shared_ptr<file_share>& share() const noexcept {
    return share_;
  }

  /// Period in which it looks again, and in which it is asked whether files may be
  /// removed.
  static constexpr std::chrono::seconds look_every{15};
  static constexpr std::chrono::seconds remove_every{1};
  /// Files about which their keepers are asked at once.
  static constexpr std::size_t asked_max = 16;

private:
  struct files_of_view;
  struct look;

  void look_again();
  void looked(const look& found);
  void fetch_lists(const look& found);
  void fetch(const look& found);
  void remove_some(const look& found);
  void remove(std::vector<core::blob_digest> files,
              std::chrono::steady_clock::time_point until);
  void disk_has_refused();
  void look_after(std::chrono::seconds pause);
  void report(const look& found);

  runtime::context& node_;
  const core::job_id job_;
  const std::shared_ptr<const model::unit_layout> layout_;
  const std::shared_ptr<needed_checkpoints> needed_;
  const bool keeps_;
  weights_owner& owner_;
  /// What is posted finds out by it whether this still exists.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  poster post_;
  const std::function<void()> changed_;
  const std::shared_ptr<file_share> share_ = std::make_shared<file_share>();
  std::shared_ptr<const core::view> view_;
  std::shared_ptr<const core::assignment> place_;
  /// What the lists of files say of a place; used on the disk queue only.
  std::shared_ptr<files_of_view> files_;
  bool looking_ = false, outdated_ = false;
  bool fetching_lists_ = false, fetching_ = false, removing_ = false;
  bool refused_ = false;   ///< the disk, as it was said
  bool told_wait_ = false; ///< to the owner: lists of files cannot be fetched
  std::chrono::steady_clock::time_point next_look_{};
  std::string said_; ///< last
};

} // namespace shoal::actors
