// runtime/node/state/waiting_requests.hpp -- requests of clients that are not
// answered yet: they wait for a view, or for another peer.
//
// A request is identified by a token of control's. Tokens that are returned
// here have to be answered; control decides how long a client waits.
//
// Threads: any; no lock is held when a member has returned. A view is adopted
//          by one thread at a time.
#pragma once

#include "runtime/control/control.hpp" // outcome
#include "runtime/core/ids.hpp"
#include "runtime/core/job_entry.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace shoal::core {
struct view; // runtime/core/view.hpp
}

namespace shoal::runtime {

class waiting_requests {
public:
  using clock = std::chrono::steady_clock;
  /// Limit of the jobs that wait for the first view.
  static constexpr std::size_t early_jobs_max = 64;
  /// Limit of the proposed jobs that were given up, and of the invites; the
  /// oldest is forgotten.
  static constexpr std::size_t unwanted_max = 1024;

  /// Condition on a view: `reached`, which also fills the answer; without it,
  /// that the job `tag` is in the view.
  struct wanted_view {
    core::job_id tag = 0; ///< of the job, or another one that rejected{}
                          ///< contains
    std::function<bool(const core::view& v, outcome& o)> reached;
    std::optional<core::cluster_key> invite = {}; ///< that it makes
  };
  struct answer {
    std::uint64_t token = 0;
    outcome what;
  };
  /// A job that was submitted before the first view.
  struct early_job {
    std::uint64_t token = 0;
    core::job_entry job;
    clock::time_point until{}; ///< end of the client's patience
  };
  struct adopted_view {
    std::vector<answer> answers;
    std::vector<early_job> jobs;        ///< to submit now
    std::vector<core::job_id> unwanted; ///< in the view, given up: to be ended
    std::vector<core::cluster_key> unused; ///< invites in the view whose tokens
                                           ///< nobody has: to be used up
  };

  /// Waits for a view. @returns whether there has been a view at all; otherwise
  /// the request is not kept.
  bool want(std::uint64_t token, wanted_view w);
  /// Waits for a view of another shoal than the present one.
  void want_other_shoal(std::uint64_t token);

  /// What the caller has to do with a job: propose it, while the request waits
  /// for the view that has it; or nothing, since there is no view yet and it
  /// was kept (and moved from); or refuse it, since too many are waiting.
  enum class submitted { propose, kept, too_many };
  submitted
  submit(std::uint64_t token, core::job_entry& job, clock::time_point now);

  /// What a request that was given up had waited for.
  enum class waited_for { nothing, view, job, invite };
  struct given_up {
    waited_for what = waited_for::nothing;
    core::job_id job = 0;                   ///< that was proposed, or 0
    std::optional<core::cluster_key> invite; ///< the same
  };
  /// Nobody waits for the request any more. A job or an invite that was proposed
  /// may still come into a view, which is then told in adopted_view::unwanted or
  /// unused.
  given_up give_up(std::uint64_t token);

  /// A view has taken effect.
  [[nodiscard]] adopted_view adopted(const core::view& v);
  /// The core refuses the proposal `tag`. @returns the tokens that wait for it.
  [[nodiscard]] std::vector<std::uint64_t> rejected(core::job_id tag);

  /// A request was handed on to a peer, whose answer is accepted until `until`.
  void asked(std::uint64_t token, const core::peer_id& peer,
             clock::time_point now, clock::time_point until);
  /// @returns whether `from` was asked; it no longer is afterwards.
  bool replied(std::uint64_t token, const core::peer_id& from);
  /// The peer could not be asked: drops the request.
  void forget(std::uint64_t token);

private:
  struct kept_view : wanted_view {
    core::shoal_id not_shoal{};
  };
  static bool is_reached(const kept_view& w, const core::view& v, outcome& o);
  struct asked_peer {
    core::peer_id peer{};
    clock::time_point until{};
  };

  std::mutex mutex_;                    ///< guards what follows
  std::optional<core::shoal_id> shoal_; ///< of the newest view
  std::map<std::uint64_t, kept_view> wanted_;
  std::vector<early_job> early_;
  std::deque<core::job_id> unwanted_;    ///< proposed, and given up
  std::deque<core::cluster_key> unused_; ///< the same of invites
  std::map<std::uint64_t, asked_peer> asked_;
};

} // namespace shoal::runtime
