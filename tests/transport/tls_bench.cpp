// tests/transport/tls_bench.cpp -- TLS between two fabrics of this process.
//
// Prints the median of several runs: bulk throughput, the round trip of a
// control message, and that round trip while bulk moves the same way.
#include "transport/tls/fabric.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

namespace {

using namespace shoal::transport;
using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

class counter {
public:
  void add() {
    std::lock_guard guard(mutex_);
    ++count_;
    wake_.notify_all();
  }
  void wait(std::size_t until) {
    std::unique_lock guard(mutex_);
    wake_.wait(guard, [&] { return count_ >= until; });
  }

private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t count_ = 0;
};

class handler final : public fabric_handler {
public:
  void up(const peer_info&) override { ups.add(); }
  void down(const peer_id&, std::error_code) override {}
  void message(const peer_id& from, std::span<const std::byte> b) override {
    if (echo)
      (void)echo->send(from, b);
    messages.add();
  }
  void connect_failed(const std::string&, std::error_code) override {}
  counter ups, messages;
  fabric* echo = nullptr;
};

completion done(counter& c) {
  return {[](void* self, std::error_code) noexcept {
            static_cast<counter*>(self)->add();
          },
          &c};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<double> round_trips(fabric& a, const peer_id& b, handler& ha,
                                std::size_t& replies, int count) {
  std::vector<double> times;
  const std::array<std::byte, 64> message{};
  for (int i = 0; i < count; ++i) {
    const auto start = clock_type::now();
    (void)a.send(b, message);
    ha.messages.wait(++replies);
    times.push_back(seconds_since(start) * 1e6);
  }
  return times;
}

} // namespace

int main() {
  handler ha, hb;
  tls::config ca, cb;
  ca.identity = tls::make_private_key();
  cb.identity = tls::make_private_key();
  tls::fabric a(ca, ha), b(cb, hb);
  hb.echo = &b;
  a.connect(b.local_address());
  ha.ups.wait(1);
  hb.ups.wait(1);

  std::size_t replies = 0;
  const auto idle = round_trips(a, b.id(), ha, replies, 5000);

  counter finished;
  std::size_t transfers = 0;
  std::uint32_t sequence = 0;
  for (const std::size_t size :
       {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{64} << 20}) {
    const std::vector<std::byte> from(size, std::byte{1});
    std::vector<std::byte> into(size);
    const int in_flight = size > (std::size_t{1} << 20) ? 4 : 64;
    std::vector<double> rates;
    for (int run = 0; run < 7; ++run) {
      const auto start = clock_type::now();
      for (int i = 0; i < in_flight; ++i, ++sequence) {
        (void)b.post_receive(a.id(), {0, 0, sequence}, into, done(finished));
        (void)a.send_bulk(b.id(), {0, 0, sequence}, from, done(finished));
      }
      finished.wait(transfers += 2 * static_cast<std::size_t>(in_flight));
      rates.push_back(static_cast<double>(size) * in_flight
                      / seconds_since(start) / 1e9);
    }
    std::printf("bulk %8zu KiB x %2d: %.2f GB/s\n", size >> 10, in_flight,
                median(rates));
  }

  const std::vector<std::byte> from(std::size_t{256} << 20);
  std::vector<std::byte> into(from.size());
  (void)b.post_receive(a.id(), {1, 0, 0}, into, done(finished));
  (void)a.send_bulk(b.id(), {1, 0, 0}, from, done(finished));
  auto busy = round_trips(a, b.id(), ha, replies, 40);
  finished.wait(transfers += 2);
  std::printf("control round trip: %.1f us idle, %.0f us beside bulk (the "
              "largest of 40: %.0f)\n",
              median(idle), median(busy),
              *std::max_element(busy.begin(), busy.end()));
  a.close();
  b.close();
}
