// runtime/links/link_prober.hpp -- measures links that have no traffic yet.
//
// Asks a peer to expect a few transfers and sends them one after another; the
// link service measures them like all others. A value that is known from real
// traffic is not probed.
//
//   this node  --link_probe{nonce}--> peer posts the memory
//              --small, small, ..., bulk, ...--> dropped there when all came
//
// One probe at a time is sent and one is received; up to waiting_max others
// wait for their turn. Each ends after probe_timeout at the latest. A pair
// transfers at most pair_bytes_max in each direction while it is up: beyond
// that, requests are ignored.
//
// Threads: any.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/links/links.hpp"
#include "runtime/wire/messages.hpp" // link_probe

#include <chrono>
#include <memory>
#include <span>

namespace shoal::runtime {

/// How a prober asks peers. Called on any thread; must not wait, nor call the
/// prober.
class probe_sender {
public:
  virtual ~probe_sender() = default;
  virtual std::error_code
  send_probe(const core::peer_id& to, const link_probe& probe) = 0;
};

class link_prober {
public:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t small_bytes = 64;
  static constexpr std::size_t bulk_bytes = std::size_t{1} << 20;
  /// In each direction, so that a pair stays below 16 MiB.
  static constexpr std::size_t pair_bytes_max = std::size_t{8} << 20;
  static constexpr std::chrono::seconds probe_timeout{10};
  static constexpr std::size_t waiting_max = 64;
  static constexpr std::uint32_t small_count = 8; ///< per probe
  static constexpr std::uint32_t bulk_count = 2;

  /// A pair that is up, and the values that are unknown for the fabric it uses.
  struct pair {
    core::peer_id peer{};
    bool latency = false;
    bool bandwidth = false;
  };

  /// @pre `links` and `sender` outlive it
  link_prober(const core::peer_id& self, link_hub& links, probe_sender& sender);
  ~link_prober();

  /// Starts a probe of one of `unknown` if none is in progress.
  void tick(clock::time_point now, std::span<const pair> unknown);
  void
  asked(const core::peer_id& from, const link_probe& p, clock::time_point now);
  void gone(const core::peer_id& peer);

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace shoal::runtime
