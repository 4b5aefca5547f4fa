// runtime/store/exchange.hpp -- fetches blobs from peers, chunk by chunk.
//
// A fetch asks the holders of a blob in turn, with several chunks in flight. If
// one dies or falls silent, the next continues where it stopped; if this
// process dies, the next process continues (store::go_on()). The complete blob
// is hashed before it gets its name. If the hash differs, some holder lied:
// every holder is then asked once more, alone and from the start. Bytes that an
// earlier process left are suspected first. A holder that alone has sent all bytes
// of a blob with another hash is named (blob_sender::sent_wrong), and after
// wrong_max of these asked for nothing any more by this process. An honest holder
// hashes a blob before it serves it.
//
// The first bytes come in a message, with the blob's size; the others over links,
// in pieces, by whichever fabric is best between the two peers.
//
// Every holder of a blob serves it. A peer that exceeds its share of work gets
// no answer and asks again after a while.
//
// Threads:   any; one event at a time. Files are touched on the disk queue
//            only. `done` may run on any thread: it must only post.
// Life:      close() ends all fetches with operation_canceled; nothing is sent
//            afterwards. Close the disk queue next, then the store may be
//            destroyed.
// Errors:    errc::not_found  no holder has it (or none was named)
//            errc::corrupt    the holders' data does not hash to its name
//            errc::lost       the last holder went down
//            errc::timed_out  the last holder was silent
//            errc::too_large  over blob_bytes_max, or too many fetches wait
//            errors of the file system, such as no_space_on_device
#pragma once

#include "runtime/store/store.hpp"
#include "runtime/wire/messages.hpp" // blob_request, blob_chunk

#include <functional>

namespace shoal::runtime {

class device_queue;

/// How an exchange sends to peers: over the control fabric. Called on any
/// thread; must not wait. An error counts as a lost message.
class blob_sender {
public:
  virtual ~blob_sender() = default;
  virtual std::error_code
  send_request(const core::peer_id& to, const blob_request& request) = 0;
  virtual std::error_code
  send_chunk(const core::peer_id& to, blob_chunk chunk) = 0;
  /// All bytes that this peer sent of the blob have another hash. `times` counts
  /// such blobs of it; if `given_up`, it is not asked any more.
  virtual void
  sent_wrong(const core::peer_id& /*holder*/, const core::blob_digest& /*blob*/,
             std::size_t /*times*/, bool /*given_up*/) {}
};

/// How bytes of blobs travel between peers aside of messages: transfers that both
/// ends name by plan and number. Any thread; must not wait. `done` may run on any
/// thread: it must only post. An error ends the transfer.
class blob_links {
public:
  using callback = std::function<void(std::error_code)>;
  using piece = std::shared_ptr<std::vector<std::byte>>;

  virtual ~blob_links() = default;
  virtual void expect(const core::peer_id& from, std::uint64_t plan,
                      std::uint32_t number, piece into, callback done) = 0;
  /// @param keep owns the bytes
  virtual void send(const core::peer_id& to, std::uint64_t plan,
                    std::uint32_t number, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> keep, callback done) = 0;
  /// Ends what has not ended of a plan, at this end.
  virtual void cancel(std::uint64_t plan) = 0;
};

/// The number of a plan of transfers of blobs, of any number. Its first bits keep it
/// apart from those of jobs: a holder gives a plan up, with all that waits for it.
constexpr std::uint64_t blob_plan(std::uint64_t any) {
  return std::uint64_t{0xb10b} << 48 | any >> 16;
}
constexpr bool is_blob_plan(std::uint64_t plan) {
  return plan >> 48 == 0xb10b;
}

class blob_exchange {
public:
  using callback = std::function<void(std::error_code)>;

  virtual ~blob_exchange() = default; ///< Does the same as close().

  /// From now on asks for bytes over links. They must outlive close().
  virtual void use_links(blob_links& links) = 0;

  /// Fetches a blob into the store; ends at once if it is there. `bytes` is its
  /// size, if known. A second fetch of the same blob joins the first.
  virtual void
  fetch(const core::blob_digest& digest, std::optional<std::uint64_t> bytes,
        std::vector<core::peer_id> holders, callback done) = 0;

  /// Asks a peer whether its disk has a blob, and will keep it for this job for a while
  /// (store::pledge). `done` as that of fetch(); false as well if the peer does not
  /// answer.
  virtual void
  has(const core::blob_digest& digest, core::job_id job,
      const core::peer_id& peer, std::function<void(bool)> done) = 0;

  virtual void
  request_received(const core::peer_id& from, const blob_request& request) = 0;
  virtual void chunk_received(const core::peer_id& from, blob_chunk chunk) = 0;
  virtual void peer_down(const core::peer_id& peer) = 0;

  /// The total bytes of blobs received from peers and sent to them.
  virtual std::uint64_t moved_bytes() const = 0;

  /// Lets requests time out; call some ten times a second.
  virtual void tick(core::nanoseconds now) = 0;
  virtual void close() = 0;

  /// The lengths of its queues, which the limits below bound.
  struct queues {
    std::size_t fetches = 0;
    std::size_t waiting = 0;
    std::size_t joined = 0;         ///< of the fetch that has most
    std::size_t fetched_chunks = 0; ///< in flight, of the fetch that has most
    std::size_t served = 0;         ///< to the peer that asks for most
  };
  /// `then` may run on any thread: it must only post.
  virtual void list_queues(std::function<void(queues)> then) = 0;

  /// A control message has room for four chunks, so other messages do not wait
  /// long behind one.
  static constexpr std::uint32_t chunk_bytes = std::uint32_t{256} << 10;
  /// Most chunks in flight of one fetch: 2 MiB cover 1 GB/s at 2 ms. Fewer where
  /// a chunk takes answer_slow: all of a link's messages wait behind them.
  static constexpr std::size_t window = 8;
  /// The same over links, where a transfer costs a message and a credit, some
  /// 0.2 ms: a tenth of what 1 MiB takes at 500 MB/s.
  static constexpr std::uint32_t piece_bytes = blob_piece_bytes_max;
  static constexpr std::size_t fetches_max = 4;    ///< in progress
  static constexpr std::size_t waiting_max = 1024; ///< that wait for these
  static constexpr std::size_t holders_max = 256;  ///< of one fetch
  static constexpr std::size_t joined_max = 256;   ///< callbacks of one fetch
  /// Twice the number that an honest peer requests at a time.
  static constexpr std::size_t served_per_peer_max = 2 * window * fetches_max;
  /// A holder gives up pieces that nobody has taken for this long.
  static constexpr core::nanoseconds taken_within = 30'000'000'000;
  static constexpr core::nanoseconds answer_slow = 500'000'000;
  static constexpr core::nanoseconds request_timeout = 2'000'000'000;
  /// Tries for one chunk with one holder. Many, because a holder that has just
  /// started first hashes the blob: 16 s are 16 GB at 1 GB/s.
  static constexpr int tries_max = 8;
  /// Wrong blobs of a holder until it is asked no more. More than one, because
  /// a disk may turn a bit behind the holder's back.
  static constexpr std::size_t wrong_max = 3;
};

/// @pre all three outlive it
std::unique_ptr<blob_exchange>
make_blob_exchange(store& blobs, device_queue& disk, blob_sender& sender);

} // namespace shoal::runtime
