// tests/fuzz/http_request_fuzz.cpp -- any bytes as a client of the HTTP server.
//
// The first byte is the size of the pieces in which the rest comes. The requests
// are the same as from one piece, limits hold, and what the gate lets pass has
// no secret.
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/http/http_routes.hpp"
#include "runtime/http/listen_address.hpp"
#include "runtime/http/request_gate.hpp"
#include "runtime/http/request_reader.hpp"
#include "runtime/openai/completion_response.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace shoal;
using runtime::request_reader;

namespace {

constexpr std::size_t head_max = 512;
constexpr std::size_t body_max = 256;

struct outcome {
  std::vector<runtime::http_request> requests;
  bool failed = false;
};

void check_error(const openai::api_error& error) {
  SHOAL_ASSERT(error.status >= 400 && error.status <= 599);
  SHOAL_ASSERT(!error.message.empty() && core::is_shown(error.message));
  SHOAL_ASSERT(core::is_shown(openai::error_json(error)));
}

/// The gates of a server without keys and of one with a key.
void check_gates(const runtime::http_request& head) {
  static runtime::http_routes routes = [] {
    runtime::http_routes r;
    const auto none = [](const std::shared_ptr<runtime::http_exchange>&) {};
    r.add("GET", "/a/*", none);
    r.add("POST", "/", none, "application/json");
    return r;
  }();
  static const std::vector<runtime::request_gate> gates = [] {
    runtime::http_config config;
    config.cors_origins = {"https://a.org"};
    std::vector<runtime::request_gate> out{{config, true}};
    // The key is "k".
    config.keys =
      std::make_shared<const runtime::api_keys>(*runtime::api_keys::parse(
        "ann 8254c329a92850f6d539dd376f4816ee2764517da5e"
        "0235514af433164480d7a",
        "keys"));
    out.emplace_back(config, true);
    return out;
  }();
  for (const runtime::request_gate& gate : gates) {
    auto request = head;
    const auto verdict = gate.check(request, routes);
    SHOAL_ASSERT(request.header("authorization") == nullptr);
    if (verdict.refused)
      check_error(*verdict.refused);
    SHOAL_ASSERT(request.key_name.empty() || request.key_name == "ann");
  }
  if (const auto* const id = head.header("last-event-id"))
    if (const auto last = openai::parse_event_id(*id))
      SHOAL_ASSERT(openai::parse_event_id(openai::to_text(*last)) == last);
  (void)runtime::percent_decoded(head.path);
}

outcome read(std::string_view bytes, std::size_t piece) {
  outcome out;
  request_reader reader(head_max, body_max);
  std::string input;
  for (;;) {
    std::string_view rest = input;
    const auto step = reader.put(rest);
    SHOAL_ASSERT(rest.size() <= input.size());
    input.erase(0, input.size() - rest.size());
    SHOAL_ASSERT(reader.request().body.size() <= body_max);
    switch (step) {
    case request_reader::step::failed:
      check_error(reader.error());
      out.failed = true;
      return out;
    case request_reader::step::head:
      check_gates(reader.request());
      break;
    case request_reader::step::complete:
      (void)reader.keep_alive();
      out.requests.push_back(std::move(reader.request()));
      reader = request_reader(head_max, body_max);
      break;
    case request_reader::step::more:
      if (bytes.empty())
        return out;
      input += bytes.substr(0, piece);
      bytes.remove_prefix(std::min(piece, bytes.size()));
    }
  }
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1),
                               size - 1);
  const auto whole = read(bytes, bytes.size() + 1);
  const auto cut = read(bytes, 1 + data[0] % 16);
  SHOAL_ASSERT(whole.failed == cut.failed);
  SHOAL_ASSERT(whole.requests.size() == cut.requests.size());
  for (std::size_t i = 0; i < whole.requests.size(); ++i) {
    const auto& a = whole.requests[i];
    const auto& b = cut.requests[i];
    SHOAL_ASSERT(a.method == b.method && a.target == b.target
                 && a.path == b.path && a.query == b.query && a.body == b.body
                 && a.headers.size() == b.headers.size());
    for (const auto& header : a.headers)
      SHOAL_ASSERT(header.value.find_first_of("\r\n") == std::string::npos);
  }
  (void)runtime::is_loopback_host(bytes);
  return 0;
}
