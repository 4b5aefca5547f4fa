// apps/common/http_description.hpp -- what /openapi.json answers.
#pragma once

#include "actors/gateway/description/api_document.hpp"

#include <string>

namespace shoal::apps {

class http_extension; // apps/common/http_front.hpp

/// The HTTP API, with the paths of `more`, which may be null.
actors::api_document
describe_api(const std::string& version, const http_extension* more);

} // namespace shoal::apps
