// actors/gateway/gateway_door.hpp -- the way from the HTTP server's thread to the
// gateway.
//
// The server starts before or after the node: until the gateway is there, clients
// are asked to come again.
//
// Threads: any.
#pragma once

#include "runtime/context.hpp"
#include "runtime/http/http_routes.hpp"

#include <memory>
#include <string>

namespace shoal::runtime {
class key_accounts; // runtime/http/keys/key_account.hpp
}

namespace shoal::actors {

class gateway_door;

/// A handler for the HTTP server. @param version of the program
/// @param vllm_metrics /metrics has the names of vLLM besides
std::shared_ptr<gateway_door>
make_gateway_door(const std::string& version, bool vllm_metrics = false);
/// Their refusals are in /metrics. Before the server starts.
void count_refusals(const std::shared_ptr<gateway_door>& door,
                    std::shared_ptr<const runtime::key_accounts> of);
/// To add paths, before the server starts.
runtime::http_routes& routes_of(const std::shared_ptr<gateway_door>& door);
std::shared_ptr<runtime::http_handler>
handler_of(const std::shared_ptr<gateway_door>& door);

/// Adds the role of the gateway, which, once it is started, answers at the door.
/// A node without it computes for served models all the same.
void open_gateway(runtime::role_table& roles,
                  const std::shared_ptr<gateway_door>& door);

/// Paths that need no API key.
std::vector<std::string> open_paths();

} // namespace shoal::actors
