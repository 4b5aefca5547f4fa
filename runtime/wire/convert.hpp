// runtime/wire/convert.hpp -- the two directions of every message; internal
// to codec.
//
// put() fills a Protobuf message; get() checks one and fills plain data. For
// what names its fields (runtime/core/fields.hpp) both are in reflect.hpp; what
// clients say is written out here, field by field. A get() that finds a fault
// notes it in `checks` and goes on harmlessly.
#pragma once

#include "runtime/wire/checks.hpp"
#include "runtime/wire/cluster.pb.h"
#include "runtime/wire/codec.hpp"
#include "runtime/wire/job.pb.h"
#include "runtime/wire/node.pb.h"

namespace shoal::runtime::codec {

void put(wire::JobEntry& to, const core::job_entry& from);
void get(const wire::JobEntry& from, core::job_entry& to, checks& c);

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

} // namespace shoal::runtime::codec
