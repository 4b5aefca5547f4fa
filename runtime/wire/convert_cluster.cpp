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

} // namespace shoal::runtime::codec
