// runtime/control/invite.hpp -- tokens that admit one peer.
//
// A token contains the shoal's cluster name, the inviter's fingerprint (its id)
// and addresses, its expiry, and a random key. The joiner dials the inviter,
// accepts no other peer there, proves the token's key over TLS and receives the
// cluster key. The view records which peer has used a token, so it works once,
// whichever member it is presented to.
//
//   shoal-<base64url: version 2, expiry 8, inviter 32, key 32, cluster,
//          addresses>; each text after a byte for its length
//
// Version 1 had no cluster name: its user found no peer without knowing the
// name from elsewhere. Such a token is refused.
//
// Threads: any; redeem() blocks. Errors: setup_error that says what to do.
#pragma once

#include "runtime/core/ids.hpp"
#include "transport/tls/identity.hpp"

#include <optional>
#include <string>
#include <vector>

namespace shoal::runtime {

inline constexpr std::size_t token_addresses_max = 4;
inline constexpr std::size_t token_text_max = 2048;

struct invite_token {
  std::int64_t expires_s = 0; ///< Unix time
  core::peer_id inviter{};
  core::cluster_key key{}; ///< proves the token
  std::string cluster;     ///< of the shoal; UTF-8 without controls
  std::vector<std::string> addresses;
  friend bool operator==(const invite_token&, const invite_token&) = default;
};

std::string encode_token(const invite_token& token);

/// @returns nothing if the text is no token.
std::optional<invite_token> parse_token(const std::string& text);

/// Like parse_token, but throws; the text says if the token has another
/// version.
invite_token decode_token(const std::string& text);

/// Whether this is a complete token of an older or newer program.
bool is_token_of_another_version(const std::string& text);

/// Whether all its addresses are local to the inviter's machine.
bool is_local(const invite_token& token);

/// Asks the inviter for the cluster key.
transport::tls::shared_key
redeem(const invite_token& token, const transport::tls::private_key& identity);

} // namespace shoal::runtime
