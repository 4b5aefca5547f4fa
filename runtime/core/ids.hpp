// runtime/core/ids.hpp -- identifiers that every layer of a shoal shares.
#pragma once

#include "runtime/core/fields.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace shoal::core {

/// SHA-256 of a peer's Ed25519 public key; the same type as
/// transport::peer_id.
using peer_id = std::array<std::uint8_t, 32>;

/// Grows by one with every agreed view; 0 means none.
using epoch = std::uint64_t;
/// Largest number that is sent, stored and read, here and in the wire format.
/// Far below the maximum of the type, so that the sum of two does not overflow;
/// at a thousand views a second it would take 146 million years.
inline constexpr epoch epoch_max = epoch{1} << 62;

/// Hash of a shoal's first view: two shoals never share one.
using shoal_id = std::array<std::uint8_t, 16>;

/// The secret that all peers share, and the hash by which a view identifies it.
using cluster_key = std::array<std::uint8_t, 32>;
using key_digest = std::array<std::uint8_t, 32>;

/// Random, made by the peer that accepts the submission.
using job_id = std::uint64_t;

/// A member is a key and the epoch that admitted it: a process that lost its
/// memory or its votes returns as another member.
struct member_id {
  peer_id peer{};
  epoch incarnation = 0;
  friend auto operator<=>(const member_id&, const member_id&) = default;
};
void fields(auto& v, of<member_id> auto& x) {
  v("peer", x.peer);
  v("incarnation", x.incarnation, at_most(epoch_max));
}

/// One island of a job (assignment.hpp), by its place in the list.
struct island_id {
  job_id job = 0;
  std::uint32_t index = 0;
  friend auto operator<=>(const island_id&, const island_id&) = default;
};

/// SHA-256 of a blob in the store.
using blob_digest = std::array<std::uint8_t, 32>;

/// All simulated and real time in the core, since an arbitrary origin.
using nanoseconds = std::int64_t;

/// The 16 hexadecimal digits of a job: in text, JSON and file names. (As a JSON
/// number it would lose digits in other programs.)
std::string job_text(job_id job);

/// The first eight hexadecimal digits: the form in which users see ids.
std::string short_name(const peer_id& id);

/// All digits, two per byte.
template <std::size_t N>
std::string to_hex(const std::array<std::uint8_t, N>& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * N);
  for (std::uint8_t b : bytes) {
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

} // namespace shoal::core
