// apps/serve/serve_events.hpp -- the lines of `shoal serve --json`.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace shoal::apps {

/// What "ready" says besides its text.
struct serve_ready {
  std::string model; ///< name for requests
  std::string url;   ///< for the base_url of a client
  std::string job;   ///< id, 16 hexadecimal digits
};

/// @param event one of serve_events() (apps/common/json_documents.hpp)
/// @param ready for "ready", and for no other event
nlohmann::ordered_json
serve_line(const std::string& event, const std::string& text,
           const serve_ready* ready = nullptr);

} // namespace shoal::apps
