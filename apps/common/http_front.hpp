// apps/common/http_front.hpp -- the HTTP endpoint of the node in this process.
//
// Threads: the server's own. Errors: usage_error for what the user gave; if no
// port can be had, and none was asked for, the node works without an endpoint.
#pragma once

#include "runtime/context.hpp"
#include "runtime/http/http_routes.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::actors {
class api_document;
class gateway_door;
} // namespace shoal::actors
namespace shoal::runtime {
class http_server;
}

namespace shoal::apps {

struct http_options {
  /// ADDRESS:PORT; empty: loopback, port 8000 or the next free one; "off": none.
  std::string listen;
  std::filesystem::path api_keys; ///< empty: none are asked for
  std::string metrics_compat;     ///< "vllm": /metrics has its names, too
  /// Web pages of other servers that may use the endpoint: their origins, or "*".
  std::vector<std::string> cors;
  bool jobs = false; ///< clients may submit and end jobs, and load models
};

/// Paths beside those of the gateway.
class http_extension {
public:
  virtual ~http_extension() = default;
  /// Called once, before the server listens.
  virtual void add_to(runtime::http_routes& routes) = 0;
  /// What those paths answer, for /openapi.json.
  virtual void describe(actors::api_document& to) const = 0;
  /// Ends what would go on as long as the node: no answer may wait for it.
  virtual void end() = 0;
};

/// Time for requests that are being answered when a node is to leave.
inline constexpr std::chrono::seconds drain_max{30};

class http_front {
public:
  /// Listens. @param say takes lines for users, on any thread
  /// @param more may be empty
  http_front(const http_options& o,
             const std::function<void(const std::string&)>& say,
             std::shared_ptr<http_extension> more = {});
  ~http_front();

  /// To be called before the node starts: its gateway will answer here.
  void open(runtime::role_table& roles);
  /// "127.0.0.1:8000"; empty: there is no endpoint.
  const std::string& endpoint() const noexcept { return endpoint_; }
  /// "http://127.0.0.1:8000/", as a browser on this machine takes it.
  /// @pre there is an endpoint
  std::string url() const;
  /// Whether it listens at every address of this machine.
  bool has_all_addresses() const;
  /// Accepts no more requests, and waits for those that are being answered.
  void drain(std::chrono::milliseconds grace);

private:
  std::shared_ptr<actors::gateway_door> door_;
  std::shared_ptr<http_extension> more_;
  std::unique_ptr<runtime::http_server> server_;
  std::string endpoint_;
};

} // namespace shoal::apps
