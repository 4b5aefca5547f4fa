// actors/serving/stage_runner.hpp -- one stage of a pipeline: computes passes in
// their order.
//
// A pass begins when it is its turn and, but on the first stage, the hidden
// states of its rows are here. Its hidden states go to the next stage over a
// link; on the last stage tokens are chosen, and the pipeline is told. No pass waits
// for the rule of a text: where it is not known at the end of a pass which tokens may
// come next, the row has none (row_result::waits), and the pipeline is told when it is
// known.
//
// S-1: the device gets passes in the order of their numbers, so that pages are
//      written and read in that order (core/serving/batcher.hpp, B-2).
//
// Threads: the owner's; passes run on the device as urgent work.
// Errors:  a pass that names pages or tokens that cannot be is told to the owner, as
//          are hidden states that do not match the digest that the sender made of
//          them where it computed them. A failed transfer: the peer is lost,
//          another place follows.
#pragma once

#include "actors/serving/row_results.hpp"
#include "actors/serving/rule_book.hpp"
#include "actors/serving/served_weights.hpp"
#include "actors/training/buffers.hpp"
#include "runtime/core/serving/stage_tables.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shoal::actors {

struct runner_config {
  runtime::context* node = nullptr;
  core::job_header header;
  std::uint32_t stage = 0;
  std::vector<core::peer_id> stages; ///< the first one speaks for the pipeline
  std::shared_ptr<loaded_stage> model;
  std::shared_ptr<buffer_pool> buffers;
  std::shared_ptr<rule_book> rules; ///< of the model; null: it has no text
  poster post;
  std::function<void(const std::string& why)> broken;
  /// What a stage sent of a pass is not what it computed. Nothing of the pass was
  /// used.
  std::function<void(const core::peer_id& by, std::uint64_t pass)> damaged;
  /// Counts what moves: for the watch of stalls.
  std::shared_ptr<std::atomic<std::uint64_t>> moved =
    std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// What comes behind the hidden states of a pass: a digest of them and of which
/// they are. XXH3: it finds what memory and ways between them have changed, not
/// a sender that lies about its own work.
[[nodiscard]] std::uint64_t
digest_of(std::span<const std::byte> hidden, std::uint64_t plan,
          std::uint32_t to_stage, std::uint64_t pass);

class stage_runner : public std::enable_shared_from_this<stage_runner> {
public:
  explicit stage_runner(runner_config config) : config_(std::move(config)) {}

  /// @param from the pipeline, which gets the answer
  void take(const core::peer_id& from, const core::serve_pass& p);
  void take(const core::serve_rule& rule);
  /// Begins nothing more; what runs ends with the piece under way.
  void end() {
    over_ = true;
    ended_->store(true);
  }

  /// Texts that keep to rules, also ended ones that are still to be forgotten.
  [[nodiscard]] std::size_t texts() const noexcept { return texts_.size(); }
  /// Whether the device has work of this stage.
  bool on_device() const noexcept { return on_device_ > 0; }
  /// Whether it has passes that it has not computed.
  bool works() const noexcept { return on_device() || !works_.empty(); }
  /// The stage whose hidden states it waits for, if for nothing else.
  std::optional<core::peer_id> waits_for() const;
  /// "pass 17": the oldest that it has; empty: none
  std::string where() const;

private:
  struct work; // one pass
  /// The text of a sequence that keeps to a rule.
  struct slot {
    std::shared_ptr<ruled_text> kept;
    /// The same, also for the device; null: its rule is not here yet.
    std::atomic<ruled_text*> text = nullptr;
    bool opened = false;  ///< its rule has come
    bool awaited = false; ///< by the pipeline, since a row of it waited
  };
  /// Texts of a stage: more than sequences that a pipeline runs.
  static constexpr std::size_t texts_max = 65536;
  /// Sums of a stage: sequences that run, and those that ended since a pass.
  static constexpr std::size_t sums_max = 4 * core::serving::rows_max;

  void pump();
  void begin(core::stage_tables::ready_pass next);
  void submit_ready();
  void computed(const std::shared_ptr<work>& w);
  std::shared_ptr<slot> slot_of(std::uint64_t sequence);
  std::shared_ptr<pooled_sum> sum_of(const core::serve_row& r);
  void find_next(const work& w);
  void tell_ready(std::uint64_t sequence, slot& of);
  static bool matches(const work& w, std::uint64_t plan, std::uint32_t stage);
  bool is_first() const { return config_.stage == 0; }
  bool is_last() const { return config_.stage + 1 == config_.stages.size(); }

  runner_config config_;
  core::stage_tables tables_;
  std::deque<std::shared_ptr<work>> works_; ///< not with the device yet
  std::size_t on_device_ = 0;
  std::uint64_t computing_ = 0; ///< the pass that the device got last
  std::map<std::uint64_t, std::shared_ptr<slot>> texts_; ///< by sequence
  /// Of prompts whose mean is wanted, by sequence; the device's work uses them.
  std::map<std::uint64_t, std::shared_ptr<pooled_sum>> sums_;
  std::uint64_t oldest_ = 0; ///< sequences before it have ended
  bool over_ = false;
  /// For work on the device.
  std::shared_ptr<std::atomic<bool>> ended_ =
    std::make_shared<std::atomic<bool>>(false);
};

} // namespace shoal::actors
