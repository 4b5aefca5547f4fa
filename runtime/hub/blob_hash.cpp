// runtime/hub/blob_hash.cpp -- SHA-256, or git's SHA-1, by OpenSSL.
#include "runtime/hub/blob_hash.hpp"

#include "runtime/core/setup_error.hpp"

#include <openssl/evp.h>

#include <array>

namespace shoal::hub {

void blob_hash::release::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

blob_hash::blob_hash(hash_kind kind, std::uint64_t bytes)
  : context_(EVP_MD_CTX_new()) {
  const bool git = kind == hash_kind::git_blob;
  if (!context_
      || EVP_DigestInit_ex(context_.get(), git ? EVP_sha1() : EVP_sha256(),
                           nullptr)
           != 1)
    throw runtime::setup_error(
      "OpenSSL has no " + std::string(git ? "SHA-1" : "SHA-256") + " here");
  if (git) {
    const std::string head = "blob " + std::to_string(bytes);
    // With the zero byte behind it.
    EVP_DigestUpdate(context_.get(), head.c_str(), head.size() + 1);
  }
}

void blob_hash::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string blob_hash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

} // namespace shoal::hub
