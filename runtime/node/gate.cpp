// runtime/node/gate.cpp -- holds, passes and drops.
#include "runtime/node/gate.hpp"

namespace shoal::runtime {

void gate::take(const core::peer_id& from, envelope&& e, std::size_t bytes) {
  if (senders_of(e) == senders::members) {
    std::lock_guard lock(mutex_);
    const auto at = waiting_.find(from);
    const bool member = members_.contains(from);
    if (!member || (at != waiting_.end() && at->second.releasing)) {
      waiting& w = at != waiting_.end() ? at->second : waiting_[from];
      if (w.messages.size() >= held_max || w.bytes + bytes > held_bytes_max
          || all_bytes_ + bytes > all_bytes_max) {
        ++dropped_;
        return;
      }
      w.bytes += bytes;
      all_bytes_ += bytes;
      w.messages.push_back({std::move(e), bytes});
      return;
    }
  }
  dispatch(out_, from, std::move(e));
}

void gate::members(std::set<core::peer_id> now) {
  std::vector<core::peer_id> admitted;
  {
    std::lock_guard lock(mutex_);
    members_ = std::move(now);
    for (auto& [peer, w] : waiting_)
      if (members_.contains(peer) && !w.releasing) {
        w.releasing = true;
        admitted.push_back(peer);
      }
  }
  for (const core::peer_id& peer : admitted)
    release(peer);
}

void gate::release(const core::peer_id& peer) {
  for (;;) {
    held next;
    {
      std::lock_guard lock(mutex_);
      const auto at = waiting_.find(peer);
      if (at == waiting_.end())
        return;
      waiting& w = at->second;
      if (w.messages.empty())
        return forget(at);
      if (!members_.contains(peer)) {
        w.releasing = false;
        return;
      }
      next = std::move(w.messages.front());
      w.messages.pop_front();
      w.bytes -= next.bytes;
      all_bytes_ -= next.bytes;
    }
    dispatch(out_, peer, std::move(next.message));
  }
}

void gate::forget(std::map<core::peer_id, waiting>::iterator at) {
  dropped_ += at->second.messages.size();
  all_bytes_ -= at->second.bytes;
  waiting_.erase(at);
}

void gate::gone(const core::peer_id& peer) {
  std::lock_guard lock(mutex_);
  if (const auto at = waiting_.find(peer); at != waiting_.end())
    forget(at);
}

std::size_t gate::held_bytes() const {
  std::lock_guard lock(mutex_);
  return all_bytes_;
}

std::uint64_t gate::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

} // namespace shoal::runtime
