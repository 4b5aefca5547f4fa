// runtime/wire/codec.hpp -- messages to bytes and back, with every check.
//
// Bytes from another machine are not trusted: decode() checks every length,
// number, enumerator and string against a limit and refuses unknown kinds; code
// that uses the result need not check again. Protobuf carries the fields; only
// codec's own sources include its headers.
//
// Threads: any. Cost: one Protobuf message; control traffic only.
// Errors:  errc::corrupt     no message of ours, or one that breaks a rule
//          errc::too_large   a length or count over its limit
//          errc::unknown     an unknown version, kind or enumerator
#pragma once

#include "runtime/core/cluster/events.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/wire/envelope.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace shoal::runtime {

namespace codec {

/// Longest encoded message, as transport::control_bytes_max.
inline constexpr std::size_t message_bytes_max = std::size_t{1} << 20;

using namespace core::limits;

std::vector<std::byte> encode(const envelope& message);
[[nodiscard]] std::error_code
decode(std::span<const std::byte> bytes, envelope& out);

/// One record of the vote file.
std::vector<std::byte> encode_record(const core::cluster::record& r);
[[nodiscard]] std::error_code
decode_record(std::span<const std::byte> bytes, core::cluster::record& out);

/// The same bytes for equal views on every machine and in every build: a
/// shoal's id is their hash. Not Protobuf, which does not guarantee that.
std::vector<std::byte> canonical(const core::view& v);

/// SHA-256 of canonical(v): peers with equal views have equal digests.
std::array<std::uint8_t, 32> view_digest(const core::view& v);

/// The identifier of a cluster key in a view: a hash, from which the key cannot
/// be guessed.
core::key_digest key_digest(const core::cluster_key& key);

/// SHA-256 of canonical(first) and the salt, cut to the id's length.
core::shoal_id name_shoal(const core::view& first, std::uint64_t salt);

} // namespace codec

} // namespace shoal::runtime
