// transport/tls/proof.hpp -- the one frame that each end sends before trust.
//
//   u32 magic, u16 version, u8 role, u8 side and stream, u64 instance,
//   u64 capabilities,
//   32 bytes HMAC-SHA256(cluster key, exporter || the 24 bytes || peer id)
//
// The lower half of the side byte is the side, the upper half the stream: 0
// carries control messages, each other one bulk.
//
// The exporter binds it to this TLS connection, the side keeps an end from
// sending the other's proof back, the id binds it to the certificate.
//
// Threads: pure functions.
// Errors:  a literal that says what is wrong, for the log.
#pragma once

#include "transport/tls/identity.hpp"

#include <cstddef>

namespace shoal::transport::tls {

inline constexpr std::uint16_t protocol_version = 2;
inline constexpr std::size_t proof_bytes = 56;
inline constexpr std::size_t exporter_bytes = 32;

using exporter = std::array<std::uint8_t, exporter_bytes>;
using proof_frame = std::array<std::byte, proof_bytes>;

/// Bulk streams that a number in the proof can name.
inline constexpr std::uint8_t streams_max = 15;

enum class side : std::uint8_t { dialler = 1, acceptor = 2 };

/// What an end says of itself.
struct claim {
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;
  std::uint64_t capabilities = 0;
  std::uint8_t stream = 0; ///< at most streams_max
};

[[nodiscard]] proof_frame
make_proof(const shared_key& key, const exporter& binding, side from,
           const peer_id& id, const claim& what);

/// Checks the proof of the peer `id` on side `from` and fills `what`.
/// @returns null or what is wrong.
[[nodiscard]] const char*
check_proof(const shared_key& key, const exporter& binding, side from,
            const peer_id& id, const proof_frame& frame, claim& what);

} // namespace shoal::transport::tls
