// apps/bench/link_meter.cpp -- counts completions and answers.
#include "apps/bench/link_meter.hpp"

#include "runtime/core/measure/median.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>

namespace shoal::apps {
namespace {

using clock_type = std::chrono::steady_clock;
constexpr std::chrono::seconds hang_after{60};

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

} // namespace

class link_meter::end final : public transport::fabric_handler {
public:
  explicit end(const maker& make) : fabric(make(*this)) {}
  ~end() override { fabric->close(); }

  void up(const transport::peer_info& info) override {
    change([&] {
      peer = info.id;
      is_up = true;
    });
  }
  void down(const transport::peer_id&, std::error_code why) override {
    change([&] { error = why; });
  }
  void message(const transport::peer_id& from,
               std::span<const std::byte> bytes) override {
    if (echoes)
      return (void)fabric->send(from, bytes);
    if (rounds_left == 0)
      return change([&] { ++answers; });
    const auto now = clock_type::now();
    times.push_back(std::chrono::duration<double>(now - sent_at).count());
    sent_at = now;
    if (--rounds_left > 0)
      (void)fabric->send(from, bytes);
    else
      change([&] { ++answers; });
  }
  void connect_failed(const std::string&, std::error_code why) override {
    change([&] { error = why; });
  }
  transport::completion done() {
    return {[](void* self, std::error_code why) noexcept {
              auto& e = *static_cast<end*>(self);
              e.change([&] {
                ++e.completions;
                if (why)
                  e.error = why;
              });
            },
            this};
  }

  template <class Change>
  void change(Change what) {
    std::lock_guard guard(mutex_);
    what();
    wake_.notify_all();
  }
  template <class Predicate>
  void wait(Predicate holds) {
    std::unique_lock guard(mutex_);
    if (!wake_.wait_for(guard, hang_after, [&] { return error || holds(); }))
      throw std::runtime_error("the peers do not answer");
    if (error)
      throw std::runtime_error("the link failed: " + error.message());
  }

  bool echoes = false;
  int rounds_left = 0; ///< of round_trip(); used by the progress thread
                       ///< meanwhile
  clock_type::time_point sent_at;
  std::vector<double> times;
  bool is_up = false;
  transport::peer_id peer{};
  std::size_t answers = 0, completions = 0;
  std::error_code error;

private:
  std::mutex mutex_;
  std::condition_variable wake_;

public:
  std::unique_ptr<transport::fabric> fabric; ///< last made, first destroyed
};

link_meter::link_meter(const maker& first, const maker& second)
  : first_(std::make_unique<end>(first)),
    second_(std::make_unique<end>(second)) {
  second_->echoes = true;
  first_->fabric->connect(second_->fabric->local_address());
  second_->fabric->connect(first_->fabric->local_address());
  first_->wait([&] { return first_->is_up; });
  second_->wait([&] { return second_->is_up; });
}

link_meter::~link_meter() = default;

double link_meter::bulk(std::size_t bytes, int count) {
  from_.resize(std::max(from_.size(), bytes), std::byte{1});
  into_.resize(std::max(into_.size(), bytes));
  const auto wanted = static_cast<std::size_t>(count);
  const auto sent = first_->completions + wanted;
  const auto received = second_->completions + wanted;
  const auto start = clock_type::now();
  for (int i = 0; i < count; ++i) {
    const transport::bulk_tag tag{1, 0, sequence_++};
    if (second_->fabric->post_receive(
          second_->peer, tag, std::span(into_).first(bytes), second_->done())
        || first_->fabric->send_bulk(
          first_->peer, tag, std::span(from_).first(bytes), first_->done()))
      throw std::runtime_error("the link takes no transfer");
  }
  second_->wait([&] { return second_->completions >= received; });
  first_->wait([&] { return first_->completions >= sent; });
  return seconds_since(start);
}

double link_meter::round_trip(int count, std::size_t bytes) {
  const std::vector<std::byte> message(bytes);
  const auto wanted = first_->answers + 1;
  first_->rounds_left = count;
  first_->times.clear();
  first_->sent_at = clock_type::now();
  if (first_->fabric->send(first_->peer, message))
    throw std::runtime_error("the link takes no message");
  first_->wait([&] { return first_->answers >= wanted; });
  return core::median(first_->times);
}

double link_meter::round_trip_of_threads(int count) {
  std::vector<double> times;
  const std::array<std::byte, 64> message{};
  for (int i = 0; i < count; ++i) {
    const auto wanted = first_->answers + 1;
    const auto start = clock_type::now();
    if (first_->fabric->send(first_->peer, message))
      throw std::runtime_error("the link takes no message");
    first_->wait([&] { return first_->answers >= wanted; });
    times.push_back(seconds_since(start));
  }
  return core::median(times);
}

link_meter::beside link_meter::round_trip_beside_bulk(int count) {
  const auto bytes = std::size_t{64} << 20;
  from_.resize(std::max(from_.size(), bytes), std::byte{1});
  into_.resize(std::max(into_.size(), bytes));
  std::vector<double> times;
  std::size_t queued = 0;
  const auto before = first_->completions;
  const auto queue = [&] {
    const transport::bulk_tag tag{1, 0, sequence_++};
    if (second_->fabric->post_receive(
          second_->peer, tag, std::span(into_).first(bytes), second_->done())
        || first_->fabric->send_bulk(
          first_->peer, tag, std::span(from_).first(bytes), first_->done()))
      throw std::runtime_error("the link takes no transfer");
    ++queued;
  };
  const auto ended = second_->completions;
  for (int i = 0; i < count; ++i) {
    std::size_t gone = 0; // there are always two in transit or waiting
    first_->change([&] { gone = first_->completions - before; });
    while (queued < gone + 2)
      queue();
    times.push_back(round_trip_of_threads(1));
  }
  first_->wait([&] { return first_->completions >= before + queued; });
  second_->wait([&] { return second_->completions >= ended + queued; });
  return {core::median(times), *std::max_element(times.begin(), times.end())};
}

} // namespace shoal::apps
