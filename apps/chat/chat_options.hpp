// apps/chat/chat_options.hpp -- the options of `shoal chat`, and its function.
//
// As those of other commands in common/commands.hpp.
#pragma once

#include "apps/common/commands.hpp" // node_address

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace shoal::apps {

/// How answers of a chat are made.
struct chat_settings {
  std::string system; ///< what the model is told first; empty: nothing
  // If left out: as the model or its server has it.
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::int64_t> max_tokens;
  std::optional<std::int64_t> seed;
};

struct chat_options {
  node_address at;
  std::string model;        ///< a name or a path; empty: the only one served
  std::string url;          ///< of another server; empty: the local node's
  std::filesystem::path ca; ///< certificates in PEM; empty: the system's
  std::string key_variable; ///< has the API key; empty: none is sent
  chat_settings settings;
  bool json = false;
};
int run_chat(const chat_options& o);

} // namespace shoal::apps
