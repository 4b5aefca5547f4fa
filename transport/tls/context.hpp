// transport/tls/context.hpp -- OpenSSL objects that free themselves.
//
// Only .cpp files of this folder include it.
#pragma once

#include "transport/tls/identity.hpp"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <optional>

namespace shoal::transport::tls {

template <class Handle, void (*Free)(Handle*)>
struct freer {
  void operator()(Handle* h) const noexcept { Free(h); }
};
using pkey_ptr = std::unique_ptr<EVP_PKEY, freer<EVP_PKEY, EVP_PKEY_free>>;
using x509_ptr = std::unique_ptr<X509, freer<X509, X509_free>>;
using ssl_ctx_ptr = std::unique_ptr<SSL_CTX, freer<SSL_CTX, SSL_CTX_free>>;
using ssl_ptr = std::unique_ptr<SSL, freer<SSL, SSL_free>>;

/// Makes a context for both sides: TLS 1.3 only, Ed25519 only, with a
/// certificate required of the other end, without resumption.
[[nodiscard]] ssl_ctx_ptr make_context(const private_key& key);

/// The id of the peer at the other end, after the handshake; empty if its key
/// is not an Ed25519 key.
[[nodiscard]] std::optional<peer_id> id_of_peer(SSL* ssl);

} // namespace shoal::transport::tls
