// runtime/wire/canonical.cpp -- hashes of views and keys.
#include "runtime/core/canonical.hpp"

#include "runtime/wire/codec.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace shoal::runtime::codec {

using core::canonical_writer;

std::vector<std::byte> canonical(const core::view& v) {
  canonical_writer w(canonical_writer::unset::left_out);
  w.add(v);
  return std::move(w).take();
}

static std::array<std::uint8_t, 32> sha256(const std::vector<std::byte>& of) {
  std::array<std::uint8_t, 32> hash{};
  unsigned length = 0;
  if (EVP_Digest(of.data(), of.size(), hash.data(), &length, EVP_sha256(),
                 nullptr)
      != 1)
    std::abort(); // SHA-256 of memory cannot fail
  return hash;
}

std::array<std::uint8_t, 32> view_digest(const core::view& v) {
  return sha256(canonical(v));
}

core::key_digest key_digest(const core::cluster_key& key) {
  canonical_writer w(canonical_writer::unset::left_out);
  w.add("shoal cluster key");
  w.add(key);
  return sha256(std::move(w).take());
}

core::shoal_id name_shoal(const core::view& first, std::uint64_t salt) {
  canonical_writer w(canonical_writer::unset::left_out);
  w.add("shoal first view");
  w.add(salt);
  w.add(first);
  const auto hash = sha256(std::move(w).take());
  core::shoal_id id{};
  std::copy_n(hash.begin(), id.size(), id.begin());
  return id;
}

} // namespace shoal::runtime::codec
