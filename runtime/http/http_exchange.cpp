// runtime/http/http_exchange.cpp -- what all exchanges and handlers share.
#include "runtime/http/http_exchange.hpp"

#include "runtime/anthropic/error_text.hpp"
#include "runtime/core/text/hex.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace shoal::runtime {

const std::string* http_request::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &http_header::name);
  return found == headers.end() ? nullptr : &found->value;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    std::uint8_t byte = 0;
    if (text.size() - i < 3
        || !core::from_hex(text.substr(i + 1, 2), {&byte, 1}))
      return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

bool is_anthropics(std::string_view path) {
  constexpr std::string_view messages = "/v1/messages";
  return path.starts_with(messages)
         && (path.size() == messages.size() || path[messages.size()] == '/');
}

std::string error_body(std::string_view path, const openai::api_error& error) {
  return is_anthropics(path) ? anthropic::error_json(error)
                             : openai::error_json(error);
}

std::vector<http_header> error_headers(const openai::api_error& error) {
  std::vector<http_header> out{{"Content-Type", "application/json"}};
  if (error.retry_after_s == openai::api_error::never)
    out.push_back({"x-should-retry", "false"}); // else clients try 429 again
  else if (error.retry_after_s > 0)
    out.push_back({"Retry-After", std::to_string(error.retry_after_s)});
  return out;
}

bool http_exchange::respond(const openai::api_error& error) {
  return respond(error.status, error_headers(error),
                 error_body(request().path, error));
}

bool http_exchange::respond_json(std::string json) {
  return respond(200, {{"Content-Type", "application/json"}}, std::move(json));
}

std::optional<openai::api_error> http_handler::check(const http_request&) {
  return std::nullopt;
}

std::string http_handler::allowed_methods(const http_request&) {
  return "GET, HEAD, POST";
}

} // namespace shoal::runtime
