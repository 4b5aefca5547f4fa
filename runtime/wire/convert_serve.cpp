// runtime/wire/convert_serve.cpp -- messages about models that are served.
#include "runtime/wire/convert.hpp"
#include "runtime/wire/reflect.hpp"

namespace shoal::runtime::codec {

void put(wire::ServeMessage& to, const core::serve_message& from) {
  put_kind(to, from, core::serve_message_names);
}

void get(const wire::ServeMessage& from, core::serve_message& to, checks& c) {
  get_kind(from, to, core::serve_message_names, c);
}

} // namespace shoal::runtime::codec
