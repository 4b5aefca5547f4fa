// runtime/wire/convert.hpp -- the two directions of messages with many kinds;
// internal to codec.
//
// put() fills a Protobuf message; get() checks one and fills plain data. Both
// follow from fields() (reflect.hpp); these stand in sources of their own
// because each compiles for long. A get() that finds a fault notes it in
// `checks` and goes on harmlessly.
#pragma once

#include "runtime/wire/checks.hpp"
#include "runtime/wire/cluster.pb.h"
#include "runtime/wire/codec.hpp"
#include "runtime/wire/job.pb.h"
#include "runtime/wire/node.pb.h"
#include "runtime/wire/serve.pb.h"

namespace shoal::runtime::codec {

void put(wire::ClusterMessage& to, const core::cluster::message& from);
void get(const wire::ClusterMessage& from, core::cluster::message& to,
         checks& c);
void put(wire::Record& to, const core::cluster::record& from);
void get(const wire::Record& from, core::cluster::record& to, checks& c);

void put(wire::JobMessage& to, const core::job_message& from);
void get(const wire::JobMessage& from, core::job_message& to, checks& c);

void put(wire::ServeMessage& to, const core::serve_message& from);
void get(const wire::ServeMessage& from, core::serve_message& to, checks& c);

/// Like get() of reflect.hpp. An assignment that was stored before jobs had
/// islands is read as one of one island.
void get(const google::protobuf::Message& from, core::assignment& to,
         checks& c);
/// A stage or holder that was stored before seats has one member, which is read
/// as its first device.
void get(const google::protobuf::Message& from, core::stage_place& to,
         checks& c);
void get(const google::protobuf::Message& from, core::holder_place& to,
         checks& c);

} // namespace shoal::runtime::codec
