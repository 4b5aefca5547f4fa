// runtime/wire/codec.cpp -- the envelope around every message, and records.
#include "runtime/wire/codec.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/membership.hpp" // limits
#include "runtime/wire/convert.hpp"

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
static void put(wire::Envelope& to, const client_request& from) {
  put(*to.mutable_client_request(), from);
}
static void put(wire::Envelope& to, const client_reply& from) {
  put(*to.mutable_client_reply(), from);
}

static void put(wire::Envelope& out, const link_credit& from) {
  wire::LinkCredit& to = *out.mutable_link_credit();
  to.set_plan(from.tag.plan);
  to.set_link(from.tag.link);
  to.set_sequence(from.tag.sequence);
  to.set_fabric(static_cast<std::uint32_t>(from.fabric));
  to.set_kind(static_cast<std::uint32_t>(from.kind));
  to.set_attempt(from.attempt);
}

static void get(const wire::LinkCredit& from, link_credit& to, checks& c) {
  to.tag = {from.plan(), from.link(), from.sequence()};
  c.enumerator(from.fabric(), fabric_kind::tls, fabric_kind::ucx_tcp,
               to.fabric);
  c.enumerator(from.kind(), credit_kind::grant, credit_kind::complete, to.kind);
  to.attempt = from.attempt();
}

static void put(wire::Envelope& out, const blob_request& from) {
  wire::BlobRequest& to = *out.mutable_blob_request();
  to.set_number(from.number);
  to.set_digest(raw(from.digest));
  to.set_offset(from.offset);
  to.set_bytes(from.bytes);
}

static void get(const wire::BlobRequest& from, blob_request& to, checks& c) {
  to.number = from.number();
  c.id(from.digest(), to.digest);
  to.offset = c.at_most(from.offset(), bytes_max);
  to.bytes = c.at_most(from.bytes(), std::uint32_t{blob_chunk_bytes_max});
}

static void put(wire::Envelope& out, const blob_chunk& from) {
  wire::BlobChunk& to = *out.mutable_blob_chunk();
  to.set_number(from.number);
  to.set_digest(raw(from.digest));
  to.set_found(from.found);
  to.set_total_bytes(from.total_bytes);
  to.set_offset(from.offset);
  to.set_bytes(from.bytes.data(), from.bytes.size());
}

static void get(const wire::BlobChunk& from, blob_chunk& to, checks& c) {
  to.number = from.number();
  c.id(from.digest(), to.digest);
  to.found = from.found();
  to.total_bytes = c.at_most(from.total_bytes(), bytes_max);
  // "Not found" repeats the offset that was asked for, and knows no size.
  to.offset =
    c.at_most(from.offset(), to.found ? from.total_bytes() : bytes_max);
  c.bytes(from.bytes(), blob_chunk_bytes_max, to.bytes);
  c.require(to.found ? to.bytes.size() <= to.total_bytes - to.offset
                     : to.bytes.empty());
}

static void put(wire::Envelope& out, const paired_address& from) {
  wire::PairedAddress& to = *out.mutable_paired_address();
  to.set_host(from.host);
  to.set_address(from.address.data(), from.address.size());
}

static void
get(const wire::PairedAddress& from, paired_address& to, checks& c) {
  c.text(from.host(), name_bytes_max, to.host);
  c.bytes(from.address(), paired_address_bytes_max, to.address);
}

static void put(wire::Envelope& out, const link_probe& from) {
  wire::LinkProbe& to = *out.mutable_link_probe();
  to.set_nonce(from.nonce);
  to.set_small(from.small);
  to.set_bulk(from.bulk);
}

static void get(const wire::LinkProbe& from, link_probe& to, checks& c) {
  to.nonce = from.nonce();
  to.small = c.at_most(from.small(), probe_small_max);
  to.bulk = c.at_most(from.bulk(), probe_bulk_max);
}

static void put(wire::Envelope& out, const role_message& from) {
  wire::RoleMessage& to = *out.mutable_role_message();
  to.set_role(from.role);
  to.set_bytes(from.bytes.data(), from.bytes.size());
}

static void get(const wire::RoleMessage& from, role_message& to, checks& c) {
  c.text(from.role(), role_name_bytes_max, to.role);
  c.bytes(from.bytes(), role_message_bytes_max, to.bytes);
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
