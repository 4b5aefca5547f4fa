// apps/common/http_description.cpp -- the gateway's paths, the page's, and others.
#include "apps/common/http_description.hpp"

#include "actors/gateway/description/gateway_description.hpp"
#include "apps/common/http_front.hpp"
#include "apps/page/page.hpp"

namespace shoal::apps {

actors::api_document
describe_api(const std::string& version, const http_extension* more) {
  actors::api_document out(version);
  actors::describe_gateway(out);
  out.add({.method = "GET",
           .path = "/openapi.json",
           .tag = "Node",
           .summary = "this description",
           .body = "",
           .answer = "OpenApi"});
  for (const page_file& f : page_files())
    out.add({.method = "GET",
             .path = std::string(f.path),
             .tag = "Page",
             .summary = "a file of the web page",
             .body = "",
             .answer = "",
             .other_type = std::string(f.type.substr(0, f.type.find(';'))),
             .other_meaning = "the file"});
  if (more)
    more->describe(out);
  return out;
}

} // namespace shoal::apps
