// runtime/http/answer_box.cpp -- the states of an answer, under one lock.
#include "runtime/http/answer_box.hpp"

#include <utility>

namespace shoal::runtime {

answer_box::answer_box(answer_limits limits, std::shared_ptr<open_answers> open,
                       std::function<void()> wake, std::string path)
  : limits_(limits), open_(std::move(open)), wake_(std::move(wake)),
    path_(std::move(path)) {
  ++open_->waiting;
}

answer_box::~answer_box() {
  if (counted_waiting_)
    --open_->waiting;
  leave_stream();
}

void answer_box::notify() {
  if (!woken_ && !closed_ && wake_) {
    woken_ = true;
    wake_();
  }
}

void answer_box::leave_stream() {
  if (std::exchange(counted_stream_, false))
    --open_->streams;
}

void answer_box::leave_waiting() {
  if (std::exchange(counted_waiting_, false))
    --open_->waiting;
}

void answer_box::begin(head h) {
  leave_waiting();
  next_.head = std::move(h);
}

/// Who must be told that the client is gone; nullptr: nobody, or not again.
std::shared_ptr<http_watcher> answer_box::ending() {
  if (!closed_ || stage_ == stage::complete || told_)
    return nullptr;
  auto watcher = watcher_.lock();
  told_ = watcher != nullptr;
  return watcher;
}

void answer_box::watch(std::weak_ptr<http_watcher> watcher) {
  std::shared_ptr<http_watcher> told;
  {
    const std::lock_guard guard(mutex_);
    watcher_ = std::move(watcher);
    told = ending();
  }
  if (told)
    told->closed();
}

bool answer_box::respond(unsigned status, std::vector<http_header> headers,
                         std::string body) {
  const std::lock_guard guard(mutex_);
  if (closed_ || (stage_ != stage::waiting && stage_ != stage::begun))
    return false;
  stage_ = stage::complete;
  leave_stream();
  begin({status, std::move(headers), true});
  next_.bytes = std::move(body);
  next_.complete = true;
  notify();
  return true;
}

bool answer_box::begin_stream(unsigned status,
                              std::vector<http_header> headers) {
  const std::lock_guard guard(mutex_);
  if (closed_ || stage_ != stage::waiting)
    return false;
  if (++open_->streams > limits_.streams_max) {
    --open_->streams;
    const auto error = openai::rate_limited(
      "the server has as many streams as it may: "
        + std::to_string(limits_.streams_max) + "; try again later",
      limits_.retry_after_s);
    refused_stream_ = true;
    stage_ = stage::complete;
    begin({error.status, error_headers(error), true});
    next_.bytes = error_body(path_, error);
    next_.complete = true;
    notify();
    return false;
  }
  counted_stream_ = true;
  stage_ = stage::begun;
  stream_head_ = {status, std::move(headers), false};
  leave_waiting();
  return true;
}

bool answer_box::has_refused_stream() const {
  const std::lock_guard guard(mutex_);
  return refused_stream_;
}

void answer_box::begin_sending() {
  if (closed_ || stage_ != stage::begun)
    return;
  stage_ = stage::streaming;
  begin(std::move(stream_head_));
  notify();
}

http_write answer_box::write(std::string_view bytes) {
  const std::lock_guard guard(mutex_);
  begin_sending();
  if (closed_ || stage_ != stage::streaming || next_.slow)
    return http_write::gone;
  if (bytes.size() > limits_.drop_bytes - bytes_) {
    next_.slow = true;
    woken_ = false; // it may have been woken for what it cannot send yet
    notify();
    return http_write::gone;
  }
  bytes_ += bytes.size();
  next_.bytes += bytes;
  if (!bytes.empty())
    notify();
  paused_ = paused_ || bytes_ >= limits_.pause_bytes;
  return paused_ ? http_write::pause : http_write::ok;
}

bool answer_box::end() {
  const std::lock_guard guard(mutex_);
  begin_sending();
  if (closed_ || stage_ != stage::streaming || next_.slow)
    return false;
  stage_ = stage::complete;
  next_.complete = true;
  notify();
  return true;
}

void answer_box::abandon() {
  bool answered = true;
  {
    const std::lock_guard guard(mutex_);
    if (!closed_ && stage_ == stage::streaming) {
      next_.cut = true;
      notify();
    }
    answered = stage_ != stage::waiting && stage_ != stage::begun;
  }
  if (answered)
    return;
  const auto error = openai::server_error("the request was given up");
  respond(error.status, error_headers(error), error_body(path_, error));
}

answer_box::taken answer_box::take() {
  const std::lock_guard guard(mutex_);
  woken_ = false;
  return std::exchange(next_, {});
}

bool answer_box::slow() const {
  const std::lock_guard guard(mutex_);
  return next_.slow;
}

void answer_box::sent(std::size_t bytes) {
  std::shared_ptr<http_watcher> watcher;
  {
    const std::lock_guard guard(mutex_);
    bytes_ -= bytes;
    if (paused_ && !closed_ && stage_ == stage::streaming
        && bytes_ <= limits_.pause_bytes / 2) {
      paused_ = false;
      watcher = watcher_.lock();
    }
  }
  if (watcher)
    watcher->writable();
}

bool answer_box::complete() const {
  const std::lock_guard guard(mutex_);
  return stage_ == stage::complete;
}

void answer_box::close() {
  std::shared_ptr<http_watcher> told;
  {
    const std::lock_guard guard(mutex_);
    if (std::exchange(closed_, true))
      return;
    wake_ = nullptr;
    next_ = {};
    stream_head_ = {};
    if (std::exchange(counted_waiting_, false))
      --open_->waiting;
    leave_stream();
    told = ending();
  }
  if (told)
    told->closed();
}

} // namespace shoal::runtime
