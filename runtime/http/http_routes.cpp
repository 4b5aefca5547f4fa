// runtime/http/http_routes.cpp -- finds the function of a path.
#include "runtime/http/http_routes.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace shoal::runtime {
namespace {

/// Bytes of a path or type that an error shows.
constexpr std::size_t shown_max = 80;

/// The part of a path before the next slash, which is taken off.
std::string_view next_part(std::string_view& path) {
  const auto slash = std::min(path.find('/'), path.size());
  const std::string_view part = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return part;
}

/// What follows the prefix of a pattern "/a/*" is not empty, nor is a part in braces.
bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with("/*")) {
    pattern.remove_suffix(1);
    return path.size() > pattern.size() && path.starts_with(pattern);
  }
  if (pattern.find('{') == pattern.npos)
    return pattern == path;
  if (std::ranges::count(pattern, '/') != std::ranges::count(path, '/'))
    return false;
  while (!pattern.empty()) {
    const std::string_view wanted = next_part(pattern);
    const std::string_view part = next_part(path);
    if (wanted.starts_with('{') ? part.empty() : wanted != part)
      return false;
  }
  return true;
}

/// Which of two patterns that match counts.
std::pair<int, std::size_t> rank(std::string_view pattern) {
  const int kind = pattern.ends_with("/*")             ? 0
                   : pattern.find('{') != pattern.npos ? 1
                                                       : 2;
  return {kind, pattern.size()};
}

bool is_type(std::string_view header, std::string_view type) {
  header = header.substr(0, header.find(';'));
  while (header.ends_with(' ') || header.ends_with('\t'))
    header.remove_suffix(1);
  return std::ranges::equal(
    header, type, [](unsigned char a, char b) { return std::tolower(a) == b; });
}

} // namespace

void http_routes::add(std::string method, std::string path, function answer,
                      std::string body_type) {
  SHOAL_ASSERT(path.starts_with('/') && answer);
  routes_.push_back({std::move(method), std::move(path), std::move(body_type),
                     std::move(answer)});
}

std::vector<std::pair<std::string, std::string>> http_routes::all() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const route& r : routes_)
    out.emplace_back(r.method, r.path);
  return out;
}

std::vector<const http_routes::route*>
http_routes::of(const std::string& path) const {
  std::string_view best;
  for (const route& r : routes_)
    if (matches(r.path, path) && (best.empty() || rank(best) < rank(r.path)))
      best = r.path;
  std::vector<const route*> found;
  for (const route& r : routes_)
    if (!best.empty() && r.path == best)
      found.push_back(&r);
  return found;
}

const http_routes::route* http_routes::find(const http_request& head) const {
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  for (const route* const r : of(head.path))
    if (r->method == method)
      return r;
  return nullptr;
}

std::optional<openai::api_error> http_routes::check(const http_request& head) {
  const auto shown = [](const std::string& text) {
    return "\"" + core::shown(text, shown_max) + "\"";
  };
  const auto refuse = [](unsigned status, std::string message,
                         const char* code) {
    auto error = openai::invalid_request(std::move(message), "", code);
    error.status = status;
    return error;
  };
  if (of(head.path).empty())
    return refuse(404, "there is nothing at the path " + shown(head.path),
                  "unknown_path");
  const route* const r = find(head);
  if (!r)
    return refuse(405,
                  "the path " + shown(head.path) + " takes "
                    + allowed_methods(head) + ", not " + shown(head.method),
                  "method_not_allowed");
  const std::string* const type = head.header("content-type");
  if (!r->body_type.empty() && !(type && is_type(*type, r->body_type)))
    return refuse(415,
                  "the Content-Type is " + (type ? shown(*type) : "missing")
                    + ", must be " + r->body_type,
                  "unsupported_media_type");
  return std::nullopt;
}

std::string http_routes::allowed_methods(const http_request& head) {
  std::string list;
  for (const route* const r : of(head.path)) {
    list += (list.empty() ? "" : ", ") + r->method;
    if (r->method == "GET")
      list += ", HEAD";
  }
  return list;
}

void http_routes::on_request(std::shared_ptr<http_exchange> exchange) {
  const route* const r = find(exchange->request());
  SHOAL_ASSERT(r); // check() has let it pass
  r->answer(std::move(exchange));
}

} // namespace shoal::runtime
