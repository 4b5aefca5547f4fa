// tests/support/hostile_tls.hpp -- bytes that make a TLS library work.
//
// Each function returns bytes that a stranger may send without any secret of
// the other end; the conformance suite, the fuzz target and the attacker of
// tests/cluster share them.
//
// Errors: std::runtime_error when OpenSSL refuses, a bug of the test.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace shoal::hostile_tls {

using bytes = std::vector<std::uint8_t>;

/// Takes the content out of a BIO in memory.
inline bytes taken_from(BIO* memory) {
  char* data = nullptr;
  const auto length = BIO_get_mem_data(memory, &data);
  bytes out(data, data + length);
  BIO_reset(memory);
  return out;
}

/// Runs `say` and returns the bytes that `ssl` writes, instead of sending them.
/// @pre its handshake has ended
template <class Say>
bytes written_by(SSL* ssl, Say say) {
  BIO* memory = BIO_new(BIO_s_mem());
  BIO* before = SSL_get_wbio(ssl);
  if (!memory || !before || BIO_up_ref(before) != 1)
    throw std::runtime_error("no BIO");
  SSL_set0_wbio(ssl, memory);
  say();
  auto out = taken_from(memory);
  SSL_set0_wbio(ssl, before); // frees the memory
  return out;
}

/// KeyUpdate messages, one per record: each costs the reader a key derivation.
inline bytes
key_updates(SSL* ssl, int count, int kind = SSL_KEY_UPDATE_NOT_REQUESTED) {
  return written_by(ssl, [&] {
    for (int i = 0; i < count; ++i)
      if (SSL_key_update(ssl, kind) != 1 || SSL_do_handshake(ssl) != 1)
        throw std::runtime_error("no KeyUpdate");
  });
}

/// NewSessionTicket messages of a server, one a record.
inline bytes tickets(SSL* ssl, int count) {
  return written_by(ssl, [&] {
    for (int i = 0; i < count; ++i)
      if (SSL_new_session_ticket(ssl) != 1 || SSL_do_handshake(ssl) != 1)
        throw std::runtime_error("no NewSessionTicket");
  });
}

// Not inlined: GCC 12 otherwise warns of uninitialised bytes.
[[gnu::noinline]] inline void
append(bytes& out, std::uint64_t value, int width) {
  out.resize(out.size() + static_cast<std::size_t>(width));
  for (auto last = out.rbegin(); width-- > 0; value >>= 8)
    *last++ = static_cast<std::uint8_t>(value);
}

[[gnu::noinline]] inline void append(bytes& out, const bytes& more) {
  out.resize(out.size() + more.size());
  std::copy(more.begin(), more.end(),
            out.end() - static_cast<std::ptrdiff_t>(more.size()));
}

inline void append_extension(bytes& out, int type, const bytes& body) {
  append(out, static_cast<std::uint64_t>(type), 2);
  append(out, body.size(), 2);
  append(out, body);
}

/// A ClientHello that our listener would answer, with `ciphers` cipher suites
/// and `padding`: 120 KiB with 30,000 and 55,000.
inline bytes client_hello(std::size_t ciphers, std::size_t padding) {
  std::mt19937 random(1);
  const auto noise = [&](std::size_t count) {
    bytes out(count);
    for (auto& b : out)
      b = static_cast<std::uint8_t>(random());
    return out;
  };
  bytes share;
  append(share, 36, 2);
  append(share, 0x001d, 2); // X25519
  append(share, 32, 2);
  append(share, noise(32));
  bytes extensions;
  append_extension(extensions, 43, {2, 3, 4});       // TLS 1.3
  append_extension(extensions, 10, {0, 2, 0, 0x1d}); // X25519
  append_extension(extensions, 13, {0, 2, 8, 7});    // Ed25519
  append_extension(extensions, 51, share);
  append_extension(extensions, 21, bytes(padding)); // padding
  bytes body;
  append(body, 0x0303, 2);
  append(body, noise(32));
  append(body, 32, 1);
  append(body, noise(32)); // a session id
  append(body, 2 * ciphers, 2);
  for (std::size_t i = 1; i < ciphers; ++i)
    append(body, 0xc000 + i % 0xff, 2);
  append(body, 0x1301, 2); // AES-128-GCM, at the end
  append(body, 0x0100, 2); // no compression
  append(body, extensions.size(), 2);
  append(body, extensions);
  bytes out;
  append(out, 1, 1); // ClientHello
  append(out, body.size(), 3);
  append(out, body);
  return out;
}

/// Handshake bytes in plain records of at most `record` bytes each.
inline bytes in_records(const bytes& message, std::size_t record) {
  bytes out;
  for (std::size_t first = 0; first < message.size(); first += record) {
    const auto length = std::min(record, message.size() - first);
    append(out, 22, 1);
    append(out, 0x0301, 2);
    append(out, length, 2);
    const auto from = message.begin() + static_cast<std::ptrdiff_t>(first);
    append(out, bytes(from, from + static_cast<std::ptrdiff_t>(length)));
  }
  return out;
}

} // namespace shoal::hostile_tls
