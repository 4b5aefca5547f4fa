// runtime/wire/codec.cpp -- the envelope around every message, and records.
#include "runtime/wire/codec.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/membership.hpp" // limits
#include "runtime/wire/convert.hpp"
#include "runtime/wire/reflect.hpp"

namespace shoal::runtime::codec {

/// Another number means that the fields below have another meaning.
static constexpr std::uint32_t wire_version = 2;
/// A vote file's record holds a view and those of dissolved shoals.
static constexpr std::size_t record_bytes_max =
  message_bytes_max * (core::cluster::former_max + 1);

static void put(wire::Envelope& to, const core::cluster::message& from) {
  put(*to.mutable_cluster(), from);
}
static void put(wire::Envelope& to, const core::job_message& from) {
  put(*to.mutable_job(), from);
}
static void put(wire::Envelope& to, const core::serve_message& from) {
  put(*to.mutable_serve(), from);
}
static void put(wire::Envelope& to, const client_request& from) {
  put(*to.mutable_client_request(), from);
}
static void put(wire::Envelope& to, const client_reply& from) {
  put(*to.mutable_client_reply(), from);
}

static void put(wire::Envelope& to, const link_credit& from) {
  put(*to.mutable_link_credit(), from);
}
static void put(wire::Envelope& to, const blob_request& from) {
  put(*to.mutable_blob_request(), from);
}
static void put(wire::Envelope& to, const blob_chunk& from) {
  put(*to.mutable_blob_chunk(), from);
}
static void put(wire::Envelope& to, const paired_address& from) {
  put(*to.mutable_paired_address(), from);
}
static void put(wire::Envelope& to, const link_probe& from) {
  put(*to.mutable_link_probe(), from);
}
static void put(wire::Envelope& to, const role_message& from) {
  put(*to.mutable_role_message(), from);
}

static void get(const wire::Envelope& from, envelope& to, checks& c) {
  switch (from.body_case()) {
  case wire::Envelope::kCluster:
    return get(from.cluster(), to.emplace<core::cluster::message>(), c);
  case wire::Envelope::kJob:
    return get(from.job(), to.emplace<core::job_message>(), c);
  case wire::Envelope::kLinkCredit:
    return get(from.link_credit(), to.emplace<link_credit>(), c);
  case wire::Envelope::kBlobRequest:
    return get(from.blob_request(), to.emplace<blob_request>(), c);
  case wire::Envelope::kBlobChunk:
    return get(from.blob_chunk(), to.emplace<blob_chunk>(), c);
  case wire::Envelope::kPairedAddress:
    return get(from.paired_address(), to.emplace<paired_address>(), c);
  case wire::Envelope::kRoleMessage:
    return get(from.role_message(), to.emplace<role_message>(), c);
  case wire::Envelope::kClientRequest:
    return get(from.client_request(), to.emplace<client_request>(), c);
  case wire::Envelope::kClientReply:
    return get(from.client_reply(), to.emplace<client_reply>(), c);
  case wire::Envelope::kLinkProbe:
    return get(from.link_probe(), to.emplace<link_probe>(), c);
  case wire::Envelope::kServe:
    return get(from.serve(), to.emplace<core::serve_message>(), c);
  case wire::Envelope::BODY_NOT_SET:
    break;
  }
  c.fail(errc::unknown);
}

template <class Wire>
static std::vector<std::byte> serialize(const Wire& from) {
  std::vector<std::byte> out(from.ByteSizeLong());
  SHOAL_ASSERT(from.SerializeToArray(out.data(), static_cast<int>(out.size())));
  return out;
}

template <class Wire>
static bool parse(std::span<const std::byte> bytes, Wire& to) {
  return to.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

std::vector<std::byte> encode(const envelope& message) {
  wire::Envelope to;
  to.set_version(wire_version);
  std::visit([&](const auto& what) { put(to, what); }, message);
  return serialize(to);
}

std::error_code decode(std::span<const std::byte> bytes, envelope& out) {
  if (bytes.size() > message_bytes_max)
    return errc::too_large;
  wire::Envelope from;
  if (!parse(bytes, from))
    return errc::corrupt;
  if (from.version() != wire_version)
    return errc::unknown;
  checks c;
  get(from, out, c);
  return c.error;
}

std::vector<std::byte> encode_record(const core::cluster::record& r) {
  wire::Record to;
  put(to, r);
  auto bytes = serialize(to);
  // What cannot be read again would be found at the next start, when it is too
  // late: the limits of both directions are the same ones.
  core::cluster::record again;
  SHOAL_ASSERT(!decode_record(bytes, again));
  return bytes;
}

std::error_code
decode_record(std::span<const std::byte> bytes, core::cluster::record& out) {
  if (bytes.size() > record_bytes_max)
    return errc::too_large;
  wire::Record from;
  if (!parse(bytes, from))
    return errc::corrupt;
  checks c;
  get(from, out, c);
  return c.error;
}

} // namespace shoal::runtime::codec
