// tests/runtime/wire/random_message.cpp -- any message, from a seed.
#include "tests/runtime/wire/random_message.hpp"

namespace shoal::tests {

namespace cl = core::cluster;
using namespace runtime;

std::string random_message::text(std::size_t max) {
  std::string out(below(max + 1), ' ');
  for (char& c : out)
    c = static_cast<char>(' ' + below(95));
  return out;
}

std::vector<std::byte> random_message::bytes(std::size_t max) {
  std::vector<std::byte> out(below(max + 1));
  for (std::byte& b : out)
    b = static_cast<std::byte>(below(256));
  return out;
}

core::view random_message::view() {
  return fields_.make<core::view>();
}

cl::record random_message::record() {
  return fields_.make_kind<cl::record>(below(std::variant_size_v<cl::record>));
}

client_request random_message::request(std::size_t kind) {
  client_request r;
  r.number = engine_();
  switch (kind) {
  case 0:
    r.body = ask_status{};
    break;
  case 1:
    r.body = put_begin{number(), number()};
    break;
  case 2:
    r.body = put_chunk{engine_(), number(), bytes(2000)};
    break;
  case 3:
    r.body = put_commit{engine_(), id<core::blob_digest>()};
    break;
  case 4:
    r.body = get_blob{id<core::blob_digest>(), number(), 17};
    break;
  case 5:
    r.body = submit_job{fields_.make<core::job_entry>()};
    break;
  case 6:
    r.body = ask_events{engine_(), engine_()};
    break;
  case 7:
    r.body = stop_job{engine_(), coin()};
    break;
  case 8:
    r.body = ask_job{engine_()};
    break;
  case 9:
    r.body = leave_shoal{coin()};
    break;
  case 10:
    r.body = make_invite{static_cast<std::uint32_t>(below(10000))};
    break;
  case 11:
    r.body = use_invite{id<core::cluster_key>(), {}};
    break;
  case 12:
    r.body = revoke{text(), coin()};
    break;
  case 13:
    r.body = wait_no_longer{engine_()};
    break;
  case 14:
    r.body = offer_checkpoint{engine_(), id<core::blob_digest>(), number()};
    break;
  case 15:
    r.body = remove_job{engine_()};
    break;
  case 16:
    r.body = ask_lines{engine_(),
                       static_cast<std::uint32_t>(below(reply_lines_max + 1))};
    break;
  case 17:
    r.body = recover_force{};
    break;
  default:
    r.body = take_back{engine_()};
  }
  r.peer = text();
  return r;
}

job_event random_message::event() {
  job_event e;
  e.kind = static_cast<job_event_kind>(1 + below(6));
  e.step = number();
  e.epoch = number();
  e.loss = real();
  e.grad_norm = real();
  e.lr = real();
  e.tokens = number();
  e.tokens_per_s = real();
  e.bubble = real();
  e.computing_s = real();
  e.reducing_s = real();
  e.bad_steps = 3;
  e.peers = 4;
  e.text = text();
  e.cause = text();
  e.waits = coin();
  fill(e.digest);
  e.unix_ms = static_cast<std::int64_t>(number());
  return e;
}

client_reply random_message::reply() {
  client_reply r;
  r.number = engine_();
  r.code = static_cast<reply_code>(1 + below(4));
  r.text = text(500);
  r.value = engine_();
  fill(r.digest);
  r.bytes = bytes(2000);
  for (std::size_t i = below(4); i > 0; --i)
    r.events.push_back(event());
  r.ended = coin();
  return r;
}

envelope random_message::any(std::size_t kind) {
  if (kind < cluster_kinds)
    return fields_.make_kind<cl::message>(kind);
  kind -= cluster_kinds;
  if (kind < job_kinds)
    return fields_.make_kind<core::job_message>(kind);
  kind -= job_kinds;
  if (kind < serve_kinds)
    return fields_.make_kind<core::serve_message>(kind);
  kind -= serve_kinds;
  if (kind < request_kinds)
    return request(kind);
  switch (kind - request_kinds) {
  case 0:
    return link_credit{{engine_(), 3, 9}, fabric_kind(1 + below(4))};
  case 1:
    return blob_request{engine_(), id<core::blob_digest>(),      number(), 99,
                        engine_(), below(2) == 0 ? 0 : engine_()};
  case 2:
    if (coin())
      return blob_chunk{engine_(), id<core::blob_digest>(), false, 0, 5000, {}};
    return blob_chunk{engine_(),  id<core::blob_digest>(), true, 5000, 17,
                      bytes(2000)};
  case 3:
    return paired_address{text(), bytes(300)};
  case 4:
    return role_message{text(), bytes(300)};
  case 5:
    return link_probe{engine_(), std::uint32_t(below(17)),
                      std::uint32_t(below(5))};
  default:
    return reply();
  }
}

} // namespace shoal::tests
