// runtime/control/invite.hpp -- tokens that let one peer in.
//
// A token names the shoal's cluster, the inviter by its fingerprint (its id),
// where it can be reached, until when the token holds, and a random key. The joiner dials the
// inviter, takes nobody else, proves the token's key over TLS and is given the
// cluster key. The view says who has used a token, so it works once, whichever
// member it is shown to.
//
//   shoal-<base64url: version 2, expiry 8, inviter 32, key 32, cluster,
//          addresses>; each text after a byte for its length
//
// Version 1 had no cluster: whoever joined by it found nobody unless he was told
// the name apart. Such a token is refused.
//
// Threads: any; redeem() blocks. Errors: setup_error that says what to do.
#pragma once

#include "runtime/core/view.hpp"
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

/// @returns nothing for what is no token.
std::optional<invite_token> parse_token(const std::string& text);

/// As parse_token, but throws; says it if another version has made the token.
invite_token decode_token(const std::string& text);

/// Whether this is a whole token that an older or newer program has made.
bool is_token_of_another_version(const std::string& text);

/// Whether all its addresses are of the machine that has made it.
bool is_local(const invite_token& token);

/// Asks the inviter for the cluster key.
transport::tls::shared_key
redeem(const invite_token& token, const transport::tls::private_key& identity);

} // namespace shoal::runtime
