// actors/training/receiver.cpp -- posts ahead on one link.
#include "actors/training/receiver.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/links/links.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

namespace shoal::actors {

void receiver::begin(std::uint64_t run, std::vector<std::uint32_t> order,
                     std::uint64_t sequence) {
  run_ = run;
  order_ = std::move(order);
  sequence_ = sequence;
  posted_ = 0;
  taken_ = 0;
  here_.clear();
  post();
}

void receiver::post() {
  const auto self = caf::actor_cast<caf::actor>(owner_);
  while (posted_ < order_.size() && posted_ < taken_ + ahead) {
    const std::uint32_t m = order_[posted_++];
    buffer into = buffers_->get(from_.bytes);
    auto tell = [owner = self, kind = from_.kind, run = run_, m, into,
                 index = from_.index,
                 replica = from_.replica](std::error_code error) {
      caf::anon_send(owner, arrived{kind, run, m, into, error, index, replica});
    };
    links_->expect(from_.from,
                   make_tag(from_.plan_digest, from_.kind, from_.replica,
                            from_.index, sequence_ + m),
                   into.shared(), std::move(tell));
  }
}

bool receiver::put(const arrived& a) {
  if (a.run != run_ || a.error)
    return false;
  here_[a.microbatch] = a.what;
  return true;
}

buffer receiver::take(std::uint32_t microbatch) {
  auto at = here_.find(microbatch);
  SHOAL_ASSERT(at != here_.end());
  buffer out = std::move(at->second);
  here_.erase(at);
  ++taken_;
  post();
  return out;
}

} // namespace shoal::actors
