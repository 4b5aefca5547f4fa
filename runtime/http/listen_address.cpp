// runtime/http/listen_address.cpp -- addresses of a server, and Host headers.
#include "runtime/http/listen_address.hpp"

#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/shown.hpp"

#include <charconv>
#include <optional>
#include <system_error>

namespace shoal::runtime {
namespace {

struct host_port {
  std::string host;
  std::optional<std::string_view> port;
};

/// Splits "host", "host:port", "[host]" or "[host]:port".
std::optional<host_port> split(std::string_view text) {
  host_port out;
  std::size_t end = text.find(':');
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos)
      return std::nullopt;
    out.host = text.substr(1, end - 1);
    ++end;
  } else {
    out.host = text.substr(0, end);
  }
  if (end < text.size()) {
    if (text[end] != ':')
      return std::nullopt;
    out.port = text.substr(end + 1);
  }
  return out;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, port);
  if (error != std::errc() || end != last)
    return std::nullopt;
  return port;
}

bool is_localhost(std::string_view host) {
  constexpr std::string_view name = "localhost";
  if (host.size() != name.size())
    return false;
  for (std::size_t i = 0; i < name.size(); ++i)
    if ((host[i] | 0x20) != name[i])
      return false;
  return true;
}

} // namespace

listen_address parse_listen(const std::string& text) {
  const auto parts = split(text);
  const auto port =
    parts && parts->port ? parse_port(*parts->port) : std::nullopt;
  const auto ip =
    !parts ? std::nullopt
           : parse_ip(is_localhost(parts->host) ? "127.0.0.1" : parts->host);
  if (!ip || !port)
    throw usage_error("cannot listen for HTTP on \"" + core::shown(text)
                      + "\": give ADDRESS:PORT, such as 127.0.0.1:8080 or "
                        "[::1]:8080");
  return {*ip, *port};
}

void check_exposure(const listen_address& address, const std::string& text,
                    bool has_keys) {
  if (has_keys || is_loopback(address.ip.address))
    return;
  throw usage_error("refusing to serve HTTP on " + core::shown(text)
                    + " without API keys: other machines reach that address; "
                      "give a file of keys by --api-keys (`shoal apikey` makes "
                      "them), or listen on 127.0.0.1");
}

bool is_loopback_host(std::string_view text) {
  const auto parts = split(text);
  if (!parts || (parts->port && !parse_port(*parts->port)))
    return false;
  if (is_localhost(parts->host))
    return true;
  const auto ip = parse_ip(parts->host);
  return ip && is_loopback(ip->address);
}

} // namespace shoal::runtime
