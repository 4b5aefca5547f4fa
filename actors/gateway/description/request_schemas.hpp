// actors/gateway/description/request_schemas.hpp -- bodies of the gateway's requests.
//
// Types and bounds of fields are told by the parsers themselves, by reading an example
// of each request; tables here have the meanings, and schemas of the fields that have
// parts.
//
// Threads: any.
#pragma once

#include "actors/gateway/gateway.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace shoal::actors {

/// @pre `what` is a request with a body
nlohmann::ordered_json request_schema(http_question what);

/// Fields that a parser reads and no table means, and the other way round.
std::vector<std::string> request_gaps();

} // namespace shoal::actors
