// runtime/wire/codec.hpp -- messages to bytes and back, with every check.
//
// Bytes from another machine are not trusted: decode() checks every length,
// number, enumerator and string against a limit and refuses what it does not
// know; nothing behind it checks again. Protobuf carries the fields; its
// headers stay in codec's own sources.
//
// Threads: any. Cost: one Protobuf message; control traffic only.
// Errors:  errc::corrupt     no message of ours, or one that breaks a rule
//          errc::too_large   a length or count over its limit
//          errc::unknown     a version, kind or enumerator of another time
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

/// The same bytes for equal views on every machine and in every build: what a
/// shoal's id is the hash of. Not Protobuf, which promises no such thing.
std::vector<std::byte> canonical(const core::view& v);

/// SHA-256 over canonical(v): peers that hold one view tell one digest.
std::array<std::uint8_t, 32> view_digest(const core::view& v);

/// How a view names a cluster key: a hash, from which it cannot be guessed.
core::key_digest key_digest(const core::cluster_key& key);

/// SHA-256 over canonical(first) and the salt, cut to the id's length.
core::shoal_id name_shoal(const core::view& first, std::uint64_t salt);

} // namespace codec

} // namespace shoal::runtime
