// actors/serving/served_weights.hpp -- the weights of a served model on this peer.
//
// Fetches the files of the units that are wanted from any member, checks and
// loads them, and makes stages of them. Units stay while they are wanted, so a
// new place loads only what is new. Files that only pass (file_share.hpp) are held
// in memory until their units are loaded.
//
// Threads: the owner's; work runs on the disk and device queues, and may end
//          after this is gone.
// Errors:  what no peer has now, or the disk refuses, is asked for again each second,
//          and the owner is told; a
//          damaged file is fetched again; weights that cannot be read are told to
//          the owner, who ends the job.
#pragma once

#include "actors/checkpoint/blob_set.hpp"
#include "actors/serving/file_share.hpp"
#include "actors/training/later.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/jobs/serve_config.hpp"
#include "runtime/model/decode/paged_cache.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {
class context;
}

namespace shoal::actors {

/// A stage with its cache. Used on the device's thread, but for what says that it
/// may be called from any.
struct loaded_stage {
  std::unique_ptr<model::inference_stage> stage;
  std::unique_ptr<model::paged_cache> cache;
};

/// The one for whom weights are loaded.
class weights_owner {
public:
  virtual ~weights_owner() = default;
  virtual void say(const std::string& text) = 0;
  /// Loading does not go on, for this reason; empty: it does again. May come
  /// again and again.
  virtual void load_waits(const std::string& why) = 0;
  /// The weights cannot be used, and no other copy would help.
  virtual void unusable(const std::string& why) = 0;
  virtual std::vector<core::peer_id> members() const = 0;
  /// Runs a function in a turn of the owner, after a pause.
  virtual void
  run_later(std::chrono::seconds pause, std::function<void()> run) = 0;
};

/// As load_waits() tells it.
std::string why_not_fetched(std::error_code error);

/// What members tell each other of load_waits(): each change, and now and then the
/// same again, for those that have come since. One for each place. Pure.
class load_wait {
public:
  /// Of this peer. @param stages that are here, of `count`, from 0
  /// @param why empty: loading goes on
  /// @returns the line to tell; empty: none is due
  std::string
  set(const std::string& peer, const std::vector<std::uint32_t>& stages,
      std::size_t count, const std::string& why, core::nanoseconds now);
  /// A line of any peer. @returns whether it is to be noted: it is not the last one
  bool take(const std::string& line);

private:
  static constexpr core::nanoseconds again_after = 30'000'000'000;
  static constexpr std::size_t lines_max = 64; ///< noted
  std::string why_, last_;
  core::nanoseconds told_ = 0;
  std::size_t lines_ = 0;
};

class served_weights {
public:
  using stage_made = std::function<void(std::shared_ptr<loaded_stage>)>;

  served_weights(runtime::context& node, core::job_id job,
                 core::blob_digest manifest, runtime::serve_config config,
                 std::shared_ptr<const model::unit_layout> layout,
                 std::shared_ptr<const file_share> share, weights_owner& owner,
                 poster post);
  ~served_weights();
  served_weights(const served_weights&) = delete;
  served_weights& operator=(const served_weights&) = delete;

  /// From now on these units are wanted, and no others. What was asked of
  /// make_stage() before is void.
  void want(const std::set<model::unit_index>& units);
  /// Calls `made` when units [first, last), all wanted, are here.
  void
  make_stage(model::unit_index first, model::unit_index last, stage_made made);

  /// What was asked of make_stage() is void; units that are here stay.
  void forget_orders();

  /// To be called when the share is known, and when it has changed.
  void go_on() { load_next(); }

  /// Wanted units, and those that are here.
  std::size_t wanted() const noexcept { return wanted_.size(); }
  std::size_t here() const noexcept { return units_.size(); }

private:
  struct order {
    model::unit_index first = 0;
    model::unit_index last = 0;
    stage_made made;
  };

  /// Units whose files come while another one is loaded: the exchange fetches
  /// one blob more at a time (blob_exchange::fetches_max).
  static constexpr std::size_t units_ahead = 3;

  blob_set files_of(model::unit_index unit) const;
  std::vector<core::peer_id> holders_of(model::unit_index unit) const;
  void load_next();
  void fetch(model::unit_index unit);
  void read(model::unit_index unit);
  void let_go();
  void make_if_complete();
  void run_later(std::function<void()> run);

  runtime::context& node_;
  core::job_id job_;
  core::blob_digest manifest_;
  runtime::serve_config config_;
  std::shared_ptr<const file_share> share_;
  weights_owner& owner_;
  /// What is posted finds out by it whether this still exists.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  poster post_;
  std::shared_ptr<const model::unit_layout> layout_;
  std::set<model::unit_index> wanted_;
  std::map<model::unit_index, model::inference_unit> units_;
  std::set<model::unit_index> prefetched_; ///< or being so
  std::vector<order> orders_;
  bool loading_ = false;
  std::uint64_t turn_ = 0; ///< counts want()
  std::string said_;       ///< last
  bool told_wait_ = false; ///< to the owner
  /// Hashed files, and tied matrices: used on the disk and device queues only.
  std::shared_ptr<std::set<core::blob_digest>> verified_ =
    std::make_shared<std::set<core::blob_digest>>();
  std::shared_ptr<model::weights_by_name> tied_ =
    std::make_shared<model::weights_by_name>();
};

} // namespace shoal::actors
