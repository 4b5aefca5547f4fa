// runtime/store/exchange.hpp -- blobs from peer to peer, chunk by chunk.
//
// Who wants a blob asks its holders in turn, several chunks in flight; when
// one dies or falls silent the next goes on where it stopped, and so does the
// next process when this one dies (store::go_on()). The whole is hashed before
// it gets its name. If it does not hash to it, somebody lied: every holder is
// then asked once more, alone and from the start. What an earlier process has
// left is doubted first.
//
// Whoever holds a blob serves it; a peer over its share of work is not
// answered and asks again after a while.
//
// Threads:   any; one event at a time. Files are touched on the disk queue
//            only. `done` runs on some thread: it only posts.
// Life:      close() ends all fetches with operation_canceled, and then nothing
//            is sent any more; close the disk queue next, then the store may
//            go.
// Errors:    errc::not_found  no holder has it (or none was named)
//            errc::corrupt    what the holders sent does not hash to its name
//            errc::lost       the last holder went down, errc::timed_out: it
//                             was silent
//            errc::too_large  over blob_bytes_max, or too many fetches wait
//            of the file system, such as no_space_on_device
#pragma once

#include "runtime/store/store.hpp"
#include "runtime/wire/messages.hpp" // blob_request, blob_chunk

#include <functional>

namespace shoal::runtime {

class device_queue;

class blob_exchange {
public:
  struct config {
    store* blobs = nullptr;
    device_queue* disk = nullptr;
    /// Send over the control fabric. An error counts as a lost message.
    std::function<std::error_code(const core::peer_id& to,
                                  const blob_request& request)>
      send_request;
    std::function<std::error_code(const core::peer_id& to, blob_chunk chunk)>
      send_chunk;
  };
  using callback = std::function<void(std::error_code)>;

  virtual ~blob_exchange() = default; ///< As close().

  /// Fetches a blob into the store; at once if it is there. `bytes`: its size
  /// if known. A second fetch of the same blob joins the first.
  virtual void
  fetch(const core::blob_digest& digest, std::optional<std::uint64_t> bytes,
        std::vector<core::peer_id> holders, callback done) = 0;

  virtual void
  request_received(const core::peer_id& from, const blob_request& request) = 0;
  virtual void chunk_received(const core::peer_id& from, blob_chunk chunk) = 0;
  virtual void peer_down(const core::peer_id& peer) = 0;

  /// Bytes of blobs that have come from peers and been sent to them.
  virtual std::uint64_t moved_bytes() const = 0;

  /// Lets requests time out; call some ten times a second.
  virtual void tick(core::nanoseconds now) = 0;
  virtual void close() = 0;

  /// How long its queues are: what the limits below hold for.
  struct queues {
    std::size_t fetches = 0;
    std::size_t waiting = 0;
    std::size_t joined = 0;         ///< of the fetch that has most
    std::size_t fetched_chunks = 0; ///< on the way, of the fetch that has most
    std::size_t served = 0;         ///< to the peer that asks for most
  };
  /// `then` runs on some thread: it only posts.
  virtual void list_queues(std::function<void(queues)> then) = 0;

  /// A chunk fits a control message four times, so that other messages need
  /// not wait long behind it.
  static constexpr std::uint32_t chunk_bytes = std::uint32_t{256} << 10;
  /// Chunks in flight of one fetch: 2 MiB cover 1 GB/s at 2 ms.
  static constexpr std::size_t window = 8;
  static constexpr std::size_t fetches_max = 4;    ///< under way
  static constexpr std::size_t waiting_max = 1024; ///< behind them
  static constexpr std::size_t holders_max = 256;  ///< of one fetch
  static constexpr std::size_t joined_max = 256;   ///< callbacks of one fetch
  /// Twice what an honest peer asks for at a time.
  static constexpr std::size_t served_per_peer_max = 2 * window * fetches_max;
  static constexpr core::nanoseconds request_timeout = 2'000'000'000;
  /// Of one chunk with one holder. Long, because a holder that has just started
  /// hashes the blob first: 16 s are 16 GB at 1 GB/s.
  static constexpr int tries_max = 8;
};

std::unique_ptr<blob_exchange> make_blob_exchange(blob_exchange::config config);

} // namespace shoal::runtime
