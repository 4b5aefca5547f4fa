// transport/tls/identity.hpp -- a peer's identity: an Ed25519 key and its hash.
//
// The private key is the 32-byte seed of RFC 8032. The id is the SHA-256 of the
// 32-byte public key. The certificate that TLS requires for the key is
// self-signed and made in memory; nothing but its key is ever read.
//
// Threads: all functions may be called from any thread.
// Errors:  std::runtime_error if OpenSSL fails (no entropy, no memory).
#pragma once

#include "transport/peer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::transport::tls {

/// A raw Ed25519 private key (its seed). Keep it secret.
using private_key = std::array<std::uint8_t, 32>;

/// A raw Ed25519 public key.
using public_key = std::array<std::uint8_t, 32>;

/// The secret that all peers of one cluster share.
using shared_key = std::array<std::uint8_t, 32>;

/// Makes a new random private key.
[[nodiscard]] private_key make_private_key();

/// Makes a new random cluster key.
[[nodiscard]] shared_key make_shared_key();

/// Makes a random number for config::instance.
[[nodiscard]] std::uint64_t make_instance();

/// Returns the public key of `key`.
[[nodiscard]] public_key public_of(const private_key& key);

/// Returns the id of the peer that holds a key, from either half of it.
[[nodiscard]] peer_id id_of_public(const public_key& key);
[[nodiscard]] peer_id id_of_private(const private_key& key);

} // namespace shoal::transport::tls
