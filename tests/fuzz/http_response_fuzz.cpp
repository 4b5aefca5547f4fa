// tests/fuzz/http_response_fuzz.cpp -- any bytes as an HTTP server's answer, and
// its body as events.
//
// The first byte is the size of the pieces in which the rest comes. The answer
// and its events are the same as from one piece, and limits hold.
#include "runtime/core/assert.hpp"
#include "runtime/http/client/event_stream.hpp"
#include "runtime/http/client/http_client.hpp"
#include "runtime/http/client/response_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace shoal::runtime;

namespace {

constexpr std::size_t head_max = 512, body_max = 256, event_max = 64;

struct outcome {
  response_reader::step last = response_reader::step::more;
  int status = 0;
  std::string body;
};

outcome read(std::string_view bytes, std::size_t piece) {
  response_reader reader(head_max, body_max);
  outcome out;
  std::string input;
  while (out.last == response_reader::step::more && !bytes.empty()) {
    input += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    std::string_view rest = input;
    out.last = reader.put(rest, out.body);
    SHOAL_ASSERT(rest.size() <= input.size());
    input.erase(0, input.size() - rest.size());
    SHOAL_ASSERT(out.body.size() <= body_max);
  }
  if (out.last == response_reader::step::more)
    out.last = reader.end();
  out.status = reader.status();
  SHOAL_ASSERT(out.last != response_reader::step::more);
  SHOAL_ASSERT((out.last == response_reader::step::failed)
               == !reader.error().empty());
  return out;
}

std::vector<std::string> events_in(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> out;
  event_stream events(event_max);
  auto last = event_stream::step::more;
  while (!bytes.empty() && last == event_stream::step::more) {
    last = events.put(bytes.substr(0, piece), [&](std::string_view data) {
      SHOAL_ASSERT(data.size() <= event_max);
      out.emplace_back(data);
      return data != "end";
    });
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  out.push_back(std::to_string(int(last)));
  return out;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1),
                               size - 1);
  const std::size_t piece = 1 + data[0] % 16;
  const auto whole = read(bytes, bytes.size() + 1), cut = read(bytes, piece);
  SHOAL_ASSERT(whole.last == cut.last && whole.status == cut.status);
  if (whole.last == response_reader::step::complete) {
    SHOAL_ASSERT(whole.body == cut.body);
    SHOAL_ASSERT(events_in(whole.body, body_max)
                 == events_in(whole.body, piece));
  }
  SHOAL_ASSERT(events_in(bytes, bytes.size() + 1) == events_in(bytes, piece));
  if (const auto url = parse_http_url(bytes)) {
    const auto again = parse_http_url(url->text());
    SHOAL_ASSERT(again && again->text() == url->text());
  }
  return 0;
}
