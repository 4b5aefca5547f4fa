// runtime/wire/messages.hpp -- what nodes say to each other, as plain data.
//
// The cluster's and the jobs' messages are declared by the core, and those of a
// command line by client_messages.hpp; here are the others: link credits, blobs,
// roles and the exchange of UCX addresses. codec.hpp turns all of them into bytes
// and back. What comes out of the codec has been checked against the limits named
// here.
//
// Threads: plain data.
#pragma once

#include "runtime/core/fields.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/limits.hpp"
#include "transport/fabric.hpp" // bulk_tag

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::runtime {

/// Bytes of a blob in one transfer over a link.
inline constexpr std::uint32_t blob_piece_bytes_max = std::uint32_t{1} << 20;
/// Bytes of a blob in one message: half of what a control message may hold,
/// so that the frame around them always fits.
inline constexpr std::size_t blob_chunk_bytes_max = std::size_t{512} << 10;
using core::limits::role_name_bytes_max;
inline constexpr std::size_t role_message_bytes_max = std::size_t{512} << 10;
inline constexpr std::size_t paired_address_bytes_max = 16384;

/// What carries tensors: TLS, or UCX over one of its transports.
enum class fabric_kind : std::uint8_t {
  tls = 1,
  shm = 2, ///< shared memory
  rdma = 3,
  ucx_tcp = 4,
};

/// What a link credit says; see runtime/links/link_service.hpp.
enum class credit_kind : std::uint8_t {
  grant = 1, ///< receiver: memory is posted for `tag` on `fabric`
  refuse,    ///< sender: the grant `attempt` cannot be used, give another
  complete,  ///< receiver: answers a refusal, the bytes are all here
};

/// From the receiver of a transfer to its sender, or back.
struct link_credit {
  transport::bulk_tag tag{};
  fabric_kind fabric = fabric_kind::tls;
  credit_kind kind = credit_kind::grant;
  std::uint64_t attempt = 0; ///< names the grant
  friend bool operator==(const link_credit&, const link_credit&) = default;
};
void fields(auto& v, core::of<link_credit> auto& x) {
  v("plan", x.tag.plan);
  v("link", x.tag.link);
  v("sequence", x.tag.sequence);
  v("fabric", x.fabric, core::up_to(fabric_kind::ucx_tcp));
  v("kind", x.kind, core::up_to(credit_kind::complete));
  v("attempt", x.attempt);
}

/// Asks for bytes [offset, offset + bytes) of a blob; answered by blob_chunk
/// with the same number. Or they are sent over a link, where the requester expects
/// them, and only what is not found is answered.
struct blob_request {
  std::uint64_t number = 0;
  core::blob_digest digest{};
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0; ///< at most blob_chunk_bytes_max; over a link
                           ///< blob_piece_bytes_max
  std::uint64_t plan = 0;  ///< of the transfer over a link; 0: by a message
  /// The holder is to keep it on its disk for this job for a while (store::pledge);
  /// what it has only in memory counts as not found. 0: for none.
  core::job_id pledged_to = 0;
  friend bool operator==(const blob_request&, const blob_request&) = default;
};
void fields(auto& v, core::of<blob_request> auto& x) {
  v("number", x.number);
  v("digest", x.digest);
  v("offset", x.offset, core::at_most(core::limits::bytes_max));
  v("bytes", x.bytes, core::at_most(blob_piece_bytes_max));
  v("plan", x.plan);
  v("pledged_to", x.pledged_to);
  v.must(errc::too_large,
         [&] { return x.plan != 0 || x.bytes <= blob_chunk_bytes_max; });
}

struct blob_chunk {
  std::uint64_t number = 0;
  core::blob_digest digest{};
  bool found = false;
  std::uint64_t total_bytes = 0; ///< of the blob
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
  friend bool operator==(const blob_chunk&, const blob_chunk&) = default;
};
void fields(auto& v, core::of<blob_chunk> auto& x) {
  v("number", x.number);
  v("digest", x.digest);
  v("found", x.found);
  v("total_bytes", x.total_bytes, core::at_most(core::limits::bytes_max));
  v("offset", x.offset, core::at_most(core::limits::bytes_max));
  v("bytes", x.bytes, core::bytes_of(blob_chunk_bytes_max));
  // "Not found" repeats the offset that was asked for, and knows no size.
  v.must(errc::too_large,
         [&] { return !x.found || x.offset <= x.total_bytes; });
  v.must(errc::corrupt, [&] {
    return x.found ? x.bytes.size() + x.offset <= x.total_bytes
                   : x.bytes.empty();
  });
}

/// How to reach one of this node's UCX workers; sent over TLS.
struct paired_address {
  std::string host; ///< boot id, as in core::member::host
  std::vector<std::byte> address;
  friend bool
  operator==(const paired_address&, const paired_address&) = default;
};
void fields(auto& v, core::of<paired_address> auto& x) {
  v("host", x.host, core::text_of(core::limits::name_bytes_max));
  v("address", x.address, core::bytes_of(paired_address_bytes_max));
}

/// Transfers of a probe, which measures a link that nobody has used.
inline constexpr std::uint32_t probe_small_max = 16;
inline constexpr std::uint32_t probe_bulk_max = 4;

/// Asks the receiver to expect `small` transfers of probe_small_bytes, then
/// `bulk` of probe_bulk_bytes (runtime/links/link_prober.hpp).
struct link_probe {
  std::uint64_t nonce = 0;
  std::uint32_t small = 0;
  std::uint32_t bulk = 0;
  friend bool operator==(const link_probe&, const link_probe&) = default;
};
void fields(auto& v, core::of<link_probe> auto& x) {
  v("nonce", x.nonce);
  v("small", x.small, core::at_most(probe_small_max));
  v("bulk", x.bulk, core::at_most(probe_bulk_max));
}

/// Bytes for the actor of a custom role.
struct role_message {
  std::string role;
  std::vector<std::byte> bytes;
  friend bool operator==(const role_message&, const role_message&) = default;
};
void fields(auto& v, core::of<role_message> auto& x) {
  v("role", x.role, core::text_of(role_name_bytes_max));
  v("bytes", x.bytes, core::bytes_of(role_message_bytes_max));
}

} // namespace shoal::runtime
