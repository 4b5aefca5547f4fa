// runtime/files/sha256.cpp -- SHA-256 by OpenSSL.
#include "runtime/files/sha256.hpp"

#include "runtime/core/setup_error.hpp"

#include <openssl/evp.h>

namespace shoal::runtime {

void sha256_hash::release::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

sha256_hash::sha256_hash() : context_(EVP_MD_CTX_new()) {
  if (!context_
      || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
    throw setup_error("OpenSSL has no SHA-256 here");
}

void sha256_hash::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

core::blob_digest sha256_hash::finish() {
  core::blob_digest digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  return digest;
}

core::blob_digest sha256(std::span<const std::byte> bytes) {
  return sha256_joined(std::span(&bytes, 1));
}

core::blob_digest
sha256_joined(std::span<const std::span<const std::byte>> pieces) {
  sha256_hash hash;
  for (const auto& piece : pieces)
    hash.add(piece);
  return hash.finish();
}

} // namespace shoal::runtime
