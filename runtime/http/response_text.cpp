// runtime/http/response_text.cpp -- status lines, headers and chunks.
#include "runtime/http/response_text.hpp"

#include "runtime/core/assert.hpp"

#include <charconv>
#include <iterator>

namespace shoal::runtime {
namespace {

struct reason {
  unsigned status;
  std::string_view text;
};
constexpr reason reasons[] = {
  {200, "OK"},
  {201, "Created"},
  {202, "Accepted"},
  {204, "No Content"},
  {301, "Moved Permanently"},
  {302, "Found"},
  {304, "Not Modified"},
  {400, "Bad Request"},
  {401, "Unauthorized"},
  {403, "Forbidden"},
  {404, "Not Found"},
  {405, "Method Not Allowed"},
  {408, "Request Timeout"},
  {409, "Conflict"},
  {410, "Gone"},
  {413, "Content Too Large"},
  {415, "Unsupported Media Type"},
  {417, "Expectation Failed"},
  {422, "Unprocessable Content"},
  {429, "Too Many Requests"},
  {431, "Request Header Fields Too Large"},
  {500, "Internal Server Error"},
  {501, "Not Implemented"},
  {503, "Service Unavailable"},
  {504, "Gateway Timeout"},
  {505, "HTTP Version Not Supported"},
};

/// "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale.
std::string date(std::time_t now) {
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed",
                                  "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm t{};
  ::gmtime_r(&now, &t);
  const auto two = [](int number) {
    return std::string(number < 10 ? "0" : "") + std::to_string(number);
  };
  return std::string(days[t.tm_wday]) + ", " + two(t.tm_mday) + " "
         + months[t.tm_mon] + " " + std::to_string(1900 + t.tm_year) + " "
         + two(t.tm_hour) + ":" + two(t.tm_min) + ":" + two(t.tm_sec) + " GMT";
}

void add(std::string& text, std::string_view name, std::string_view value) {
  constexpr std::string_view ends("\r\n\0", 3);
  SHOAL_ASSERT(name.find_first_of(ends) == name.npos
               && value.find_first_of(ends) == value.npos);
  text.append(name).append(": ").append(value).append("\r\n");
}

} // namespace

std::string_view reason_of(unsigned status) {
  for (const reason& r : reasons)
    if (r.status == status)
      return r.text;
  return {};
}

std::string head_text(const response_head& head, std::time_t now) {
  SHOAL_ASSERT(head.status >= 200 && head.status <= 599);
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " ";
  text.append(reason_of(head.status)).append("\r\n");
  add(text, "Date", date(now));
  add(text, "Server", "shoal");
  for (const http_header& h : head.headers)
    add(text, h.name, h.value);
  // 204 and 304 have no body, and so no length.
  if (head.length && head.status != 204 && head.status != 304)
    add(text, "Content-Length", std::to_string(*head.length));
  if (head.chunks)
    add(text, "Transfer-Encoding", "chunked");
  add(text, "Connection", head.close ? "close" : "keep-alive");
  text += "\r\n";
  return text;
}

std::string chunk_text(std::string_view bytes) {
  SHOAL_ASSERT(!bytes.empty());
  char size[16];
  const auto end =
    std::to_chars(std::begin(size), std::end(size), bytes.size(), 16);
  std::string text(size, end.ptr);
  text.append("\r\n").append(bytes).append("\r\n");
  return text;
}

} // namespace shoal::runtime
