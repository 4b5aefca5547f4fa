// runtime/store/wrong_blobs.hpp -- holders that sent blobs with another hash.
//
// Threads: the owner's. Errors: none.
#pragma once

#include "runtime/store/exchange.hpp"

#include <map>

namespace shoal::runtime {

class wrong_blobs {
public:
  /// One more, which `sender` is told of.
  void add(const core::peer_id& holder, const core::blob_digest& blob,
           blob_sender& sender) {
    const std::size_t times = ++of_[holder];
    sender.sent_wrong(holder, blob, times, given_up(holder));
  }
  /// Whether it is to be asked no more.
  bool given_up(const core::peer_id& holder) const {
    const auto at = of_.find(holder);
    return at != of_.end() && at->second >= blob_exchange::wrong_max;
  }

private:
  std::map<core::peer_id, std::size_t> of_;
};

} // namespace shoal::runtime
