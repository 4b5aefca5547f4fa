// runtime/store/fetching.hpp -- what an exchange knows of its fetches and questions.
//
// Private to runtime/store.
#pragma once

#include "runtime/store/exchange.hpp"

#include <map>

namespace shoal::runtime {

struct asked {
  blob_request request;
  core::nanoseconds deadline = 0;
  int tries = 1;
  core::nanoseconds asked_at = 0; ///< at first
};

/// One blob that is being fetched.
struct fetching {
  core::blob_digest digest{};
  std::optional<std::uint64_t> given; ///< size, as the caller knows it
  std::vector<core::peer_id> holders;
  std::vector<blob_exchange::callback> done;

  std::size_t holder = 0;    ///< the one being asked
  bool alone = false;        ///< second round: no two holders are mixed
  bool doubted = false;      ///< holders disagreed
  std::error_code error;     ///< of the holders so far
  std::uint64_t attempt = 0; ///< disk work of an older attempt is ignored

  std::optional<std::uint64_t> total;
  std::uint64_t next = 0;    ///< first byte not requested yet
  std::uint64_t written = 0; ///< bytes handed to the disk
  std::size_t on_disk = 0;   ///< chunks that the disk has not finished
  bool goes_on = false;      ///< an earlier fetch wrote the first bytes
  bool at_disk = false;      ///< the disk opens or commits it; all else waits
  std::uint64_t plan = 0;    ///< of its transfers over links; 0: none yet
  std::map<std::uint64_t, asked> in_flight;           ///< by number
  std::map<std::uint64_t, blob_links::piece> arrived; ///< by offset
  /// Used by the disk queue; opened with the first bytes.
  std::shared_ptr<std::unique_ptr<blob_writer>> writer;
};

using fetch_ptr = std::shared_ptr<fetching>;

/// A question whether a peer has a blob.
struct question {
  core::peer_id peer{};
  asked is;
  std::function<void(bool)> done;
};

} // namespace shoal::runtime
