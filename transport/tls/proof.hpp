// transport/tls/proof.hpp -- the one frame that each end sends before it trusts.
//
//   u32 magic, u16 version, u8 role, u8 side and stream, u64 instance,
//   u64 capabilities, u32 planner,
//   32 bytes HMAC-SHA256(cluster key, exporter || the 28 bytes || peer id)
//
// The lower half of the side byte is the side, the upper half the stream: 0
// carries control messages, each other one bulk.
//
// The exporter binds the frame to this TLS connection. The side keeps an end
// from sending back the other's proof. The id binds it to the certificate.
//
// Threads: pure functions.
// Errors:  a string literal that names the error, for the log.
#pragma once

#include "transport/tls/identity.hpp"

#include <cstddef>
#include <optional>

namespace shoal::transport::tls {

inline constexpr std::uint16_t protocol_version = 7;
inline constexpr std::size_t proof_bytes = 60;
inline constexpr std::size_t exporter_bytes = 32;

using exporter = std::array<std::uint8_t, exporter_bytes>;
using proof_frame = std::array<std::byte, proof_bytes>;

/// Bulk streams that a number in the proof can name.
inline constexpr std::uint8_t streams_max = 15;

enum class side : std::uint8_t { dialler = 1, acceptor = 2 };

/// Why the dialled end refuses a peer that proved a key; sent instead of a
/// role.
enum class refusal : std::uint8_t {
  duplicate = 128, ///< another process with this identity is up
  revoked = 129,
  key_replaced = 130,
  invite_used = 131,
  invite_expired = 132,
  other_planner = 133, ///< its members would compute other plans
};
/// The reason as shown to users.
[[nodiscard]] const char* to_text(refusal why);

/// The data that an end claims about itself.
struct claim {
  peer_role role = peer_role::member;
  std::uint64_t instance = 0;
  std::uint64_t capabilities = 0;
  std::uint8_t stream = 0;   ///< at most streams_max
  std::uint32_t planner = 0; ///< see config::planner
};

[[nodiscard]] proof_frame
make_proof(const shared_key& key, const exporter& binding, side from,
           const peer_id& id, const claim& claimed);

/// The answer to a dialler that is refused.
[[nodiscard]] proof_frame
make_refusal(const shared_key& key, const exporter& binding, const peer_id& id,
             refusal why);

/// Whether a frame, valid or not, claims this role.
[[nodiscard]] bool claims_role(const proof_frame& frame, peer_role role);

/// Checks the proof of the peer `id` on side `from` and fills `claimed`.
/// @returns null or the error; a valid refusal also fills `refused`.
[[nodiscard]] const char*
check_proof(const shared_key& key, const exporter& binding, side from,
            const peer_id& id, const proof_frame& frame, claim& claimed,
            std::optional<refusal>* refused = nullptr);

} // namespace shoal::transport::tls
