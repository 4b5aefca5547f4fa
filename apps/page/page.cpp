// apps/page/page.cpp -- answers with the page's files, or with 304.
#include "apps/page/page.hpp"

#include <memory>

namespace shoal::apps {
namespace {

constexpr char policy[] =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
  "'self'; "
  "img-src 'self' data:; base-uri 'none'; form-action 'none'; "
  "frame-ancestors 'none'";

/// Whether If-None-Match names the tag: `"a", W/"b"` or `*`.
bool names(const std::string* header, std::string_view tag) {
  return header && (*header == "*" || header->find(tag) != std::string::npos);
}

void answer(runtime::http_exchange& x, const page_file& file) {
  // A browser asks each time whether its copy is still good: a node that was
  // upgraded must not be shown by the scripts of the old one.
  std::vector<runtime::http_header> headers = {
    {"ETag", std::string(file.etag)},
    {"Cache-Control", "no-cache"},
    {"Content-Security-Policy", policy},
    {"X-Content-Type-Options", "nosniff"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"}};
  if (names(x.request().header("if-none-match"), file.etag)) {
    x.respond(304, std::move(headers), "");
    return;
  }
  headers.push_back({"Content-Type", std::string(file.type)});
  x.respond(200, std::move(headers), std::string(file.body));
}

} // namespace

void add_page(runtime::http_routes& routes) {
  for (const page_file& file : page_files())
    routes.add("GET", std::string(file.path),
               [&file](const std::shared_ptr<runtime::http_exchange>& x) {
                 answer(*x, file);
               });
}

std::vector<std::string> page_paths() {
  std::vector<std::string> out;
  for (const page_file& file : page_files())
    out.emplace_back(file.path);
  return out;
}

} // namespace shoal::apps
