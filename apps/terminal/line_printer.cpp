// apps/terminal/line_printer.cpp -- the queue of lines and its thread.
#include "apps/terminal/line_printer.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

namespace shoal::apps {
namespace {

/// Time to wait for a stalled reader before checking for the end.
constexpr int look_ms = 100;
/// Bytes that a descriptor that polls as writable accepts without blocking.
constexpr std::size_t piece_bytes = PIPE_BUF;

} // namespace

line_printer::line_printer(int fd,
                           std::function<std::string(std::size_t)> left_out)
  : fd_(fd), left_out_(std::move(left_out)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

line_printer::~line_printer() {
  {
    std::lock_guard guard(mutex_);
    closing_ = true;
    end_ = std::chrono::steady_clock::now() + drain_max;
  }
  wake_.notify_all();
  thread_.join();
}

void line_printer::line(std::string text) {
  text += '\n';
  std::lock_guard guard(mutex_);
  if (queued_bytes_ + text.size() > queue_bytes_max) {
    ++missing_;
    return;
  }
  if (missing_ > 0) {
    queue_.push_back(left_out_(missing_) + '\n');
    queued_bytes_ += queue_.back().size();
    missing_ = 0;
  }
  queued_bytes_ += text.size();
  queue_.push_back(std::move(text));
  wake_.notify_all();
}

void line_printer::run() {
  for (;;) {
    std::string next;
    {
      std::unique_lock guard(mutex_);
      wake_.wait(guard, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty() && missing_ > 0) { // at the end, if not reported yet
        queue_.push_back(left_out_(missing_) + '\n');
        queued_bytes_ += queue_.back().size();
        missing_ = 0;
      }
      if (queue_.empty())
        return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    const bool written = write_all(next);
    std::lock_guard guard(mutex_);
    queued_bytes_ -= next.size();
    if (!written && closing_)
      return;
    end_ = std::chrono::steady_clock::now() + drain_max;
  }
}

/// @returns false if the reader is gone, or stalls at the end.
bool line_printer::write_all(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    if (!writable())
      return false;
    const auto piece = std::min(text.size() - at, piece_bytes);
    const auto n = ::write(fd_, text.data() + at, piece);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return false;
    if (n > 0)
      at += static_cast<std::size_t>(n);
  }
  return true;
}

bool line_printer::writable() {
  for (;;) {
    pollfd p{fd_, POLLOUT, 0};
    const int ready = ::poll(&p, 1, look_ms);
    if (ready > 0)
      return (p.revents & (POLLERR | POLLNVAL)) == 0;
    if (ready < 0 && errno != EINTR)
      return false;
    std::lock_guard guard(mutex_);
    if (closing_ && std::chrono::steady_clock::now() >= end_)
      return false;
  }
}

} // namespace shoal::apps
