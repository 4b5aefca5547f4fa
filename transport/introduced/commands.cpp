// transport/introduced/commands.cpp -- the bounded queue to the progress
// thread.

#include "transport/introduced/commands.hpp"

#include <algorithm>
#include <utility>

namespace shoal::transport::introduced {

bool commands::over_limit(const counters& c, const command& next) const {
  switch (next.what) {
  case command::kind::message:
    return c.messages >= limits_.messages
           || c.message_bytes + next.message.size() > limits_.message_bytes;
  case command::kind::send:
    return c.sends >= limits_.bulk_sends;
  case command::kind::receive:
    return c.receives >= limits_.receives;
  default:
    return false;
  }
}

std::error_code commands::push(command c, bool& wake) {
  std::lock_guard hold(lock_);
  if (closed_)
    return errc::canceled;
  auto found = peers_.find(c.peer);
  if (found == peers_.end())
    return errc::peer_lost;
  auto& count = *found->second.in_flight;
  if (queue_.size() >= data_max_ || over_limit(count, c))
    return errc::would_block;
  c.connection = found->second.connection;
  switch (c.what) {
  case command::kind::message:
    ++count.messages;
    count.message_bytes += c.message.size();
    break;
  case command::kind::send:
    ++count.sends;
    break;
  default:
    ++count.receives;
  }
  wake = std::exchange(asleep_, false);
  queue_.push_back(std::move(c));
  any_.store(true, std::memory_order_release);
  return {};
}

void commands::push_control(command c, bool& wake) {
  std::unique_lock hold(lock_);
  if (std::this_thread::get_id() != consumer_.load())
    room_.wait(hold, [this] {
      return closed_ || queue_.size() < data_max_ + control_max;
    });
  if (closed_)
    return;
  wake = std::exchange(asleep_, false);
  queue_.push_back(std::move(c));
  any_.store(true, std::memory_order_release);
}

bool commands::close(bool& wake) {
  std::lock_guard hold(lock_);
  if (std::exchange(closed_, true))
    return false;
  wake = true;
  command c;
  c.what = command::kind::close;
  queue_.push_back(std::move(c));
  any_.store(true, std::memory_order_release);
  room_.notify_all();
  return true;
}

std::chrono::nanoseconds
commands::silent_for(std::chrono::steady_clock::time_point now, bool& wake) {
  std::lock_guard hold(lock_);
  if (closed_)
    return {};
  if (asked_)
    return now - *asked_;
  if (now < look_again_)
    return {};
  asked_ = now;
  look_again_ = now + fabric::look_every;
  wake = std::exchange(asleep_, false);
  any_.store(true, std::memory_order_release);
  return {};
}

void commands::take(std::vector<command>& out) {
  out.clear();
  if (!any_.load(std::memory_order_acquire))
    return;
  std::lock_guard hold(lock_);
  any_.store(false, std::memory_order_relaxed);
  asleep_ = false;
  asked_.reset();
  if (queue_.empty())
    return;
  std::swap(out, queue_);
  room_.notify_all();
}

bool commands::may_sleep() {
  std::lock_guard hold(lock_);
  return asleep_ = queue_.empty() && !asked_;
}

void commands::enter(const peer_id& peer, std::uint64_t connection,
                     std::shared_ptr<counters> c) {
  std::lock_guard hold(lock_);
  peers_[peer] = {connection, std::move(c)};
}

void commands::leave(const peer_id& peer) {
  std::lock_guard hold(lock_);
  peers_.erase(peer);
}

std::vector<command> commands::withdraw(std::uint64_t connection) {
  std::lock_guard hold(lock_);
  std::vector<command> out;
  auto kept =
    std::stable_partition(queue_.begin(), queue_.end(), [&](const command& c) {
      return c.connection != connection;
    });
  std::move(kept, queue_.end(), std::back_inserter(out));
  queue_.erase(kept, queue_.end());
  return out;
}

traffic commands::traffic_with(const peer_id& peer) const {
  std::lock_guard hold(lock_);
  auto found = peers_.find(peer);
  if (found == peers_.end())
    return {};
  return {found->second.in_flight->sent_bytes,
          found->second.in_flight->received_bytes};
}

} // namespace shoal::transport::introduced
