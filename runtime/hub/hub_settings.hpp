// runtime/hub/hub_settings.hpp -- where the hub and its cache are, by the
// variables that all tools of the hub read.
//
//   HF_ENDPOINT        the hub's URL (default: https://huggingface.co)
//   HF_HUB_CACHE       the cache; else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub
//   HF_HOME            default: XDG_CACHE_HOME/huggingface, where
//                      XDG_CACHE_HOME is ~/.cache unless it is set
//   HF_TOKEN           else the file at HF_TOKEN_PATH, else HF_HOME/token
//   HF_HUB_DISABLE_IMPLICIT_TOKEN   1: send no token
//   HF_HUB_OFFLINE     1: only the cache; TRANSFORMERS_OFFLINE is the same
//   HF_HUB_DOWNLOAD_TIMEOUT   seconds without a byte until it is tried again
//   SSL_CERT_FILE, CURL_CA_BUNDLE   certificates to trust instead of the
//                                   system's
//
// libcurl reads the variables of proxies (https_proxy, no_proxy).
//
// Threads: one, as it reads the environment.
// Errors:  a failure names the variable; never a token.
// Source:  huggingface_hub, constants.py
#pragma once

#include "runtime/core/result.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace shoal::hub {

/// Tokens have some 40 bytes, those of OAuth some thousand.
inline constexpr std::size_t token_bytes_max = 8192;
/// Time without a byte. A server that reads a file from slow storage answers
/// within seconds; a higher value only delays the next try.
inline constexpr std::chrono::seconds silence_usual{30};
inline constexpr std::chrono::seconds silence_max{3600};

struct hub_settings {
  std::string endpoint; ///< without a slash at the end
  std::filesystem::path cache;
  std::string token; ///< empty: none
  bool offline = false;
  std::chrono::seconds silence = silence_usual;
  std::string certificates; ///< a file; empty: the system's
};

/// Returns a variable's value, or nullptr.
using environment = std::function<const char*(const char*)>;

model::result<hub_settings> read_settings(const environment& get);

} // namespace shoal::hub
