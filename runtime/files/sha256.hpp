// runtime/files/sha256.hpp -- SHA-256, at once or piece by piece.
//
// Threads: any, but one at a time for one hash.
// Errors:  the constructor throws setup_error where OpenSSL has no SHA-256;
//          nothing else can fail.
// Source:  FIPS 180-4, by OpenSSL.
#pragma once

#include "runtime/core/ids.hpp" // blob_digest

#include <cstddef>
#include <memory>
#include <span>

struct evp_md_ctx_st; // EVP_MD_CTX

namespace shoal::runtime {

/// A hash of bytes that come in pieces.
class sha256_hash {
public:
  sha256_hash();
  void add(std::span<const std::byte> bytes);
  /// The digest of all that was added. Add nothing afterwards.
  core::blob_digest finish();

private:
  struct release {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, release> context_;
};

core::blob_digest sha256(std::span<const std::byte> bytes);

/// Of all pieces, one after the other.
core::blob_digest
sha256_joined(std::span<const std::span<const std::byte>> pieces);

} // namespace shoal::runtime
