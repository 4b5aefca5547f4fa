// actors/gateway/description/gateway_description.hpp -- the operations of the gateway.
//
// Threads: any.
#pragma once

#include "actors/gateway/description/api_document.hpp"

namespace shoal::actors {

void describe_gateway(api_document& to);

} // namespace shoal::actors
