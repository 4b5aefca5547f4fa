// transport/tls/identity.cpp -- keys, ids, and the certificate around a key.
#include "transport/tls/identity.hpp"

#include "transport/tls/context.hpp"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <stdexcept>
#include <string>

namespace shoal::transport::tls {
namespace {

/// A handshake needs no more: one small certificate.
constexpr long certificate_bytes_max = 4096;

template <class Result>
Result need(Result result, const char* what) {
  if (!result)
    throw std::runtime_error(std::string("OpenSSL: ") + what + " failed");
  return result;
}

void randomize(std::span<std::uint8_t> bytes) {
  need(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
       "RAND_bytes");
}

pkey_ptr key_of(const private_key& key) {
  return pkey_ptr(need(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                                    key.data(), key.size()),
                       "reading the private key"));
}

x509_ptr certificate_of(EVP_PKEY* key) {
  x509_ptr cert(need(X509_new(), "X509_new"));
  need(X509_set_version(cert.get(), X509_VERSION_3), "X509_set_version");
  need(ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), 1), "serial");
  // It is valid for ever: trust is decided elsewhere.
  need(ASN1_TIME_set_string(X509_getm_notBefore(cert.get()), "19700101000000Z"),
       "notBefore");
  need(ASN1_TIME_set_string(X509_getm_notAfter(cert.get()), "99991231235959Z"),
       "notAfter");
  auto* name = X509_get_subject_name(cert.get());
  need(X509_NAME_add_entry_by_txt(
         name, "CN", MBSTRING_ASC,
         reinterpret_cast<const unsigned char*>("shoal"), -1, -1, 0),
       "subject");
  need(X509_set_issuer_name(cert.get(), name), "issuer");
  need(X509_set_pubkey(cert.get(), key), "X509_set_pubkey");
  need(X509_sign(cert.get(), key, nullptr), "X509_sign");
  return cert;
}

/// A self-signed certificate carries no trust. Only its key counts, and TLS
/// makes the other end prove that it holds the key.
int accept_any_chain(X509_STORE_CTX*, void*) {
  return 1;
}

} // namespace

private_key make_private_key() {
  private_key key{};
  randomize(key);
  return key;
}

shared_key make_shared_key() {
  shared_key key{};
  randomize(key);
  return key;
}

std::uint64_t make_instance() {
  std::array<std::uint8_t, 8> bytes{};
  randomize(bytes);
  std::uint64_t value = 0;
  for (const auto b : bytes)
    value = value << 8 | b;
  return value;
}

public_key public_of(const private_key& key) {
  public_key raw{};
  std::size_t length = raw.size();
  need(EVP_PKEY_get_raw_public_key(key_of(key).get(), raw.data(), &length),
       "reading the public key");
  return raw;
}

peer_id id_of_public(const public_key& key) {
  peer_id id{};
  SHA256(key.data(), key.size(), id.data());
  return id;
}

ssl_ctx_ptr make_context(const private_key& key) {
  ssl_ctx_ptr ctx(need(SSL_CTX_new(TLS_method()), "SSL_CTX_new"));
  auto* c = ctx.get();
  need(SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION), "TLS 1.3");
  need(SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION), "TLS 1.3");
  need(SSL_CTX_set_ciphersuites(
         c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"),
       "choosing ciphers");
  need(SSL_CTX_set1_groups_list(c, "X25519"), "choosing groups");
  need(SSL_CTX_set1_sigalgs_list(c, "ed25519"), "choosing signatures");
  need(SSL_CTX_set1_client_sigalgs_list(c, "ed25519"), "choosing signatures");
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION
                           | SSL_OP_NO_COMPRESSION
                           // A cut stream is a lost peer, not an error of TLS.
                           | SSL_OP_IGNORE_UNEXPECTED_EOF);
  need(SSL_CTX_set_num_tickets(c, 0), "disabling tickets");
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(c, certificate_bytes_max);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE
                        | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_cert_verify_callback(c, accept_any_chain, nullptr);
  const auto own = key_of(key);
  need(SSL_CTX_use_certificate(c, certificate_of(own.get()).get()),
       "using the certificate");
  need(SSL_CTX_use_PrivateKey(c, own.get()), "using the key");
  return ctx;
}

std::optional<peer_id> id_of_peer(SSL* ssl) {
  const x509_ptr cert(SSL_get1_peer_certificate(ssl));
  if (!cert)
    return {};
  auto* key = X509_get0_pubkey(cert.get());
  if (!key || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519)
    return {};
  public_key raw{};
  std::size_t length = raw.size();
  if (!EVP_PKEY_get_raw_public_key(key, raw.data(), &length)
      || length != raw.size())
    return {};
  return id_of_public(raw);
}

peer_id id_of_private(const private_key& key) {
  return id_of_public(public_of(key));
}

} // namespace shoal::transport::tls
