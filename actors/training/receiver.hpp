// actors/training/receiver.hpp -- expected transfers of one link, a few posted
// ahead.
//
// Knows the order in which its stage will need microbatches, keeps `ahead` of
// them posted, and hands over those that have arrived. Posting ahead lets the
// sender start at once; the bound gives back pressure.
//
// Threads: the owning actor's. Arrivals return to it as `arrived`.
#pragma once

#include "actors/training/buffers.hpp"
#include "actors/training/link_names.hpp"
#include "runtime/core/ids.hpp"

#include <caf/actor_addr.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace shoal::runtime {
class link_hub;
}

namespace shoal::actors {

/// A transfer into `what` has ended.
struct arrived {
  link_kind kind{};
  std::uint64_t run = 0;        ///< number of the begin() to which it belongs
  std::uint32_t microbatch = 0; ///< or unit
  buffer what;
  std::error_code error;
  std::uint32_t index = 0;   ///< of the receiving stage
  std::uint32_t replica = 0; ///< and its replica
};

class receiver {
public:
  struct source {
    link_kind kind{};
    std::uint64_t plan_digest = 0;
    std::uint32_t replica = 0;
    std::uint32_t index = 0;
    core::peer_id from{};
    std::size_t bytes = 0;
  };

  receiver() = default;
  receiver(source from, runtime::link_hub& links, buffer_pool& buffers,
           caf::actor_addr owner)
    : from_(from), links_(&links), buffers_(&buffers),
      owner_(std::move(owner)) {}

  bool used() const noexcept { return links_ != nullptr; }
  link_kind kind() const noexcept { return from_.kind; }

  /// Starts over: `order` lists the microbatches as they will be taken;
  /// the transfer of m has the sequence `sequence` + m.
  void begin(std::uint64_t run, std::vector<std::uint32_t> order,
             std::uint64_t sequence);
  /// Records an arrival of this run. @returns false if it is stale.
  bool put(const arrived& a);
  bool has(std::uint32_t microbatch) const {
    return here_.contains(microbatch);
  }
  /// Hands over a microbatch and posts the next. @pre has(microbatch)
  buffer take(std::uint32_t microbatch);
  void clear() { here_.clear(); }

  /// Two hide the transfer behind the computation; a third evens out a stage
  /// that runs late.
  static constexpr std::size_t ahead = 3;

private:
  void post();

  source from_;
  runtime::link_hub* links_ = nullptr;
  buffer_pool* buffers_ = nullptr;
  caf::actor_addr owner_; ///< weak: the owner has this as a member
  std::uint64_t run_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<std::uint32_t> order_;
  std::size_t posted_ = 0;
  std::size_t taken_ = 0;
  std::map<std::uint32_t, buffer> here_;
};

} // namespace shoal::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::actors::arrived)
