// tests/bench/link_bench.cpp -- the TLS fabric against bare OpenSSL.
//
// The bare side is the minimum that moves bytes by TLS: two threads, two
// blocking sockets, SSL_write of record-sized pieces and SSL_read directly into
// the destination; the same cipher, no frames, no checksum, no queue. Runs of
// the two alternate, so that both see the machine in the same state; each ratio
// is of two consecutive runs, and the median of ratios is printed. The ratio of
// processor times is valid on a busy machine, too.
//
//   link_bench [--json] [--runs N]
#include "apps/bench/link_meter.hpp"
#include "runtime/core/measure/median.hpp"
#include "transport/tls/context.hpp"
#include "transport/tls/fabric.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using namespace shoal;
using clock_type = std::chrono::steady_clock;
namespace tls = transport::tls;

void must(bool holds, const char* what) {
  if (!holds)
    throw std::runtime_error(what);
}

/// Two ends of a TCP connection over loopback.
std::array<int, 2> tcp_pair() {
  const int door = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  auto* address = reinterpret_cast<sockaddr*>(&at);
  must(::bind(door, address, length) == 0 && ::listen(door, 1) == 0
         && ::getsockname(door, address, &length) == 0,
       "cannot listen");
  const int one = ::socket(AF_INET, SOCK_STREAM, 0);
  must(::connect(one, address, length) == 0, "cannot connect");
  const int two = ::accept(door, nullptr, nullptr);
  ::close(door);
  const int on = 1;
  for (const int fd : {one, two})
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {one, two};
}

class bare {
public:
  bare() : fds_(tcp_pair()) {
    for (std::size_t i = 0; i < 2; ++i) {
      contexts_[i] = tls::make_context(tls::make_private_key());
      // OpenSSL's defaults: no read-ahead, whole writes.
      SSL_CTX_set_read_ahead(contexts_[i].get(), 0);
      SSL_CTX_clear_mode(contexts_[i].get(), SSL_MODE_ENABLE_PARTIAL_WRITE);
      ssl_[i].reset(SSL_new(contexts_[i].get()));
      SSL_set_fd(ssl_[i].get(), fds_[i]);
    }
    std::thread other(
      [this] { must(SSL_accept(ssl_[1].get()) == 1, "no handshake"); });
    must(SSL_connect(ssl_[0].get()) == 1, "no handshake");
    other.join();
  }
  ~bare() {
    ssl_ = {};
    for (const int fd : fds_)
      ::close(fd);
  }

  /// Like link_meter::bulk(): seconds until the receiver confirms all bytes.
  double bulk(std::size_t bytes, int count) {
    from_.resize(std::max(from_.size(), bytes), 1);
    into_.resize(std::max(into_.size(), bytes));
    const auto start = clock_type::now();
    std::thread receiver([&] {
      for (int i = 0; i < count; ++i)
        read(1, into_.data(), bytes);
      write(1, "!", 1);
    });
    for (int i = 0; i < count; ++i)
      write(0, from_.data(), bytes);
    char end = 0;
    read(0, &end, 1);
    const std::chrono::duration<double> took = clock_type::now() - start;
    receiver.join();
    return took.count();
  }

  double round_trip(int count) {
    std::array<char, 64> message{};
    std::thread echo([&, bytes = message]() mutable {
      for (int i = 0; i < count; ++i) {
        read(1, bytes.data(), bytes.size());
        write(1, bytes.data(), bytes.size());
      }
    });
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const auto start = clock_type::now();
      write(0, message.data(), message.size());
      read(0, message.data(), message.size());
      const std::chrono::duration<double> took = clock_type::now() - start;
      times.push_back(took.count());
    }
    echo.join();
    return core::median(times);
  }

private:
  void write(std::size_t who, const char* data, std::size_t bytes) {
    must(SSL_write(ssl_[who].get(), data, static_cast<int>(bytes)) > 0,
         "cannot write");
  }
  void read(std::size_t who, char* data, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes;) {
      const int n =
        SSL_read(ssl_[who].get(), data + at, static_cast<int>(bytes - at));
      must(n > 0, "cannot read");
      at += static_cast<std::size_t>(n);
    }
  }

  std::array<int, 2> fds_;
  std::array<tls::ssl_ctx_ptr, 2> contexts_;
  std::array<tls::ssl_ptr, 2> ssl_;
  std::vector<char> from_, into_;
};

apps::link_meter::maker node(const tls::shared_key& key) {
  return [key](transport::fabric_handler& handler) {
    tls::config c;
    c.identity = tls::make_private_key();
    c.cluster_key = key;
    c.instance = tls::make_instance();
    return std::make_unique<tls::fabric>(c, handler);
  };
}

/// Seconds of processor time that this process has used.
double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct row {
  std::string what;
  double ours = 0, bare = 0, ratio = 0; ///< GB/s or microseconds
  double cpu = 0; ///< our processor time divided by that of the bare side
};

/// One run: the time that it reports, and the processor time.
template <class Run>
std::array<double, 2> timed(Run run) {
  const double before = cpu_seconds();
  const double took = run();
  return {took, cpu_seconds() - before};
}

template <class Ours, class Bare>
row compare(std::string what, int runs, double scale, bool rate, Ours ours,
            Bare theirs) {
  std::vector<double> a, b, ratios, cpu;
  for (int i = 0; i <= runs; ++i) {
    // The order alternates, too.
    std::array<double, 2> mine{}, other{};
    if (i % 2 == 0)
      mine = timed(ours);
    other = timed(theirs);
    if (i % 2 != 0)
      mine = timed(ours);
    if (i == 0)
      continue; // warms up
    a.push_back(rate ? scale / mine[0] : mine[0] * scale);
    b.push_back(rate ? scale / other[0] : other[0] * scale);
    ratios.push_back(a.back() / b.back());
    cpu.push_back(mine[1] / other[1]);
  }
  return {std::move(what), core::median(a), core::median(b),
          core::median(ratios), core::median(cpu)};
}

} // namespace

int main(int argc, char** argv) {
  int runs = 11;
  bool json = false;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--json") == 0)
      json = true;
    else if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
      runs = std::max(1, std::atoi(argv[++i]));
  const auto key = tls::make_shared_key();
  apps::link_meter ours(node(key), node(key));
  bare theirs;
  std::vector<row> rows;
  const auto bulk = [&](const char* what, std::size_t bytes, int count) {
    rows.push_back(compare(
      what, runs, static_cast<double>(bytes) * count / 1e9, true,
      [&] { return ours.bulk(bytes, count); },
      [&] { return theirs.bulk(bytes, count); }));
  };
  bulk("tls 64 KiB GB/s", std::size_t{64} << 10, 512);
  bulk("tls 1 MiB GB/s", std::size_t{1} << 20, 64);
  bulk("tls 4 MiB GB/s", std::size_t{4} << 20, 16);
  bulk("tls 64 MiB GB/s", std::size_t{64} << 20, 2);
  rows.push_back(compare(
    "tls round trip us", runs, 1e6, false, [&] { return ours.round_trip(500); },
    [&] { return theirs.round_trip(500); }));
  rows.push_back(compare(
    "tls thread round trip us", runs, 1e6, false,
    [&] { return ours.round_trip_of_threads(500); },
    [&] { return theirs.round_trip(500); }));
  const auto busy = ours.round_trip_beside_bulk(200);
  for (const row& r : rows)
    std::printf(json ? "{\"what\":\"%s\",\"shoal\":%.3f,\"bare\":%.3f,"
                       "\"ratio\":%.3f,\"cpu_ratio\":%.3f}\n"
                     : "%-24s shoal %7.2f  bare OpenSSL %7.2f  ratio %.2f  "
                       "processor time %.2f\n",
                r.what.c_str(), r.ours, r.bare, r.ratio, r.cpu);
  std::printf(json ? "{\"what\":\"tls round trip beside bulk us\",\"shoal\":"
                     "%.1f,\"slowest\":%.1f}\n"
                   : "tls round trip beside bulk: %.0f us, the slowest of 200 "
                     "%.0f us\n",
              busy.median * 1e6, busy.slowest * 1e6);
}
