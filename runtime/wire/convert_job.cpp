// runtime/wire/convert_job.cpp -- messages between the peers of one job.
#include "runtime/wire/convert.hpp"
#include "runtime/wire/reflect.hpp"

namespace shoal::runtime::codec {

void put(wire::JobMessage& to, const core::job_message& from) {
  put_kind(to, from, core::job_message_names);
}

void get(const wire::JobMessage& from, core::job_message& to, checks& c) {
  get_kind(from, to, core::job_message_names, c);
}

} // namespace shoal::runtime::codec
