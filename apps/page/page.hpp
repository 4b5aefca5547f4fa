// apps/page/page.hpp -- the web page of a node, at / of its HTTP endpoint.
//
// Its files are part of the program. They hold no secret, so they need no API
// key; what they ask the node for does. A strict Content-Security-Policy lets
// the page load and ask only what comes from the same node.
//
// Threads: add_page() before the server starts.
#pragma once

#include "runtime/http/http_routes.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

struct page_file {
  std::string_view path; ///< "/page/app.js"
  std::string_view type; ///< its Content-Type
  std::string_view etag; ///< with its quotes
  std::string_view body;
};

/// All of them (embed.py writes this function).
std::span<const page_file> page_files();

/// Answers the paths of the page's files.
void add_page(runtime::http_routes& routes);
/// Paths that need no API key.
std::vector<std::string> page_paths();

} // namespace shoal::apps
