// transport/introduced/fabric.cpp -- the public members, and the progress
// thread.

#include "transport/introduced/fabric.hpp"

#include "transport/introduced/commands.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace shoal::transport::introduced {

class fabric::impl {
public:
  impl(const config& settings, const factory& make)
    : message_bytes_max_(
      std::min(settings.message_bytes_max, control_bytes_max)),
      queue_(settings.commands_max, settings.queue),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_fd_ < 0)
      throw std::system_error(errno, std::generic_category(), "eventfd");
    std::promise<std::string> started;
    auto address = started.get_future();
    // Signals are for the threads that the program has set up for them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this, &started, &make] { body(started, make); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      ::close(wake_fd_);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    try {
      address_ = address.get();
    } catch (...) {
      thread_.join();
      ::close(wake_fd_);
      throw;
    }
  }

  ~impl() {
    close();
    ::close(wake_fd_);
  }

  void close() {
    bool wake = false;
    queue_.close(wake);
    signal(wake);
    std::lock_guard hold(join_lock_);
    if (thread_.joinable())
      thread_.join();
  }

  /// For top and debuggers, which show 15 bytes of it.
  void name_thread(const std::string& name) {
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }

  std::error_code push(command c) {
    bool wake = false;
    auto result = queue_.push(std::move(c), wake);
    signal(wake);
    return result;
  }

  void push_control(command c) {
    bool wake = false;
    queue_.push_control(std::move(c), wake);
    signal(wake);
  }

  std::chrono::nanoseconds silent_for() {
    bool wake = false;
    const auto silent =
      queue_.silent_for(std::chrono::steady_clock::now(), wake);
    signal(wake);
    return silent;
  }

  traffic traffic_with(const peer_id& peer) const {
    return queue_.traffic_with(peer);
  }
  std::size_t message_bytes_max() const { return message_bytes_max_; }
  const std::string& address() const { return address_; }

private:
  void body(std::promise<std::string>& started, const factory& make) {
    queue_.set_consumer(std::this_thread::get_id());
    std::unique_ptr<engine> run;
    try {
      run = make(queue_, wake_fd_);
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value(run->address());
    run->run();
  }

  void signal(bool wake) {
    std::uint64_t one = 1;
    if (wake) { // EAGAIN: it is signalled already
      [[maybe_unused]] auto n = ::write(wake_fd_, &one, sizeof one);
    }
  }

  const std::size_t message_bytes_max_;
  commands queue_;
  int wake_fd_;
  std::string address_;
  std::mutex join_lock_;
  std::thread thread_;
};

fabric::fabric(std::string_view name, const config& settings,
               const factory& make)
  : name_(name), impl_(std::make_unique<impl>(settings, make)) {
  impl_->name_thread("shoal-" + std::string(name_));
}

fabric::~fabric() = default;

std::size_t fabric::message_bytes_max() const noexcept {
  return impl_->message_bytes_max();
}

std::string fabric::local_address() const {
  return impl_->address();
}

void fabric::connect(const std::string& address) {
  command c;
  c.what = command::kind::connect;
  c.address = address;
  impl_->push_control(std::move(c));
}

std::error_code
fabric::send(const peer_id& to, std::span<const std::byte> message) {
  if (message.size() > message_bytes_max())
    return errc::too_large;
  command c;
  c.what = command::kind::message;
  c.peer = to;
  c.message.assign(message.begin(), message.end());
  return impl_->push(std::move(c));
}

std::error_code
fabric::post_receive(const peer_id& from, bulk_tag tag,
                     std::span<std::byte> into, completion done) {
  command c;
  c.what = command::kind::receive;
  c.peer = from;
  c.tag = tag;
  c.into = into;
  c.done = done;
  return impl_->push(std::move(c));
}

std::error_code
fabric::send_bulk(const peer_id& to, bulk_tag tag,
                  std::span<const std::byte> bytes, completion done) {
  command c;
  c.what = command::kind::send;
  c.peer = to;
  c.tag = tag;
  c.from = bytes;
  c.done = done;
  return impl_->push(std::move(c));
}

void fabric::cancel(std::uint64_t plan) {
  command c;
  c.what = command::kind::cancel;
  c.tag.plan = plan;
  impl_->push_control(std::move(c));
}

void fabric::drop(const peer_id& peer) {
  command c;
  c.what = command::kind::drop;
  c.peer = peer;
  impl_->push_control(std::move(c));
}

traffic fabric::traffic_with(const peer_id& peer) const {
  return impl_->traffic_with(peer);
}

std::chrono::nanoseconds fabric::silent_for() {
  return impl_->silent_for();
}

void fabric::close() {
  impl_->close();
}

} // namespace shoal::transport::introduced
