// runtime/wire/convert_cluster.cpp -- views, what cluster cores say, records.
#include "runtime/wire/convert.hpp"
#include "runtime/wire/reflect.hpp"

namespace shoal::runtime::codec {

namespace cl = core::cluster;

void put(wire::ClusterMessage& to, const cl::message& from) {
  put_kind(to, from, cl::message_names);
}

void get(const wire::ClusterMessage& from, cl::message& to, checks& c) {
  get_kind(from, to, cl::message_names, c);
}

void put(wire::Record& to, const cl::record& from) {
  put_kind(to, from, cl::record_names);
}

void get(const wire::Record& from, cl::record& to, checks& c) {
  get_kind(from, to, cl::record_names, c);
}

void get(const pb::Message& from, core::assignment& to, checks& c) {
  get<core::assignment>(from, to, c);
  const auto& old = from.GetReflection()->GetUnknownFields(from);
  if (!to.islands.empty() || old.empty())
    return;
  std::string bytes; // the numbers of the fields are those of IslandPlace
  wire::IslandPlace island;
  if (!old.SerializeToString(&bytes) || !island.ParseFromString(bytes))
    return c.fail(errc::corrupt);
  get(island, to.islands.emplace_back(), c);
}

namespace {

/// Reads the member in field 1, where versions before seats wrote it.
bool read_old_member(const pb::Message& from, wire::MemberId& to) {
  const auto& old = from.GetReflection()->GetUnknownFields(from);
  for (int i = 0; i < old.field_count(); ++i)
    if (const pb::UnknownField& f = old.field(i);
        f.number() == 1 && f.type() == pb::UnknownField::TYPE_LENGTH_DELIMITED)
      return to.ParseFromString(f.length_delimited());
  return false;
}

} // namespace

void get(const pb::Message& from, core::stage_place& to, checks& c) {
  wire::StagePlace now;
  now.CopyFrom(from);
  wire::MemberId old;
  if (now.shards_size() == 0 && read_old_member(from, old))
    *now.add_shards()->mutable_where()->mutable_member() = old;
  get<core::stage_place>(now, to, c);
}

void get(const pb::Message& from, core::holder_place& to, checks& c) {
  wire::HolderPlace now;
  now.CopyFrom(from);
  wire::MemberId old;
  if (!now.has_where() && read_old_member(from, old))
    *now.mutable_where()->mutable_member() = old;
  get<core::holder_place>(now, to, c);
}

} // namespace shoal::runtime::codec
