// actors/gateway/description/written_schemas.hpp -- schemas that no table of the
// program has.
//
// Each is a JSON object: names, and the schema of each.
#pragma once

#include <string_view>

namespace shoal::actors {

/// What the gateway answers, and errors.
std::string_view answer_schemas();
/// Parts of requests that several of them have.
std::string_view request_part_schemas();

} // namespace shoal::actors
