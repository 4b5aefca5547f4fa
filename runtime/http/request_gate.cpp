// runtime/http/request_gate.cpp -- Host, origin, key, then the handler.
#include "runtime/http/request_gate.hpp"

#include "runtime/http/keys/key_account.hpp"
#include "runtime/http/listen_address.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shoal::runtime {
namespace {

/// Names of headers that a web page asks to send; longer lists are refused.
constexpr std::size_t asked_headers_max = 2048;
/// How long a browser may remember the answer (the most that browsers allow is two
/// hours to a day).
constexpr const char* cors_max_age = "7200";
/// What their scripts may read.
constexpr const char* shown_headers =
  "Retry-After, X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, "
  "X-RateLimit-Reset-Requests, X-RateLimit-Limit-Tokens, "
  "X-RateLimit-Remaining-Tokens, X-RateLimit-Reset-Tokens, "
  "Anthropic-RateLimit-Requests-Limit, Anthropic-RateLimit-Requests-Remaining, "
  "Anthropic-RateLimit-Requests-Reset, Anthropic-RateLimit-Tokens-Limit, "
  "Anthropic-RateLimit-Tokens-Remaining, Anthropic-RateLimit-Tokens-Reset";

bool equal_caseless(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

/// The key of "Bearer KEY"; "" if it is something else.
std::string_view bearer(std::string_view value) {
  const auto space = value.find(' ');
  if (space == value.npos || !equal_caseless(value.substr(0, space), "Bearer"))
    return {};
  value.remove_prefix(space);
  while (value.starts_with(' '))
    value.remove_prefix(1);
  return value;
}

/// Pages that may use a node at all may send what they like: clients have headers
/// of their own, such as X-Stainless-Lang. @returns "" if it is no list of names
std::string headers_to_allow(const http_request& head) {
  const std::string* const asked =
    head.header("access-control-request-headers");
  const auto in_a_name = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ',' || c == ' ';
  };
  return asked && asked->size() <= asked_headers_max
             && std::ranges::all_of(*asked, in_a_name)
           ? *asked
           : std::string();
}

} // namespace

request_gate::request_gate(const http_config& config, bool loopback)
  : keys_(config.keys), accounts_(config.accounts),
    open_paths_(config.open_paths), origins_(config.cors_origins),
    own_pages_only_(config.own_pages_only),
    host_must_be_loopback_(loopback && !config.keys) {
}

bool request_gate::allow_origin(const http_request& head,
                                std::vector<http_header>& headers) const {
  if (origins_.empty())
    return false;
  headers.push_back({"Vary", "Origin"});
  const std::string* const origin = head.header("origin");
  if (!origin)
    return false;
  for (const std::string& allowed : origins_)
    if (allowed == "*" || allowed == *origin) {
      headers.push_back({"Access-Control-Allow-Origin", allowed});
      headers.push_back({"Access-Control-Expose-Headers", shown_headers});
      return true;
    }
  return false;
}

bool request_gate::is_strange_change(const http_request& head,
                                     bool allowed) const {
  const std::string* const origin = head.header("origin");
  if (!origin || allowed || head.method == "GET" || head.method == "HEAD")
    return false;
  const std::string* const host = head.header("host");
  const auto scheme = origin->find("://");
  const bool own =
    host && scheme != origin->npos
    && equal_caseless(std::string_view(*origin).substr(scheme + 3), *host);
  return !own
         && std::ranges::any_of(own_pages_only_, [&](const std::string& p) {
              return head.path.starts_with(p);
            });
}

request_gate::access request_gate::authorize(http_request& head) const {
  std::vector<std::string> keys;
  if (const std::string* const value = head.header("authorization"))
    keys.emplace_back(bearer(*value));
  if (const std::string* const value = head.header("x-api-key"))
    keys.push_back(*value);
  std::erase_if(head.headers, [](const http_header& h) {
    return h.name == "authorization" || h.name == "x-api-key";
  });
  if (!keys_)
    return access::allowed;
  for (const std::string& key : keys)
    if (const api_key* const known = keys_->find(key)) {
      head.key_name = known->name;
      if (accounts_)
        head.account = accounts_->of(*known);
      return access::allowed;
    }
  if (std::ranges::find(open_paths_, head.path) != open_paths_.end())
    return access::allowed;
  const bool has_key = std::ranges::any_of(
    keys, [](const std::string& key) { return !key.empty(); });
  return has_key ? access::unknown_key : access::no_key;
}

request_gate::verdict
request_gate::check(http_request& head, http_handler& handler) const {
  verdict out;
  const std::string* const host = head.header("host");
  const access allowed = authorize(head);
  if (host_must_be_loopback_ && host && !is_loopback_host(*host)) {
    out.refused = openai::refused_request(
      403, "the Host header must be localhost or a loopback address",
      "host_not_allowed");
    return out;
  }
  const bool from_page = allow_origin(head, out.headers);
  if (from_page && head.method == "OPTIONS"
      && head.header("access-control-request-method")) {
    out.preflight = true;
    out.headers.push_back(
      {"Access-Control-Allow-Methods", handler.allowed_methods(head)});
    if (std::string names = headers_to_allow(head); !names.empty())
      out.headers.push_back({"Access-Control-Allow-Headers", std::move(names)});
    out.headers.push_back({"Access-Control-Max-Age", cors_max_age});
    return out;
  }
  if (is_strange_change(head, from_page)) {
    out.refused =
      openai::refused_request(403,
                              "the Origin header names a web page of another "
                              "server, which may not change anything here (see "
                              "--http-cors)",
                              "origin_not_allowed");
    return out;
  }
  if (allowed != access::allowed) {
    out.headers.push_back({"WWW-Authenticate", "Bearer"});
    out.refused = openai::invalid_api_key(
      allowed == access::unknown_key
        ? "this server does not know the request's API key: it may be mistyped "
          "or replaced, or have come into the file of keys after the server "
          "was started"
        : "this server needs an API key, and the request has none: send "
          "\"Authorization: Bearer KEY\" or \"X-Api-Key: KEY\"");
    return out;
  }
  const std::string* const coding = head.header("content-encoding");
  if (coding && !equal_caseless(*coding, "identity")) {
    out.refused = openai::refused_request(
      415, "compressed bodies are not supported", "unsupported_media_type");
    return out;
  }
  out.refused = handler.check(head);
  if (out.refused && out.refused->status == 405)
    out.headers.push_back({"Allow", handler.allowed_methods(head)});
  if (!out.refused && head.account && head.method != "GET"
      && head.method != "HEAD")
    out.refused = head.account->take_request();
  return out;
}

} // namespace shoal::runtime
