// transport/tls/proof.cpp -- makes and checks proofs.
#include "transport/tls/proof.hpp"

#include "transport/assert.hpp"
#include "transport/tls/bytes.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

namespace shoal::transport::tls {
namespace {

constexpr std::uint32_t magic = 0x4c41'4853; // "SHAL"
constexpr std::size_t claim_bytes = 28;
using mac = std::array<std::uint8_t, 32>;

mac mac_of(const shared_key& key, const exporter& binding,
           std::span<const std::byte> claim, const peer_id& id) {
  std::vector<std::byte> input;
  const auto add = [&](auto bytes) {
    input.insert(input.end(), bytes.begin(), bytes.end());
  };
  add(std::as_bytes(std::span(binding)));
  add(claim.first(claim_bytes));
  add(std::as_bytes(std::span(id)));
  mac result{};
  unsigned length = 0;
  const auto* ok = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                        reinterpret_cast<const unsigned char*>(input.data()),
                        input.size(), result.data(), &length);
  SHOAL_ASSERT(ok && length == result.size());
  return result;
}

} // namespace

/// @param role a peer_role or a refusal
static proof_frame
make_frame(const shared_key& key, const exporter& binding, side from,
           const peer_id& id, std::uint8_t role, const claim& claimed) {
  SHOAL_ASSERT(claimed.stream <= streams_max);
  std::vector<std::byte> out;
  append(out, magic);
  append(out, protocol_version);
  append(out, role);
  append(out, static_cast<std::uint8_t>(static_cast<unsigned>(from)
                                        | claimed.stream << 4u));
  append(out, claimed.instance);
  append(out, claimed.capabilities);
  append(out, claimed.planner);
  const auto sum = mac_of(key, binding, out, id);
  proof_frame frame{};
  std::copy(out.begin(), out.end(), frame.begin());
  std::copy_n(reinterpret_cast<const std::byte*>(sum.data()), sum.size(),
              frame.begin() + claim_bytes);
  return frame;
}

proof_frame make_proof(const shared_key& key, const exporter& binding,
                       side from, const peer_id& id, const claim& claimed) {
  return make_frame(key, binding, from, id,
                    static_cast<std::uint8_t>(claimed.role), claimed);
}

proof_frame make_refusal(const shared_key& key, const exporter& binding,
                         const peer_id& id, refusal why) {
  return make_frame(key, binding, side::acceptor, id,
                    static_cast<std::uint8_t>(why), {});
}

const char* to_text(refusal why) {
  switch (why) {
  case refusal::duplicate:
    return "it knows another process with this node's identity";
  case refusal::revoked:
    return "this node's identity was revoked";
  case refusal::key_replaced:
    return "the cluster key was replaced: this node needs the new one, or an "
           "invite (shoal invite)";
  case refusal::invite_used:
    return "the invite was used by another peer: ask for a new one";
  case refusal::invite_expired:
    return "the invite has expired: ask for a new one";
  case refusal::other_planner:
    return "its version of shoal plans otherwise than this node's: install the "
           "same version on all peers of a shoal";
  }
  return "unknown refusal";
}

bool claims_role(const proof_frame& frame, peer_role role) {
  return load<std::uint8_t>(frame, 6) == static_cast<std::uint8_t>(role);
}

const char* check_proof(const shared_key& key, const exporter& binding,
                        side from, const peer_id& id, const proof_frame& frame,
                        claim& claimed, std::optional<refusal>* refused) {
  if (load<std::uint32_t>(frame, 0) != magic)
    return "it does not speak this protocol";
  if (load<std::uint16_t>(frame, 4) != protocol_version)
    return "it speaks another version of the protocol";
  const auto expected = mac_of(key, binding, frame, id);
  if (CRYPTO_memcmp(expected.data(), frame.data() + claim_bytes,
                    expected.size())
      != 0)
    return "it holds another cluster key";
  const auto role = load<std::uint8_t>(frame, 6);
  if (refused && from == side::acceptor && load<std::uint8_t>(frame, 7) == 2
      && role >= static_cast<std::uint8_t>(refusal::duplicate)
      && role <= static_cast<std::uint8_t>(refusal::other_planner)) {
    *refused = static_cast<refusal>(role);
    return to_text(**refused);
  }
  if (role != static_cast<std::uint8_t>(peer_role::member)
      && role != static_cast<std::uint8_t>(peer_role::client)
      && role != static_cast<std::uint8_t>(peer_role::invitee))
    return "unknown role";
  const auto side_and_stream = load<std::uint8_t>(frame, 7);
  if ((side_and_stream & 15u) != static_cast<unsigned>(from))
    return "it sent the proof of the other side";
  claimed.role = static_cast<peer_role>(role);
  claimed.stream = side_and_stream >> 4u;
  claimed.instance = load<std::uint64_t>(frame, 8);
  claimed.capabilities = load<std::uint64_t>(frame, 16);
  claimed.planner = load<std::uint32_t>(frame, 24);
  return nullptr;
}

} // namespace shoal::transport::tls
