// runtime/store/blob_server.hpp -- answers what peers ask for of the blobs here.
//
// Private to runtime/store: the half of an exchange that serves.
//
// Threads: one event at a time, as its exchange; `post` brings completions back.
#pragma once

#include "runtime/store/exchange.hpp"

#include <atomic>
#include <map>

namespace shoal::runtime {

class blob_server {
public:
  using event = std::function<void(blob_server&)>;
  /// Runs an event as one of the exchange, if that still exists.
  using poster = std::function<void(event)>;

  blob_server(store& blobs, device_queue& disk, blob_sender& sender)
    : blobs_(blobs), disk_(disk), sender_(sender) {}

  void use_links(blob_links& links) { links_ = &links; }
  void serve(const core::peer_id& from, const blob_request& request,
             const poster& post);
  void peer_down(const core::peer_id& peer);
  void tick(core::nanoseconds now);
  void close();

  /// Requests of the peer that has most.
  [[nodiscard]] std::size_t most_served() const;
  [[nodiscard]] std::uint64_t moved_bytes() const noexcept { return moved_; }

private:
  struct answer {
    blob_chunk chunk;
    std::span<const std::byte> bytes; ///< to send over a link
    std::shared_ptr<const void> keep;
  };
  /// Pieces of a plan that wait to be taken.
  struct sending {
    std::size_t pieces = 0;
    core::nanoseconds moved_at = 0;
  };
  using plan_of_peer = std::pair<core::peer_id, std::uint64_t>;

  void answered(const core::peer_id& from, const blob_request& request,
                answer& a, const poster& post);
  void
  sent(const plan_of_peer& plan, std::uint64_t bytes, std::error_code error);
  void release(const core::peer_id& peer);

  store& blobs_;
  device_queue& disk_;
  blob_sender& sender_;
  blob_links* links_ = nullptr;
  bool closed_ = false;
  core::nanoseconds now_ = 0;
  std::atomic<std::uint64_t> moved_{0};
  std::map<core::peer_id, std::size_t> served_; ///< requests under way
  std::map<plan_of_peer, sending> sends_;
};

} // namespace shoal::runtime
