// runtime/http/request_gate.hpp -- which requests come as far as the handler.
//
// In this order: the Host (403), a browser's question before a request from
// another origin (204), the origin of a change (403), the API key (401), a compressed
// body (415), what the handler has against the head (404, 405, 415), and the key's
// limit of requests (429), which counts all but GET and HEAD.
//
// Threads: one. Errors: answers, as api_error.
#pragma once

#include "runtime/http/http_server.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace shoal::runtime {

class request_gate {
public:
  /// @param loopback  whether the server listens on a loopback address
  request_gate(const http_config& config, bool loopback);

  void use_keys(std::shared_ptr<const api_keys> keys) {
    keys_ = std::move(keys);
  }

  struct verdict {
    std::optional<openai::api_error> refused;
    bool preflight = false;           ///< answer with 204
    std::vector<http_header> headers; ///< to be added to any answer
  };
  /// Also removes its key from the request (Authorization, as OpenAI's clients send
  /// it, or X-Api-Key, as Anthropic's do), and sets its key_name and account.
  verdict check(http_request& head, http_handler& handler) const;

private:
  bool allow_origin(const http_request& head,
                    std::vector<http_header>& headers) const;
  /// Whether a web page of another server asks to change what only this one's
  /// may.
  bool is_strange_change(const http_request& head, bool allowed) const;
  enum class access { allowed, no_key, unknown_key };
  access authorize(http_request& head) const;

  std::shared_ptr<const api_keys> keys_;
  std::shared_ptr<key_accounts> accounts_; ///< null: limits have no effect
  std::vector<std::string> open_paths_;
  std::vector<std::string> origins_;
  std::vector<std::string> own_pages_only_;
  bool host_must_be_loopback_;
};

} // namespace shoal::runtime
