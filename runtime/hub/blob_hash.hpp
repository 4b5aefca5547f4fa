// runtime/hub/blob_hash.hpp -- the hash by which the hub names a file's bytes.
//
// Threads: any, but one at a time for one hash.
// Errors:  the constructor throws setup_error where OpenSSL lacks the hash.
// Source:  git, "Git Internals - Git Objects"; FIPS 180-4, by OpenSSL.
#pragma once

#include "runtime/hub/hub_listing.hpp" // hash_kind

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st; // EVP_MD_CTX

namespace shoal::hub {

class blob_hash {
public:
  /// @param bytes of the whole file, which are a part of git's hash
  blob_hash(hash_kind kind, std::uint64_t bytes);
  void add(std::span<const std::byte> bytes);
  /// In hexadecimal. Add nothing afterwards.
  std::string finish();

private:
  struct release {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, release> context_;
};

} // namespace shoal::hub
