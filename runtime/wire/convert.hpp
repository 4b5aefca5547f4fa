// runtime/wire/convert.hpp -- the two directions of every message; internal
// to codec.
//
// put() fills a Protobuf message; get() checks one and fills plain data. A
// get() that finds a fault notes it in `checks` and goes on harmlessly, so
// that the rules read as a list; the caller looks at checks::error once.
#pragma once

#include "runtime/core/shown.hpp"
#include "runtime/wire/cluster.pb.h"
#include "runtime/wire/codec.hpp"
#include "runtime/wire/job.pb.h"
#include "runtime/wire/limits.hpp"
#include "runtime/wire/node.pb.h"

#include <array>
#include <cstring>
#include <string>

namespace shoal::runtime::codec {

/// Remembers the first broken rule.
class checks {
public:
  std::error_code error;

  void fail(errc e) {
    if (!error)
      error = e;
  }
  void require(bool holds) {
    if (!holds)
      fail(errc::corrupt);
  }
  template <std::size_t N>
  void id(const std::string& in, std::array<std::uint8_t, N>& out) {
    if (in.size() != N)
      return fail(errc::corrupt);
    std::memcpy(out.data(), in.data(), N);
  }
  /// Text that may be shown as it is (runtime/core/shown.hpp).
  void text(const std::string& in, std::size_t max, std::string& out,
            core::line_ends ends = core::line_ends::none);
  void
  bytes(const std::string& in, std::size_t max, std::vector<std::byte>& out);
  /// @returns whether a list of `count` may be read.
  bool list(int count, std::size_t max) {
    if (static_cast<std::size_t>(count) <= max)
      return true;
    fail(errc::too_large);
    return false;
  }
  template <class Number>
  Number at_most(Number value, std::type_identity_t<Number> max) {
    if (value <= max)
      return value;
    fail(errc::too_large);
    return 0;
  }
  template <class Enum>
  void enumerator(std::uint32_t in, Enum first, Enum last, Enum& out) {
    if (in < static_cast<std::uint32_t>(first)
        || in > static_cast<std::uint32_t>(last))
      return fail(errc::unknown);
    out = static_cast<Enum>(in);
  }
};

template <std::size_t N>
std::string raw(const std::array<std::uint8_t, N>& id) {
  return {reinterpret_cast<const char*>(id.data()), N};
}

/// A list of ids or keys, each of a fixed length.
template <class List, class Id>
void get_ids(const List& from, std::size_t max, std::vector<Id>& to,
             checks& c) {
  if (c.list(from.size(), max))
    for (const std::string& id : from)
      c.id(id, to.emplace_back());
}
/// As checks::id, but absent means zero: fields that views once did not have.
template <std::size_t N>
void get_id_or_zero(const std::string& in, std::array<std::uint8_t, N>& out,
                    checks& c) {
  if (!in.empty())
    c.id(in, out);
}

void put(wire::Invitation& to, const core::invitation& from);
void get(const wire::Invitation& from, core::invitation& to, checks& c);
void put(wire::SupersededShoal& to, const core::superseded_shoal& from);
void get(const wire::SupersededShoal& from, core::superseded_shoal& to,
         checks& c);
void put(wire::View& to, const core::view& from);
void get(const wire::View& from, core::view& to, checks& c);
void put(wire::MemberId& to, const core::member_id& from);
void get(const wire::MemberId& from, core::member_id& to, checks& c);
void put(wire::Member& to, const core::member& from);
void get(const wire::Member& from, core::member& to, checks& c);
void put(wire::DeviceProfile& to, const core::device_profile& from);
void get(const wire::DeviceProfile& from, core::device_profile& to, checks& c);
void put(wire::NetworkProfile& to, const core::network_profile& from);
void get(const wire::NetworkProfile& from, core::network_profile& to,
         checks& c);
void put(wire::JobEntry& to, const core::job_entry& from);
void get(const wire::JobEntry& from, core::job_entry& to, checks& c);
void put(wire::Assignment& to, const core::assignment& from);
void get(const wire::Assignment& from, core::assignment& to, checks& c);

void put(wire::ClusterMessage& to, const core::cluster::message& from);
void get(const wire::ClusterMessage& from, core::cluster::message& to,
         checks& c);
void put(wire::Record& to, const core::cluster::record& from);
void get(const wire::Record& from, core::cluster::record& to, checks& c);

void put(wire::JobMessage& to, const core::job_message& from);
void get(const wire::JobMessage& from, core::job_message& to, checks& c);

void put(wire::ClientRequest& to, const client_request& from);
void get(const wire::ClientRequest& from, client_request& to, checks& c);
void put(wire::ClientReply& to, const client_reply& from);
void get(const wire::ClientReply& from, client_reply& to, checks& c);

/// Lists of addresses occur in several messages.
template <class List>
void get_addresses(const List& from, std::vector<std::string>& to, checks& c) {
  if (!c.list(from.size(), addresses_max))
    return;
  to.resize(static_cast<std::size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i)
    c.text(from[i], address_bytes_max, to[static_cast<std::size_t>(i)]);
}

} // namespace shoal::runtime::codec
