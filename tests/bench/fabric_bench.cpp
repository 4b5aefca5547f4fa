// tests/bench/fabric_bench.cpp -- one round of one fabric, on given cores.
//
// Two nodes of this process, the progress thread of each on a core of its own;
// perftest_bench.py alternates rounds of it and of ucx_perftest.
//
//   fabric_bench shm|ucx|tls SERVER_CORE CLIENT_CORE BYTES...
//
// Prints one line for each size: up to 64 bytes the one-way time of a control
// message in microseconds (half a round trip, driven by the handlers, as
// ucp_am_lat counts), else GB/s of bulk, all queued at once. "ucx" is UCX-TCP
// on "lo".
//
// Errors: names what is missing on stderr, and ends with 1.
#include "apps/bench/link_meter.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/tls/fabric.hpp"
#include "transport/ucx/fabric.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

using namespace shoal;
namespace tls = transport::tls;

constexpr std::size_t message_bytes_max = 64;
constexpr std::size_t run_bytes = std::size_t{256} << 20;
constexpr int round_trips = 20000;

/// Pins this thread, and all that it starts.
void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("cannot run on core " + std::to_string(core));
}

std::unique_ptr<transport::fabric>
make(const std::string& name, std::uint8_t who, const tls::shared_key& key,
     transport::fabric_handler& handler) {
  if (name == "tls") {
    tls::config c;
    c.identity = tls::make_private_key();
    c.cluster_key = key;
    c.instance = tls::make_instance();
    return std::make_unique<tls::fabric>(c, handler);
  }
  transport::ucx::config c;
  c.self[0] = who;
  c.instance = who;
  if (name == "shm")
    return std::make_unique<transport::shm::fabric>(c, handler);
  if (name != "ucx")
    throw std::runtime_error("no fabric is called " + name);
  c.over = transport::introduced::medium::tcp;
  c.devices = "lo";
  c.trusted = {*transport::ucx::parse_network("127.0.0.0/8")};
  return std::make_unique<transport::ucx::fabric>(c, handler);
}

void run(const std::string& name, int server, int client,
         std::span<char* const> sizes) {
  const auto key = tls::make_shared_key();
  const auto node = [&](std::uint8_t who, int core) {
    return [&, who, core](transport::fabric_handler& handler) {
      pin(core);
      return make(name, who, key, handler);
    };
  };
  apps::link_meter meter(node(1, client), node(2, server));
  for (const char* text : sizes) {
    const auto bytes = static_cast<std::size_t>(std::atoll(text));
    if (bytes <= message_bytes_max) {
      (void)meter.round_trip(round_trips / 10, bytes); // warms up
      std::printf("%zu %.3f\n", bytes,
                  meter.round_trip(round_trips, bytes) / 2 * 1e6);
      continue;
    }
    const int count =
      static_cast<int>(std::clamp<std::size_t>(run_bytes / bytes, 1, 512));
    (void)meter.bulk(bytes, count);
    std::printf("%zu %.3f\n", bytes,
                static_cast<double>(bytes) * count / meter.bulk(bytes, count)
                  / 1e9);
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 5)
      throw std::runtime_error("usage: shm|ucx|tls SERVER CLIENT BYTES...");
    run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]),
        std::span(argv + 4, argv + argc));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fabric_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
