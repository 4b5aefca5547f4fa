// runtime/http/client/tls_stream.hpp -- TLS 1.2 or 1.3 to a server whose name is
// checked.
//
// A server must show a certificate for the host of the URL by an authority that is
// trusted: of a file that is named, else of the system (OpenSSL's store, or what
// SSL_CERT_FILE and SSL_CERT_DIR name).
//
// Threads: a tls_trust any, once it is loaded; a tls_stream one.
// Errors:  sentences about "its certificate" without the address, that say what to
//          do.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/http/client/client_stream.hpp"

#include <filesystem>
#include <memory>
#include <string>

struct ssl_ctx_st;

namespace shoal::runtime {

/// The authorities that are trusted. Loading those of the system takes some 20 ms:
/// load them once.
class tls_trust {
public:
  /// @param ca_file certificates in PEM; empty: those of the system
  [[nodiscard]] static model::result<std::shared_ptr<const tls_trust>>
  load(const std::filesystem::path& ca_file);
  ~tls_trust();
  tls_trust(const tls_trust&) = delete;
  tls_trust& operator=(const tls_trust&) = delete;

private:
  friend class tls_stream;
  explicit tls_trust(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

class tls_stream final : public client_stream {
public:
  /// Over a connected socket that does not block, which outlives it.
  /// @param host  name or address that the certificate must be for
  tls_stream(std::shared_ptr<const tls_trust> trust, int fd,
             const std::string& host);
  ~tls_stream() override;

  /// A part of the handshake. @returns done once it has succeeded
  step shake_hands();
  moved read(std::span<char> into) override;
  moved write(std::string_view from) override;
  bool closed_in_order() const override;
  const std::string& error() const override;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace shoal::runtime
